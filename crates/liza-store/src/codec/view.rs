//! Reads the blackboard: all of it with the parser, or what a command needs with a line scan.
//!
//! Both ways must give the same board; a property test compares them.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use liza_core::model::{
    AgentId, AgentRecord, Board, Config, Fault, Goal, Handoff, Journal, Loaded, Revision, Section, Sprint,
    State, Status, TaskBody, TaskId, TaskRecord, TaskSlot, TaskSummary, Timestamp,
};
use serde::de::DeserializeOwned;

use super::{REQUIRED, VERSION, decode_config, summaries};
use crate::document::{
    Ambiguous, Block, Item, Shape, is_empty_value, line_start, scan_matches, sections, shape,
};
use crate::error::StoreError;
use crate::yaml::{Node, NodeKind, Position, YamlError, decode, parse, parse_fast};

/// A view of one version of the file.
pub(crate) struct StateView<'t> {
    pub(crate) path: &'t Path,
    /// The text without a byte order mark.
    pub(crate) text: &'t str,
    /// Its sections; empty if a line scan cannot find them.
    pub(crate) blocks: Vec<Block>,
    /// The tree of the whole file, if it was parsed.
    pub(crate) tree: Option<Node<'t>>,
    /// Whether a line scan finds all blocks that the parser finds.
    pub(crate) scannable: bool,
    /// The positions of the tasks, in the order of the board; empty if a line scan cannot find them.
    pub(crate) items: Vec<Item>,
    /// What is not part of the board because it is invalid.
    pub(super) faults: Vec<Fault>,
    /// Parsed parts: a write needs the same few several times.
    parts: RefCell<Parts<'t>>,
}

/// Parsed parts of a text, by start and end.
type Parts<'t> = Vec<((usize, usize), Rc<Node<'t>>)>;

/// The text of a file without its byte order mark, and the length of that mark.
pub(crate) fn text_without_bom<'t>(path: &Path, bytes: &'t [u8]) -> Result<(&'t str, usize), StoreError> {
    let bom = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let text = std::str::from_utf8(&bytes[bom..]).map_err(|error| {
        let valid = &bytes[bom..bom + error.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', valid).count() + 1;
        let column = valid.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
        let position = Position::new(line, column);
        StoreError::broken(path, YamlError::at("not valid UTF-8; save the file as UTF-8", position))
    })?;
    Ok((text, bom))
}

/// The state in the bytes of a file; with a line scan if they are a version that we wrote.
pub(crate) fn parse_state(path: &Path, bytes: &[u8], own_version: bool) -> Result<State, StoreError> {
    let (text, _) = text_without_bom(path, bytes)?;
    let mut view = if own_version { StateView::lazy(path, text)? } else { StateView::full(path, text)? };
    view.state()
}

/// The number of faults in a state.
pub(crate) fn fault_count(state: &State) -> usize {
    fn section<T>(section: &Loaded<T>) -> usize {
        usize::from(section.ready().is_none())
    }
    let board = &state.board;
    let task = |slot: &TaskSlot| slot.body.as_ref().map_or(1, |body| body.faults().len());
    board.tasks.values().map(task).sum::<usize>()
        + state.journal.faults.len()
        + section(&board.agents)
        + section(&board.config)
        + section(&board.goal)
        + section(&board.sprint)
        + section(&board.circuit_breaker)
        + section(&board.discovered)
        + section(&board.handoff)
}

impl<'t> StateView<'t> {
    /// A view of a version that we wrote and checked: parses nothing yet.
    pub(crate) fn lazy(path: &'t Path, text: &'t str) -> Result<Self, StoreError> {
        let blocks = sections(text).unwrap_or_default();
        if blocks.is_empty() { Self::full(path, text) } else { Ok(Self::new(path, text, blocks, None, true)) }
    }

    /// A view of a version that we wrote and checked, with its tree.
    pub(crate) fn own_tree(path: &'t Path, text: &'t str) -> Result<Self, StoreError> {
        match parse_fast(text) {
            Some(tree) => Ok(Self::new(path, text, sections(text).unwrap_or_default(), Some(tree), true)),
            None => Self::full(path, text),
        }
    }

    /// A view of any version: parses all of it.
    pub(crate) fn full(path: &'t Path, text: &'t str) -> Result<Self, StoreError> {
        let broken = |error| StoreError::broken(path, error);
        let (tree, non_local) = parse(text).map_err(broken)?;
        let NodeKind::Map(entries, _) = &tree.kind else {
            let message = format!("expected the sections of a blackboard, found {}", tree.describe());
            return Err(broken(YamlError::at(message, tree.position)));
        };
        if let Some(missing) = REQUIRED.iter().find(|name| tree.get(name).is_none()) {
            return Err(broken(missing_section(missing)));
        }
        let blocks = sections(text).unwrap_or_default();
        let same = blocks.len() == entries.len()
            && blocks.iter().zip(entries).all(|(block, (key, _))| key.range().start == block.start);
        let blocks = if same { blocks } else { Vec::new() };
        let scannable = same
            && non_local.is_none()
            && blocks.iter().zip(entries).all(|(block, (_, value))| scan_matches(text, block, value));
        Ok(Self::new(path, text, blocks, Some(tree), scannable))
    }

    fn new(
        path: &'t Path,
        text: &'t str,
        blocks: Vec<Block>,
        tree: Option<Node<'t>>,
        scannable: bool,
    ) -> Self {
        let (items, faults, parts) = (Vec::new(), Vec::new(), RefCell::default());
        Self { path, text, blocks, tree, scannable, items, faults, parts }
    }

    pub(crate) fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name(self.text) == name)
    }

    /// Converts the value of a section; none if the file does not have it.
    pub(crate) fn with_section<T>(
        &self,
        name: &str,
        convert: impl FnOnce(&Node<'_>) -> Result<T, YamlError>,
    ) -> Result<Option<T>, YamlError> {
        if let Some(tree) = &self.tree {
            return tree.get(name).map(convert).transpose();
        }
        let Some(block) = self.block(name) else { return Ok(None) };
        let (node, from) = self.part(block.start, block.end)?;
        node.get(name).map(convert).transpose().map_err(|error| below(error, self.text, from))
    }

    /// Refuses a file that a newer program wrote.
    pub(crate) fn check_version(&self) -> Result<(), StoreError> {
        let named = |error| self.broken(YamlError { key: Some("version".to_owned()), ..error });
        match self.with_section("version", |node| decode::<i64>(node)).map_err(named)? {
            Some(found) if found > VERSION => {
                Err(StoreError::NewerVersion { path: self.path.to_owned(), found, known: VERSION })
            }
            Some(_) => Ok(()),
            None => Err(self.broken(missing_section("version"))),
        }
    }

    fn broken(&self, error: YamlError) -> StoreError {
        StoreError::broken(self.path, error)
    }

    /// A board with the revision and the archived tasks, but no sections and tasks yet.
    pub(crate) fn board(&mut self) -> Result<Board, StoreError> {
        let broken = |error| self.broken(YamlError { key: Some("revision".to_owned()), ..error });
        let revision = self.with_section("revision", |node| decode::<Option<u64>>(node)).map_err(broken)?;
        let mut board = Board { revision: Revision(revision.flatten().unwrap_or(0)), ..Board::default() };
        match self.with_section("archived", |node| decode::<IndexMap<TaskId, Status>>(node)) {
            Ok(archived) => board.archived = archived.unwrap_or_default(),
            Err(error) => self.faults.push(fault_of("archived", error)),
        }
        Ok(board)
    }

    /// Loads the summaries of all tasks, or of the wanted ones.
    pub(crate) fn load_summaries(
        &mut self,
        board: &mut Board,
        wanted: Option<&[TaskId]>,
    ) -> Result<(), StoreError> {
        if self.tree.is_some() { self.tasks_from_tree(board) } else { self.tasks_from_lines(board, wanted) }
    }

    /// The lines of the tasks; none if they are not a block list.
    pub(crate) fn task_lines(&self) -> Option<Range<usize>> {
        let block = self.block("tasks")?;
        let rest = &self.text[block.after..block.end];
        let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let first = first.trim();
        let is_list = first.is_empty() || first.starts_with('#') || is_empty_value(rest);
        is_list.then_some(block.end - below.len()..block.end)
    }

    fn tasks_from_lines(&mut self, board: &mut Board, wanted: Option<&[TaskId]>) -> Result<(), StoreError> {
        if self.block("tasks").is_none() {
            return Ok(());
        }
        let scanned = self.task_lines().ok_or(Ambiguous).and_then(|range| {
            // If a task does not begin with its ID, all summaries are read.
            summaries::scan(self.text, range.clone(), wanted)
                .or_else(|_| summaries::scan(self.text, range, None))
        });
        let Ok(scanned) = scanned else {
            let full = Self::full(self.path, self.text)?;
            *self = Self { faults: std::mem::take(&mut self.faults), ..full };
            return self.tasks_from_tree(board);
        };
        board.tasks.reserve(scanned.len());
        self.items.reserve(scanned.len());
        for (item, summary) in scanned.into_iter().map(summaries::ScannedTask::summary) {
            let slot = match summary {
                Ok(summary) => Ok((summary.id.clone(), TaskSlot { summary, body: None })),
                Err(summaries::NeedsParser) => self.parsed_summary(&item)?,
            };
            self.add_task(board, slot, Some(item));
        }
        Ok(())
    }

    fn parsed_summary(&self, item: &Item) -> Result<Result<(TaskId, TaskSlot), Fault>, StoreError> {
        let (node, from) = self.parse_item(item)?;
        Ok(match node.items().first() {
            Some(node) => task_slot(node, (self.text, from))
                .map(|(id, slot)| (id, TaskSlot { summary: slot.summary, body: None })),
            None => Err(Fault { field: "tasks".to_owned(), message: "an entry is empty".to_owned() }),
        })
    }

    fn tasks_from_tree(&mut self, board: &mut Board) -> Result<(), StoreError> {
        let Some(tree) = self.tree.take() else { return Ok(()) };
        let outcome = self.read_tasks(&tree, board);
        self.tree = Some(tree);
        outcome
    }

    fn read_tasks(&mut self, tree: &Node<'t>, board: &mut Board) -> Result<(), StoreError> {
        let Some(tasks) = tree.get("tasks") else { return Ok(()) };
        if !matches!(tasks.kind, NodeKind::List(..)) && !tasks.is_null() {
            let message = format!("expected a list of tasks, found {}", tasks.describe());
            let error = YamlError { key: Some("tasks".to_owned()), ..YamlError::at(message, tasks.position) };
            return Err(self.broken(error));
        }
        let items = match self.block("tasks").map(|block| shape(self.text, block)) {
            Some(Ok(Shape::List(items))) if items.len() == tasks.items().len() => items,
            _ => Vec::new(),
        };
        for (n, node) in tasks.items().iter().enumerate() {
            let slot = task_slot(node, (self.text, 0));
            self.add_task(board, slot, items.get(n).cloned());
        }
        Ok(())
    }

    fn add_task(&mut self, board: &mut Board, slot: Result<(TaskId, TaskSlot), Fault>, item: Option<Item>) {
        match slot {
            Ok((id, _)) if board.tasks.contains_key(&id) => {
                let message = format!(
                    "the task ID {id} is used twice; the second task is ignored until it has another ID"
                );
                self.faults.push(Fault { field: "tasks".to_owned(), message });
            }
            Ok((id, slot)) => {
                self.items.extend(item);
                board.tasks.insert(id, slot);
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    /// Parses the lines of a block once; also returns the start of the first line.
    pub(crate) fn part(&self, start: usize, end: usize) -> Result<(Rc<Node<'t>>, usize), YamlError> {
        let known =
            self.parts.borrow().iter().find(|(at, _)| *at == (start, end)).map(|(_, node)| node.clone());
        if let Some(node) = known {
            return Ok((node, line_start(self.text, start)));
        }
        let (node, from) = parse_part(self.text, start, end)?;
        let node = Rc::new(node);
        let mut parts = self.parts.borrow_mut();
        // Enough for a write; a read of all tasks needs each part only once.
        if parts.len() < 16 {
            parts.push(((start, end), node.clone()));
        }
        Ok((node, from))
    }

    fn parse_item(&self, item: &Item) -> Result<(Rc<Node<'t>>, usize), StoreError> {
        self.part(item.start, item.end).map_err(|error| self.broken(error))
    }

    /// Loads these tasks in full.
    pub(crate) fn load_bodies(&self, board: &mut Board, tasks: &[TaskId]) -> Result<(), StoreError> {
        for id in tasks {
            let Some((at, _, slot)) = board.tasks.get_full_mut(id).filter(|(_, _, slot)| slot.body.is_none())
            else {
                continue;
            };
            let Some(item) = self.items.get(at) else { continue };
            let (node, from) = self.parse_item(item)?;
            if let Some(node) = node.items().first() {
                slot.body = Some(Arc::new(task_body(node, (self.text, from))));
            }
        }
        Ok(())
    }

    /// Loads these sections.
    pub(crate) fn load_sections(&self, board: &mut Board, wanted: &[Section]) {
        for section in wanted {
            match section {
                Section::Agents => board.agents = self.agents(),
                Section::Config => board.config = self.config(),
                Section::Goal => board.goal = self.section(*section),
                Section::Sprint => board.sprint = self.sprint(),
                Section::CircuitBreaker => board.circuit_breaker = self.section(*section),
                Section::Discovered => board.discovered = self.section(*section),
                Section::Handoff => board.handoff = self.handoff(),
            }
        }
    }

    /// The valid entries of the agents, so that an invalid one affects only its own agent.
    fn agents(&self) -> Loaded<IndexMap<AgentId, AgentRecord>> {
        let valid = |node: &Node<'_>| match &node.kind {
            NodeKind::Map(entries, _) => {
                Ok(entries.iter().filter_map(|(key, value)| agent(key, value).ok()).collect())
            }
            NodeKind::Scalar(..) | NodeKind::List(..) => decode(node),
        };
        self.decoded(Section::Agents.key(), valid, || Ok(IndexMap::new()))
    }

    /// The faults of the invalid entries of the agents.
    pub(super) fn agent_faults(&self) -> Vec<Fault> {
        let errors = |node: &Node<'_>| {
            let named = |(key, value): &(Node<'_>, Node<'_>)| {
                let error = agent(key, value).err()?;
                let field = error.key.map(|key| format!("{key}: ")).unwrap_or_default();
                let message = format!("{field}{}", error.message);
                Some(YamlError {
                    message,
                    key: Some(format!("agents.{}", key.text().unwrap_or_default())),
                    ..error
                })
            };
            Ok(node.entries().iter().filter_map(named).collect::<Vec<_>>())
        };
        let found = self.with_section("agents", errors).ok().flatten().unwrap_or_default();
        found.into_iter().map(|error| fault_of("agents", self.in_section("agents", error))).collect()
    }

    /// The sprint; a first one if the file has none.
    fn sprint(&self) -> Loaded<Sprint> {
        let absent = || {
            let goal = self.with_section("goal", |node| decode::<Goal>(node)).ok().flatten();
            let (id, created) = goal.map_or((String::new(), None), |goal| (goal.id, goal.created));
            Ok(Sprint::begin(1, &id, created.unwrap_or(Timestamp::from_unix(0))))
        };
        self.decoded(Section::Sprint.key(), |node| decode(node), absent)
    }

    /// The first sprint of a file that has none, for the next write.
    pub(crate) fn missing_sprint(&self, now: Timestamp) -> Option<Sprint> {
        let is_missing = match &self.tree {
            Some(tree) => tree.get("sprint").is_none(),
            None => self.block("sprint").is_none(),
        };
        let goal = || self.with_section("goal", |node| decode::<Goal>(node)).ok().flatten();
        is_missing.then(|| Sprint::begin(1, &goal().map(|goal| goal.id).unwrap_or_default(), now))
    }

    /// The number of invalid keys of the config, each of which makes the whole section invalid.
    pub(crate) fn config_faults(&self) -> usize {
        let count = |node: &Node<'_>| {
            let alone = |entry: &&(Node<'_>, Node<'_>)| {
                decode::<Config>(&node.with_entries(vec![(*entry).clone()])).is_err()
            };
            Ok(node.entries().iter().filter(alone).count())
        };
        self.with_section("config", count).ok().flatten().unwrap_or(0)
    }

    /// An error in a section, with its position in the whole file.
    fn in_section(&self, name: &str, error: YamlError) -> YamlError {
        match (&self.tree, self.block(name)) {
            (None, Some(block)) => below(error, self.text, block.start),
            (Some(_), _) | (None, None) => error,
        }
    }

    fn section<T: DeserializeOwned>(&self, section: Section) -> Loaded<T> {
        self.decoded(
            section.key(),
            |node| decode(node),
            || {
                // A missing section is empty if its type allows that.
                parse("{}")
                    .and_then(|(node, _)| decode(&node))
                    .or_else(|_| parse("[]").and_then(|(node, _)| decode(&node)))
            },
        )
    }

    fn decoded<T>(
        &self,
        name: &str,
        decode: impl FnOnce(&Node<'_>) -> Result<T, YamlError>,
        absent: impl FnOnce() -> Result<T, YamlError>,
    ) -> Loaded<T> {
        match self.with_section(name, decode) {
            Ok(Some(content)) => Loaded::Ready(content),
            Err(error) => Loaded::Broken(fault_of(name, error)),
            Ok(None) => {
                absent().map_or_else(|_| Loaded::Broken(fault_of(name, missing_section(name))), Loaded::Ready)
            }
        }
    }

    fn config(&self) -> Loaded<Config> {
        self.decoded("config", decode_config, || Ok(Config::default()))
    }

    fn handoff(&self) -> Loaded<IndexMap<TaskId, Handoff>> {
        let read = |node: &Node<'_>| match single_handoff(node) {
            Some(task) => Ok(IndexMap::from_iter([(decode(task)?, decode(node)?)])),
            None => decode(node),
        };
        self.decoded("handoff", read, || Ok(IndexMap::new()))
    }

    /// What is invalid in what was loaded so far.
    pub(crate) fn take_faults(&mut self) -> Vec<Fault> {
        let mut faults = std::mem::take(&mut self.faults);
        faults.extend(self.agent_faults());
        faults
    }

    /// Loads the whole blackboard.
    pub(crate) fn state(&mut self) -> Result<State, StoreError> {
        let mut board = self.board()?;
        self.load_sections(&mut board, Section::ALL);
        self.load_summaries(&mut board, None)?;
        let tasks: Vec<TaskId> = board.tasks.keys().cloned().collect();
        self.load_bodies(&mut board, &tasks)?;
        let mut journal = Journal { faults: self.take_faults(), ..Journal::default() };
        for section in ["anomalies", "human_notes", "spec_changes", "goal"] {
            self.load_journal(&mut journal, section);
        }
        Ok(State { board, journal })
    }

    /// Loads the append-only list of a section, if it has one.
    pub(crate) fn load_journal(&self, journal: &mut Journal, section: &str) {
        let faults = &mut journal.faults;
        match section {
            "anomalies" => journal.anomalies = self.entries(section, |node| Some(node), faults),
            "human_notes" => journal.human_notes = self.entries(section, |node| Some(node), faults),
            "spec_changes" => journal.spec_changes = self.entries(section, |node| Some(node), faults),
            "goal" => {
                journal.alignment_history =
                    self.entries(section, |node| node.get("alignment_history"), faults);
            }
            _ => {}
        }
    }

    /// The valid entries of a list; the others become faults.
    fn entries<T: DeserializeOwned>(
        &self,
        name: &str,
        find: for<'n> fn(&'n Node<'n>) -> Option<&'n Node<'n>>,
        faults: &mut Vec<Fault>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        let read = |node: &Node<'_>| {
            let mut errors = Vec::new();
            let list = find(node);
            if let Some(list) =
                list.filter(|list| !list.is_null() && !matches!(list.kind, NodeKind::List(..)))
            {
                let message = format!("expected a list, found {}", list.describe());
                errors.push(YamlError::at(message, list.position));
            }
            for node in list.map(Node::items).unwrap_or_default() {
                match decode(node) {
                    Ok(entry) => found.push(entry),
                    Err(error) => errors.push(error),
                }
            }
            Ok(errors)
        };
        match self.with_section(name, read) {
            Ok(errors) => {
                let positioned = |error| fault_of(name, self.in_section(name, error));
                faults.extend(errors.into_iter().flatten().map(positioned));
            }
            Err(error) => faults.push(fault_of(name, error)),
        }
        found
    }
}

fn agent(key: &Node<'_>, value: &Node<'_>) -> Result<(AgentId, AgentRecord), YamlError> {
    Ok((decode(key)?, decode(value)?))
}

fn missing_section(name: &str) -> YamlError {
    YamlError::new(format!("the section {name:?} is missing; add it"))
}

/// The task of a handoff section in the old form, which holds only one handoff.
pub(super) fn single_handoff<'n>(node: &'n Node<'n>) -> Option<&'n Node<'n>> {
    node.get("agent")?;
    node.get("task")
}

/// Parses the lines of a block; also returns the start of the first line.
pub(crate) fn parse_part(text: &str, start: usize, end: usize) -> Result<(Node<'_>, usize), YamlError> {
    let from = line_start(text, start);
    let part = &text[from..end];
    if let Some(node) = parse_fast(part) {
        return Ok((node, from));
    }
    let (node, _) = parse(part).map_err(|error| below(error, text, from))?;
    Ok((node, from))
}

/// An error in a part of the file, with its position in the whole file. Counts lines only if there is an error.
fn below(error: YamlError, text: &str, from: usize) -> YamlError {
    let lines = memchr::memchr_iter(b'\n', &text.as_bytes()[..from]).count();
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    YamlError { position: error.position.map(|position| position.below(lines)), ..error }
}

/// A fault of the core, with the position in its message.
fn fault_of(field: &str, error: YamlError) -> Fault {
    let position = error.position.map(|position| format!(" ({position})")).unwrap_or_default();
    let field = error.key.unwrap_or_else(|| field.to_owned());
    Fault { field, message: format!("{}{position}", error.message) }
}

/// Reads a task; if it has errors, key by key, so that one invalid field is one fault.
fn task_body(node: &Node<'_>, (text, from): (&str, usize)) -> TaskBody {
    let whole = match decode::<TaskRecord>(node) {
        Ok(record) => return TaskBody::new(record, Vec::new()),
        Err(whole) => whole,
    };
    let mut faults = Vec::new();
    let mut valid = Vec::new();
    for entry in node.entries() {
        let alone = node.with_entries(vec![entry.clone()]);
        match decode::<TaskRecord>(&alone) {
            Ok(_) => valid.push(entry.clone()),
            Err(error) => faults.push(fault_of(entry.0.text().unwrap_or("task"), below(error, text, from))),
        }
    }
    if faults.is_empty() {
        faults.push(fault_of("task", below(whole, text, from)));
    }
    let rest = node.with_entries(valid);
    TaskBody::new(decode(&rest).unwrap_or_default(), faults)
}

pub(super) fn task_slot(node: &Node<'_>, file: (&str, usize)) -> Result<(TaskId, TaskSlot), Fault> {
    let body = task_body(node, file);
    let Some(id) = body.record().id.clone() else {
        let invalid = body.faults().iter().find(|fault| fault.field == "id").cloned();
        let missing =
            || fault_of("id", below(YamlError::at("the task has no ID", node.position), file.0, file.1));
        return Err(invalid.unwrap_or_else(missing));
    };
    let summary = TaskSummary::of(&id, body.record());
    Ok((id, TaskSlot { summary, body: Some(Arc::new(body)) }))
}
