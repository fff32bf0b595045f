//! The circuit breaker: patterns in the anomalies that no single agent can see.
//!
//! An observer: it reads the unresolved anomalies of the current sprint and never changes a task.

use serde::{Deserialize, Serialize};

use crate::board::State;
use crate::ids::TaskId;
use crate::notes::Anomaly;
use crate::time::Timestamp;
use crate::value::{Fields, Value};

/// Whether the breaker has fired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum BreakerStatus {
    /// It has not.
    #[default]
    Ok,
    /// It has, and a human has to look.
    Triggered,
}

/// What made it fire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// When.
    pub timestamp: Timestamp,
    /// Which pattern.
    pub pattern: String,
    /// What it points to.
    #[serde(default)]
    pub severity: Option<String>,
    /// What the anomalies have in common.
    #[serde(default)]
    pub common_factor: Option<String>,
    /// Which tasks.
    #[serde(default)]
    pub tasks: Vec<TaskId>,
}

/// The `circuit_breaker` section.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CircuitBreaker {
    /// When it was last looked at.
    #[serde(default)]
    pub last_check: Option<Timestamp>,
    /// Whether it has fired.
    #[serde(default)]
    pub status: BreakerStatus,
    /// What made it fire.
    #[serde(default)]
    pub current_trigger: Option<Trigger>,
    /// Earlier triggers with their resolutions; append-only.
    #[serde(default)]
    pub history: Vec<Fields>,
}

impl CircuitBreaker {
    /// When a human last settled a trigger.
    pub fn last_resolution(&self) -> Option<Timestamp> {
        let time = |entry: &Fields| entry.get("resolved_at")?.to_string().parse().ok();
        self.history.iter().filter_map(time).max()
    }
}

/// The six patterns, in the order in which they become the trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// The same error again and again.
    RetryCluster,
    /// Too many compromises.
    DebtAccumulation,
    /// The specification assumes what is not so.
    AssumptionCascade,
    /// The same place of the specification is unclear.
    SpecGapCluster,
    /// The same cause is worked around.
    WorkaroundPattern,
    /// Something outside is down.
    ExternalServiceOutage,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 6] = [
        Pattern::RetryCluster,
        Pattern::DebtAccumulation,
        Pattern::AssumptionCascade,
        Pattern::SpecGapCluster,
        Pattern::WorkaroundPattern,
        Pattern::ExternalServiceOutage,
    ];

    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::RetryCluster => "retry_cluster",
            Pattern::DebtAccumulation => "debt_accumulation",
            Pattern::AssumptionCascade => "assumption_cascade",
            Pattern::SpecGapCluster => "spec_gap_cluster",
            Pattern::WorkaroundPattern => "workaround_pattern",
            Pattern::ExternalServiceOutage => "external_service_outage",
        }
    }

    /// What it points to.
    pub fn severity(self) -> &'static str {
        match self {
            Pattern::RetryCluster | Pattern::WorkaroundPattern => "ARCHITECTURE_FLAW",
            Pattern::DebtAccumulation => "SCOPE_FLAW",
            Pattern::AssumptionCascade | Pattern::SpecGapCluster => "SPEC_FLAW",
            Pattern::ExternalServiceOutage => "EXTERNAL_DEPENDENCY",
        }
    }

    /// How many anomalies make it.
    fn threshold(self) -> usize {
        match self {
            Pattern::RetryCluster | Pattern::DebtAccumulation => 3,
            Pattern::AssumptionCascade
            | Pattern::SpecGapCluster
            | Pattern::WorkaroundPattern
            | Pattern::ExternalServiceOutage => 2,
        }
    }

    /// What an anomaly says to this pattern; nothing where it is of another kind or lacks the field.
    fn evidence(self, anomaly: &Anomaly) -> Option<String> {
        let text =
            |key: &str| anomaly.details.get(key).filter(|value| !value.is_blank()).map(ToString::to_string);
        match (self, anomaly.kind.as_str()) {
            (Pattern::RetryCluster, "retry_loop") => text("error_pattern"),
            (Pattern::DebtAccumulation, "trade_off") => {
                let debt = anomaly.details.get("debt_created") == Some(&Value::Bool(true));
                debt.then(|| text("what").unwrap_or_else(|| "debt".to_owned()))
            }
            (Pattern::AssumptionCascade, "assumption_violated") => text("assumption"),
            (Pattern::SpecGapCluster, "spec_ambiguity" | "spec_gap") => text("spec_ref"),
            (Pattern::WorkaroundPattern, "workaround" | "trade_off") => {
                text("root_cause").or_else(|| text("what"))
            }
            (Pattern::ExternalServiceOutage, "external_blocker") => text("blocker_service"),
            _ => None,
        }
    }

    fn alike(self, one: &Said<'_>, other: &Said<'_>) -> bool {
        match self {
            Pattern::RetryCluster | Pattern::WorkaroundPattern => similar(one, other),
            Pattern::DebtAccumulation => true,
            Pattern::AssumptionCascade | Pattern::SpecGapCluster | Pattern::ExternalServiceOutage => {
                same(one, other)
            }
        }
    }
}

/// A pattern that fires, with what shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which pattern.
    pub pattern: Pattern,
    /// What the anomalies have in common.
    pub common_factor: String,
    /// The anomalies, with the text that makes them alike.
    pub evidence: Vec<(Anomaly, String)>,
}

impl Finding {
    /// The tasks that are affected, each once.
    pub fn tasks(&self) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> =
            self.evidence.iter().filter_map(|(anomaly, _)| anomaly.task.clone()).collect();
        tasks.sort();
        tasks.dedup();
        tasks
    }
}

/// The patterns that fire now, the trigger first.
pub fn analyze(state: &State) -> Vec<Finding> {
    let started = state.board.sprint.ready().and_then(|sprint| sprint.timeline.started);
    let resolved = state.board.circuit_breaker.ready().and_then(CircuitBreaker::last_resolution);
    let current = |anomaly: &&Anomaly| {
        started.is_none_or(|started| anomaly.timestamp >= started)
            && resolved.is_none_or(|resolved| anomaly.timestamp > resolved)
    };
    let anomalies: Vec<&Anomaly> = state.journal.anomalies.iter().filter(current).collect();
    Pattern::ALL.into_iter().filter_map(|pattern| find(pattern, &anomalies)).collect()
}

/// The first group of anomalies that are all alike and as many as the pattern needs.
fn find(pattern: Pattern, anomalies: &[&Anomaly]) -> Option<Finding> {
    let said: Vec<Said<'_>> =
        anomalies.iter().filter_map(|anomaly| Some(Said::new(anomaly, pattern.evidence(anomaly)?))).collect();
    let group = alike_group(pattern, &said, Vec::new())?;
    let common_factor = match pattern {
        Pattern::DebtAccumulation => format!("{} trade-offs that create debt", group.len()),
        Pattern::RetryCluster
        | Pattern::AssumptionCascade
        | Pattern::SpecGapCluster
        | Pattern::WorkaroundPattern
        | Pattern::ExternalServiceOutage => group.first()?.text.clone(),
    };
    let evidence = group.into_iter().map(|said| (said.anomaly.clone(), said.text.clone())).collect();
    Some(Finding { pattern, common_factor, evidence })
}

/// An anomaly with what it says to a pattern.
struct Said<'a> {
    anomaly: &'a Anomaly,
    text: String,
    /// The same folded, since it is compared with all others.
    folded: Vec<char>,
}

impl<'a> Said<'a> {
    fn new(anomaly: &'a Anomaly, text: String) -> Self {
        let folded = fold(&text);
        Self { anomaly, text, folded }
    }
}

/// Completes a group to as many as the pattern needs, then adds whatever else is alike to all of it. Likeness is not
/// transitive: three that are alike are wanted, not three of which two are, so a choice that leads nowhere is undone.
fn alike_group<'s, 'a>(
    pattern: Pattern,
    rest: &'s [Said<'a>],
    group: Vec<&'s Said<'a>>,
) -> Option<Vec<&'s Said<'a>>> {
    let fits = |group: &[&Said<'a>], other: &Said<'a>| group.iter().all(|said| pattern.alike(said, other));
    if group.len() >= pattern.threshold() {
        return Some(rest.iter().fold(group, |mut group, other| {
            if fits(&group, other) {
                group.push(other);
            }
            group
        }));
    }
    let candidates = rest.iter().enumerate().filter(|(_, other)| fits(&group, other));
    candidates
        .into_iter()
        .find_map(|(n, other)| alike_group(pattern, &rest[n + 1..], [group.as_slice(), &[other]].concat()))
}

/// As much of a text as is compared: enough to tell errors apart, little enough for hundreds of them.
const COMPARED: usize = 200;

/// The letters of a text: case, white space, digits and punctuation folded away.
fn fold(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).take(COMPARED).collect()
}

/// Whether two texts say the same. Texts without any letter are compared as they are.
fn same(one: &Said<'_>, other: &Said<'_>) -> bool {
    let bare = one.folded.is_empty() && other.folded.is_empty();
    if bare { one.text.trim() == other.text.trim() } else { one.folded == other.folded }
}

/// Whether two texts say much the same: edit similarity of at least 0.7.
fn similar(one: &Said<'_>, other: &Said<'_>) -> bool {
    let (a, b) = (&one.folded, &other.folded);
    let longest = a.len().max(b.len());
    same(one, other) || (longest > 0 && within(a, b, longest * 3 / 10))
}

/// Whether so many edits make one of the other. Stops as soon as that cannot be: most pairs end early.
fn within(a: &[char], b: &[char], edits: usize) -> bool {
    if a.len().abs_diff(b.len()) > edits {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        let mut least = row[0];
        for (j, right) in b.iter().enumerate() {
            let replace = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
            least = least.min(row[j + 1]);
        }
        if least > edits {
            return false;
        }
    }
    row[b.len()] <= edits
}
