//! The state of the screen: the last view of the team, the selection, the page. Only `update` changes it.

pub(crate) mod dialog;
pub(crate) mod input_field;
pub(crate) mod page;

use std::collections::VecDeque;
use std::sync::Arc;

use liza_core::model::{AgentId, GoalStatus, Seconds, Status, TaskId, Timestamp};
use liza_status::action::{ActionSubject, AgentSubject};
use liza_status::alarms::{AlarmKind, AlarmLevel};
use liza_status::needs_you::NeedsYou;
use liza_status::view::{AgentView, TaskView, View};
use liza_status::words::{is_held_up, next_steps, next_steps_short};
use ratatui::crossterm::event::KeyEvent;

use crate::model::dialog::Dialog;
use crate::model::input_field::InputField;
use crate::model::page::{Page, PageSource};
use crate::styled::shell_line;

use crate::{CommandResult, ScreenMode};

/// The most lines of the log that are kept.
const LOG_MAX: usize = 1_000;

/// The time for which the result of an action is shown.
const RESULT_TIME: Seconds = Seconds(3);

/// The time for which a screen says why a key does nothing.
const REFUSAL_TIME: Seconds = Seconds(5);

/// The time for which a command for another terminal is shown: a person copies it.
const COMMAND_TIME: Seconds = Seconds(15);

/// The number of newest lines among which a repeated line is looked for.
const REPEATED_LINES: usize = 20;

/// The longest time between two reports of the same thing.
const REPEATED_TIME: Seconds = Seconds(5);

/// Below this size nothing useful fits, and keys act on nothing that a person could see.
pub(crate) const LEAST: (u16, u16) = (40, 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    /// The decisions that only the human can make.
    NeedsYou,
    Tasks,
    Agents,
    Log,
}

impl Panel {
    /// All of them, in the order of the Tab key.
    pub(crate) const ALL: [Panel; 4] = [Panel::NeedsYou, Panel::Tasks, Panel::Agents, Panel::Log];
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    Key(KeyEvent),
    Paste(String),
    /// The terminal has another size.
    Resize(u16, u16),
    View(Arc<View>),
    /// The reason why the blackboard cannot be read.
    Unreadable(String),
    Log(Vec<LogLine>),
    Loaded(PageSource, CommandResult),
    Executed {
        words: Vec<String>,
        result: CommandResult,
    },
    /// The screen has to end: a signal, a closed terminal, or the end of the team.
    End,
}

/// An order of `update` to the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Execute(Vec<String>),
    Load(PageSource),
    /// Run a command that needs the terminal for itself.
    InTerminal(Vec<String>),
    /// Put a text into the clipboard of the person's terminal.
    Copy(String),
    /// Paint everything again: something else has written to the terminal.
    Redraw,
    /// Stop the team that this process runs; a second time kills its sessions.
    StopTeam,
    /// Leave the terminal to the person; the team of this process goes on without it.
    Detach,
    Quit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// The text to look for.
    Search(InputField),
    /// Asks for the fate of the team of this process: detach it or stop it.
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub time: Timestamp,
    pub who: String,
    pub text: String,
    pub is_alert: bool,
    /// True if it was reported later than it happened.
    pub earlier: bool,
}

impl LogLine {
    /// True if the other line reports the same thing again.
    fn is_same(&self, other: &Self) -> bool {
        let apart = self.time.unix().abs_diff(other.time.unix());
        self.who == other.who && self.text == other.text && apart <= REPEATED_TIME.0
    }

    /// True if it is shown above a line that is added later: lines come from two sources, the team and the
    /// log of the project. In one second, a person comes before the agents that react; a late report comes
    /// behind the same agent's lines, before those of others.
    fn precedes(&self, new: &Self) -> bool {
        let in_its_second = match (self.who == "human", new.who == "human") {
            (true, _) => true,
            (false, true) => false,
            (false, false) => !new.earlier || self.earlier || self.who == new.who,
        };
        self.time < new.time || (self.time == new.time && in_its_second)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionNotice {
    pub text: String,
    pub succeeded: bool,
    /// The time for which it is shown.
    time: Seconds,
    pub until: Option<Timestamp>,
    /// True if it stays until the next key, as the error of a command does.
    stays: bool,
}

impl ActionNotice {
    pub(crate) fn new(text: impl Into<String>, succeeded: bool) -> Self {
        Self { text: text.into(), succeeded, time: RESULT_TIME, until: None, stays: !succeeded }
    }

    /// The reason why a key does nothing now.
    pub(crate) fn refusal(why: &str) -> Self {
        Self { time: REFUSAL_TIME, stays: false, ..Self::new(why, false) }
    }

    /// A command that the person types elsewhere.
    pub(crate) fn command(text: String) -> Self {
        Self { time: COMMAND_TIME, ..Self::new(text, true) }
    }
}

#[derive(Debug)]
pub(crate) struct Model {
    pub mode: ScreenMode,
    /// The kind of the project, if that is worth a word.
    pub label: Option<&'static str>,
    pub size: (u16, u16),
    /// None until it was read once.
    pub view: Option<Arc<View>>,
    /// The reason why the blackboard cannot be read now.
    pub problem: Option<String>,
    pub log: VecDeque<LogLine>,
    pub panel: Panel,
    /// True once the person has chosen a panel or a row.
    pub moved: bool,
    pub need: usize,
    /// An urgent decision that has arrived while another one was selected, until the person selects it.
    pub arrived: Option<NeedsYou>,
    /// The selected task, by its place in the view.
    pub task: usize,
    pub agent: usize,
    /// The number of log lines below the screen.
    pub log_back: usize,
    /// The largest `log_back` with which the panel of the log was full when last drawn.
    pub log_most: usize,
    /// The page that is open instead of the board.
    pub page: Option<Page>,
    pub dialog: Option<Dialog>,
    pub prompt: Option<Prompt>,
    /// The text of the last search.
    pub sought: String,
    pub notice: Option<ActionNotice>,
    /// The commands of the actions that run or wait for an earlier one, in this order.
    pub running: Vec<Vec<String>>,
    /// True once the team has been asked to stop.
    pub stopping: bool,
    /// True once it has been asked again.
    pub killing: bool,
}

impl Model {
    pub(crate) fn new(mode: ScreenMode, size: (u16, u16)) -> Self {
        Self {
            mode,
            label: None,
            size,
            view: None,
            problem: None,
            log: VecDeque::new(),
            panel: Panel::Tasks,
            moved: false,
            need: 0,
            arrived: None,
            task: 0,
            agent: 0,
            log_back: 0,
            log_most: usize::MAX,
            page: None,
            dialog: None,
            prompt: None,
            sought: String::new(),
            notice: None,
            running: Vec::new(),
            stopping: false,
            killing: false,
        }
    }

    /// True if the terminal is too small to show anything.
    pub(crate) fn is_too_small(&self) -> bool {
        self.size.0 < LEAST.0 || self.size.1 < LEAST.1
    }

    /// The next steps that only a person can take; for a team of this process, only the way to the result, or
    /// what holds up all of it.
    pub(crate) fn next_steps(&self, is_short: bool) -> Vec<(String, &str)> {
        let Some(view) = &self.view else { return Vec::new() };
        let is_open = view.goal.as_ref().is_some_and(|goal| goal.status == GoalStatus::InProgress);
        let is_silent = is_open && self.mode == ScreenMode::Team && !self.is_held();
        match is_silent {
            true => Vec::new(),
            false if is_short => next_steps_short(view),
            false => next_steps(view),
        }
    }

    /// True if work waits and an agent program that cannot be used holds it up.
    pub(crate) fn is_held(&self) -> bool {
        !self.stopping && self.view.as_deref().is_some_and(is_held_up)
    }

    /// True if there is nothing to plan from.
    pub(crate) fn lacks_goal(&self) -> bool {
        let goal = self.view.as_ref().and_then(|view| view.goal.as_ref());
        goal.is_some_and(|goal| goal.description.trim().is_empty())
    }

    pub(crate) fn needs(&self) -> &[NeedsYou] {
        self.view.as_ref().map(|view| view.needs_you.as_slice()).unwrap_or_default()
    }

    /// The place of an urgent decision that the person has not selected since it arrived.
    pub(crate) fn arrived(&self) -> Option<usize> {
        same_need(self.needs(), self.arrived.as_ref()?)
    }

    /// Forgets the urgent decision that has arrived once it is selected, or gone.
    pub(crate) fn drop_arrival(&mut self) {
        if self.arrived().is_none_or(|arrived| arrived == self.need) {
            self.arrived = None;
        }
    }

    /// Notes an urgent decision that has arrived.
    fn note_arrival(&mut self, before: &[NeedsYou]) {
        let is_new =
            |need: &&NeedsYou| need.level == AlarmLevel::Critical && same_need(before, need).is_none();
        let new = self.needs().iter().find(is_new).cloned();
        self.arrived = new.or_else(|| self.arrived.take());
        self.drop_arrival();
    }

    /// The decision about a budget that is used up: nothing resumes before it is raised.
    pub(crate) fn used_up_budget(&self) -> Option<&NeedsYou> {
        let is_used_up =
            |need: &&NeedsYou| need.kind == AlarmKind::Budget && need.level == AlarmLevel::Critical;
        let is_stopped = self.view.as_ref().is_some_and(|view| !view.stopped.is_empty());
        self.needs().iter().find(is_used_up).filter(|_| is_stopped)
    }

    pub(crate) fn tasks(&self) -> &[TaskView] {
        self.view.as_ref().map(|view| view.tasks.as_slice()).unwrap_or_default()
    }

    pub(crate) fn agents(&self) -> &[AgentView] {
        self.view.as_ref().map(|view| view.agents.as_slice()).unwrap_or_default()
    }

    pub(crate) fn task_view(&self, id: &TaskId) -> Option<&TaskView> {
        self.tasks().iter().find(|task| task.id == *id)
    }

    /// The task that actions are about: that of the open page, or of the selected row.
    pub(crate) fn subject(&self) -> Option<&TaskView> {
        if let Some(page) = &self.page {
            return page.task().and_then(|task| self.task_view(task));
        }
        match self.panel {
            Panel::NeedsYou => {
                self.needs().get(self.need)?.task.as_ref().and_then(|task| self.task_view(task))
            }
            Panel::Tasks => self.tasks().get(self.task),
            Panel::Agents => {
                self.agents().get(self.agent)?.task.as_ref().and_then(|task| self.task_view(task))
            }
            Panel::Log => None,
        }
    }

    pub(crate) fn selected_agent(&self) -> Option<AgentId> {
        Some(self.agents().get(self.agent)?.id)
    }

    /// The agent that actions are about: that of the open page, or of the selected row.
    fn agent_subject(&self) -> Option<AgentSubject> {
        let id = match &self.page {
            Some(page) => page.agent(),
            None => self.selected_agent().filter(|_| self.panel == Panel::Agents),
        }?;
        self.agents().iter().find(|agent| agent.id == id).map(AgentSubject::from)
    }

    /// The subject of a key.
    pub(crate) fn action_subject(&self) -> ActionSubject<'_> {
        ActionSubject { task: self.subject(), agent: self.agent_subject() }
    }

    /// The first task that waits for an answer, whichever is selected.
    pub(crate) fn asking_task(&self) -> Option<&TaskView> {
        self.tasks().iter().find(|task| task.status == Some(Status::Blocked))
    }

    /// The work that a stopping team waits for, and the effect of Ctrl-C then.
    pub(crate) fn stop_text(&self) -> Option<String> {
        let merge = self.view.as_ref().and_then(|view| view.merge.as_ref());
        Some(match merge {
            _ if !self.stopping => return None,
            _ if self.killing => "killing the sessions".to_owned(),
            Some(merge) => {
                format!("stopping; waits for the merge of {}; Ctrl-C again: at once", merge.task)
            }
            None => "stopping the team; press Ctrl-C again to kill the sessions".to_owned(),
        })
    }

    /// The field that a person types into.
    pub(crate) fn typed_field(&mut self) -> Option<&mut InputField> {
        match &mut self.prompt {
            Some(Prompt::Search(field)) => Some(field),
            Some(Prompt::Leave) => None,
            None => self.dialog.as_mut().and_then(Dialog::field),
        }
    }

    /// The command that shows or answers the selection, to be copied.
    pub(crate) fn selected_command(&self) -> Option<String> {
        let shown = |verb: &str, of: String| shell_line(&[verb.to_owned(), of]);
        if let Some(page) = &self.page {
            return page.command();
        }
        match self.panel {
            Panel::NeedsYou => self.needs().get(self.need).map(|need| need.command.to_string()),
            Panel::Tasks => self.tasks().get(self.task).map(|task| shown("show", task.id.to_string())),
            Panel::Agents => self.selected_agent().map(|agent| shown("tail", agent.to_string())),
            Panel::Log => Some("liza log".to_owned()),
        }
    }

    /// Removes a notice that was shown long enough: it covers the keys.
    pub(crate) fn drop_old_notice(&mut self) {
        let Some(now) = self.view.as_ref().map(|view| view.now) else { return };
        let Some(notice) = self.notice.as_mut().filter(|notice| !notice.stays) else { return };
        let until = *notice.until.get_or_insert(now + notice.time);
        if now >= until {
            self.notice = None;
        }
    }

    /// Shows another view; the selection stays.
    pub(crate) fn set_view(&mut self, view: Arc<View>) {
        let task = self.tasks().get(self.task).map(|task| task.id.clone());
        let agent = self.selected_agent().filter(|_| self.moved);
        let is_chosen = self.moved && self.panel == Panel::NeedsYou;
        let need = self.needs().get(self.need).filter(|_| is_chosen).cloned();
        let before = self.needs().to_vec();
        let first = self.view.is_none();
        let mut view = Arc::unwrap_or_clone(view);
        view.agents.sort_by_key(agent_rank);
        self.view = Some(Arc::new(view));
        self.problem = None;
        let place = |found: Option<usize>, old: usize, length: usize| {
            found.unwrap_or(old).min(length.saturating_sub(1))
        };
        let found = task.and_then(|id| self.tasks().iter().position(|task| task.id == id));
        self.task = place(found, self.task, self.tasks().len());
        let found = agent.and_then(|id| self.agents().iter().position(|agent| agent.id == id));
        self.agent = place(found, self.agent, self.agents().len());
        let found = need.and_then(|need| same_need(self.needs(), &need));
        self.need = place(found, if is_chosen { self.need } else { 0 }, self.needs().len());
        if self.needs().is_empty() && self.panel == Panel::NeedsYou {
            self.panel = Panel::Tasks;
        } else if (first || !self.moved || self.tasks().is_empty())
            && before.is_empty()
            && !self.needs().is_empty()
        {
            self.panel = Panel::NeedsYou;
        }
        self.note_arrival(&before);
    }

    /// Adds lines to the log; a person who has scrolled back keeps the place.
    pub(crate) fn add_log(&mut self, mut lines: Vec<LogLine>) {
        lines.retain(|line| !self.log.iter().rev().take(REPEATED_LINES).any(|known| known.is_same(line)));
        if self.log_back > 0 {
            self.log_back += lines.len();
        }
        for line in lines {
            let place = self.log.iter().rposition(|known| known.precedes(&line)).map_or(0, |at| at + 1);
            self.log.insert(place, line);
        }
        while self.log.len() > LOG_MAX {
            self.log.pop_front();
        }
        self.log_back = self.log_back.min(self.log.len().saturating_sub(1));
    }
}

/// Those at work are what a person looks for, then those that cannot work: rows may be few.
fn agent_rank(agent: &AgentView) -> u8 {
    match agent.is_at_work() {
        true => 0,
        false if agent.held().is_some() || agent.next.retry().is_some() => 1,
        false => 2,
    }
}

/// The place of a decision in a new list: the same command, and of those the same text if it has not changed, as ages do.
fn same_need(needs: &[NeedsYou], need: &NeedsYou) -> Option<usize> {
    let same = |entry: &NeedsYou| {
        entry.kind == need.kind && entry.task == need.task && entry.command == need.command
    };
    let exact = needs.iter().position(|entry| same(entry) && entry.text == need.text);
    exact.or_else(|| needs.iter().position(same))
}
