//! The next step of a task or an agent as data: actor, action, time and conditions; with its sentence.

use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::alarms::Moment;
use crate::alarms::held::HeldView;
use liza_core::model::{AgentId, AgentRecord, Role, Seconds, Sha, TaskId, Timestamp};
use liza_core::supervise::{NextTry, next_try};

/// The next step of a task or an agent; for one at work, the action of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    pub who: Who,
    pub what: What,
    pub on: Option<TaskId>,
    /// The conditions of the step; none if it happens now.
    pub behind: Vec<Behind>,
    /// The time of the step, if a clock decides it.
    pub when: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    You,
    Agent(AgentId),
    /// Any agent of that role.
    Role(Role),
    Nobody,
}

#[derive(Debug, Clone, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum What {
    Claim,
    /// A rejected task is claimed; by its coder too, if that one is here.
    ClaimRejected {
        coder_is_here: bool,
    },
    /// Its coder makes the worktree and sets it up; then its session begins.
    SetUp,
    TakeOver {
        from: AgentId,
    },
    /// The agent that has left it continues.
    Return,
    Continue,
    FixMerge,
    Submit,
    Review,
    /// Liza runs the commands that validate it; then its review begins.
    Validate,
    Verdict,
    Merge,
    /// The merge is running.
    MergeNow {
        is_testing: bool,
        age: Seconds,
    },
    Finalize,
    ApprovePlan,
    Decide,
    /// About a dependency that will never be merged.
    DecideWithout(TaskId),
    Rescope,
    /// The planner looks at it, and the human may be faster.
    Look,
    Answer,
    RecordMerge(Sha),
    AcceptGate,
    FixTest,
    FixValidation,
    FixRecord,
    /// It waits for other tasks.
    Wait,
    Nothing(Ended),
    /// A planner's session; after sessions without a result, with the number of the try and the limit.
    Plan {
        attempt: Option<(u32, u32)>,
    },
    /// A planner's session about a sprint that has ended.
    Judge,
    /// A planner's session that decides about a task or a discovery.
    LookAt(String),
    /// The session has submitted or decided so long ago, and has not ended yet.
    EndSession {
        age: Seconds,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Merged,
    Abandoned,
    ReplacedBy(Vec<TaskId>),
    WithGoal,
    /// The agent is gone.
    Left,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Behind {
    /// A task that must be merged first.
    Task(TaskId),
    /// The task that its agent works on now.
    Work(TaskId),
    /// The task that its agent reviews now.
    Review(TaskId),
    /// The merge that is running.
    Merge(TaskId),
    /// The end of this agent's session.
    Session(AgentId),
    /// `liza resume`.
    Resume,
    /// The pause after failed sessions.
    Pause(Retry),
    /// A program that cannot be used now.
    Program(HeldView),
    /// The programs of all agents of the role.
    Programs,
    /// An agent of this role, of which none is running.
    Start(Role),
    /// The planner, which has stopped.
    StoppedPlanner,
    /// Other things that the planner's session decides first.
    OtherDecisions,
    Goal,
    /// A code reviewer's verdict on its work.
    Verdict,
    /// The human's answer to a question of the agent.
    Answer,
    /// Something for the agent's role to do.
    NewWork,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Retry {
    pub failed: u32,
    pub limit: u32,
    pub again_in: Seconds,
}

impl Retry {
    /// The pause of an agent after failed sessions.
    pub(crate) fn of(at: Moment<'_>, id: AgentId, entry: &AgentRecord) -> Option<Self> {
        let NextTry { failed, limit, at: again } = next_try(at.state, id, entry, at.now)?;
        Some(Self { failed, limit, again_in: again.since(at.now) })
    }

    /// The time of the next try: `in 8s`.
    pub fn again(self) -> String {
        if self.again_in.0 == 0 { "now".to_owned() } else { format!("in {}", self.again_in) }
    }
}

impl Next {
    fn new(who: Who, what: What) -> Self {
        Self { who, what, on: None, behind: Vec::new(), when: None }
    }

    pub(crate) fn you(what: What) -> Self {
        Self::new(Who::You, what)
    }

    pub fn agent(agent: AgentId, what: What) -> Self {
        Self::new(Who::Agent(agent), what)
    }

    pub(crate) fn role(role: Role, what: What) -> Self {
        Self::new(Who::Role(role), what)
    }

    pub(crate) fn nothing(ended: Ended) -> Self {
        Self::new(Who::Nobody, What::Nothing(ended))
    }

    pub(crate) fn wait_for(tasks: impl Iterator<Item = TaskId>) -> Self {
        Self { behind: tasks.map(Behind::Task).collect(), ..Self::new(Who::Nobody, What::Wait) }
    }

    pub fn on(self, task: Option<TaskId>) -> Self {
        Self { on: task, ..self }
    }

    pub fn behind(mut self, behind: Behind) -> Self {
        self.behind.push(behind);
        self
    }

    pub(crate) fn at(self, when: Option<Timestamp>) -> Self {
        Self { when, ..self }
    }

    pub fn is_after_resume(&self) -> bool {
        self.behind.contains(&Behind::Resume)
    }

    pub fn held(&self) -> Option<&HeldView> {
        self.behind
            .iter()
            .find_map(|behind| if let Behind::Program(held) = behind { Some(held) } else { None })
    }

    pub fn retry(&self) -> Option<Retry> {
        self.behind
            .iter()
            .find_map(|behind| if let Behind::Pause(retry) = behind { Some(*retry) } else { None })
    }

    /// The role of which no agent is running.
    pub(crate) fn missing_role(&self) -> Option<Role> {
        self.behind
            .iter()
            .find_map(|behind| if let Behind::Start(role) = behind { Some(*role) } else { None })
    }

    /// The merge of an approved task, in words beside "approved"; `None` if nothing is in the way.
    pub(crate) fn merge_words(&self) -> Option<String> {
        let (What::Merge | What::MergeNow { .. }) = self.what else { return None };
        if let What::MergeNow { is_testing, age } = self.what {
            return Some(format!("merging{}", progress(is_testing, age)));
        }
        Some(match (self.who, self.behind.first()?) {
            (_, Behind::Session(agent)) => format!("merged when {agent}'s session ends"),
            (Who::Agent(agent), Behind::Review(task)) => format!("merged after {agent}'s review of {task}"),
            (_, Behind::Merge(task)) => format!("merged after {task}"),
            (_, Behind::Resume) => "its merge waits for liza resume".to_owned(),
            (_, _) => return None,
        })
    }

    fn step(&self) -> String {
        let (who, it) = (self.who, self.on.as_ref().map_or("it", TaskId::as_str));
        match &self.what {
            What::Claim => format!("{who} claims {it}"),
            What::ClaimRejected { coder_is_here: true } => "a coder takes it".to_owned(),
            What::ClaimRejected { coder_is_here: false } => "another coder takes it".to_owned(),
            What::SetUp => match &self.on {
                Some(task) => format!("{who} sets up the worktree of {task}"),
                None => format!("{who} sets up its worktree"),
            },
            What::TakeOver { from } => format!("{from} is gone: another coder takes it over"),
            What::Return => format!("stopped; {who} continues"),
            What::Continue => match (self.held(), self.retry()) {
                (Some(held), _) => format!("{who} continues: {}", held.text()),
                (None, Some(retry)) => {
                    format!("{who} tries again {}: its last session failed", retry.again())
                }
                (None, None) => format!("{who} continues with {it}"),
            },
            What::FixMerge => format!("{who} fixes the merge"),
            What::Submit => format!("{who} submits {it} for review"),
            What::Review => format!("{who} takes {it}"),
            What::Validate => format!("{who} runs its validation"),
            What::Verdict => match &self.on {
                Some(task) => format!("{who} gives its verdict on {task}"),
                None => format!("{who} gives its verdict"),
            },
            What::Merge => match (self.who, self.behind.first()) {
                (_, Some(Behind::Resume | Behind::Merge(_))) => self.merge_words().unwrap_or_default(),
                (_, Some(Behind::Session(_))) => format!("{who} merges {it} when its session ends"),
                (_, Some(Behind::Review(task))) => format!("{who} merges {it} after its review of {task}"),
                (Who::Role(_), _) => "the code reviewer's supervisor merges it".to_owned(),
                (_, _) => format!("{who} merges {it}"),
            },
            What::MergeNow { is_testing, age } => {
                let verb = if who == Who::You { "merge" } else { "merges" };
                format!("{who} {verb} {it}{}", progress(*is_testing, *age))
            }
            What::Finalize => format!("{who} finalizes it"),
            What::ApprovePlan => "you approve it: liza plan --approve".to_owned(),
            What::Decide if who == Who::You => "you decide".to_owned(),
            What::Decide => format!("{who} decides"),
            What::DecideWithout(dead) => format!("{who} decides: {dead} will never be merged"),
            What::Rescope => format!("{who} rescopes it: two coders failed"),
            What::Look => format!("{who} looks at it {}; you can answer it yourself", self.look_time()),
            What::Answer => "you answer it".to_owned(),
            What::RecordMerge(merge) => {
                format!("waits for you: its merge {} is on the branch and not recorded", merge.short())
            }
            What::AcceptGate => "waits for you: it changes what judges it".to_owned(),
            What::FixTest => "waits for you: correct the integration test, then test again".to_owned(),
            What::FixValidation => "waits for you: correct the validation, then try again".to_owned(),
            What::FixRecord => "its record is broken: fix it".to_owned(),
            What::Wait => match self.behind.first() {
                Some(Behind::Goal) => format!("{who} waits for a goal"),
                Some(Behind::Verdict) => format!("{who} waits for a verdict"),
                Some(Behind::Answer) => format!("{who} waits for your answer"),
                Some(Behind::StoppedPlanner) => format!("{who} waits for you"),
                Some(Behind::NewWork) => format!("{who} waits for work"),
                _ => {
                    let task = |behind: &Behind| {
                        if let Behind::Task(task) = behind { Some(task.to_string()) } else { None }
                    };
                    let tasks: Vec<String> = self.behind.iter().filter_map(task).collect();
                    format!("{} must be merged first", tasks.join(", "))
                }
            },
            What::Nothing(ended) => format!("nothing: {ended}"),
            What::Plan { .. } => format!("{who} plans"),
            What::Judge => format!("{who} judges whether the goal is reached"),
            What::LookAt(subject) => format!("{who} looks at {subject}"),
            What::EndSession { .. } => format!("{who} ends its session"),
        }
    }

    /// The time at which the planner looks at it, in words.
    pub(crate) fn look_time(&self) -> String {
        let when = match self.behind.first() {
            Some(Behind::Pause(retry)) => return retry.again(),
            Some(Behind::Resume) => "after liza resume",
            Some(Behind::Programs) => "when its program can be used again",
            Some(Behind::OtherDecisions) => "next",
            _ => "now",
        };
        when.to_owned()
    }
}

/// The progress of a running merge: `: integration test, 23s`.
pub(crate) fn progress(is_testing: bool, age: Seconds) -> String {
    let what = if is_testing { ": integration test" } else { "" };
    format!("{what}, {age}")
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.step())?;
        // Some steps begin with their condition.
        let is_said = matches!((&self.what, self.behind.first()), (What::Look, Some(_)))
            || (self.what == What::Continue && self.held().is_some());
        for behind in self.behind.iter().filter(|_| !is_said) {
            match behind {
                Behind::Work(task) => write!(f, " after {task}")?,
                Behind::Resume if self.what == What::Merge => {}
                Behind::Resume => f.write_str(AFTER_RESUME)?,
                Behind::Answer if self.what != What::Wait => f.write_str(" after your answer")?,
                Behind::Start(role) => write!(f, "; no {} is running", role.title().to_lowercase())?,
                Behind::StoppedPlanner => f.write_str("; it has stopped")?,
                Behind::Programs => f.write_str("; when its program can be used again")?,
                Behind::Program(held) => write!(f, "; {}", held.text())?,
                Behind::Pause(retry) if self.what != What::Continue => {
                    write!(f, ", again {}", retry.again())?
                }
                // Part of the step.
                Behind::Task(_)
                | Behind::Review(_)
                | Behind::Merge(_)
                | Behind::Session(_)
                | Behind::Pause(_)
                | Behind::OtherDecisions
                | Behind::Goal
                | Behind::Verdict
                | Behind::Answer
                | Behind::NewWork => {}
            }
        }
        Ok(())
    }
}

/// The end of a sentence about a step that waits for `liza resume`.
pub(crate) const AFTER_RESUME: &str = ", after liza resume";

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::You => f.write_str("you"),
            Who::Agent(agent) => agent.fmt(f),
            Who::Role(Role::Planner) => f.write_str("the planner"),
            Who::Role(Role::Coder) => f.write_str("a coder"),
            Who::Role(Role::CodeReviewer) => f.write_str("a code reviewer"),
            Who::Nobody => f.write_str("nobody"),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Merged => f.write_str("it is merged"),
            Ended::Abandoned => f.write_str("it was abandoned"),
            Ended::ReplacedBy(tasks) => {
                let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
                write!(f, "replaced by {}", names.join(", "))
            }
            Ended::WithGoal => f.write_str("dropped with the goal"),
            Ended::Left => f.write_str("it has left"),
        }
    }
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Who::You => serializer.serialize_str("human"),
            Who::Agent(agent) => serializer.collect_str(agent),
            Who::Role(role) => serializer.serialize_str(role.id_prefix()),
            Who::Nobody => serializer.serialize_none(),
        }
    }
}

impl Serialize for Next {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let what: &'static str = (&self.what).into();
        let mut next = serializer.serialize_struct("Next", 6)?;
        next.serialize_field("who", &self.who)?;
        next.serialize_field("what", what)?;
        match (&self.on, &self.what) {
            (Some(task), _) => next.serialize_field("on", task)?,
            (None, What::LookAt(subject)) => next.serialize_field("on", subject)?,
            (None, _) => next.skip_field("on")?,
        }
        next.serialize_field("when", &self.when)?;
        next.serialize_field("behind", &self.behind)?;
        next.serialize_field("text", &self.to_string())?;
        next.end()
    }
}
