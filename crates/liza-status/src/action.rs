//! The actions of a person on a screen, each as a command line. The terminal and the browser share it.
//!
//! The rules decide which task may be changed; here only senseless actions are left out.

use crate::command_line::{CommandLine, OPEN};
use crate::needs_you::NeedsYou;
use crate::view::{AgentView, TaskView};
use liza_core::model::{AgentId, Generation, Revision, Role, Status, TaskId};
use liza_core::rules::spending::{Amount, Spending};

/// A command line with open texts, and what a screen asks before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// `None` for a command that Liza proposes.
    pub name: Option<ActionName>,
    pub task: Option<TaskId>,
    pub title: String,
    /// True if its title is more than the command.
    pub has_own_title: bool,
    /// The warning before it happens; `None` if it can be undone without a loss.
    pub warning: Option<&'static str>,
    /// The texts to type.
    pub fields: Vec<ActionField>,
    /// Without the name of the program; `...` for each text.
    words: Vec<String>,
}

/// The places of a name's command that its subject fills: a task, the seen revision of it, an agent.
const TASK: &str = "TASK";
const SEEN: &str = "REVISION";
const AGENT: &str = "AGENT";

/// The option of a text that may be left out.
const REASON: &str = "--reason";

/// The warning before an agent is started.
const IN_BACKGROUND: &str = "It runs in the background until its role has nothing left to do.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ActionName {
    Pause,
    /// After a pause or a checkpoint.
    Resume,
    Checkpoint,
    Abort,
    /// For the agents of one task.
    Note,
    NoteAll,
    /// A blocked task continues.
    Answer,
    /// The submission up to the revision of the task that the person has seen.
    Approve,
    Reject,
    Release,
    /// Block a task, so that the planner plans it again.
    Replan,
    Add,
    StartAgent,
    /// End an agent and its session: the registration that the person has seen.
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
    fn of(name: ActionName, title: &str, words: &[&str]) -> Self {
        let (title, words) = (title.to_owned(), words.iter().map(ToString::to_string).collect());
        let (task, warning, fields) = (None, None, Vec::new());
        Self { name: Some(name), task, title, has_own_title: true, warning, fields, words }
    }

    fn asks(self, field: ActionField) -> Self {
        Self { fields: vec![field], ..self }
    }

    fn warns(self, warning: &'static str) -> Self {
        Self { warning: Some(warning), ..self }
    }

    /// The command of that name, before its subject is filled in.
    fn template(name: ActionName) -> Self {
        let of = |title: &str, words: &[&str]| Self::of(name, title, words);
        let (required, optional) = (ActionField::required, ActionField::optional);
        match name {
            ActionName::Pause => of("Pause", &["pause"]),
            ActionName::Resume => of("Resume", &["resume"]),
            ActionName::Checkpoint => of("Checkpoint", &["checkpoint"])
                .warns("Running sessions may end their work; no new work starts until you resume."),
            ActionName::Abort => of("Abort the goal", &["abort"])
                .warns("All agents stop for good. Nothing is deleted, but the goal cannot be resumed."),
            ActionName::NoteAll => of("Note for all agents", &["note", OPEN]).asks(required("Note")),
            ActionName::Note => {
                of("Note for the agents of TASK", &["note", OPEN, "--for", TASK]).asks(required("Note"))
            }
            ActionName::Answer => of("Answer TASK", &["answer", TASK, OPEN]).asks(required("Answer")),
            ActionName::Approve => {
                of("Approve TASK", &["submit-verdict", "--if-revision", SEEN, TASK, "APPROVED", OPEN])
                    .asks(optional("Evidence"))
                    .warns("The commit is merged to the integration branch without another review.")
            }
            ActionName::Reject => {
                of("Reject TASK", &["submit-verdict", "--if-revision", SEEN, TASK, "REJECTED", OPEN])
                    .asks(required("Reason"))
                    .warns("The task goes back to its coder with your reason.")
            }
            ActionName::Release => {
                of("Release the claim on TASK", &["release-claim", TASK, "--force", REASON, OPEN])
                    .asks(optional("Reason"))
                    .warns("The session is stopped. Unmerged work is kept on a branch rescue/TASK-N.")
            }
            ActionName::Add => of("Add a task", &["add", OPEN]).asks(required("What to build")),
            ActionName::Replan => of("Block TASK", &["mark-blocked", TASK, REASON, OPEN])
                .asks(optional("Reason"))
                .warns("The task stops; the planner decides what becomes of it."),
            ActionName::StartAgent => of("Start an agent", &["agent", OPEN, "--detach"])
                .asks(ActionField::one_of("Role", &ROLES))
                .warns(IN_BACKGROUND),
            ActionName::StopAgent => of("Stop AGENT", &["deregister", AGENT]).warns(
                "Its session ends. What it has committed is kept; another agent takes the task when the lease ends.",
            ),
        }
    }

    fn has(&self, place: &str) -> bool {
        self.words.iter().any(|word| word == place)
    }

    fn fill(mut self, place: &str, value: &str) -> Self {
        self.title = self.title.replace(place, value);
        self.words.iter_mut().filter(|word| *word == place).for_each(|word| value.clone_into(word));
        self
    }

    /// The action of that name about this task or agent, if it makes sense now.
    pub fn new(name: ActionName, subject: ActionSubject<'_>) -> Result<Self, &'static str> {
        let action = Self::requested(name, subject, None)?;
        let is = |names: [ActionName; 2]| names.contains(&name);
        let status = subject.task.and_then(|task| task.status);
        if is([ActionName::Answer, ActionName::Replan]) && status.is_some_and(Status::is_terminal) {
            return Err("the task has ended");
        }
        if is([ActionName::Approve, ActionName::Reject]) && status != Some(Status::ReadyForReview) {
            return Err("only a task that waits for a verdict can be approved or rejected");
        }
        if name == ActionName::Release && !subject.task.is_some_and(is_claimed) {
            return Err("no agent has claimed the task");
        }
        Ok(action)
    }

    /// The action of a person who has seen that revision of the task. The rules decide if it still applies,
    /// so that the person gets the refusal of the command.
    pub fn requested(
        name: ActionName,
        subject: ActionSubject<'_>,
        seen: Option<Revision>,
    ) -> Result<Self, &'static str> {
        let mut action = Self::template(name);
        if action.has(TASK) {
            let task = subject.task.ok_or("select a task first")?;
            action = action.fill(SEEN, &seen.unwrap_or(task.revision).to_string());
            action = Self { task: Some(task.id.clone()), ..action.fill(TASK, task.id.as_str()) };
        }
        if action.has(AGENT) {
            let agent = subject.agent.ok_or("select an agent first")?;
            action = action.fill(AGENT, &agent.id.to_string());
            let seen = agent.generation.map(|seen| ["--if-generation".to_owned(), seen.to_string()]);
            action.words.extend(seen.into_iter().flatten());
        }
        Ok(action)
    }

    /// A command that Liza proposes; without words if another program answers.
    pub fn suggested(command: &CommandLine) -> Self {
        match command.words() {
            // The same dialog as for the key that answers.
            [verb, task, open] if verb == "answer" && open == OPEN => {
                let task_id = task.parse().ok();
                Self { task: task_id, ..Self::template(ActionName::Answer).fill(TASK, task) }
            }
            words => Self::proposed(words.to_vec()),
        }
    }

    fn proposed(mut words: Vec<String>) -> Self {
        let verb = words.first().map(String::as_str).unwrap_or_default();
        let warning = match verb {
            "dismiss" | "accept-integration" | "resolve" => Some("This cannot be undone."),
            "accept-gate" => Some("The change of what judges the work is merged with the task."),
            "agent" => Some(IN_BACKGROUND),
            "plan" => Some("Coders begin with those that wait for no other."),
            // These read, resume or carry a person's text; `goal` is asked for only if none is open.
            "resume" | "validate" | "status" | "answer" | "note" | "config" | "goal" => None,
            _ => Some("This changes the project."),
        };
        let label = match (raised_budget(&words), verb) {
            (Some((_, "dollars")), _) => "Dollars",
            (Some(_), _) => "Tokens",
            (None, "config") => "Value",
            (None, _) => "Text",
        };
        let before = [""].into_iter().chain(words.iter().map(String::as_str));
        let open = before.zip(&words).filter(|(_, word)| *word == OPEN);
        let fields = open.map(|(option, _)| ActionField::required(option_label(option).unwrap_or(label)));
        let (fields, own_title) = (fields.collect(), own_title(&words));
        let has_own_title = own_title.is_some();
        let title = own_title.unwrap_or_else(|| format!("liza {}", words.join(" ")));
        // The screen keeps its terminal.
        words.extend((verb == "agent").then(|| "--detach".to_owned()));
        Self { name: None, task: None, title, has_own_title, warning, fields, words }
    }

    /// The command that answers a decision, about exactly what the person has seen.
    pub fn answering(need: &NeedsYou) -> Self {
        match need.seen {
            Some(seen) => {
                let seen = ["--if-revision".to_owned(), seen.to_string()];
                Self::proposed(need.command.words().iter().cloned().chain(seen).collect())
            }
            None => Self::suggested(&need.command),
        }
    }

    /// True if it needs a terminal or a process of its own, so that it cannot run here.
    pub fn needs_terminal(&self) -> bool {
        let Some(verb) = self.words.first() else { return true };
        // The changes of a shared file are shown only there, before it is accepted.
        let accepts_file = verb == "config" && self.has("--trust");
        accepts_file || matches!(verb.as_str(), "edit" | "run" | "demo" | "tui" | "web")
    }

    /// The label of a text to type, with the old value of a budget.
    pub fn label(&self, field: &ActionField, budgets: &[Spending]) -> String {
        let key = raised_budget(&self.words).and(self.words.get(1));
        let old = budgets.iter().find(|spent| key.is_some_and(|key| key == spent.setting()));
        match old.map(|spent| &spent.amount) {
            Some(Amount::Tokens { limit, .. }) => format!("{} (now {limit})", field.label),
            Some(Amount::Dollars { limit, .. }) => format!("{} (now {limit})", field.label),
            None => field.label.to_owned(),
        }
    }

    /// The command with the typed texts.
    pub fn words(&self, texts: &[&str]) -> Vec<String> {
        let (mut texts, mut fields) = (texts.iter().copied(), self.fields.iter());
        let mut words = Vec::new();
        for word in &self.words {
            if word != OPEN {
                words.push(word.clone());
                continue;
            }
            let text = texts.next().unwrap_or_default();
            match fields.next() {
                Some(field) if field.optional && text.trim().is_empty() => {
                    words.pop_if(|word| word == REASON);
                }
                Some(field) if !field.choices.is_empty() => {
                    words.push(text.trim().trim_start_matches('-').to_owned());
                }
                // A typed text is never an option.
                Some(_) | None if text.starts_with('-') => words.push(format!(" {text}")),
                Some(_) | None => words.push(text.to_owned()),
            }
        }
        words
    }
}

/// The title of a command whose words are not clear enough.
fn own_title(words: &[String]) -> Option<String> {
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["plan", "--approve", ..] => Some("Approve the plan".to_owned()),
        ["edit-task", task, "--done", ..] => Some(format!("Complete {task}")),
        _ => Some(match raised_budget(words)?.0 {
            "day" => "Raise the budget of today".to_owned(),
            "sprint" => "Raise the budget of the sprint".to_owned(),
            _ => "Raise the budget of each task".to_owned(),
        }),
    }
}

fn option_label(option: &str) -> Option<&'static str> {
    match option {
        "--done" => Some("Done when"),
        "--scope" => Some("Scope"),
        REASON => Some("Reason"),
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
    let is_reviewed = task.status == Some(Status::ReadyForReview) && task.reviewing_by.is_some();
    task.status == Some(Status::Claimed) || is_reviewed
}
