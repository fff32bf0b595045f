//! The guide shows what the program does: every block of it is run and compared.

use std::fs;
use std::path::Path;

use crate::support::TestProject;

/// Covers: CM-05
#[test]
fn one_task_by_hand_is_true() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/one-task-by-hand.md");
    let guide = fs::read_to_string(guide).unwrap();
    let blocks: Vec<&str> =
        guide.split("```console\n").skip(1).map(|b| b.split("```").next().unwrap()).collect();
    let shown = blocks.concat();
    let commands: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() > 20);
    let project = TestProject::at("shop");
    let script: String =
        commands.iter().map(|line| format!("echo {}\n{line} 2>&1\n", quoted(line))).collect();
    let program = Path::new(env!("CARGO_BIN_EXE_liza")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let mut shell = project.command("bash");
    let seen = project.run(shell.args(["-c", &script]).env("PATH", path));
    let seen = seen.stdout.replace(project.root.to_str().unwrap(), "/home/ada/shop");
    // What agent programs there are is the machine's own affair.
    let seen = seen.lines().take_while(|line| !line.contains("agent programs")).map(blurred);
    let shown = shown.lines().take_while(|line| !line.contains("agent programs")).map(blurred);
    let (seen, shown): (Vec<String>, Vec<String>) = (seen.collect(), shown.collect());
    assert_eq!(seen.len(), shown.len());
    for (number, (seen, shown)) in seen.iter().zip(&shown).enumerate() {
        assert_eq!(seen, shown, "line {number} of the blocks");
    }
}

fn quoted(line: &str) -> String {
    format!("'$ {}'", line.replace('\'', "'\\''"))
}

/// A line without what differs from run to run: names of commits, times, sizes.
fn blurred(line: &str) -> String {
    let vague = |word: &str| {
        let trimmed = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
        let digits = |c: char| c.is_ascii_hexdigit();
        let commit = [7, 8, 40].contains(&trimmed.len()) && trimmed.chars().all(digits);
        let number = trimmed.contains(|c: char| c.is_ascii_digit())
            && trimmed.starts_with(|c: char| c.is_ascii_digit());
        if commit || number { "#".to_owned() } else { word.to_owned() }
    };
    line.split(' ').map(vague).collect::<Vec<_>>().join(" ")
}
