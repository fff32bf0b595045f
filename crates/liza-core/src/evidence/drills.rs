//! Drills: reviews of changes whose result is known, and the rates of reviewers that follow from them.

use serde::{Deserialize, Serialize};

use super::estimate::{DrillVerdict, Estimate, drill_rates};
use crate::model::{TaskId, Timestamp};

/// A planted defect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defect {
    pub path: String,
    pub line: usize,
    pub before: String,
    pub after: String,
}

/// One review of a drill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrillRecord {
    pub time: Timestamp,
    pub task: TaskId,
    /// `None` for the original.
    pub defect: Option<Defect>,
    /// The test that was not in the copy.
    pub taken_out: String,
    /// `None` if the session ended without a verdict.
    pub rejected: Option<bool>,
    pub program: String,
    pub model: Option<String>,
}

/// The rates of one program with one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewerRates {
    pub program: String,
    pub model: Option<String>,
    pub caught: Estimate,
    pub false_alarms: Estimate,
    pub without_verdict: usize,
}

impl ReviewerRates {
    /// The program, with its model if it has one of its own.
    pub fn name(&self) -> String {
        match &self.model {
            Some(model) => format!("{} ({model})", self.program),
            None => self.program.clone(),
        }
    }
}

/// The rates of each program and model, in the order of their first drills.
pub fn reviewer_rates(records: &[DrillRecord]) -> Vec<ReviewerRates> {
    let mut keys: Vec<(&String, &Option<String>)> = Vec::new();
    for record in records {
        let key = (&record.program, &record.model);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let of = |(program, model): (&String, &Option<String>)| {
        let own = || records.iter().filter(|record| record.program == *program && record.model == *model);
        let verdict = |record: &DrillRecord| {
            let is_planted = record.defect.is_some();
            record.rejected.map(|is_rejected| DrillVerdict { is_planted, is_rejected })
        };
        let verdicts: Vec<DrillVerdict> = own().filter_map(verdict).collect();
        let (caught, false_alarms) = drill_rates(&verdicts);
        let without_verdict = own().count() - verdicts.len();
        ReviewerRates {
            program: program.clone(),
            model: model.clone(),
            caught,
            false_alarms,
            without_verdict,
        }
    };
    keys.into_iter().map(of).collect()
}

/// What drills say of reviewers, in one sentence; nothing if no planted defect was reviewed.
pub fn caught_in_words(rates: &[ReviewerRates]) -> Option<String> {
    let drilled = rates.iter().filter(|one| one.caught.n > 0);
    let words: Vec<String> =
        drilled.map(|one| format!("{} caught {}", one.name(), one.caught.in_words())).collect();
    (!words.is_empty()).then(|| format!("Of the defects planted in drills {}", words.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-03
    #[test]
    fn drills_in_words_name_each_reviewer_that_has_met_a_defect() {
        let rates = |program: &str, model: Option<&str>, hits, n| ReviewerRates {
            program: program.to_owned(),
            model: model.map(str::to_owned),
            caught: Estimate::new(hits, n),
            false_alarms: Estimate::new(0, 3),
            without_verdict: 0,
        };
        assert_eq!(caught_in_words(&[rates("claude", None, 0, 0)]), None);
        let all =
            [rates("claude", None, 6, 10), rates("codex", Some("small"), 3, 4), rates("goose", None, 0, 0)];
        let words = "Of the defects planted in drills claude caught 6 of 10: 60 % (31 to 83 %); codex (small) caught 3 of 4: 75 % (30 to 95 %)";
        assert_eq!(caught_in_words(&all).as_deref(), Some(words));
    }
}
