//! Merges an edited copy of the file into the current version, block by block: keys of tasks, agents and
//! sections, or whole sections. If both sides changed a block, this reports a conflict and never guesses.

use std::ops::Range;

use liza_core::model::TaskRecord;

use crate::document::{Ambiguous, Block, Item, Shape, line_start, sections, shape, unquoted};

/// The keys by which people define a task.
const DEFINITION: [&str; 10] = [
    "description",
    "done_when",
    "scope",
    "spec_ref",
    "priority",
    "depends_on",
    "max_iterations",
    "max_coder_iterations",
    "max_review_cycles",
    "lease_duration_override",
];

/// The paths of the blocks that both sides changed differently.
pub type Conflicts = Vec<String>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment<'t> {
    path: Vec<String>,
    /// A list entry without an ID.
    unnamed: bool,
    text: &'t str,
}

/// Applies the changes from `base` to `yours` to the text of `ours`.
pub fn three_way_merge(base: &str, yours: &str, ours: &str) -> Result<String, Conflicts> {
    if base == ours || yours == ours {
        return Ok(yours.to_owned());
    }
    let unclear = |_| vec!["the whole file".to_owned()];
    let base = segments(base).map_err(unclear)?;
    let yours = segments(yours).map_err(unclear)?;
    let mut merged = segments(ours).map_err(unclear)?;
    let mut conflicts = Conflicts::new();
    for old in base.iter().filter(|old| find(&yours, old).is_none()) {
        remove(&mut merged, old, &mut conflicts);
    }
    for (n, new) in yours.iter().enumerate() {
        match find(&base, new) {
            Some(old) if old.text == new.text || is_revision(new) => {}
            Some(old) => replace(&mut merged, old, new, &mut conflicts),
            None => insert(&mut merged, &yours[..n], new, &mut conflicts),
        }
    }
    if conflicts.is_empty() {
        Ok(merged.iter().map(|segment| segment.text).collect())
    } else {
        Err(conflicts)
    }
}

/// A base for merging a save whose own base is lost. A block that only this person can have changed is taken
/// from `ours`, so that the change applies; every other block from `yours`, so that ours remains.
pub fn infer_base(yours: &str, ours: &str) -> Option<String> {
    let (theirs, ours) = (segments(yours).ok()?, segments(ours).ok()?);
    let based_on = revision_in(&theirs, &["revision"]);
    let unchanged_since = |path: &[String]| match path {
        // A file without a revision has an unknown age; only the definition of a task is taken from it.
        [section, _, key] if section == "tasks" && based_on.is_none() => {
            DEFINITION.contains(&key.as_str()) || !TaskRecord::KEYS.contains(&key.as_str())
        }
        [section, id, ..] if section == "tasks" => {
            revision_in(&ours, &["tasks", id, "revision"]).is_some_and(|revision| Some(revision) <= based_on)
        }
        // Only people write the config.
        [section, ..] => section == "config",
        [] => false,
    };
    // Without a revision, blocks that ours lacks were added.
    let is_added = |segment: &Segment<'_>| {
        let is_new_task = |id: &String| {
            !ours.iter().any(|other| other.path.len() > 1 && other.path[0] == "tasks" && other.path[1] == *id)
        };
        based_on.is_none()
            && find(&ours, segment).is_none()
            && match &segment.path[..] {
                [section, id, ..] if section == "tasks" => is_new_task(id) || unchanged_since(&segment.path),
                [section, ..] => section != "agents" && section != "handoff",
                [] => false,
            }
    };
    let mut base = String::new();
    for segment in theirs.iter().filter(|segment| !is_added(segment)) {
        let current = find(&ours, segment).filter(|current| unchanged_since(&current.path));
        base.push_str(current.map_or(segment.text, |current| current.text));
    }
    Some(base)
}

fn revision_in(segments: &[Segment<'_>], path: &[&str]) -> Option<u64> {
    let segment = segments.iter().find(|segment| segment.path == path)?;
    let line = segment.text.lines().find_map(|line| line.trim_start().strip_prefix("revision:"))?;
    line.split('#').next()?.trim().parse().ok()
}

/// The range of a task in the text, from its dash to the end of its last line.
pub fn task_range(text: &str, task: &str) -> Option<Range<usize>> {
    let blocks = sections(text).ok()?;
    let tasks = blocks.iter().find(|block| block.name(text) == "tasks")?;
    let Shape::List(items) = shape(text, tasks).ok()? else { return None };
    let is_wanted = |item: &&Item| match item.shape(text) {
        Ok(Shape::Map(keys)) => {
            keys.iter().any(|key| key.name(text) == "id" && bare(&text[key.after..key.end]) == task)
        }
        Ok(Shape::List(_) | Shape::Empty | Shape::Inline) | Err(_) => false,
    };
    let item = items.iter().find(is_wanted)?;
    Some(line_start(text, item.start)..item.end)
}

fn bare(scalar: &str) -> &str {
    unquoted(scalar.split(" #").next().unwrap_or_default().trim())
}

/// True for a revision, which only the program writes.
fn is_revision(segment: &Segment<'_>) -> bool {
    segment.path.last().is_some_and(|key| key == "revision")
}

fn find<'a, 't>(segments: &'a [Segment<'t>], wanted: &Segment<'_>) -> Option<&'a Segment<'t>> {
    segments.iter().find(|segment| segment.path == wanted.path)
}

fn name(segment: &Segment<'_>) -> String {
    segment.path.join(".")
}

fn remove(merged: &mut Vec<Segment<'_>>, old: &Segment<'_>, conflicts: &mut Conflicts) {
    let Some(at) = merged.iter().position(|segment| segment.path == old.path) else { return };
    if merged[at].text == old.text || is_revision(old) {
        merged.remove(at);
    } else {
        conflicts.push(name(old));
    }
}

fn replace<'t>(merged: &mut [Segment<'t>], old: &Segment<'_>, new: &Segment<'t>, conflicts: &mut Conflicts) {
    match merged.iter_mut().find(|segment| segment.path == new.path) {
        Some(ours) if ours.text == old.text => ours.text = new.text,
        Some(ours) if ours.text == new.text => {}
        Some(_) | None => conflicts.push(name(new)),
    }
}

fn insert<'t>(
    merged: &mut Vec<Segment<'t>>,
    before: &[Segment<'t>],
    new: &Segment<'t>,
    conflicts: &mut Conflicts,
) {
    match find(merged, new) {
        Some(ours) if ours.text == new.text => return,
        // Both sides added an entry: keep both.
        Some(_) if new.unnamed => {}
        Some(_) => return conflicts.push(name(new)),
        None => {}
    }
    let known = before.iter().rev().find_map(|segment| {
        let at = merged.iter().position(|other| other.path == segment.path)?;
        Some((segment, at))
    });
    let Some((neighbour, at)) = known else { return merged.insert(0, new.clone()) };
    // After everything that was added to the neighbour.
    let apart = shared(&neighbour.path, &new.path);
    let inside = |segment: &&Segment<'_>| shared(&neighbour.path, &segment.path) > apart;
    let mut at = at + 1 + merged[at + 1..].iter().take_while(inside).count();
    if new.unnamed {
        let sibling = |segment: &&Segment<'_>| segment.unnamed && shared(&segment.path, &new.path) >= apart;
        at += merged[at..].iter().take_while(sibling).count();
    }
    merged.insert(at, new.clone());
}

fn shared(one: &[String], other: &[String]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Splits the whole text at every block.
fn segments(text: &str) -> Result<Vec<Segment<'_>>, Ambiguous> {
    let mut segmenter = Segmenter { text, found: vec![(0, vec!["(top)".to_owned()], false)] };
    for block in sections(text)? {
        let path = vec![block.name(text).to_owned()];
        segmenter.at(block.start, block.indent, path.clone(), false);
        segmenter.below(&shape(text, &block)?, &path, 1);
    }
    let ends =
        segmenter.found.iter().skip(1).map(|(start, ..)| *start).chain([text.len()]).collect::<Vec<_>>();
    let parts = segmenter.found.into_iter().zip(ends);
    Ok(parts
        .map(|((start, path, unnamed), end)| Segment { path, unnamed, text: &text[start..end] })
        .filter(|segment| !segment.text.is_empty())
        .collect())
}

struct Segmenter<'t> {
    text: &'t str,
    found: Vec<(usize, Vec<String>, bool)>,
}

/// Sections hold entries, and entries hold keys. Deeper levels are not split.
const DEPTH: usize = 3;

impl Segmenter<'_> {
    fn at(&mut self, start: usize, indent: usize, path: Vec<String>, unnamed: bool) {
        let last = self.found.last().map_or(0, |(start, ..)| *start);
        let start = with_comments(self.text, line_start(self.text, start), indent).max(last);
        self.found.push((start, path, unnamed));
    }

    fn below(&mut self, shape: &Shape, path: &[String], depth: usize) {
        match shape {
            Shape::Map(blocks) if depth < DEPTH => self.keys(blocks, path, depth, false),
            Shape::List(items) if depth < DEPTH => self.items(items, path, depth),
            Shape::Map(_) | Shape::List(_) | Shape::Empty | Shape::Inline => {}
        }
    }

    fn keys(&mut self, blocks: &[Block], path: &[String], depth: usize, skip_first: bool) {
        for block in blocks.iter().skip(usize::from(skip_first)) {
            let path = [path, &[block.name(self.text).to_owned()]].concat();
            self.at(block.start, block.indent, path.clone(), false);
            if let Ok(shape) = shape(self.text, block) {
                self.below(&shape, &path, depth + 1);
            }
        }
    }

    fn items(&mut self, items: &[Item], path: &[String], depth: usize) {
        for (n, item) in items.iter().enumerate() {
            let blocks = match item.shape(self.text) {
                Ok(Shape::Map(blocks)) => blocks,
                Ok(Shape::List(_) | Shape::Empty | Shape::Inline) | Err(_) => Vec::new(),
            };
            let id = blocks.iter().find(|block| block.name(self.text) == "id");
            let id = id.map(|id| bare(&self.text[id.after..id.end]).to_owned());
            let unnamed = id.is_none();
            let path = [path, &[id.unwrap_or_else(|| n.to_string())]].concat();
            self.at(item.start, item.indent, path.clone(), unnamed);
            if !unnamed {
                self.keys(&blocks, &path, depth, true);
            }
        }
    }
}

/// The start of a block with the comments and blank lines directly above it.
fn with_comments(text: &str, start: usize, indent: usize) -> usize {
    let mut from = start;
    while from > 0 {
        let line = line_start(text, from - 1);
        let content = text[line..from].trim_start_matches(' ');
        let comment = content.starts_with('#') && from - line - content.len() <= indent;
        if !comment && !content.trim().is_empty() {
            break;
        }
        from = line;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "version: 1\nrevision: 7\n\ntasks:\n  # the first\n  - id: one\n    priority: 3\n    \
                        status: DRAFT\n  - id: two\n    priority: 3\n\nagents:\n  coder-1:\n    status: IDLE\n    \
                        heartbeat: 1\n\nnotes:\n  - a\n";

    fn merged(yours: &[(&str, &str)], ours: &[(&str, &str)]) -> Result<String, Conflicts> {
        let changed = |changes: &[(&str, &str)]| {
            changes.iter().fold(BASE.to_owned(), |text, (from, to)| {
                assert!(text.contains(from), "{from:?}");
                text.replacen(from, to, 1)
            })
        };
        three_way_merge(BASE, &changed(yours), &changed(ours))
    }

    #[test]
    fn splitting_keeps_the_whole_text() {
        let parts = segments(BASE).unwrap();
        assert_eq!(parts.iter().map(|segment| segment.text).collect::<String>(), BASE);
        assert!(parts.iter().any(|segment| segment.path == ["tasks", "one", "priority"]), "{parts:#?}");
        assert!(parts.iter().any(|segment| segment.path == ["agents", "coder-1", "heartbeat"]), "{parts:#?}");
    }

    /// Covers: BB-16
    #[test]
    fn a_block_changed_on_one_side_comes_from_that_side() {
        let ours = [("revision: 7", "revision: 9"), ("heartbeat: 1", "heartbeat: 2"), ("DRAFT", "UNCLAIMED")];
        let text =
            merged(&[("# the first", "# my first"), ("priority: 3", "priority: 1 # now")], &ours).unwrap();
        for kept in ["revision: 9", "heartbeat: 2", "UNCLAIMED", "# my first", "priority: 1 # now"] {
            assert!(text.contains(kept), "{kept} in\n{text}");
        }
        assert_eq!(merged(&[], &ours).unwrap(), merged(&ours, &[]).unwrap());
    }

    /// Covers: BB-16
    #[test]
    fn a_block_changed_on_both_sides_is_a_conflict() {
        let conflicts = merged(&[("DRAFT", "BLOCKED")], &[("DRAFT", "UNCLAIMED")]).unwrap_err();
        assert_eq!(conflicts, ["tasks.one.status"]);
        assert!(merged(&[("DRAFT", "UNCLAIMED")], &[("DRAFT", "UNCLAIMED")]).is_ok());
        let gone = ("  - id: two\n    priority: 3\n", "");
        let conflicts = merged(&[gone], &[("  - id: two\n    priority: 3", "  - id: two\n    priority: 5")]);
        assert_eq!(conflicts.unwrap_err(), ["tasks.two.priority"]);
    }

    /// Covers: BB-16
    #[test]
    fn a_stale_save_applies_to_blocks_that_only_this_person_changed() {
        let ours = "revision: 9\ntasks:\n  - id: quiet\n    priority: 3\n    revision: 4\n  - id: moved\n    \
                    priority: 3\n    revision: 8\n  - id: new\n    revision: 9\nconfig:\n  max: 1\n";
        let yours = "revision: 5\ntasks:\n  - id: quiet\n    priority: 1 # mine\n    revision: 4\n  - id: moved\n    \
                     priority: 1\n    revision: 4\nconfig:\n  max: 2\n";
        let base = infer_base(yours, ours).unwrap();
        let text = three_way_merge(&base, yours, ours).unwrap();
        let meant = ours.replacen("priority: 3", "priority: 1 # mine", 1).replace("max: 1", "max: 2");
        assert_eq!(text, meant);
    }

    #[test]
    fn a_task_is_found_by_its_id() {
        assert_eq!(&BASE[task_range(BASE, "two").unwrap()], "  - id: two\n    priority: 3");
        assert_eq!(task_range(BASE, "three"), None);
        assert_eq!(bare(" \"a b\" # why"), "a b");
    }

    /// Covers: BB-16
    #[test]
    fn additions_of_both_sides_are_kept() {
        let yours =
            [("  - a\n", "  - a\n  - mine\n"), ("\nagents", "  - id: three\n    priority: 1\n\nagents")];
        let ours =
            [("  - a\n", "  - a\n  - theirs\n"), ("    priority: 3\n\n", "    priority: 3\n    new: 1\n\n")];
        let text = merged(&yours, &ours).unwrap();
        assert!(text.contains("  - a\n  - theirs\n  - mine\n"), "{text}");
        assert!(text.contains("    new: 1\n"), "{text}");
        let (new, three) = (text.find("new: 1").unwrap(), text.find("id: three").unwrap());
        assert!(new < three && three < text.find("agents:").unwrap(), "{text}");
    }

    /// Covers: BB-16
    #[test]
    fn the_same_entry_that_both_sides_add_with_another_text_is_a_conflict() {
        let task = |priority: &str| format!("  - id: three\n    priority: {priority}\n\nagents");
        let key = |value: &str| format!("    heartbeat: 1\n    own: {value}\n");
        for (place, one, other, path) in [
            ("\nagents", task("1"), task("5"), "tasks.three.priority"),
            ("    heartbeat: 1\n", key("a"), key("b"), "agents.coder-1.own"),
            ("\nnotes", "\nown: 1\nnotes".to_owned(), "\nown: 2\nnotes".to_owned(), "own"),
        ] {
            let conflicts = merged(&[(place, &one)], &[(place, &other)]).unwrap_err();
            assert_eq!(conflicts, [path]);
            // With the same text it is there once.
            let also = ("DRAFT", "UNCLAIMED");
            let text = merged(&[(place, &one)], &[(place, &one), also]).unwrap();
            assert_eq!(text.matches(one.trim()).count(), 1, "{text}");
        }
    }
}
