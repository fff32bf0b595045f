//! The pages that open instead of the board: a task, an agent, the output of a command, the keys.

use liza_core::model::{AgentId, Revision, TaskId};
use ratatui::text::Line;

use crate::styled::shell_line;

/// The place of the diff among the tabs of a task.
const DIFF_TAB: usize = 1;

/// The number of lines of a session's output that are shown.
const OUTPUT_LINES: &str = "2000";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageSource {
    Command(Vec<String>),
    /// The last prompt that was written for this task, by this agent if one is named.
    Prompt(Option<AgentId>, Option<TaskId>),
    /// The keys of the screen.
    Keys,
}

impl PageSource {
    fn command(words: &[&str]) -> Self {
        PageSource::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// True if it changes while it is open.
    fn is_live(&self) -> bool {
        match self {
            PageSource::Command(words) => {
                words.first().is_some_and(|verb| matches!(verb.as_str(), "show" | "tail"))
            }
            PageSource::Prompt(..) | PageSource::Keys => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageSubject {
    Task(TaskId),
    Agent(AgentId),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageTab {
    pub title: &'static str,
    pub source: PageSource,
}

/// The lines of a page that are visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scroll {
    From(usize),
    /// The last ones, also when more arrive.
    End,
}

/// The page that is open instead of the board.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub subject: PageSubject,
    pub tabs: Vec<PageTab>,
    pub tab: usize,
    /// None until it was loaded.
    pub lines: Option<Vec<Line<'static>>>,
    pub scroll: Scroll,
    /// The line that was last found.
    pub found: Option<usize>,
    pub loading: bool,
    /// The second in which it was last loaded.
    pub loaded_at: i64,
    /// The revision of its task at that time.
    loaded_revision: Option<Revision>,
}

impl Page {
    pub(crate) fn of_task(task: &TaskId) -> Self {
        let tabs = vec![
            PageTab { title: "Task and history", source: PageSource::command(&["show", task.as_str()]) },
            PageTab { title: "Diff", source: PageSource::command(&["diff", task.as_str()]) },
            PageTab { title: "Prompt", source: PageSource::Prompt(None, Some(task.clone())) },
            output(task.as_str()),
        ];
        Self::new(PageSubject::Task(task.clone()), tabs)
    }

    /// The diff of a task.
    pub(crate) fn of_diff(task: &TaskId) -> Self {
        let mut page = Self::of_task(task);
        page.open(DIFF_TAB);
        page
    }

    pub(crate) fn of_agent(agent: AgentId) -> Self {
        let prompt = PageTab { title: "Prompt", source: PageSource::Prompt(Some(agent), None) };
        Self::new(PageSubject::Agent(agent), vec![output(&agent.to_string()), prompt])
    }

    /// The output of an action. It has no source: nothing runs an action again.
    pub(crate) fn of_result(words: &[String], lines: Vec<Line<'static>>) -> Self {
        let title = format!("liza {}", words.join(" "));
        Self { lines: Some(lines), ..Self::new(PageSubject::Text(title), Vec::new()) }
    }

    pub(crate) fn of_keys() -> Self {
        let tabs = vec![PageTab { title: "Keys", source: PageSource::Keys }];
        Self::new(PageSubject::Text("Keys".to_owned()), tabs)
    }

    fn new(subject: PageSubject, tabs: Vec<PageTab>) -> Self {
        let mut page = Self {
            subject,
            tabs,
            tab: 0,
            lines: None,
            scroll: Scroll::From(0),
            found: None,
            loading: false,
            loaded_at: 0,
            loaded_revision: None,
        };
        page.open(0);
        page
    }

    pub(crate) fn open(&mut self, tab: usize) {
        self.tab = tab;
        (self.lines, self.found) = (None, None);
        self.loading = false;
        let follows = self.source().is_some_and(|source| {
            matches!(source, PageSource::Command(words) if words.first().is_some_and(|verb| verb == "tail"))
        });
        self.scroll = if follows { Scroll::End } else { Scroll::From(0) };
    }

    /// The source of the shown tab.
    pub(crate) fn source(&self) -> Option<&PageSource> {
        self.tabs.get(self.tab).map(|tab| &tab.source)
    }

    /// The command that shows the same in a terminal.
    pub(crate) fn command(&self) -> Option<String> {
        match self.source()? {
            PageSource::Command(words) => Some(shell_line(words)),
            PageSource::Prompt(..) | PageSource::Keys => None,
        }
    }

    pub(crate) fn agent(&self) -> Option<AgentId> {
        if let PageSubject::Agent(agent) = &self.subject { Some(*agent) } else { None }
    }

    pub(crate) fn task(&self) -> Option<&TaskId> {
        match &self.subject {
            PageSubject::Task(task) => Some(task),
            PageSubject::Agent(_) | PageSubject::Text(_) => None,
        }
    }

    /// The source that has to be loaded in this second, while its task has this revision.
    pub(crate) fn next_load(&mut self, second: i64, revision: Option<Revision>) -> Option<PageSource> {
        let source = self.source()?.clone();
        let changed = revision != self.loaded_revision;
        let due = self.lines.is_none() || changed || (source.is_live() && second != self.loaded_at);
        if self.loading || !due {
            return None;
        }
        (self.loading, self.loaded_at, self.loaded_revision) = (true, second, revision);
        Some(source)
    }

    pub(crate) fn length(&self) -> usize {
        self.lines.as_ref().map_or(0, Vec::len)
    }

    /// The first visible line if that many fit.
    pub(crate) fn top(&self, height: usize) -> usize {
        let last = self.length().saturating_sub(height);
        match self.scroll {
            Scroll::From(line) => line.min(last),
            Scroll::End => last,
        }
    }

    /// Scrolls by that many lines, if that many fit.
    pub(crate) fn scroll_by(&mut self, lines: isize, height: usize) {
        let last = self.length().saturating_sub(height);
        let to = self.top(height).saturating_add_signed(lines);
        let follows = self.scroll == Scroll::End || self.source().is_some_and(PageSource::is_live);
        self.scroll = if to >= last && follows { Scroll::End } else { Scroll::From(to.min(last)) };
    }
}

/// The last session of an agent, or on a task.
fn output(of: &str) -> PageTab {
    let words = ["tail", of, "--no-follow", "--last", OUTPUT_LINES];
    PageTab { title: "Output", source: PageSource::command(&words) }
}
