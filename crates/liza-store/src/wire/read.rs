//! Reading the blackboard: all of it with a parser, or what one command needs by a line scan.
//!
//! Both ways give the same board; a property test holds them together.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use liza_core::model::{Board, Fault, Handoff, Journal, Loaded, Revision, Section, State, Status, TaskBody, TaskId, TaskRecord, TaskSlot, TaskSummary};
use serde::de::DeserializeOwned;

use super::{REQUIRED, VERSION, heads};
use crate::document::{Block, Item, Shape, Unsure, agrees, line_start, sections, shape};
use crate::error::{self, StoreError};
use crate::yaml::{Kind, Node, Place, YamlError, decode, parse, quick};

/// One version of the file, and how its blocks are found.
pub(crate) struct View<'t> {
    pub(crate) path: &'t Path,
    /// The text without a byte order mark.
    pub(crate) text: &'t str,
    /// Its sections; empty where a line scan cannot find them.
    pub(crate) blocks: Vec<Block>,
    /// The whole tree, where the file was parsed in full.
    pub(crate) tree: Option<Node<'t>>,
    /// Whether the line scan sees all that the parser sees.
    pub(crate) simple: bool,
    /// Where each task of the board stands, in its order; empty where a line scan cannot tell.
    pub(crate) items: Vec<Item>,
    /// What could not become part of the board.
    pub(super) faults: Vec<Fault>,
    /// Parts that have been parsed: a write looks at the same few again and again.
    parts: RefCell<Parts<'t>>,
}

/// Parsed parts of a text, by where they begin and end.
type Parts<'t> = Vec<((usize, usize), Rc<Node<'t>>)>;

/// The text of a file without its byte order mark, and how long that was.
pub(crate) fn body_of<'t>(path: &Path, bytes: &'t [u8]) -> Result<(&'t str, usize), StoreError> {
    let bom = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let text = std::str::from_utf8(&bytes[bom..]).map_err(|error| {
        let good = &bytes[bom..bom + error.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', good).count() + 1;
        let column = good.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
        let place = Place {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        };
        StoreError::Broken(error::Fault::new(path, None, YamlError::at("not UTF-8 text", place)))
    })?;
    Ok((text, bom))
}

impl<'t> View<'t> {
    /// A version that we wrote and checked: nothing is parsed yet.
    pub(crate) fn lazy(path: &'t Path, text: &'t str) -> Result<Self, StoreError> {
        let blocks = sections(text).unwrap_or_default();
        let view = Self {
            path,
            text,
            blocks,
            tree: None,
            simple: true,
            items: Vec::new(),
            faults: Vec::new(),
            parts: RefCell::default(),
        };
        if view.blocks.is_empty() { Self::full(path, text) } else { Ok(view) }
    }

    /// A version that somebody else wrote: parsed in full.
    pub(crate) fn full(path: &'t Path, text: &'t str) -> Result<Self, StoreError> {
        let broken = |error| StoreError::Broken(error::Fault::new(path, None, error));
        let (tree, oddity) = parse(text).map_err(broken)?;
        let Kind::Map(entries, _) = &tree.kind else {
            let message = format!("expected the sections of a blackboard, found {}", tree.describe());
            return Err(broken(YamlError::at(message, tree.place)));
        };
        if let Some(missing) = REQUIRED.iter().find(|name| tree.get(name).is_none()) {
            let message = format!("the section {missing:?} is missing");
            return Err(broken(YamlError { message, place: None, key: None }));
        }
        let blocks = sections(text).unwrap_or_default();
        let same = blocks.len() == entries.len()
            && blocks.iter().zip(entries).all(|(block, (key, _))| key.range().start == block.start);
        let blocks = if same { blocks } else { Vec::new() };
        let simple = same
            && oddity.is_none()
            && blocks.iter().zip(entries).all(|(block, (_, value))| agrees(text, block, value));
        Ok(Self {
            path,
            text,
            blocks,
            tree: Some(tree),
            simple,
            items: Vec::new(),
            faults: Vec::new(),
            parts: RefCell::default(),
        })
    }

    pub(crate) fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name(self.text) == name)
    }

    /// What is made of the value of a section; nothing where the file has none.
    pub(crate) fn with_section<T>(
        &self,
        name: &str,
        make: impl FnOnce(&Node<'_>) -> Result<T, YamlError>,
    ) -> Result<Option<T>, YamlError> {
        if let Some(tree) = &self.tree {
            return tree.get(name).map(make).transpose();
        }
        let Some(block) = self.block(name) else { return Ok(None) };
        let (node, from) = self.part(block.start, block.end)?;
        node.get(name).map(make).transpose().map_err(|error| below(error, self.text, from))
    }

    /// Refuses a file that a newer program has written.
    pub(crate) fn check_version(&self) -> Result<(), StoreError> {
        let broken = |error| StoreError::Broken(error::Fault::new(self.path, None, error));
        let named = |error| broken(YamlError { key: Some("version".to_owned()), ..error });
        match self.with_section("version", |node| decode::<i64>(node)).map_err(named)? {
            Some(found) if found > VERSION => {
                Err(StoreError::Version { path: self.path.to_owned(), found, known: VERSION })
            }
            Some(_) => Ok(()),
            None => {
                let message = "the section \"version\" is missing".to_owned();
                Err(broken(YamlError { message, place: None, key: None }))
            }
        }
    }

    /// Revision and archive, before any task.
    pub(crate) fn board(&mut self) -> Result<Board, StoreError> {
        let broken = |error: YamlError| {
            let error = YamlError { key: Some("revision".to_owned()), ..error };
            StoreError::Broken(error::Fault::new(self.path, None, error))
        };
        let revision = self.with_section("revision", |node| decode::<Option<u64>>(node)).map_err(broken)?;
        let mut board = Board { revision: Revision(revision.flatten().unwrap_or(0)), ..Board::default() };
        match self.with_section("archived", |node| decode::<IndexMap<TaskId, Status>>(node)) {
            Ok(archived) => board.archived = archived.unwrap_or_default(),
            Err(error) => self.faults.push(fault_of("archived", error)),
        }
        Ok(board)
    }

    /// The heads of all tasks, or of those that are wanted.
    pub(crate) fn load_heads(
        &mut self,
        board: &mut Board,
        wanted: Option<&[TaskId]>,
    ) -> Result<(), StoreError> {
        if self.tree.is_some() { self.tasks_from_tree(board) } else { self.tasks_from_lines(board, wanted) }
    }

    fn tasks_from_lines(&mut self, board: &mut Board, wanted: Option<&[TaskId]>) -> Result<(), StoreError> {
        let Some(block) = self.block("tasks") else { return Ok(()) };
        let rest = &self.text[block.after..block.end];
        let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let scanned = match first.trim() {
            "[]" if below.is_empty() => Ok(Vec::new()),
            first if first.is_empty() || first.starts_with('#') => {
                let range = block.end - below.len()..block.end;
                // People also write other keys before the ID; then all heads are read.
                heads::scan(self.text, range.clone(), wanted).or_else(|_| heads::scan(self.text, range, None))
            }
            _ => Err(Unsure),
        };
        let Ok(scanned) = scanned else {
            let full = Self::full(self.path, self.text)?;
            *self = Self { faults: std::mem::take(&mut self.faults), ..full };
            return self.tasks_from_tree(board);
        };
        board.tasks.reserve(scanned.len());
        self.items.reserve(scanned.len());
        for (item, head) in scanned.into_iter().map(heads::Scanned::head) {
            let slot = match head {
                Ok(head) => Ok((head.id.clone(), TaskSlot { summary: head, body: None })),
                Err(heads::NeedsParser) => self.parsed_head(&item)?,
            };
            self.keep(board, slot, Some(item));
        }
        Ok(())
    }

    fn parsed_head(&self, item: &Item) -> Result<Result<(TaskId, TaskSlot), Fault>, StoreError> {
        let (node, from) = self.parse_item(item)?;
        Ok(match node.items().first() {
            Some(node) => task_slot(node, (self.text, from))
                .map(|(id, slot)| (id, TaskSlot { summary: slot.summary, body: None })),
            None => Err(Fault { field: "tasks".to_owned(), message: "an empty entry".to_owned() }),
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
        if !matches!(tasks.kind, Kind::List(..)) && !tasks.is_null() {
            let message = format!("expected a list of tasks, found {}", tasks.describe());
            let error = YamlError { key: Some("tasks".to_owned()), ..YamlError::at(message, tasks.place) };
            return Err(StoreError::Broken(error::Fault::new(self.path, None, error)));
        }
        let items = match self.block("tasks").map(|block| shape(self.text, block)) {
            Some(Ok(Shape::List(items))) if items.len() == tasks.items().len() => items,
            _ => Vec::new(),
        };
        for (n, node) in tasks.items().iter().enumerate() {
            let slot = task_slot(node, (self.text, 0));
            self.keep(board, slot, items.get(n).cloned());
        }
        Ok(())
    }

    fn keep(&mut self, board: &mut Board, slot: Result<(TaskId, TaskSlot), Fault>, item: Option<Item>) {
        match slot {
            Ok((id, _)) if board.tasks.contains_key(&id) => {
                let message = format!("the task ID {id} is used twice; the second one is ignored");
                self.faults.push(Fault { field: "tasks".to_owned(), message });
            }
            Ok((id, slot)) => {
                self.items.extend(item);
                board.tasks.insert(id, slot);
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    /// Parses the lines of a block once, and says where the first of them begins.
    pub(crate) fn part(&self, start: usize, end: usize) -> Result<(Rc<Node<'t>>, usize), YamlError> {
        let known =
            self.parts.borrow().iter().find(|(at, _)| *at == (start, end)).map(|(_, node)| node.clone());
        if let Some(node) = known {
            return Ok((node, line_start(self.text, start)));
        }
        let (node, from) = parse_part(self.text, start, end)?;
        let node = Rc::new(node);
        let mut parts = self.parts.borrow_mut();
        // The few of an ordinary write; who reads everything reads it once.
        if parts.len() < 16 {
            parts.push(((start, end), node.clone()));
        }
        Ok((node, from))
    }

    fn parse_item(&self, item: &Item) -> Result<(Rc<Node<'t>>, usize), StoreError> {
        let broken = |error| StoreError::Broken(error::Fault::new(self.path, None, error));
        self.part(item.start, item.end).map_err(broken)
    }

    /// Loads the bodies of these tasks.
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

    /// Loads the sections that are asked for.
    pub(crate) fn load_sections(&self, board: &mut Board, wanted: &[Section]) {
        for section in wanted {
            match section {
                Section::Agents => board.agents = self.section(*section),
                Section::Config => board.config = self.section(*section),
                Section::Goal => board.goal = self.section(*section),
                Section::Sprint => board.sprint = self.section(*section),
                Section::CircuitBreaker => board.circuit_breaker = self.section(*section),
                Section::Discovered => board.discovered = self.section(*section),
                Section::Handoff => board.handoff = self.handoff(),
            }
        }
    }

    fn section<T: DeserializeOwned>(&self, section: Section) -> Loaded<T> {
        self.decoded(
            section.key(),
            |node| decode(node),
            || {
                // What is absent is empty, where the type allows it.
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
            Ok(None) => absent().map_or_else(
                |_| {
                    let message = format!("the section {name:?} is missing");
                    Loaded::Broken(Fault { field: name.to_owned(), message })
                },
                Loaded::Ready,
            ),
        }
    }

    fn handoff(&self) -> Loaded<IndexMap<TaskId, Handoff>> {
        let read = |node: &Node<'_>| match single_handoff(node) {
            Some(task) => Ok(IndexMap::from_iter([(decode(task)?, decode(node)?)])),
            None => decode(node),
        };
        self.decoded("handoff", read, || Ok(IndexMap::new()))
    }

    /// The whole blackboard.
    pub(crate) fn state(&mut self) -> Result<State, StoreError> {
        let mut board = self.board()?;
        self.load_sections(&mut board, &Section::ALL);
        self.load_heads(&mut board, None)?;
        let tasks: Vec<TaskId> = board.tasks.keys().cloned().collect();
        self.load_bodies(&mut board, &tasks)?;
        let mut journal = Journal { faults: std::mem::take(&mut self.faults), ..Journal::default() };
        for section in ["anomalies", "human_notes", "spec_changes", "goal"] {
            self.load_journal(&mut journal, section);
        }
        Ok(State { board, journal })
    }

    /// Loads the list that only grows of a section, where it has one.
    pub(super) fn load_journal(&self, journal: &mut Journal, section: &str) {
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

    /// The entries of a list that can be understood; the others become faults.
    fn entries<T: DeserializeOwned>(
        &self,
        name: &str,
        find: for<'n> fn(&'n Node<'n>) -> Option<&'n Node<'n>>,
        faults: &mut Vec<Fault>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        let read = |node: &Node<'_>| {
            let mut bad = Vec::new();
            let list = find(node);
            if let Some(list) = list.filter(|list| !list.is_null() && !matches!(list.kind, Kind::List(..))) {
                bad.push(YamlError::at(format!("expected a list, found {}", list.describe()), list.place));
            }
            for node in list.map(Node::items).unwrap_or_default() {
                match decode(node) {
                    Ok(entry) => found.push(entry),
                    Err(error) => bad.push(error),
                }
            }
            Ok(bad)
        };
        match self.with_section(name, read) {
            Ok(bad) => {
                let placed = |error| match (&self.tree, self.block(name)) {
                    (None, Some(block)) => below(error, self.text, block.start),
                    (Some(_), _) | (None, None) => error,
                };
                faults.extend(bad.into_iter().flatten().map(|error| fault_of(name, placed(error))));
            }
            Err(error) => faults.push(fault_of(name, error)),
        }
        found
    }
}

/// The task that a handoff in the old form, one record for all, is about.
pub(super) fn single_handoff<'n>(node: &'n Node<'n>) -> Option<&'n Node<'n>> {
    node.get("agent")?;
    node.get("task")
}

/// Parses the lines of a block, and says where the first of them begins.
pub(crate) fn parse_part(text: &str, start: usize, end: usize) -> Result<(Node<'_>, usize), YamlError> {
    let from = line_start(text, start);
    let part = &text[from..end];
    if let Some(node) = quick(part) {
        return Ok((node, from));
    }
    let (node, _) = parse(part).map_err(|error| below(error, text, from))?;
    Ok((node, from))
}

/// The place in the file of an error in a part of it. Lines are counted only when there is an error to tell.
fn below(error: YamlError, text: &str, from: usize) -> YamlError {
    let lines = memchr::memchr_iter(b'\n', &text.as_bytes()[..from]).count();
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    YamlError { place: error.place.map(|place| place.below(lines)), ..error }
}

/// A fault as core knows it: the place goes into the message.
fn fault_of(field: &str, error: YamlError) -> Fault {
    let place = error.place.map(|place| format!(" ({place})")).unwrap_or_default();
    let field = error.key.unwrap_or_else(|| field.to_owned());
    Fault { field, message: format!("{}{place}", error.message) }
}

/// Reads a task key by key where it cannot be read as a whole: one bad field is one fault.
fn task_body(node: &Node<'_>, (text, from): (&str, usize)) -> TaskBody {
    let whole = match decode::<TaskRecord>(node) {
        Ok(record) => return TaskBody::new(record, Vec::new()),
        Err(whole) => whole,
    };
    let mut faults = Vec::new();
    let mut good = Vec::new();
    for entry in node.entries() {
        let alone = node.with_entries(vec![entry.clone()]);
        match decode::<TaskRecord>(&alone) {
            Ok(_) => good.push(entry.clone()),
            Err(error) => faults.push(fault_of(entry.0.text().unwrap_or("task"), below(error, text, from))),
        }
    }
    if faults.is_empty() {
        faults.push(fault_of("task", below(whole, text, from)));
    }
    let rest = node.with_entries(good);
    TaskBody::new(decode(&rest).unwrap_or_default(), faults)
}

pub(super) fn task_slot(node: &Node<'_>, file: (&str, usize)) -> Result<(TaskId, TaskSlot), Fault> {
    let body = task_body(node, file);
    let Some(id) = body.record().id.clone() else {
        let bad = body.faults().iter().find(|fault| fault.field == "id").cloned();
        let missing =
            || fault_of("id", below(YamlError::at("a task without an ID", node.place), file.0, file.1));
        return Err(bad.unwrap_or_else(missing));
    };
    let summary = TaskSummary::of(&id, body.record());
    Ok((id, TaskSlot { summary, body: Some(Arc::new(body)) }))
}
