//! A project whose agent programs are shell scripts, with supervisors that can be observed and stopped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use liza_core::model::{AgentRecord, State, Status, TaskRecord};
use liza_host::worktrees::worktrees_folder;
use liza_team::project::Project;

use crate::support::TestProject;
use crate::support::process::{Running, wait_for, wait_up_to};

/// A coder that does everything right; `$1` is the task.
pub(crate) const CODER: &str = r#"
echo "work on $1" > "$1.txt"
git add . && git commit -qm "work on $1"
"$LIZA" pre-check "$1" --intent "do it" --validation "cat $1.txt"
"$LIZA" submit-for-review "$1" "$(git rev-parse HEAD)"
exit 42
"#;

/// A code reviewer that approves.
pub(crate) const REVIEWER: &str =
    r#""$LIZA" submit-verdict "$1" APPROVED "cat: the file is what the task asks for""#;

/// The longest that anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(45);

/// A project with scripts as agent programs.
pub(crate) struct Bench {
    pub(crate) project: TestProject,
    /// A variable in the environment of every process that is started from here.
    mark: String,
}

impl Bench {
    /// A project with a goal; `config` is added to its config, the scripts to its providers.
    pub(crate) fn new(config: &str, scripts: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let project = TestProject::new();
        let mark = format!("LIZA_TEST_MARK={}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // The scripts leave marks in the home folder.
        project.set_config("sandbox", "off");
        // What scripts need of the test, and what they export for commands below `liza check`.
        project.set_config("pass_env", "[LIZA, LIZA_TEST_MARK, KEPT, PLAN, REVIEWER, HERE, CACHE]");
        for (key, value) in config.lines().filter_map(|line| line.trim().split_once(": ")) {
            project.set_config(key, value);
        }
        let mut providers = Vec::new();
        for (name, body) in scripts {
            let path = project.home().join(format!("{name}.sh"));
            let head = "#!/bin/sh\ncat > \"$HOME/last-prompt\"\n";
            fs::write(&path, format!("{head}{body}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            providers.push(format!("{name}: {{program: {}, args: [\"{{task}}\"]}}", path.display()));
        }
        if !providers.is_empty() {
            project.set_config("providers", &format!("{{{}}}", providers.join(", ")));
        }
        project.liza(&["validate"]).ok();
        Self { project, mark }
    }

    /// Starts `liza agent` with these arguments.
    pub(crate) fn agent(&self, arguments: &[&str]) -> Running {
        self.agent_in_zone("UTC", arguments)
    }

    /// The same in another time zone.
    pub(crate) fn agent_in_zone(&self, zone: &str, arguments: &[&str]) -> Running {
        let (name, value) = self.mark.split_once('=').unwrap();
        let mut program = self.project.program();
        program.env("TZ", zone);
        program
            .arg("agent")
            .args(arguments)
            .env("LIZA", env!("CARGO_BIN_EXE_liza"))
            .env("TEST_API_KEY", "very-secret-value-0123456789")
            .env("LIZA_PLAYBOOK", self.playbook())
            .env(name, value);
        Running::start(&self.project, program)
    }

    /// The playbook of rehearsal agents, if the file exists.
    fn playbook(&self) -> String {
        let path = self.project.home().join("playbook.yaml");
        if path.exists() { path.display().to_string() } else { String::new() }
    }

    /// The variables that a session needs if this process starts it.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let (name, value) = self.mark.split_once('=').unwrap();
        let config = self.project.home().join("gitconfig");
        let text = |path: &Path| path.display().to_string();
        vec![
            ("LIZA".to_owned(), env!("CARGO_BIN_EXE_liza").to_owned()),
            ("HOME".to_owned(), text(self.project.home())),
            ("GIT_CONFIG_GLOBAL".to_owned(), text(&config)),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
            (name.to_owned(), value.to_owned()),
        ]
    }

    pub(crate) fn state(&self) -> State {
        let project = Project::open(&self.project.root).unwrap();
        wait_for("the blackboard can be read", || project.store().snapshot().ok())
    }

    pub(crate) fn task(&self, id: &str) -> TaskRecord {
        self.state().board.body(&id.parse().unwrap()).unwrap().record().clone()
    }

    pub(crate) fn status(&self, id: &str) -> Status {
        self.task(id).status.unwrap()
    }

    #[track_caller]
    pub(crate) fn until_status(&self, id: &str, status: Status) {
        wait_for(&format!("{id} is {status}"), || (self.status(id) == status).then_some(()));
    }

    pub(crate) fn entry(&self, agent: &str) -> Option<AgentRecord> {
        self.state()
            .board
            .agents()
            .unwrap()
            .get(&agent.parse::<liza_core::model::AgentId>().unwrap())
            .cloned()
    }

    /// The running processes that descend from this test.
    pub(crate) fn running(&self) -> Vec<String> {
        self.processes().into_iter().map(|(_, line)| line).collect()
    }

    /// The same with their process IDs.
    pub(crate) fn processes(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let marked =
                environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes());
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if marked && !line.is_empty() {
                let id = entry.file_name().to_string_lossy().into_owned();
                found.push((id, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    #[track_caller]
    pub(crate) fn until_nothing_runs(&self) {
        let left = wait_up_to(LONG, || self.running().is_empty().then_some(()));
        assert!(left.is_some(), "{:#?}", self.running());
    }

    /// The output of all sessions, concatenated.
    pub(crate) fn outputs(&self) -> String {
        self.kept("agent-outputs").iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    /// The prompts, sorted by file name.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.kept("agent-prompts").iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    pub(crate) fn kept(&self, folder: &str) -> Vec<PathBuf> {
        let folder = self.project.root.join(".liza").join(folder);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    /// The programs of this test's Rust, as a person has them: rustup's folder is `~/.rustup`, here a link.
    pub(crate) fn rust(&self) -> PathBuf {
        let programs = Path::new(env!("CARGO")).parent().unwrap();
        let toolchains = programs.ancestors().find(|folder| folder.ends_with("toolchains"));
        let Some(rustup) = toolchains.and_then(Path::parent) else { return programs.to_owned() };
        let link = self.home().join(".rustup");
        std::os::unix::fs::symlink(rustup, &link).unwrap();
        link.join(programs.strip_prefix(rustup).unwrap())
    }

    /// Waits for a file that a script creates in the home folder.
    pub(crate) fn until_file(&self, name: &str) -> String {
        let path = self.project.home().join(name);
        wait_for(&format!("{name} is there"), || fs::read_to_string(&path).ok())
    }

    /// The text of a file of whole lines, which may exist before it is written.
    pub(crate) fn until_text(&self, name: &str) -> String {
        let path = self.project.home().join(name);
        let text = || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
        wait_for(&format!("{name} is written"), text)
    }

    pub(crate) fn tree(&self, task: &str) -> PathBuf {
        worktrees_folder(&self.project.root).join(task)
    }

    /// Checks that the blackboard is valid.
    #[track_caller]
    pub(crate) fn check_valid(&self) {
        self.project.liza(&["validate"]).ok();
    }

    pub(crate) fn home(&self) -> &Path {
        self.project.home()
    }
}
