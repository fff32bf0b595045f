//! `lock write` in a version that we wrote: parses only the section or the task that the path names. Must
//! accept and refuse the same as the edit of the whole text in `edit.rs`.

use std::ops::Range;

use liza_core::model::{Board, Fields, Revision, Section, State, TaskId, TaskRecord, Timestamp, Value};

use super::edit::{FileEdit, shifted};
use super::modified_parts::is_scannable;
use super::related_tasks::{ModifiedTasks, changed_archive, concerns_all_tasks, related_tasks};
use crate::backend::{Backend as _, LoggedEdit};
use crate::call::Edited;
use crate::codec::{self, StateView, TaskIndex, fault_count, text_without_bom};
use crate::document::{Block, Edit, EditPlan, Edits, Item, apply, line_start, plain_value, same_value};
use crate::document::{PathTarget, ValuePath};
use crate::edit::{EditRules, adds_none_in_part, edit_of_ended_tasks, new_misspelled};
use crate::edit::{ValueSyntax, as_field_type, interpretations};
use crate::error::StoreError;
use crate::file::{NewVersion, Origin};

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
    /// The known values of the whole file.
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

    /// The line that makes the lines of the block a section.
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
                let at = state.board.tasks.get_index_of(id).unwrap_or(0);
                state.board.tasks.shift_remove(id);
                for (new, slot) in part.board.tasks {
                    state.board.tasks.shift_insert(at, new, slot);
                }
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

    /// The task before and after an edit, as modified tasks; empty for a section.
    fn tasks(&self, new: &Value) -> Option<(ModifiedTasks, ModifiedTasks)> {
        let (mut before, mut after) = (ModifiedTasks::default(), ModifiedTasks::default());
        if let Place::Task(id, _) = &self.place {
            before.push(id.clone(), self.old.clone());
            after.push(new.as_map()?.get("id")?.as_text()?.parse().ok()?, new.clone());
        }
        Some((before, after))
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
    /// Sets a value; `None` if that needs the whole file.
    pub(crate) fn set_part(
        &mut self,
        rules: &EditRules,
        path: &ValuePath,
        value: (&str, ValueSyntax),
        LoggedEdit { entry: log, now }: LoggedEdit<'_>,
    ) -> Result<Option<Edited>, StoreError> {
        let Some(PartEdit { done, from, to, revision }) = self.part_edit(rules, path, value, now)? else {
            return Ok(None);
        };
        let bytes = &self.current.bytes;
        let bom = text_without_bom(&self.store.files().state(), bytes)?.1;
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

    /// The edit, if it is allowed and valid; `None` if that needs the whole file.
    fn part_edit(
        &self,
        rules: &EditRules,
        path: &ValuePath,
        value: (&str, ValueSyntax),
        now: Timestamp,
    ) -> Result<Option<PartEdit>, StoreError> {
        if self.current.origin != (Origin::Ours { scannable: true }) {
            return Ok(None);
        }
        let file = self.store.files().state();
        let (text, _) = text_without_bom(&file, &self.current.bytes)?;
        let mut view = StateView::lazy(&file, text)?;
        view.check_version()?;
        let Some(index) = TaskIndex::of(&view) else { return Ok(None) };
        let Some((mut before, target)) = read_target(&mut view, &index, path)? else { return Ok(None) };
        if !before.journal.faults.is_empty() {
            return Ok(None);
        }
        let Some(path) = target.path_in(path) else { return Ok(None) };
        let Some(new) = best_value(&view, &target, &path, value)? else { return Ok(None) };
        if !read_related(&mut view, &index, &mut before.board, (&target, &new))? {
            return Ok(None);
        }
        let revision = before.board.revision.max(Revision(self.current.revision)).next();
        let (from, to) = (target.root(&target.old), target.root(&new));
        rules.check_values(&before.board, &from, &to)?;
        if edit_of_ended_tasks(&from, &to).is_some() {
            return Ok(None);
        }
        let Some(mut done) = finished(&view, &target, new, (before.board.revision, revision))? else {
            return Ok(None);
        };
        let after = target.applied(before.clone(), std::mem::take(&mut done.part));
        let existed = |id: &TaskId| index.contains(id);
        let exists = |id: &TaskId| match &target.place {
            Place::Task(old, _) => after.board.tasks.contains_key(id) || (id != old && existed(id)),
            Place::Section(..) => existed(id),
        };
        let disk = self.store.disk();
        // The block alone has no line numbers: if there are violations, the whole text gives the reasons.
        let adds_none = adds_none_in_part(&disk, (&before, &existed), (&after, &exists), now);
        Ok(adds_none.then_some(PartEdit { done, from, to, revision }))
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

struct PartEdit {
    done: Done,
    from: Value,
    to: Value,
    revision: Revision,
}

struct Done {
    text: String,
    edits: Edits,
    /// The state in the text of the block alone.
    part: State,
}

/// The new text with the next revision; `None` if it doesn't read back as intended.
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
    let Some((part, read_back)) = read_alone(&mut after, &target.place)? else { return Ok(None) };
    if !same_value(&read_back, &new) || revision != revisions.1 {
        return Ok(None);
    }
    drop(after);
    Ok(Some(Done { text, edits, part }))
}

/// Applies the edits inside a block to its text, after a line that makes it a section; returns their number too.
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
        let Some((state, _)) = read_alone(&mut after, &target.place)? else { return Ok(None) };
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

/// Reads the target of a path.
fn read_target<'t>(
    view: &mut StateView<'t>,
    index: &TaskIndex<'t>,
    path: &ValuePath,
) -> Result<Option<(State, Target)>, StoreError> {
    let position = match path.target() {
        Some(PathTarget::Section(name)) => {
            let mut state = read_sections(view)?;
            let target = read_section(view, &mut state, name);
            state.journal.faults.extend(view.take_faults());
            return Ok(target.map(|target| (state, target)));
        }
        Some(PathTarget::Task(id)) => index.position(id),
        Some(PathTarget::TaskAt(n)) => Some(n),
        None => None,
    };
    let Some((n, id)) = position.and_then(|n| Some((n, index.id(n)?))) else { return Ok(None) };
    let mut state = read_sections(view)?;
    view.load_indexed(&mut state.board, index, [n])?;
    let target = read_task(view, &mut state, &id)?;
    state.journal.faults.extend(view.take_faults());
    Ok(target.map(|target| (state, target)))
}

/// Reads a text that has only this block; also returns the block's value.
fn read_alone(view: &mut StateView<'_>, place: &Place) -> Result<Option<(State, Value)>, StoreError> {
    let mut state = read_sections(view)?;
    let target = match place {
        Place::Section(name, _) => read_section(view, &mut state, name),
        Place::Task(..) => {
            view.load_summaries(&mut state.board, None)?;
            // An edit may have changed its ID.
            let id = state.board.tasks.keys().next().cloned();
            id.map(|id| read_task(view, &mut state, &id)).transpose()?.flatten()
        }
    };
    state.journal.faults.extend(view.take_faults());
    Ok(target.map(|target| (state, target.old)))
}

fn read_sections(view: &mut StateView<'_>) -> Result<State, StoreError> {
    let mut state = State { board: view.board()?, ..State::default() };
    view.load_sections(&mut state.board, Section::ALL);
    Ok(state)
}

fn read_section(view: &mut StateView<'_>, state: &mut State, name: &str) -> Option<Target> {
    view.load_journal(&mut state.journal, name);
    let block = view.block(name)?.clone();
    let (node, _) = view.part(block.start, block.end).ok()?;
    let old = plain_value(node.get(name)?);
    Some(Target { place: Place::Section(name.to_owned(), block), old })
}

/// Reads a task whose summary is loaded; `None` if it needs the whole text.
fn read_task(view: &StateView<'_>, state: &mut State, id: &TaskId) -> Result<Option<Target>, StoreError> {
    if view.tree.is_some() {
        return Ok(None);
    }
    view.load_bodies(&mut state.board, std::slice::from_ref(id))?;
    let item = state.board.tasks.get_index_of(id).and_then(|at| view.items.get(at)).cloned();
    let Some(item) = item else { return Ok(None) };
    let Ok((node, _)) = view.part(item.start, item.end) else { return Ok(None) };
    let old = node.items().first().map(plain_value);
    Ok(old.map(|old| Target { place: Place::Task(id.clone(), item), old }))
}

/// Loads the tasks that the rules look at because of an edit; false if the whole text is needed.
fn read_related<'t>(
    view: &mut StateView<'t>,
    index: &TaskIndex<'t>,
    board: &mut Board,
    (target, new): (&Target, &Value),
) -> Result<bool, StoreError> {
    let archived = match &target.place {
        Place::Section(name, _) if concerns_all_tasks(name, &target.old, new) => return Ok(false),
        Place::Section(name, _) => changed_archive(name, &target.old, new),
        Place::Task(..) => Vec::new(),
    };
    let Some((before, after)) = target.tasks(new) else { return Ok(false) };
    if after.ids.iter().any(|id| !before.ids.contains(id) && index.contains(id)) {
        return Ok(false);
    }
    let Some(mut related) = related_tasks((view, index), (&before, &after), &archived) else {
        return Ok(false);
    };
    related.retain(|n| index.id(*n).is_some_and(|id| !board.tasks.contains_key(&id)));
    view.load_indexed(board, index, related)?;
    Ok(view.tree.is_none() && view.take_faults().is_empty())
}
