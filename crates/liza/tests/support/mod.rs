//! `TestProject`: a repository in a temporary folder and the real `liza` program, with a clean environment.
//!
//! Every test binary of the program includes this module; not every one uses all of it.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod attack;
pub(crate) mod console;
pub(crate) mod process;
pub(crate) mod small_disk;
pub(crate) mod tmux;

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use liza_core::model::{Actor, State, Status, TaskRecord, Timestamp};
use liza_core::protocol::Operation;
use liza_host::worktrees::worktrees_folder;
use liza_team::engine::Engine;
use liza_team::project::Project;
use serde_json::Value;

/// A project in a temporary folder.
pub(crate) struct TestProject {
    home: tempfile::TempDir,
    /// What the programs make in the folder for temporary files goes with the test.
    temporary: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// What a program printed and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) what: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Run {
    fn of(what: String, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { what, stdout: text(&output.stdout), stderr: text(&output.stderr), code }
    }

    /// Checks that it succeeded; returns what it printed.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.code, 0, "{self:#?}");
        &self.stdout
    }

    /// Checks that it exited with that code and, with `--json`, that error code.
    #[track_caller]
    pub(crate) fn refused(&self, exit: i32, code: &str) -> Value {
        assert_eq!(self.code, exit, "{self:#?}");
        let error = self.json()["error"].clone();
        assert_eq!(error["code"], code, "{self:#?}");
        assert_eq!(error["exit"], exit, "{self:#?}");
        error
    }

    /// The one JSON object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The result of a successful `--json` command.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        self.ok();
        let json = self.json();
        assert_eq!(json["ok"], true, "{self:#?}");
        json["result"].clone()
    }
}

impl TestProject {
    /// A repository with one commit and a specification, without a blackboard.
    pub(crate) fn bare() -> Self {
        Self::at("project")
    }

    /// The same in a folder of that name.
    pub(crate) fn at(name: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join(name);
        fs::create_dir(&root).unwrap();
        let config = "[user]\nname = Test\nemail = test@example.com\n[init]\ndefaultBranch = main\n";
        fs::write(home.path().join("gitconfig"), config).unwrap();
        let project = Self { home, temporary: tempfile::tempdir().unwrap(), root };
        project.git(&["init", "-q"]);
        project.write("specs/vision.md", "# Vision\n\nEverything retries.\n");
        project.git(&["add", "."]);
        project.git(&["commit", "-qm", "start"]);
        project
    }

    /// A project with a blackboard and a goal.
    pub(crate) fn new() -> Self {
        let project = Self::bare();
        project.liza(&["init", "Retry everything"]).ok();
        project
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A command with a clean environment, to be run in the project's root.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("TMPDIR", self.temporary.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.home.path().join("gitconfig"))
            .stdin(Stdio::null());
        command
    }

    /// The program itself, ready for more arguments.
    pub(crate) fn program(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_liza"))
    }

    /// Runs `liza` as a person.
    pub(crate) fn liza(&self, arguments: &[&str]) -> Run {
        self.run(self.program().args(arguments))
    }

    /// Runs `liza` as a person who acts for an agent.
    pub(crate) fn liza_as(&self, agent: &str, arguments: &[&str]) -> Run {
        self.run(self.program().args(arguments).env("LIZA_AGENT_ID", agent))
    }

    /// Runs `liza` as an agent's own session.
    pub(crate) fn liza_in(&self, agent: &str, generation: u64, arguments: &[&str]) -> Run {
        let mut program = self.program();
        program.args(arguments).env("LIZA_AGENT_ID", agent);
        self.run(program.env("LIZA_AGENT_GENERATION", generation.to_string()))
    }

    /// Runs any command.
    pub(crate) fn run(&self, command: &mut Command) -> Run {
        let output = command.output().unwrap();
        Run::of(format!("{command:?}"), &output)
    }

    /// Runs `liza` in a terminal of its own, with these keys typed; returns what the person sees.
    pub(crate) fn liza_at_terminal(&self, arguments: &str, keys: &str) -> String {
        let mut terminal = self.command("script");
        terminal.args(["-qec", &format!("{} {arguments}", env!("CARGO_BIN_EXE_liza")), "/dev/null"]);
        terminal.env("TERM", "dumb").stdin(Stdio::piped()).stdout(Stdio::piped());
        // ./check leaves tests with this out if script(1) is not installed.
        let mut child = terminal.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), keys.as_bytes()).unwrap();
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    }

    /// Runs `liza` with this on standard input.
    pub(crate) fn liza_with(&self, arguments: &[&str], input: &str) -> Run {
        let mut program = self.program();
        program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().unwrap();
        // A command that does not read its input may close it early.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Run::of(format!("{program:?}"), &child.wait_with_output().unwrap())
    }

    /// Runs git in the root; must succeed.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_at(&self.root, arguments)
    }

    /// Runs git in a folder; must succeed.
    #[track_caller]
    pub(crate) fn git_at(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut git = self.command("git");
        git.args(arguments).current_dir(folder);
        git.env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z").env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z");
        let run = self.run(&mut git);
        run.ok().trim().to_owned()
    }

    /// Writes a file below the root, with its folders.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file below the root.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.root.join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The blackboard.
    #[track_caller]
    pub(crate) fn snapshot(&self) -> State {
        Project::open(&self.root).unwrap().store().snapshot().unwrap()
    }

    /// A task's record.
    #[track_caller]
    pub(crate) fn record(&self, task: &str) -> TaskRecord {
        self.snapshot().board.body(&task.parse().unwrap()).unwrap().record().clone()
    }

    /// The status of a task, as text.
    #[track_caller]
    pub(crate) fn status(&self, task: &str) -> &'static str {
        self.record(task).status.unwrap().name()
    }

    /// The tasks in that status.
    pub(crate) fn tasks_in(&self, status: Status) -> Vec<String> {
        self.snapshot().board.in_status(status).map(|task| task.to_string()).collect()
    }

    /// The path of a task's worktree.
    pub(crate) fn tree(&self, task: &str) -> PathBuf {
        worktrees_folder(&self.root).join(task)
    }

    /// Runs a command in this process, at that time; it must be accepted.
    #[track_caller]
    pub(crate) fn execute_at<C: Operation>(&self, actor: Actor, at: Timestamp, command: C) -> C::Reply {
        let project = Project::open(&self.root).unwrap();
        Engine::new(&project, actor).at(at).execute(command).unwrap().reply
    }

    /// The blackboard as text.
    pub(crate) fn state(&self) -> String {
        self.read(".liza/state.yaml")
    }

    /// Puts a blackboard in its place that no command has written, so that it is no edit by hand.
    #[track_caller]
    pub(crate) fn place_board(&self, text: &str) {
        self.write(".liza/state.yaml", text);
        for record in ["state.yaml.lock", "state.yaml.prev"] {
            let _ = fs::remove_file(self.root.join(".liza").join(record));
        }
    }

    /// Sets a setting in the file of the blackboard, as a person with an editor would; the value is YAML on one line.
    #[track_caller]
    pub(crate) fn set_config(&self, key: &str, value: &str) {
        let state = self.state();
        let (before, settings) = state.split_once("\nconfig:").unwrap();
        let settings = settings.strip_prefix(" {}").unwrap_or(settings).strip_prefix('\n').unwrap();
        let is_other = |line: &&str| !line.starts_with(&format!("  {key}:"));
        let others: String = settings.split_inclusive('\n').filter(is_other).collect();
        self.write(".liza/state.yaml", &format!("{before}\nconfig:\n  {key}: {value}\n{others}"));
    }

    /// The log as text.
    pub(crate) fn log(&self) -> String {
        self.read(".liza/log.yaml")
    }

    /// Adds a claimable task.
    #[track_caller]
    pub(crate) fn add_task(&self, id: &str) {
        let words = ["add-task", "--id", id, "--desc", "Do it", "--spec", "specs/vision.md"];
        self.liza(&[&words[..], &["--done", "It is done", "--scope", "All of it"]].concat()).ok();
    }

    /// Registers an agent; returns its generation.
    #[track_caller]
    pub(crate) fn register(&self, agent: &str) -> u64 {
        self.liza(&["register", agent, "--json"]).result()["generation"].as_u64().unwrap()
    }
}
