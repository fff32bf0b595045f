//! The trial with a real program: small projects of its own, one for each task and way of working, and the real `liza` in them. Touches no
//! project of the person.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use liza_core::model::{EventName, Status, TaskId};
use liza_core::rules::figures::GoalFigures;
use liza_git::Git;
use liza_host::durable;
use liza_rehearsal::{FileContent, SampleProject};
use liza_team::project::{Project, now};
use liza_team::run::demo::{folder, set_stage};
use liza_trial::fresh::{FreshTask, Kind, TRAP, TRAP_TEXT};
use liza_trial::model_trial::{ArmResult, ModelPlan, PairResult};

use super::context::Context;
use super::ui::error::CommandError;

/// The most supervisors that are started for one task in one arm.
const STARTS_MAX: usize = 12;
/// The most sessions in a row that leave the task as it was.
const IDLE_MAX: usize = 2;

/// A trial in its folder.
pub(crate) struct ModelTrial<'t> {
    pub(crate) context: &'t Context,
    pub(crate) folder: PathBuf,
    pub(crate) program: &'t str,
}

/// One task in one arm: its project, and what was used in it.
struct Attempt<'t> {
    trial: &'t ModelTrial<'t>,
    task: &'t FreshTask,
    id: TaskId,
    root: PathBuf,
    project: Project,
    /// The supervisors that were started, with or without a session.
    started: usize,
}

fn failed(what: &str, error: impl std::fmt::Display) -> CommandError {
    CommandError::refused("io", format!("cannot {what}: {error}"))
}

impl<'t> ModelTrial<'t> {
    /// Commits the plan, before anything is run; returns the commit.
    pub(crate) fn begin(&self, plan: &ModelPlan) -> Result<String, CommandError> {
        let text = serde_json::to_string_pretty(plan).map_err(|error| failed("write the plan", error))?;
        let file = FileContent { path: "plan.json".into(), text: format!("{text}\n") };
        let sample = SampleProject { goal: String::new(), files: vec![file] };
        set_stage(&self.folder, &sample)?;
        Ok(Git::new()
            .command("reading the plan's commit", &self.folder)
            .args(["rev-parse", "HEAD"])
            .read_text()?)
    }

    pub(crate) fn keep(&self, pairs: &[PairResult]) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(pairs).map_err(|error| failed("write the results", error))?;
        durable::replace_file(&self.folder.join("results.json"), text.as_bytes())
            .map_err(|error| failed("write the results", error))
    }

    /// One task in both arms; the agent alone may use what the team has used.
    pub(crate) fn pair(&self, task: &FreshTask) -> Result<PairResult, CommandError> {
        let team = self.attempt(task, "team")?.team()?;
        let solo = self.attempt(task, "alone")?.alone(team.tokens)?;
        Ok(PairResult { task: task.name.clone(), kind: task.kind, arms: [team, solo] })
    }

    fn attempt<'a>(&'a self, task: &'a FreshTask, arm: &str) -> Result<Attempt<'a>, CommandError> {
        let root = folder(Some(&self.folder.join(format!("{}-{arm}", task.name))))?;
        let file = |path: &str, text: &str| FileContent { path: path.into(), text: text.to_owned() };
        let mut files = vec![
            file("specs/vision.md", &format!("# Vision\n\n{}\n", task.text)),
            file("tests/visible.sh", &task.visible),
            file(
                "scripts/integration-test.sh",
                "#!/bin/sh\ntest ! -e tests/visible.sh || exec sh tests/visible.sh\n",
            ),
        ];
        if task.kind == Kind::ScopeTrap {
            files.push(file(TRAP, TRAP_TEXT));
        }
        set_stage(&root, &SampleProject { goal: String::new(), files })?;
        let id: TaskId = task.name.parse()?;
        let liza = |words: &[&str]| self.liza(&root, words);
        liza(&["init", &format!("Have {}", task.file())])?;
        let done = "tests/visible.sh passes, as it is now";
        let scope = format!("{} and your own tests in tests/own/; no other file", task.file());
        liza(&[
            "add-task",
            "--id",
            &task.name,
            "--desc",
            &task.text,
            "--spec",
            "specs/vision.md",
            "--done",
            done,
            "--scope",
            &scope,
            "--validate",
            "sh tests/visible.sh",
        ])?;
        // A review that its validation has ended has no session to wait for.
        liza(&["config", "coder_max_wait", "1"])?;
        // The agent alone is asked again as long as it has tokens.
        if arm == "alone" {
            liza(&["config", "max_review_cycles", "50"])?;
            liza(&["config", "max_coder_iterations", "50"])?;
        }
        let project = Project::open(&root)?;
        Ok(Attempt { trial: self, task, id, root, project, started: 0 })
    }

    /// Runs liza in a project; it has to succeed.
    fn liza(&self, root: &Path, words: &[&str]) -> Result<(), CommandError> {
        let mut command = Command::new(&self.context.program);
        command.arg("-C").arg(root).args(words).stdin(Stdio::null());
        let output = command.output().map_err(|error| failed("start liza", error))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        match output.status.success() {
            true => Ok(()),
            false => Err(CommandError::refused("trial_failed", format!("liza {}: {said}", words[0]))
                .hint(format!("its project is kept: {}", root.display()))),
        }
    }
}

impl Attempt<'_> {
    /// Coder and code reviewer by turns, until the task is merged or waits for the person.
    fn team(mut self) -> Result<ArmResult, CommandError> {
        while let Some(role) = self.next_role()? {
            if !self.session(role)? {
                break;
            }
        }
        let merged = self.record()?.merge_commit.map(|commit| commit.to_string());
        self.result(merged)
    }

    /// One agent, which is asked to look again while it has tokens; what it hands in last is delivered.
    fn alone(mut self, tokens: u64) -> Result<ArmResult, CommandError> {
        while let Some(role) = self.next_role()? {
            if role == "code-reviewer" {
                if self.tokens()? >= tokens || self.started >= STARTS_MAX {
                    break;
                }
                let again = "Look at your work once more: does it do all that the task says, and only that? Hand it in again.";
                self.trial.liza(&self.root, &["submit-verdict", &self.task.name, "REJECTED", again])?;
            }
            if !self.session("coder")? {
                break;
            }
        }
        let record = self.record()?;
        let is_handed_in =
            matches!(record.status, Some(Status::ReadyForReview | Status::Rejected | Status::Claimed));
        let delivered = record.review_commit.filter(|_| is_handed_in).map(|commit| commit.to_string());
        self.result(delivered)
    }

    fn record(&self) -> Result<liza_core::model::TaskRecord, CommandError> {
        Ok(self.project.store().snapshot()?.board.body(&self.id)?.record().clone())
    }

    fn tokens(&self) -> Result<u64, CommandError> {
        Ok(GoalFigures::of(&self.project.store().snapshot()?, now()).total.tokens())
    }

    /// The role whose turn it is; `None` if the task has ended or waits for the person.
    fn next_role(&self) -> Result<Option<&'static str>, CommandError> {
        Ok(match self.record()?.status {
            Some(Status::Unclaimed | Status::Claimed | Status::Rejected | Status::IntegrationFailed) => {
                Some("coder")
            }
            Some(Status::ReadyForReview) => Some("code-reviewer"),
            // Its merge has failed or waits for the human.
            Some(Status::Approved) => None,
            Some(
                Status::Draft | Status::Blocked | Status::Merged | Status::Superseded | Status::Abandoned,
            )
            | None => None,
        })
    }

    /// Runs sessions of that role until the task changes; false if it does not, or if there were too many.
    fn session(&mut self, role: &str) -> Result<bool, CommandError> {
        for _ in 0..IDLE_MAX {
            if self.started >= STARTS_MAX {
                return Ok(false);
            }
            let before = self.record()?;
            self.started += 1;
            let words = ["agent", role, &self.task.name, "--once", "--cli", self.trial.program, "--quiet"];
            // How a session ends is on the blackboard.
            let _ = self.trial.liza(&self.root, &words);
            let after = self.record()?;
            if (after.status, &after.review_commit) != (before.status, &before.review_commit) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn result(&self, delivered: Option<String>) -> Result<ArmResult, CommandError> {
        let record = self.record()?;
        let end = record.status.map(|status| status.to_string()).unwrap_or_default();
        // A review that its validation has ended is none.
        let sessions = record.events().filter(|event| event.is(EventName::SessionEnded)).count();
        let tokens = self.tokens()?;
        let result = ArmResult { sessions, tokens, end, ..ArmResult::default() };
        let Some(commit) = delivered else { return Ok(result) };
        let git =
            |words: &[&str]| Git::new().command("reading what was delivered", &self.root).args(words).read();
        let range = format!("main...{commit}");
        let changed = git(&["diff", "--name-only", "-z", &range, "--"])?;
        let changed = changed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let changed = changed.map(|path| String::from_utf8_lossy(path).into_owned());
        let out_of_scope = changed.filter(|path| !self.task.may_change(path)).collect();
        // A file that is not there fails the tests, as it should.
        let code = git(&["show", &format!("{commit}:{}", self.task.file())]).unwrap_or_default();
        let wrong = self.task.kind != Kind::Impossible && !self.passes_hidden(&code)?;
        Ok(ArmResult { delivered: true, wrong, out_of_scope, ..result })
    }

    /// Runs the hidden tests on what was delivered, confined as the work of any agent.
    fn passes_hidden(&self, code: &[u8]) -> Result<bool, CommandError> {
        let judged = folder(Some(&self.root.with_extension("judged")))?;
        let write = |name: &str, bytes: &[u8]| {
            durable::replace_file(&judged.join(name), bytes)
                .map_err(|error| failed("write the hidden tests", error))
        };
        write(&self.task.file(), code)?;
        write("hidden.sh", self.task.hidden.as_bytes())?;
        let mut command = Command::new(&self.trial.context.program);
        command.arg("-C").arg(&judged).args(["check", "--", "sh", "-c", "ulimit -t 10; exec sh hidden.sh"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let passed = command.status().map_err(|error| failed("run the hidden tests", error))?.success();
        let _ = fs::remove_dir_all(&judged);
        Ok(passed)
    }
}
