//! `lock write` in a version that we wrote: parses only the section or the task that the path names.
//!
//! Must accept and refuse the same as the edit of the whole text in `text_edit.rs`, which is used for everything else.

use std::ops::Range;

use liza_core::model::{
    Board, Fields, LogEntry, Revision, Section, State, TaskId, TaskRecord, Timestamp, Value,
};

use liza_core::rules::invariants;

use crate::codec::{self, StateView, fault_count, text_without_bom};
use crate::document::{
    Block, Edit, EditPlan, Edits, Item, apply, line_start, list_entries, plain_value, same_value,
};
use crate::error::StoreError;
use crate::file::{NewVersion, Origin};
use crate::modified_parts::is_scannable;
use crate::text_edit::{
    Edited, FileEdit, ValueSyntax, as_field_type, interpretations, new_misspelled, shifted,
};
use crate::value_path::{PathTarget, ValuePath};

/// The block that a path names, with its value.
struct Target {
    place: Place,
    old: Value,
}

enum Place {
    Section(String, Block),
    Task(TaskId, Item),
}

impl Target {
    /// The values of the whole file, as far as they are known here.
    fn root(&self, value: &Value) -> Value {
        let (key, value) = match &self.place {
            Place::Section(name, _) => (name.as_str(), value.clone()),
            Place::Task(..) => ("tasks", Value::List(vec![value.clone()])),
        };
        Value::Map(Fields::from_iter([(key.to_owned(), value)]))
    }

    /// The new value of the block when the value at the path is set.
    fn with(&self, path: &ValuePath, value: &Value) -> Option<Value> {
        let mut root = self.root(&self.old);
        let set = path.set(&mut root, value);
        let Value::Map(mut fields) = root else { return None };
        let new = fields.swap_remove(match &self.place {
            Place::Section(name, _) => name.as_str(),
            Place::Task(..) => "tasks",
        })?;
        match (set, &self.place, new) {
            (0, _, _) => None,
            (_, Place::Section(..), new) => Some(new),
            (_, Place::Task(..), Value::List(mut items)) => items.pop(),
            (_, Place::Task(..), _) => None,
        }
    }

    /// The path in a file that has only this block.
    fn path_in(&self, path: &ValuePath) -> Option<ValuePath> {
        match &self.place {
            Place::Section(..) => Some(path.clone()),
            Place::Task(..) => path.in_only_task(),
        }
    }

    /// The lines of the block.
    fn range(&self, text: &str) -> Range<usize> {
        let (start, end) = match &self.place {
            Place::Section(_, block) => (block.start, block.end),
            Place::Task(_, item) => (item.start, item.end),
        };
        line_start(text, start)..end
    }

    /// What makes the lines of the block a section.
    fn header(&self) -> &'static str {
        match &self.place {
            Place::Section(..) => "",
            Place::Task(..) => "tasks:\n",
        }
    }

    /// The state with the block as its new text has it.
    fn applied(&self, mut state: State, part: State) -> State {
        match &self.place {
            Place::Task(id, _) => {
                state.board.tasks.extend(part.board.tasks.into_iter().filter(|(new, _)| new == id));
            }
            Place::Section(name, _) => {
                state.journal = part.journal;
                if let Some(section) = Section::ALL.iter().find(|section| section.key() == name) {
                    replace_section(&mut state.board, *section, part.board);
                } else if name == "archived" {
                    state.board.archived = part.board.archived;
                }
            }
        }
        state
    }

    /// The edits that give the block its new value, and the file its new revision.
    fn edits(
        &self,
        view: &StateView<'_>,
        new: &Value,
        revision: Option<(Revision, Revision)>,
    ) -> Option<Edits> {
        let mut plan = EditPlan::new(view.text);
        match &self.place {
            Place::Section(name, block) => {
                let (node, from) = view.part(block.start, block.end).ok()?;
                plan.change(block, node.get(name)?, from, (&self.old, new));
            }
            Place::Task(_, item) => {
                let (node, from) = view.part(item.start, item.end).ok()?;
                plan.change_item(item, node.items().first()?, from, (&self.old, new), &[]);
            }
        }
        if let Some((before, after)) = revision {
            let block = view.block("revision")?;
            let (node, from) = view.part(block.start, block.end).ok()?;
            let number = |revision: Revision| Value::Int(i64::try_from(revision.0).unwrap_or(i64::MAX));
            plan.change(block, node.get("revision")?, from, (&number(before), &number(after)));
        }
        plan.finish(|range| codec::part_around(view, range)).ok()
    }
}

impl FileEdit<'_> {
    /// Sets a value if that needs only a part of the file; none if it needs the whole.
    pub(crate) fn set_in_part(
        &mut self,
        path: &ValuePath,
        (value, syntax): (&str, ValueSyntax),
        log: &LogEntry,
        now: Timestamp,
    ) -> Result<Option<Edited>, StoreError> {
        if self.current.origin != (Origin::Ours { scannable: true }) {
            return Ok(None);
        }
        let bytes = &self.current.bytes;
        let file = self.store.files().state();
        let (text, bom) = text_without_bom(&file, bytes)?;
        let mut view = StateView::lazy(&file, text)?;
        view.check_version()?;
        let Some(ReadTarget { before, target, is_own }) = read_target(&mut view, path, value)? else {
            return Ok(None);
        };
        if !before.journal.faults.is_empty() {
            return Ok(None);
        }
        let Some(path) = target.path_in(path) else { return Ok(None) };
        let Some(new) = best_value(&view, &target, &path, (value, syntax))? else { return Ok(None) };
        let revision = before.board.revision.max(Revision(self.current.revision)).next();
        let (from, to) = (target.root(&target.old), target.root(&new));
        self.check_values(&before.board, &from, &to)?;
        let Some(done) = finished(&view, &target, new, (before.board.revision, revision))? else {
            return Ok(None);
        };
        let before_edit = is_own.then(|| before.clone());
        let after_state = target.applied(before, done.part);
        let adds_none = match &before_edit {
            Some(before) => self.adds_none_in_part(before, &after_state, now),
            None => self.is_valid(&after_state, now),
        };
        if !adds_none {
            // The block alone does not know its lines; the whole text gives the reasons.
            return Ok(None);
        }
        let with_bom = (bom > 0).then(|| [&bytes[..bom], done.text.as_bytes()].concat());
        let after = with_bom.as_deref().unwrap_or(done.text.as_bytes());
        let edits = shifted(&done.edits, bom);
        let delayed = self.locked.commit(&NewVersion {
            before: self.current.fingerprint,
            on_disk: &self.current.bytes,
            after,
            edits: &edits,
            revision_before: self.current.revision,
            revision: revision.0,
            scannable: true,
            log: Some(self.store.log_text(log, revision)?),
        })?;
        let misspelled = new_misspelled(&from, &to);
        Ok(Some(Edited { revision, notices: delayed.into_iter().collect(), misspelled }))
    }
}

fn replace_section(board: &mut Board, section: Section, part: Board) {
    match section {
        Section::Agents => board.agents = part.agents,
        Section::Config => board.config = part.config,
        Section::Goal => board.goal = part.goal,
        Section::Sprint => board.sprint = part.sprint,
        Section::CircuitBreaker => board.circuit_breaker = part.circuit_breaker,
        Section::Discovered => board.discovered = part.discovered,
        Section::Handoff => board.handoff = part.handoff,
        Section::DirectEdits => board.direct_edits = part.direct_edits,
    }
}

/// The result of an edit.
struct Done {
    text: String,
    edits: Edits,
    /// The state in the text of the block alone.
    part: State,
}

/// The new text with the next revision; none if it does not read back as intended.
fn finished(
    view: &StateView<'_>,
    target: &Target,
    mut new: Value,
    revisions: (Revision, Revision),
) -> Result<Option<Done>, StoreError> {
    if let (Place::Task(..), Value::Map(fields), Value::Map(old)) = (&target.place, &mut new, &target.old)
        && TaskRecord::KEYS.iter().any(|key| fields.get(*key) != old.get(*key))
    {
        let number = i64::try_from(revisions.1.0).unwrap_or(i64::MAX);
        fields.insert("revision".to_owned(), Value::Int(number));
    }
    let Some(mut edits) = target.edits(view, &new, Some(revisions)) else { return Ok(None) };
    let Ok(text) = apply(view.text, &mut edits) else { return Ok(None) };
    // Only these blocks differ, so only they are read back.
    let revision = view.block("revision").map(|block| block.start..block.end);
    let revision = revision.and_then(|range| edited_block(view.text, range, "", &edits));
    let block = edited_block(view.text, target.range(view.text), target.header(), &edits);
    let (Some((block, inside)), Some((revision, stamped))) = (block, revision) else { return Ok(None) };
    if inside + stamped != edits.len() || !is_scannable(&block) || !is_scannable(&revision) {
        return Ok(None);
    }
    let revision = StateView::lazy(view.path, &revision)?.board()?.revision;
    let mut after = StateView::lazy(view.path, &block)?;
    let Some((part, place)) = read_place(&mut after, &target.place, None)? else { return Ok(None) };
    if !same_value(&place.old, &new) || revision != revisions.1 {
        return Ok(None);
    }
    drop(after);
    Ok(Some(Done { text, edits, part }))
}

/// The text of a block with those edits that are in it, after a line that makes it a section; and how many edits they are.
fn edited_block(text: &str, range: Range<usize>, header: &str, edits: &[Edit]) -> Option<(String, usize)> {
    let is_inside = |edit: &&Edit| edit.range.start >= range.start && edit.range.end <= range.end;
    let shift = |edit: &Edit| Edit {
        range: edit.range.start - range.start..edit.range.end - range.start,
        text: edit.text.clone(),
    };
    let mut inside: Edits = edits.iter().filter(is_inside).map(shift).collect();
    let block = apply(&text[range.clone()], &mut inside).ok()?;
    Some((format!("{header}{}\n", block.trim_end_matches('\n')), inside.len()))
}

/// The interpretation of a value with the fewest faults.
fn best_value(
    view: &StateView<'_>,
    target: &Target,
    path: &ValuePath,
    (value, syntax): (&str, ValueSyntax),
) -> Result<Option<Value>, StoreError> {
    let faults = |candidate: &Value| -> Result<Option<usize>, StoreError> {
        let Some(new) = target.with(path, candidate) else { return Ok(None) };
        let Some(edits) = target.edits(view, &new, None) else { return Ok(None) };
        let block = edited_block(view.text, target.range(view.text), target.header(), &edits);
        let Some((text, _)) = block.filter(|(_, inside)| *inside == edits.len()) else { return Ok(None) };
        let mut after = StateView::lazy(view.path, &text)?;
        let Some((state, _)) = read_place(&mut after, &target.place, None)? else { return Ok(None) };
        Ok(Some(fault_count(&state) + after.config_faults()))
    };
    let mut best: Option<(usize, Value)> = None;
    for candidate in interpretations(value, syntax)? {
        let candidate = as_field_type(candidate, syntax, &faults)?;
        let Some(found) = faults(&candidate)? else { return Ok(None) };
        if best.as_ref().is_none_or(|(fewest, _)| found < *fewest) {
            best = Some((found, candidate));
        }
    }
    Ok(best.and_then(|(_, value)| target.with(path, &value)))
}

/// What a path needs.
struct ReadTarget {
    /// The state as far as it is needed.
    before: State,
    target: Target,
    /// Whether the new value is checked only by itself, so that no other task is needed.
    is_own: bool,
}

/// Reads what is needed to set a value at a path.
fn read_target(
    view: &mut StateView<'_>,
    path: &ValuePath,
    value: &str,
) -> Result<Option<ReadTarget>, StoreError> {
    let place = match path.target() {
        Some(PathTarget::Section(name)) => match view.block(name) {
            Some(block) => Place::Section(name.to_owned(), block.clone()),
            None => return Ok(None),
        },
        Some(PathTarget::Task(id)) => match id.parse() {
            Ok(id) => Place::Task(id, Item { start: 0, end: 0, indent: 0 }),
            Err(_) => return Ok(None),
        },
        Some(PathTarget::TaskAt(n)) => match id_of_entry(view, n) {
            Some(id) => Place::Task(id, Item { start: 0, end: 0, indent: 0 }),
            None => return Ok(None),
        },
        None => return Ok(None),
    };
    let wanted = match &place {
        Place::Section(name, _) => (!invariants::names_tasks(name)).then(Vec::new),
        Place::Task(id, _) => match path.task_key() {
            Some("status") if is_own_status(view, id, value)? => Some(vec![id.clone()]),
            Some("status" | "assigned_to") => view.neighbours(id)?,
            Some("depends_on") => {
                view.with_dependencies(std::iter::once(id.clone()).chain(named_tasks(value)).collect())?
            }
            Some("superseded_by") => Some(std::iter::once(id.clone()).chain(named_tasks(value)).collect()),
            Some(key) => (!invariants::concerns_other_tasks(key)).then(|| vec![id.clone()]),
            None => None,
        },
    };
    let read = read_place(view, &place, wanted.as_deref())?;
    Ok(read.map(|(before, target)| ReadTarget { before, target, is_own: wanted.is_some() }))
}

/// Every task that a text could name.
fn named_tasks(text: &str) -> impl Iterator<Item = TaskId> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    words.filter_map(|word| word.parse().ok())
}

/// Whether no rule about other tasks asks for a task's present status, nor for the new one.
fn is_own_status(view: &StateView<'_>, id: &TaskId, new: &str) -> Result<bool, StoreError> {
    if !invariants::is_own_status(new) {
        return Ok(false);
    }
    let mut view = StateView::lazy(view.path, view.text)?;
    let mut board = view.board()?;
    view.load_summaries(&mut board, Some(std::slice::from_ref(id)))?;
    let old = board.summary(id).and_then(|summary| summary.status);
    Ok(old.is_some_and(|status| invariants::is_own_status(status.name())))
}

/// The ID of the task at a position of the list.
fn id_of_entry(view: &StateView<'_>, n: usize) -> Option<TaskId> {
    view.id_of_entry(list_entries(view.text, view.task_lines()?).get(n)?)
}

/// The state as far as it concerns a block, with the wanted tasks or all of them; and the block with its present position.
fn read_place(
    view: &mut StateView<'_>,
    place: &Place,
    wanted: Option<&[TaskId]>,
) -> Result<Option<(State, Target)>, StoreError> {
    let mut state = State { board: view.board()?, ..State::default() };
    view.load_sections(&mut state.board, Section::ALL);
    view.load_summaries(&mut state.board, wanted)?;
    if view.tree.is_some() {
        return Ok(None);
    }
    let target = match place {
        Place::Section(name, _) => {
            view.load_journal(&mut state.journal, name);
            let Some(block) = view.block(name).cloned() else { return Ok(None) };
            let Ok((node, _)) = view.part(block.start, block.end) else { return Ok(None) };
            let Some(old) = node.get(name).map(plain_value) else { return Ok(None) };
            Target { place: Place::Section(name.clone(), block), old }
        }
        Place::Task(id, _) => {
            view.load_bodies(&mut state.board, std::slice::from_ref(id))?;
            let item = state.board.tasks.get_index_of(id).and_then(|at| view.items.get(at)).cloned();
            let Some(item) = item else { return Ok(None) };
            let Ok((node, _)) = view.part(item.start, item.end) else { return Ok(None) };
            let Some(old) = node.items().first().map(plain_value) else { return Ok(None) };
            Target { place: Place::Task(id.clone(), item), old }
        }
    };
    state.journal.faults.extend(view.take_faults());
    Ok(Some((state, target)))
}
