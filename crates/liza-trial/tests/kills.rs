//! Which tests kill which mutant: run with the real toolchains, compared with the recorded file. `just full` runs it, the gate
//! does not; without `LIZA_FULL=1` only shell is tried. `LIZA_BLESS=1` adds what the file lacks.

#![allow(clippy::unwrap_used, clippy::format_collect, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use liza_trial::corpus::{CorpusTask, Language, tasks};
use liza_trial::mutants::{kill_line, mutants};

/// The seconds of computing after which a mutant is killed: it loops. A busy machine does not change them.
const CPU_LIMIT: &str = "ulimit -t 2; exec \"$0\" \"$@\"";
const LIMIT: Duration = Duration::from_secs(300);

const HEAD: &str = "# task mutant visible-tests hidden-tests; 1: the test kills it. Made by LIZA_BLESS=1 cargo nextest run -p liza-trial toolchains\n";

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/kills.txt")
}

/// A program that exits with 0 if the test of that number passes.
fn program(task: &CorpusTask, patch: &str) -> String {
    let tests = task.visible.iter().chain(&task.hidden);
    match task.language {
        Language::Rust => {
            let arms: String = tests.enumerate().map(|(at, test)| format!("\"{at}\" => {test},\n")).collect();
            format!(
                "#![allow(warnings)]\n{patch}\nfn main() {{\nlet n = std::env::args().nth(1).unwrap();\n\
                 let ok = match n.as_str() {{\n{arms}_ => false }};\nif !ok {{ std::process::exit(1) }}\n}}\n"
            )
        }
        Language::Python => {
            let arms: String =
                tests.enumerate().map(|(at, test)| format!("    {at}: lambda: {test},\n")).collect();
            format!("import sys\n{patch}\nsys.exit(0 if {{\n{arms}}}[int(sys.argv[1])]() else 1)\n")
        }
        Language::JavaScript => {
            let arms: String = tests.map(|test| format!("() => {test},\n")).collect();
            format!("{patch}\nprocess.exit([\n{arms}][process.argv[2]]() ? 0 : 1);\n")
        }
        Language::Shell => {
            let arms: String = tests.enumerate().map(|(at, test)| format!("{at}) {test} ;;\n")).collect();
            format!("{patch}\ncase \"${{TEST}}\" in\n{arms}esac\n")
        }
    }
}

/// The command that runs a program; `None` if it does not compile.
fn build(task: &CorpusTask, patch: &str, folder: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let source = folder.join("source");
    fs::write(&source, program(task, patch)).unwrap();
    let interpreted = |name: &str| Some((PathBuf::from(name), vec![source.clone()]));
    match task.language {
        Language::Rust => {
            let binary = folder.join("binary");
            let compiler = &mut Command::new("rustc");
            compiler.args(["--edition", "2024", "--crate-name", "mutant", "-o"]);
            let built = compiler.arg(&binary).arg(&source).stderr(Stdio::null()).status().unwrap();
            built.success().then_some((binary, Vec::new()))
        }
        Language::Python => interpreted("python3"),
        Language::JavaScript => interpreted("node"),
        Language::Shell => interpreted("sh"),
    }
}

fn start(program: &Path, arguments: &[PathBuf], number: usize) -> Child {
    let command = &mut Command::new("sh");
    command
        .args(["-c", CPU_LIMIT])
        .arg(program)
        .args(arguments)
        .arg(number.to_string())
        .env("TEST", number.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn passes(mut child: Child) -> bool {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// For each test, visible ones first, whether it fails.
fn failing(task: &CorpusTask, patch: &str) -> Vec<bool> {
    let folder = tempfile::tempdir().unwrap();
    let number = task.visible.len() + task.hidden.len();
    let Some((program, arguments)) = build(task, patch, folder.path()) else { return vec![true; number] };
    let running: Vec<Child> = (0..number).map(|at| start(&program, &arguments, at)).collect();
    running.into_iter().map(|child| !passes(child)).collect()
}

fn lines_of(task: &CorpusTask) -> Vec<String> {
    assert_eq!(failing(task, &task.patch).iter().position(|fails| *fails), None, "{} is correct", task.name);
    let line = |(number, patch): (usize, String)| {
        let failing = failing(task, &patch);
        let (visible, hidden) = failing.split_at(task.visible.len());
        kill_line(task, number, visible, hidden)
    };
    mutants(&task.patch).into_iter().enumerate().map(line).collect()
}

/// Writes the file with the lines of tasks that have none.
fn add_missing() {
    let recorded = fs::read_to_string(file()).unwrap_or_default();
    let lines = |task: CorpusTask| {
        let name = format!("{}/{} ", task.language, task.name);
        let known: Vec<String> =
            recorded.lines().filter(|line| line.starts_with(&name)).map(str::to_owned).collect();
        if known.is_empty() { lines_of(&task) } else { known }
    };
    let all: Vec<String> = tasks().into_iter().flat_map(lines).collect();
    fs::write(file(), format!("{HEAD}{}\n", all.join("\n"))).unwrap();
}

/// Covers: TR-01
#[test]
fn the_recorded_kills_are_what_the_toolchains_find() {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if is_set("LIZA_BLESS") {
        add_missing();
    }
    let whole = is_set("LIZA_FULL");
    let tried = tasks().into_iter().filter(|task| whole || task.language == Language::Shell);
    let found: Vec<String> = tried.flat_map(|task| lines_of(&task)).collect();
    let recorded = fs::read_to_string(file()).unwrap();
    let expected = recorded.lines().filter(|line| !line.starts_with('#'));
    let expected: Vec<&str> = expected.filter(|line| whole || line.starts_with("shell/")).collect();
    assert_eq!(found, expected);
}
