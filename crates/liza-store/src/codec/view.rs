//! A view of one version of the file: its text, its blocks, and its parsed parts. All of it is parsed, or a
//! line scan finds the parts that a command needs. A property test checks that both give the same board.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use indexmap::IndexMap;
use liza_core::model::{
    Board, Fault, FileVersion, Journal, Loaded, Revision, Section, State, Status, TaskId, TaskSlot,
};
use liza_core::protocol::Pending;

use super::{REQUIRED, VERSION};
use crate::document::{Block, Item, line_start, scan_matches, sections};
use crate::error::StoreError;
use crate::yaml::{Node, NodeKind, NonLocalSyntax, Position, YamlError, decode, parse, parse_fast};

pub(crate) struct StateView<'t> {
    pub(crate) path: &'t Path,
    /// Without a byte order mark.
    pub(crate) text: &'t str,
    /// Empty if a line scan cannot find them.
    pub(crate) blocks: Vec<Block>,
    /// The tree of the whole file, if it was parsed.
    pub(crate) tree: Option<Node<'t>>,
    /// A line scan finds all blocks that the parser finds.
    pub(crate) scannable: bool,
    /// The positions of the tasks, in the order of the board; empty if a line scan cannot find them.
    pub(crate) items: Vec<Item>,
    /// Invalid content that is not part of the board.
    pub(super) faults: Vec<Fault>,
    /// Parsed parts: a write needs the same few several times.
    parts: RefCell<Parts<'t>>,
}

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

/// Decodes the bytes of a file; with a line scan if they are a version that we wrote.
pub(crate) fn parse_state(path: &Path, bytes: &[u8], own_version: bool) -> Result<State, StoreError> {
    let (text, _) = text_without_bom(path, bytes)?;
    let mut view = if own_version { StateView::lazy(path, text)? } else { StateView::full(path, text)? };
    view.state()
}

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
        + section(&board.direct_edits)
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
            None => Self::parsed(path, text, parse(text)),
        }
    }

    /// A view of any version: parses all of it.
    pub(crate) fn full(path: &'t Path, text: &'t str) -> Result<Self, StoreError> {
        Self::parsed(path, text, parse_fast(text).map_or_else(|| parse(text), |tree| Ok((tree, None))))
    }

    fn parsed(
        path: &'t Path,
        text: &'t str,
        parsed: Result<(Node<'t>, Option<NonLocalSyntax>), YamlError>,
    ) -> Result<Self, StoreError> {
        let broken = |error| StoreError::broken(path, error);
        let (tree, non_local) = parsed.map_err(broken)?;
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

    pub(super) fn parse_all(&mut self) -> Result<(), StoreError> {
        let full = Self::full(self.path, self.text)?;
        *self = Self { faults: std::mem::take(&mut self.faults), ..full };
        Ok(())
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

    /// Converts the value of a section; `None` if the file lacks it.
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

    pub(super) fn broken(&self, error: YamlError) -> StoreError {
        StoreError::broken(self.path, error)
    }

    /// A board with the revision and the archived tasks, but no sections and tasks yet.
    pub(crate) fn board(&mut self) -> Result<Board, StoreError> {
        let broken = |error| self.broken(YamlError { key: Some("revision".to_owned()), ..error });
        let revision = self.with_section("revision", |node| decode::<Option<u64>>(node)).map_err(broken)?;
        // A version that is no number is reported by `check_version`, before anything is written.
        let version = self.with_section("version", |node| decode::<i64>(node)).ok().flatten();
        let version = version.map_or_else(FileVersion::default, FileVersion);
        let mut board =
            Board { version, revision: Revision(revision.flatten().unwrap_or(0)), ..Board::default() };
        match self.with_section("archived", |node| decode::<IndexMap<TaskId, Status>>(node)) {
            Ok(archived) => board.archived = archived.unwrap_or_default(),
            Err(error) => self.faults.push(fault_of("archived", error)),
        }
        Ok(board)
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

    /// An error in a section, with its position in the whole file.
    pub(super) fn in_section(&self, name: &str, error: YamlError) -> YamlError {
        match (&self.tree, self.block(name)) {
            (None, Some(block)) => below(error, self.text, block.start),
            (Some(_), _) | (None, None) => error,
        }
    }

    /// The faults in the parts loaded so far.
    pub(crate) fn take_faults(&mut self) -> Vec<Fault> {
        let mut faults = std::mem::take(&mut self.faults);
        faults.extend(self.agent_faults());
        faults
    }

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
}

pub(super) fn missing_section(name: &str) -> YamlError {
    YamlError::new(format!("the section {name:?} is missing; add it"))
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
pub(super) fn below(error: YamlError, text: &str, from: usize) -> YamlError {
    let lines = memchr::memchr_iter(b'\n', &text.as_bytes()[..from]).count();
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    YamlError { position: error.position.map(|position| position.below(lines)), ..error }
}

/// A fault of the core, with the position in its message.
pub(super) fn fault_of(field: &str, error: YamlError) -> Fault {
    let position = error.position.map(|position| format!(" ({position})")).unwrap_or_default();
    let field = error.key.unwrap_or_else(|| field.to_owned());
    Fault { field, message: format!("{}{position}", error.message) }
}

/// The parts that a pending command needs of a version that we wrote; `None` if it has to be parsed in full.
pub(crate) fn load(view: &mut StateView<'_>, pending: &dyn Pending) -> Result<Option<Board>, StoreError> {
    let mut board = view.board()?;
    view.load_sections(&mut board, &pending.sections());
    let summaries = pending.summaries(&board);
    view.load_summaries(&mut board, summaries.as_deref())?;
    if view.tree.is_some() {
        return Ok(None);
    }
    let bodies = pending.bodies(&board);
    view.load_bodies(&mut board, &bodies)?;
    Ok(Some(board))
}
