//! Runs the command blocks of a page and compares their output line by line.

use std::fs;
use std::path::Path;

use super::TestProject;

/// The text of a page below `docs/`.
pub(crate) fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs all `console` blocks of a page up to `until` in one shell; returns the documented and the real output.
pub(crate) fn run(project: &TestProject, page: &str, until: &str) -> (Vec<String>, Vec<String>) {
    let blocks = page.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
    let shown = blocks.collect::<String>();
    let commands = shown.lines().filter_map(|line| line.strip_prefix("$ "));
    let script: String = commands.map(|line| format!("echo {}\n{line} 2>&1\n", quoted(line))).collect();
    let program = Path::new(env!("CARGO_BIN_EXE_liza")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let mut shell = project.command("bash");
    let seen = project.run(shell.args(["-c", &script]).env("PATH", path));
    let seen = seen.stdout.replace(project.root.to_str().unwrap(), "/home/ada/shop");
    let lines = |text: &str| text.lines().take_while(|line| !line.contains(until)).map(normalized).collect();
    (lines(&shown), lines(&seen))
}

fn quoted(line: &str) -> String {
    format!("'$ {}'", line.replace('\'', "'\\''"))
}

/// A line without values that differ between runs: commits, times, sizes.
fn normalized(line: &str) -> String {
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
