//! The circuit breaker: patterns in the anomalies that no single agent can see.
//!
//! An observer: it reads the unresolved anomalies of the current sprint and never changes a task.

use serde::Serialize;

use crate::model::{Anomaly, AnomalyType, CircuitBreaker, State, TaskId, Value};
use liza_ids::order::sort_by;

/// The six patterns, in the order in which they become the trigger.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Pattern {
    /// The same error again and again.
    RetryCluster,
    DebtAccumulation,
    /// The specification assumes something that is not true.
    AssumptionCascade,
    /// The same part of the specification is unclear.
    SpecGapCluster,
    /// The same cause is worked around.
    WorkaroundPattern,
    /// An external service is down.
    ExternalServiceOutage,
}

impl Pattern {
    /// All of them, in the order in which they become the trigger.
    pub const ALL: &'static [Pattern] = <Pattern as strum::VariantArray>::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn severity(self) -> &'static str {
        match self {
            Pattern::RetryCluster | Pattern::WorkaroundPattern => "ARCHITECTURE_FLAW",
            Pattern::DebtAccumulation => "SCOPE_FLAW",
            Pattern::AssumptionCascade | Pattern::SpecGapCluster => "SPEC_FLAW",
            Pattern::ExternalServiceOutage => "EXTERNAL_DEPENDENCY",
        }
    }

    fn threshold(self) -> usize {
        match self {
            Pattern::RetryCluster | Pattern::DebtAccumulation => 3,
            Pattern::AssumptionCascade
            | Pattern::SpecGapCluster
            | Pattern::WorkaroundPattern
            | Pattern::ExternalServiceOutage => 2,
        }
    }

    /// An anomaly's text for this pattern; `None` if it is of another kind or lacks the field.
    fn evidence(self, anomaly: &Anomaly) -> Option<String> {
        let text =
            |key: &str| anomaly.details.get(key).filter(|value| !value.is_blank()).map(ToString::to_string);
        let kind = anomaly.kind.parse::<AnomalyType>().ok()?;
        match (self, kind) {
            (Pattern::RetryCluster, AnomalyType::RetryLoop) => text("error_pattern"),
            (Pattern::DebtAccumulation, AnomalyType::TradeOff) => {
                let debt = anomaly.details.get("debt_created") == Some(&Value::Bool(true));
                debt.then(|| text("what").unwrap_or_else(|| "debt".to_owned()))
            }
            (Pattern::AssumptionCascade, AnomalyType::AssumptionViolated) => text("assumption"),
            (Pattern::SpecGapCluster, AnomalyType::SpecAmbiguity | AnomalyType::SpecGap) => text("spec_ref"),
            (Pattern::WorkaroundPattern, AnomalyType::Workaround | AnomalyType::TradeOff) => {
                text("root_cause").or_else(|| text("what"))
            }
            (Pattern::ExternalServiceOutage, AnomalyType::ExternalBlocker) => text("blocker_service"),
            _ => None,
        }
    }

    fn matches(self, one: &Evidence<'_>, other: &Evidence<'_>) -> bool {
        match self {
            Pattern::RetryCluster | Pattern::WorkaroundPattern => similar(one, other),
            Pattern::DebtAccumulation => true,
            Pattern::AssumptionCascade | Pattern::SpecGapCluster | Pattern::ExternalServiceOutage => {
                same(one, other)
            }
        }
    }
}

/// A pattern that was found, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub pattern: Pattern,
    pub common_factor: String,
    /// The anomalies, with the text that they share.
    pub evidence: Vec<(Anomaly, String)>,
}

impl Finding {
    pub fn tasks(&self) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> =
            self.evidence.iter().filter_map(|(anomaly, _)| anomaly.task.clone()).collect();
        sort_by(&mut tasks, &TaskId::cmp);
        tasks.dedup();
        tasks
    }
}

/// The patterns that are present now, the trigger first.
pub fn analyze(state: &State) -> Vec<Finding> {
    let started = state.board.sprint.ready().and_then(|sprint| sprint.timeline.started);
    let resolved = state.board.circuit_breaker.ready().and_then(CircuitBreaker::last_resolution);
    let current = |anomaly: &&Anomaly| {
        started.is_none_or(|started| anomaly.timestamp >= started)
            && resolved.is_none_or(|resolved| anomaly.timestamp > resolved)
    };
    let anomalies: Vec<&Anomaly> = state.journal.anomalies.iter().filter(current).collect();
    Pattern::ALL.iter().filter_map(|pattern| find(*pattern, &anomalies)).collect()
}

/// The first group of similar anomalies that is large enough for the pattern.
fn find(pattern: Pattern, anomalies: &[&Anomaly]) -> Option<Finding> {
    let evidence: Vec<Evidence<'_>> = anomalies
        .iter()
        .filter_map(|anomaly| Some(Evidence::new(anomaly, pattern.evidence(anomaly)?)))
        .collect();
    let group = similar_group(pattern, &evidence, Vec::new())?;
    let common_factor = match pattern {
        Pattern::DebtAccumulation => format!("{} trade-offs that create debt", group.len()),
        Pattern::RetryCluster
        | Pattern::AssumptionCascade
        | Pattern::SpecGapCluster
        | Pattern::WorkaroundPattern
        | Pattern::ExternalServiceOutage => group.first()?.text.clone(),
    };
    let evidence = group.into_iter().map(|one| (one.anomaly.clone(), one.text.clone())).collect();
    Some(Finding { pattern, common_factor, evidence })
}

/// An anomaly with its text for a pattern.
struct Evidence<'a> {
    anomaly: &'a Anomaly,
    text: String,
    /// The text, folded once because it is compared with all others.
    folded: Vec<char>,
}

impl<'a> Evidence<'a> {
    fn new(anomaly: &'a Anomaly, text: String) -> Self {
        let folded = fold(&text);
        Self { anomaly, text, folded }
    }
}

/// Grows a group to the size that the pattern needs, then adds every anomaly that is similar to all of it.
/// Similarity is not transitive: all pairs must be similar, so a choice that leads nowhere is undone.
fn similar_group<'s, 'a>(
    pattern: Pattern,
    rest: &'s [Evidence<'a>],
    group: Vec<&'s Evidence<'a>>,
) -> Option<Vec<&'s Evidence<'a>>> {
    let fits =
        |group: &[&Evidence<'a>], other: &Evidence<'a>| group.iter().all(|one| pattern.matches(one, other));
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
        .find_map(|(n, other)| similar_group(pattern, &rest[n + 1..], [group.as_slice(), &[other]].concat()))
}

/// The compared part of a text: enough to tell errors apart, little enough for hundreds of them.
const COMPARED: usize = 200;

/// The letters of a text: case, white space, digits and punctuation folded away.
fn fold(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).take(COMPARED).collect()
}

/// True if two texts are the same. Texts without any letter are compared as they are.
fn same(one: &Evidence<'_>, other: &Evidence<'_>) -> bool {
    let bare = one.folded.is_empty() && other.folded.is_empty();
    if bare { one.text.trim() == other.text.trim() } else { one.folded == other.folded }
}

/// True for an edit similarity of at least 0.7.
fn similar(one: &Evidence<'_>, other: &Evidence<'_>) -> bool {
    let (a, b) = (&one.folded, &other.folded);
    let longest = a.len().max(b.len());
    same(one, other) || (longest > 0 && within(a, b, longest * 3 / 10))
}

/// True if at most that many edits turn one into the other. Stops early for most pairs.
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
