//! A change of the file that no command made: the places that it touches, and those that are an alarm.
//!
//! Only compares two versions; the store finds the edit, logs it and records the alarm with its next write.

use crate::model::{
    DirectEdit, DirectEditId, EDITED_BY_HAND, LogAction, LogEntry, Revision, Status, Timestamp, Value,
};

use super::manual_edit::{by_id, differing, get};

/// The reason that the documents prescribe for a task that a person sends back to the planner.
const HUMAN_OVERRIDE: &str = "human override";

/// Keys of a task that only commands change: its state, what judges it, and what the judge is shown.
const TASK_KEYS: [&str; 14] = [
    "status",
    "review_commit",
    "approved_by",
    "review_head",
    "review_moves",
    "takes_back",
    "validation",
    "validated",
    "validation_retried",
    "facts",
    "impact",
    "approvals",
    "merge_held",
    "gate_change",
];

const ENDED_GOAL: [Option<&str>; 2] = [Some("COMPLETED"), Some("ABORTED")];

/// The most places that the log names.
const NAMED: usize = 20;

/// The depth at which a section is compared: `config.providers.mine` is one place.
const DEPTH: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditFound {
    /// All places; `None` if the previous version is not known.
    places: Option<Vec<String>>,
    /// The places that only commands should change.
    alarming: Vec<String>,
}

impl EditFound {
    /// An edit of a version that can no longer be compared.
    pub fn unknown() -> Self {
        Self { places: None, alarming: Vec::new() }
    }

    /// Compares the last version that the store wrote with the file; `None` if only comments or form differ.
    pub fn between(old: &Value, new: &Value) -> Option<Self> {
        let (mut places, mut alarming) = (Vec::new(), Vec::new());
        for section in differing(old, new) {
            let (old, new) = (get(old, &section), get(new, &section));
            if section == "tasks" {
                compare_tasks(&by_id(old), &by_id(new), |_| true, &mut places, &mut alarming);
                continue;
            }
            let found = places_below(&section, (old, new), DEPTH - 1);
            // A person who ends a goal need not know the fields that the program keeps in it.
            let ends_goal = section == "goal" && ENDED_GOAL.contains(&get(new, "status").as_text());
            let is_dropped = |place: &str| {
                ends_goal && place.rsplit('.').next().is_some_and(|key| *get(new, key) == Value::Null)
            };
            let is_alarm = |place: &&String| is_alarming(place) && !is_dropped(place);
            alarming.extend(found.iter().filter(is_alarm).cloned());
            places.extend(found);
        }
        (!places.is_empty()).then_some(Self { places: Some(places), alarming })
    }

    /// The edit of tasks that have ended: an alarm also if a person made it with a command. `None` if only
    /// other keys differ.
    pub fn of_ended_tasks(old: &Value, new: &Value) -> Option<Self> {
        let (old, new) = (by_id(get(old, "tasks")), by_id(get(new, "tasks")));
        let status = |task: &Value| get(task, "status").as_text()?.parse::<Status>().ok();
        let is_ended = |task: &Value| status(task).is_some_and(Status::is_terminal);
        let (mut places, mut alarming) = (Vec::new(), Vec::new());
        compare_tasks(&old, &new, is_ended, &mut places, &mut alarming);
        (!alarming.is_empty()).then_some(Self { places: Some(places), alarming })
    }

    pub fn log_entry(&self, now: Timestamp) -> LogEntry {
        let detail = match self.places.as_deref() {
            None => "state.yaml is not the version that was last written, which is no longer kept: \
                     what differs is not known"
                .to_owned(),
            Some(places) => {
                let more = places.len().saturating_sub(NAMED);
                let named = places[..places.len() - more].join(", ");
                if more == 0 { named } else { format!("{named} and {more} more") }
            }
        };
        let action = LogAction::Edit.name().to_owned();
        LogEntry { timestamp: now, agent: EDITED_BY_HAND.to_owned(), action, task: None, detail }
    }

    pub fn alarm(&self, revision: Revision, now: Timestamp) -> Option<DirectEdit> {
        let is_alarm = self.places.is_none() || !self.alarming.is_empty();
        let places = self.alarming.iter().take(NAMED).cloned().collect();
        is_alarm.then_some(DirectEdit { id: DirectEditId(revision), timestamp: now, places })
    }
}

/// The places that differ, as paths.
fn places_below(path: &str, (old, new): (&Value, &Value), depth: usize) -> Vec<String> {
    let is_map = |value: &Value| matches!(value, Value::Map(_) | Value::Null);
    if depth == 0 || !is_map(old) || !is_map(new) {
        return vec![path.to_owned()];
    }
    let keys = differing(old, new);
    let below =
        |key: &String| places_below(&format!("{path}.{key}"), (get(old, key), get(new, key)), depth - 1);
    keys.iter().flat_map(below).collect()
}

/// The settings that decide which programs run, where merges go, and what agents may spend, reach or begin.
const ALARMING_SETTINGS: [&str; 16] = [
    "providers",
    "roles",
    "integration_branch",
    "setup",
    "copy",
    "team_file",
    "plan_approval",
    "gate",
    "high_impact",
    "high_impact_lines",
    "budget",
    "exec_wrapper",
    "model_hosts",
    "network_ports",
    "pass_env",
    "worktrees",
];

/// True if only commands, or the human on purpose, should change this place outside the tasks: the identity
/// of an agent, the programs that run, and the target of merges.
fn is_alarming(place: &str) -> bool {
    let mut keys = place.split('.');
    match (keys.next(), keys.next(), keys.next()) {
        (Some("agents"), Some(_), key) => matches!(key, None | Some("generation")),
        (Some("config"), key, _) => {
            key.is_none_or(|key| ALARMING_SETTINGS.contains(&key) || key.starts_with("sandbox"))
        }
        (Some("goal"), key, _) => matches!(key, None | Some("integration_head" | "gate_version")),
        // Without it, an earlier alarm would be gone.
        (Some("direct_edits"), _, _) => true,
        _ => false,
    }
}

fn compare_tasks(
    old: &Value,
    new: &Value,
    is_compared: impl Fn(&Value) -> bool,
    places: &mut Vec<String>,
    alarming: &mut Vec<String>,
) {
    for id in differing(old, new).into_iter().filter(|id| is_compared(get(old, id))) {
        let (before, after) = (get(old, &id), get(new, &id));
        let keys = differing(before, after);
        match (before, after) {
            (Value::Map(_), Value::Map(_)) => {
                places.extend(keys.iter().map(|key| format!("tasks.{id}.{key}")));
            }
            _ => places.push(format!("tasks.{id}")),
        }
        let prescribed = is_prescribed(before, after);
        let may = |key: &str| prescribed && (key == "status" || *get(after, key) == Value::Null);
        let touched = TASK_KEYS.iter().filter(|key| keys.iter().any(|known| known == *key) && !may(key));
        alarming.extend(touched.map(|key| format!("tasks.{id}.{key}")));
    }
}

/// True if the documents tell people to write this status: BLOCKED by human override, and a new task.
fn is_prescribed(before: &Value, after: &Value) -> bool {
    let is = |status: Status| get(after, "status").as_text() == Some(status.name());
    let reason = get(after, "blocked_reason").as_text().unwrap_or_default();
    let forced = is(Status::Blocked) && reason.trim().to_lowercase().starts_with(HUMAN_OVERRIDE);
    let is_new = matches!(before, Value::Null) && (is(Status::Unclaimed) || is(Status::Draft));
    forced || is_new
}
