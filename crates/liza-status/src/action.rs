//! The actions of a person on a screen, each as a command line. The terminal and the browser share it.
//!
//! The rules decide which task may be changed; here only senseless actions are left out.

use crate::command_line::{CommandLine, OPEN};
use crate::needs_you::NeedsYou;
use crate::view::{AgentView, TaskView};
use liza_core::model::{AgentId, Generation, Revision, Role, Status, TaskId};
use liza_core::rules::spending::{Amount, Spending};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Pause,
    /// After a pause or a checkpoint.
    Resume,
    Checkpoint,
    Abort,
    /// A note for the agents of one task, or for all.
    Note(Option<TaskId>),
    /// An answer for a task; a blocked one continues.
    Answer(TaskId),
    /// Approve the submission up to this revision of the task: the one that the person has seen.
    Approve(TaskId, Revision),
    /// Reject the submission up to this revision of the task.
    Reject(TaskId, Revision),
    Release(TaskId),
    Add,
    /// Block a task, so that the planner plans it again.
    Replan(TaskId),
    StartAgent,
    /// End an agent and its session: the registration that the person has seen.
    StopAgent(AgentSubject),
    /// The command that answers a need of the human; the person types `...`.
    Suggested(Vec<String>),
}

/// The warning before an agent is started.
const IN_BACKGROUND: &str = "It runs in the background until its role has nothing left to do.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ActionName {
    Pause,
    Resume,
    Checkpoint,
    Abort,
    Note,
    NoteAll,
    Answer,
    Approve,
    Reject,
    Release,
    Replan,
    Add,
    StartAgent,
    StopAgent,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ActionSubject<'v> {
    pub task: Option<&'v TaskView>,
    pub agent: Option<AgentSubject>,
}

/// An agent as the person has seen it. Another one may get its name later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentSubject {
    pub id: AgentId,
    /// Its registration; old files have none.
    pub generation: Option<Generation>,
}

impl From<&AgentView> for AgentSubject {
    fn from(agent: &AgentView) -> Self {
        Self { id: agent.id, generation: agent.generation }
    }
}

impl<'v> ActionSubject<'v> {
    pub fn task(task: &'v TaskView) -> Self {
        Self { task: Some(task), agent: None }
    }

    pub fn agent(agent: &AgentView) -> Self {
        Self { task: None, agent: Some(agent.into()) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionField {
    pub label: &'static str,
    pub optional: bool,
    /// Empty if any text is possible.
    pub choices: &'static [&'static str],
}

const ROLES: [&str; 3] = [Role::Planner.id_prefix(), Role::Coder.id_prefix(), Role::CodeReviewer.id_prefix()];

impl ActionField {
    fn required(label: &'static str) -> Self {
        Self { label, optional: false, choices: &[] }
    }

    fn optional(label: &'static str) -> Self {
        Self { label, optional: true, choices: &[] }
    }

    fn one_of(label: &'static str, choices: &'static [&'static str]) -> Self {
        Self { label, optional: false, choices }
    }
}

impl Action {
    /// The action of that name about this task or agent, if it makes sense now.
    pub fn new(name: ActionName, subject: ActionSubject<'_>) -> Result<Self, &'static str> {
        let action = Self::requested(name, subject, None)?;
        let status = subject.task.and_then(|task| task.status);
        match &action {
            Action::Answer(_) | Action::Replan(_) if status.is_some_and(Status::is_terminal) => {
                Err("the task has ended")
            }
            Action::Approve(..) | Action::Reject(..) if status != Some(Status::ReadyForReview) => {
                Err("only a task that waits for a verdict can be approved or rejected")
            }
            Action::Release(_) if !subject.task.is_some_and(is_claimed) => {
                Err("no agent has claimed the task")
            }
            Action::Pause
            | Action::Resume
            | Action::Checkpoint
            | Action::Abort
            | Action::Note(_)
            | Action::Answer(_)
            | Action::Approve(..)
            | Action::Reject(..)
            | Action::Release(_)
            | Action::Add
            | Action::Replan(_)
            | Action::StartAgent
            | Action::StopAgent(_)
            | Action::Suggested(_) => Ok(action),
        }
    }

    /// The action of a person who has seen that revision of the task. The rules decide if it still applies,
    /// so that the person gets the refusal of the command.
    pub fn requested(
        name: ActionName,
        subject: ActionSubject<'_>,
        seen: Option<Revision>,
    ) -> Result<Self, &'static str> {
        let task = || subject.task.map(|task| task.id.clone()).ok_or("select a task first");
        let seen = seen.or(subject.task.map(|task| task.revision)).unwrap_or_default();
        Ok(match name {
            ActionName::Pause => Action::Pause,
            ActionName::Resume => Action::Resume,
            ActionName::Checkpoint => Action::Checkpoint,
            ActionName::Abort => Action::Abort,
            ActionName::NoteAll => Action::Note(None),
            ActionName::Note => Action::Note(Some(task()?)),
            ActionName::Add => Action::Add,
            ActionName::Answer => Action::Answer(task()?),
            ActionName::Replan => Action::Replan(task()?),
            ActionName::Approve => Action::Approve(task()?, seen),
            ActionName::Reject => Action::Reject(task()?, seen),
            ActionName::Release => Action::Release(task()?),
            ActionName::StartAgent => Action::StartAgent,
            ActionName::StopAgent => Action::StopAgent(subject.agent.ok_or("select an agent first")?),
        })
    }

    /// A command that Liza proposes; without words if another program answers.
    pub fn suggested(command: &CommandLine) -> Self {
        match command.words() {
            // The same dialog as for the key that answers.
            [verb, task, open] if verb == "answer" && open == OPEN => match task.parse() {
                Ok(task) => Action::Answer(task),
                Err(_) => Action::Suggested(command.words().to_vec()),
            },
            words => Action::Suggested(words.to_vec()),
        }
    }

    /// The command that answers a decision, about exactly what the person has seen.
    pub fn answering(need: &NeedsYou) -> Self {
        match (Self::suggested(&need.command), need.seen) {
            (Action::Suggested(mut words), Some(seen)) => {
                words.extend(["--if-revision".to_owned(), seen.to_string()]);
                Action::Suggested(words)
            }
            (action, _) => action,
        }
    }

    /// True if it needs a terminal or a process of its own, so that it cannot run here.
    pub fn needs_terminal(&self) -> bool {
        let Action::Suggested(words) = self else { return false };
        let Some(verb) = words.first().map(String::as_str) else { return true };
        // The changes of a shared file are shown only there, before it is accepted.
        let accepts_file = verb == "config" && words.iter().any(|word| word == "--trust");
        accepts_file || matches!(verb, "edit" | "run" | "demo" | "tui" | "web")
    }

    pub fn title(&self) -> String {
        match self {
            Action::Pause => "Pause".to_owned(),
            Action::Resume => "Resume".to_owned(),
            Action::Checkpoint => "Checkpoint".to_owned(),
            Action::Abort => "Abort the goal".to_owned(),
            Action::Note(None) => "Note for all agents".to_owned(),
            Action::Note(Some(task)) => format!("Note for the agents of {task}"),
            Action::Answer(task) => format!("Answer {task}"),
            Action::Approve(task, _) => format!("Approve {task}"),
            Action::Reject(task, _) => format!("Reject {task}"),
            Action::Release(task) => format!("Release the claim on {task}"),
            Action::Add => "Add a task".to_owned(),
            Action::Replan(task) => format!("Block {task}"),
            Action::StartAgent => "Start an agent".to_owned(),
            Action::StopAgent(agent) => format!("Stop {}", agent.id),
            Action::Suggested(words) => match raised_budget(words) {
                Some(("day", _)) => "Raise the budget of today".to_owned(),
                Some(("sprint", _)) => "Raise the budget of the sprint".to_owned(),
                Some(_) => "Raise the budget of each task".to_owned(),
                None => own_title(words).unwrap_or_else(|| format!("liza {}", words.join(" "))),
            },
        }
    }

    /// True if its title is more than the command.
    pub fn has_own_title(&self) -> bool {
        let Action::Suggested(words) = self else { return true };
        raised_budget(words).is_some() || own_title(words).is_some()
    }

    /// The label of a text to type, with the old value of a budget.
    pub fn label(&self, field: &ActionField, budgets: &[Spending]) -> String {
        let words = if let Action::Suggested(words) = self { words.as_slice() } else { &[] };
        let key = raised_budget(words).and(words.get(1));
        let old = budgets.iter().find(|spent| key.is_some_and(|key| key == spent.setting()));
        match old.map(|spent| &spent.amount) {
            Some(Amount::Tokens { limit, .. }) => format!("{} (now {limit})", field.label),
            Some(Amount::Dollars { limit, .. }) => format!("{} (now {limit})", field.label),
            None => field.label.to_owned(),
        }
    }

    /// The warning before it happens; `None` if it can be undone without a loss.
    pub fn warning(&self) -> Option<&'static str> {
        match self {
            Action::Abort => {
                Some("All agents stop for good. Nothing is deleted, but the goal cannot be resumed.")
            }
            Action::Checkpoint => {
                Some("Running sessions may end their work; no new work starts until you resume.")
            }
            Action::Approve(..) => {
                Some("The commit is merged to the integration branch without another review.")
            }
            Action::Reject(..) => Some("The task goes back to its coder with your reason."),
            Action::Release(_) => {
                Some("The session is stopped. Unmerged work is kept on a branch rescue/TASK-N.")
            }
            Action::StartAgent => Some(IN_BACKGROUND),
            Action::StopAgent(_) => Some(
                "Its session ends. What it has committed is kept; another agent takes the task when the lease ends.",
            ),
            Action::Replan(_) => Some("The task stops; the planner decides what becomes of it."),
            Action::Suggested(words) => {
                let verb = words.first().map(String::as_str).unwrap_or_default();
                match verb {
                    "dismiss" | "accept-integration" | "resolve" => Some("This cannot be undone."),
                    "accept-gate" => Some("The change of what judges the work is merged with the task."),
                    "agent" => Some(IN_BACKGROUND),
                    "plan" => Some("Coders begin with those that wait for no other."),
                    // These read, resume or carry a person's text; `goal` is asked for only if none is open.
                    "resume" | "validate" | "status" | "answer" | "note" | "config" | "goal" => None,
                    _ => Some("This changes the project."),
                }
            }
            Action::Pause | Action::Resume | Action::Note(_) | Action::Answer(_) | Action::Add => None,
        }
    }

    /// The texts to type.
    pub fn fields(&self) -> Vec<ActionField> {
        match self {
            Action::Pause | Action::Resume | Action::Checkpoint | Action::Abort | Action::StopAgent(_) => {
                Vec::new()
            }
            Action::StartAgent => vec![ActionField::one_of("Role", &ROLES)],
            Action::Note(_) => vec![ActionField::required("Note")],
            Action::Answer(_) => vec![ActionField::required("Answer")],
            Action::Approve(..) => vec![ActionField::optional("Evidence")],
            Action::Reject(..) => vec![ActionField::required("Reason")],
            Action::Release(_) => vec![ActionField::optional("Reason")],
            Action::Add => vec![ActionField::required("What to build")],
            Action::Replan(_) => vec![ActionField::optional("Reason")],
            Action::Suggested(words) => {
                let label = match (raised_budget(words), words.first().map(String::as_str)) {
                    (Some((_, "dollars")), _) => "Dollars",
                    (Some(_), _) => "Tokens",
                    (None, Some("config")) => "Value",
                    (None, _) => "Text",
                };
                let before = [""].into_iter().chain(words.iter().map(String::as_str));
                let open = before.zip(words).filter(|(_, word)| *word == "...");
                open.map(|(option, _)| ActionField::required(option_label(option).unwrap_or(label))).collect()
            }
        }
    }

    /// The command with the typed texts.
    pub fn words(&self, texts: &[&str]) -> Vec<String> {
        // A typed text is never an option.
        let guarded =
            |text: &&str| if text.starts_with('-') { format!(" {text}") } else { (*text).to_owned() };
        let texts: Vec<String> = texts.iter().map(guarded).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let text = texts.first().copied().unwrap_or_default();
        let with = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let optional = |words: &[&str], option: Option<&str>| {
            let more = [option, Some(text)].into_iter().flatten();
            let more = more.filter(|_| !text.trim().is_empty());
            with(&words.iter().copied().chain(more).collect::<Vec<_>>())
        };
        match self {
            Action::Pause => with(&["pause"]),
            Action::Resume => with(&["resume"]),
            Action::Checkpoint => with(&["checkpoint"]),
            Action::Abort => with(&["abort"]),
            Action::Note(None) => with(&["note", text]),
            Action::Note(Some(task)) => with(&["note", text, "--for", task.as_str()]),
            Action::Answer(task) => with(&["answer", task.as_str(), text]),
            Action::Approve(task, seen) => {
                let seen = seen.0.to_string();
                optional(&["submit-verdict", "--if-revision", &seen, task.as_str(), "APPROVED"], None)
            }
            Action::Reject(task, seen) => {
                let seen = seen.0.to_string();
                with(&["submit-verdict", "--if-revision", &seen, task.as_str(), "REJECTED", text])
            }
            Action::Release(task) => optional(&["release-claim", task.as_str(), "--force"], Some("--reason")),
            Action::Add => with(&["add", text]),
            Action::Replan(task) => optional(&["mark-blocked", task.as_str()], Some("--reason")),
            Action::StartAgent => with(&["agent", text.trim().trim_start_matches('-'), "--detach"]),
            Action::StopAgent(AgentSubject { id, generation }) => {
                let seen =
                    generation.map(|generation| ["--if-generation".to_owned(), generation.to_string()]);
                with(&["deregister", &id.to_string()]).into_iter().chain(seen.into_iter().flatten()).collect()
            }
            Action::Suggested(words) => {
                let mut texts = texts.iter();
                let word = |word: &String| match word.as_str() {
                    "..." => texts.next().map(|text| (*text).to_owned()).unwrap_or_default(),
                    word => word.to_owned(),
                };
                let is_agent = words.first().is_some_and(|verb| verb == "agent");
                // The screen keeps its terminal.
                words.iter().map(word).chain(is_agent.then(|| "--detach".to_owned())).collect()
            }
        }
    }
}

/// The title of a command whose words are not clear enough.
fn own_title(words: &[String]) -> Option<String> {
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["plan", "--approve", ..] => Some("Approve the plan".to_owned()),
        ["edit-task", task, "--done", ..] => Some(format!("Complete {task}")),
        _ => None,
    }
}

fn option_label(option: &str) -> Option<&'static str> {
    match option {
        "--done" => Some("Done when"),
        "--scope" => Some("Scope"),
        "--reason" => Some("Reason"),
        _ => None,
    }
}

/// The budget that a command raises, with its unit: `day` and `tokens`.
fn raised_budget(words: &[String]) -> Option<(&str, &str)> {
    match words {
        [verb, key, open] if verb == "config" && open == "..." => {
            key.strip_prefix("budget.")?.split_once('.')
        }
        _ => None,
    }
}

/// A queue of a person's commands: those of one lane run in the order in which they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter)]
pub enum ActionLane {
    /// Stops the whole team, or lets it continue: waits for nothing else, so that the brake always works.
    Team,
    /// Stops one agent, or the work on one task.
    Stop,
    /// Everything else. Some commands take long: the start of an agent, or the use of a git remote.
    Other,
}

impl ActionLane {
    /// The lane of a command line, without the name of the program.
    pub fn of(words: &[String]) -> Self {
        match words.first().map(String::as_str) {
            Some("pause" | "resume" | "checkpoint" | "abort") => ActionLane::Team,
            Some("deregister" | "release-claim" | "mark-blocked") => ActionLane::Stop,
            Some(_) | None => ActionLane::Other,
        }
    }
}

fn is_claimed(task: &TaskView) -> bool {
    match task.status {
        Some(Status::Claimed) => true,
        Some(Status::ReadyForReview) => task.reviewing_by.is_some(),
        Some(
            Status::Draft
            | Status::Unclaimed
            | Status::Rejected
            | Status::Approved
            | Status::Merged
            | Status::Blocked
            | Status::Superseded
            | Status::Abandoned
            | Status::IntegrationFailed,
        )
        | None => false,
    }
}
