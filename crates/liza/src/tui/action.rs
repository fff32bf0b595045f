//! What a person can do from the screen, each as the command that does it.
//!
//! Which task may be changed how is decided by the rules; here only what makes no sense at all is not offered.

use liza_core::model::{Revision, Status, TaskId};
use liza_core::watch::view::TaskView;

use super::input_field::InputField;

/// Something that a person can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Pause,
    Resume,
    Checkpoint,
    Abort,
    /// A note for the agents of one task, or for all.
    Note(Option<TaskId>),
    Answer(TaskId),
    /// Approve what was submitted up to this revision of the task: what the person has seen.
    Approve(TaskId, Revision),
    /// Reject what was submitted up to this revision of the task.
    Reject(TaskId, Revision),
    Release(TaskId),
    /// A new task.
    Add,
    /// Block a task, so that the planner plans it again.
    Replan(TaskId),
    /// The command that answers what needs the human; `...` is to be typed.
    Suggested(Vec<String>),
}

/// A key of the board and of a task's page, with what it does.
pub(super) const KEYS: [(char, &str); 12] = [
    ('p', "pause: no new work starts"),
    ('r', "resume after a pause or a checkpoint"),
    ('c', "checkpoint: stop all agents for a review"),
    ('X', "abort the goal"),
    ('n', "note for the agents of the selected task"),
    ('N', "note for all agents"),
    ('a', "answer the selected task"),
    ('v', "approve the selected submission"),
    ('x', "reject the selected submission"),
    ('u', "release the claim on the selected task"),
    ('b', "block the selected task, so that it is planned again"),
    ('i', "add a task; the planner completes it"),
];

impl Action {
    /// The action of a key while this task is selected.
    ///
    /// # Errors
    /// Why there is none now; empty if the key means nothing.
    pub(super) fn of_key(key: char, selected: Option<&TaskView>) -> Result<Self, &'static str> {
        let task = || selected.ok_or("select a task first");
        let open = |task: &TaskView| !task.status.is_some_and(Status::is_terminal);
        match key {
            'p' => Ok(Action::Pause),
            'r' => Ok(Action::Resume),
            'c' => Ok(Action::Checkpoint),
            'X' => Ok(Action::Abort),
            'N' => Ok(Action::Note(None)),
            'n' => Ok(Action::Note(Some(task()?.id.clone()))),
            'i' => Ok(Action::Add),
            'a' if open(task()?) => Ok(Action::Answer(task()?.id.clone())),
            'b' if open(task()?) => Ok(Action::Replan(task()?.id.clone())),
            'a' | 'b' => Err("the task has ended"),
            'v' | 'x' if task()?.status != Some(Status::ReadyForReview) => {
                Err("only a task that is READY_FOR_REVIEW can be approved or rejected")
            }
            'v' => Ok(Action::Approve(task()?.id.clone(), task()?.revision)),
            'x' => Ok(Action::Reject(task()?.id.clone(), task()?.revision)),
            'u' if is_claimed(task()?) => Ok(Action::Release(task()?.id.clone())),
            'u' => Err("no agent has claimed the task"),
            _ => Err(""),
        }
    }

    /// The command that answers what needs the human, from its text.
    pub(super) fn suggested(command: &str) -> Self {
        let words = command.split(' ').skip(1).map(|word| word.trim_matches('"').to_owned());
        Action::Suggested(words.collect())
    }

    /// Whether it needs a terminal or a process of its own, so that it cannot run here.
    pub(super) fn needs_terminal(&self) -> bool {
        let Action::Suggested(words) = self else { return false };
        let verb = words.first().map(String::as_str).unwrap_or_default();
        matches!(verb, "agent" | "edit" | "run" | "demo" | "tui")
    }

    /// Its name.
    pub(super) fn title(&self) -> String {
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
            Action::Suggested(words) => format!("liza {}", words.join(" ")),
        }
    }

    /// What a person should know before it happens; `None` if it can be undone without a loss.
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            Action::Abort => {
                Some("All agents stop for good. Nothing is deleted, but the goal cannot be resumed.")
            }
            Action::Checkpoint => Some("Running sessions end, and no new work starts until you resume."),
            Action::Approve(..) => {
                Some("The commit is merged to the integration branch without another review.")
            }
            Action::Reject(..) => Some("The task goes back to its coder with your reason."),
            Action::Release(_) => {
                Some("The session is stopped. Unmerged work is kept on a branch rescue/TASK-N.")
            }
            Action::Replan(_) => Some("The task stops; the planner decides what becomes of it."),
            Action::Suggested(words) => {
                let verb = words.first().map(String::as_str).unwrap_or_default();
                match verb {
                    "dismiss" | "accept-integration" | "resolve" | "goal" => Some("This cannot be undone."),
                    "plan" => Some("Coders begin with all proposed tasks. To read them first: liza plan"),
                    _ => None,
                }
            }
            Action::Pause | Action::Resume | Action::Note(_) | Action::Answer(_) | Action::Add => None,
        }
    }

    /// What has to be typed.
    pub(super) fn fields(&self) -> Vec<InputField> {
        match self {
            Action::Pause | Action::Resume | Action::Checkpoint | Action::Abort => Vec::new(),
            Action::Note(_) => vec![InputField::required("Note")],
            Action::Answer(_) => vec![InputField::required("Answer")],
            Action::Approve(..) => vec![InputField::optional("Evidence")],
            Action::Reject(..) => vec![InputField::required("Reason")],
            Action::Release(_) => vec![InputField::optional("Reason")],
            Action::Add => vec![InputField::required("What to build")],
            Action::Replan(_) => vec![InputField::optional("Reason")],
            Action::Suggested(words) => {
                let open = words.iter().filter(|word| *word == "...");
                open.map(|_| InputField::required("Text")).collect()
            }
        }
    }

    /// The command, with what was typed.
    pub(super) fn words(&self, texts: &[&str]) -> Vec<String> {
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
            Action::Suggested(words) => {
                let mut texts = texts.iter();
                let word = |word: &String| match word.as_str() {
                    "..." => texts.next().map(|text| (*text).to_owned()).unwrap_or_default(),
                    word => word.to_owned(),
                };
                words.iter().map(word).collect()
            }
        }
    }
}

/// Whether an agent has a claim on the task.
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
