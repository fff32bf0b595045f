//! The results of drills, in a file beside the blackboard; no task knows of them.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use liza_core::evidence::{DrillVerdict, Estimate, drill_rates};
use liza_core::model::{TaskId, Timestamp};
use liza_host::durable;
use serde::{Deserialize, Serialize};

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

fn file(folder: &Path) -> PathBuf {
    folder.join("drills.json")
}

/// All records of the project with this `.liza`; none if there was no drill.
pub fn read_records(folder: &Path) -> io::Result<Vec<DrillRecord>> {
    match durable::read_file(&file(folder)) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, format!(".liza/drills.json: {error}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub fn add_record(folder: &Path, record: DrillRecord) -> io::Result<()> {
    let mut records = read_records(folder)?;
    records.push(record);
    durable::replace_private_file(&file(folder), serde_json::to_string_pretty(&records)?.as_bytes())
}

/// The rates of each program and model, in the order of their first drills.
pub fn rates(records: &[DrillRecord]) -> Vec<ReviewerRates> {
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

/// The rates as a Markdown table, and what it means; nothing without drills.
pub fn table(rates: &[ReviewerRates]) -> Vec<String> {
    if rates.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        "| Program | Model | Planted defects caught | False alarms | No verdict |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for one in rates {
        let model = one.model.as_deref().unwrap_or("its default");
        let (caught, alarms) = (one.caught.in_words(), one.false_alarms.in_words());
        lines.push(format!("| {} | {model} | {caught} | {alarms} | {} |", one.program, one.without_verdict));
    }
    lines.push(String::new());
    lines.push(
        "In brackets the 95 % interval. From changes of this project, reviewed again by `liza drill`."
            .to_owned(),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(program: &str, planted: bool, rejected: Option<bool>) -> DrillRecord {
        let defect = || Defect { path: "a".into(), line: 1, before: "<".into(), after: "<=".into() };
        DrillRecord {
            time: Timestamp::from_unix(0),
            task: "t".parse().unwrap(),
            defect: planted.then(defect),
            taken_out: "test".into(),
            rejected,
            program: program.into(),
            model: None,
        }
    }

    /// Covers: TR-03
    #[test]
    fn each_program_has_its_own_rates_and_a_session_without_a_verdict_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_records(folder.path()).unwrap(), []);
        let all = [
            record("one", true, Some(true)),
            record("one", true, Some(false)),
            record("one", true, None),
            record("one", false, Some(false)),
            record("two", false, Some(true)),
        ];
        all.iter().for_each(|record| add_record(folder.path(), record.clone()).unwrap());
        assert_eq!(read_records(folder.path()).unwrap(), all);
        let found = rates(&all);
        let seen: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.program.as_str(),
                    one.caught.hits,
                    one.caught.n,
                    one.false_alarms.hits,
                    one.false_alarms.n,
                )
            })
            .collect();
        assert_eq!(seen, [("one", 1, 2, 0, 1), ("two", 0, 0, 1, 1)]);
        assert_eq!((found[0].without_verdict, found[1].without_verdict), (1, 0));
        assert!(table(&found)[2].contains("| 1 of 2: 50 % ("), "{:?}", table(&found));
        std::fs::write(folder.path().join("drills.json"), "[").unwrap();
        assert!(add_record(folder.path(), all[0].clone()).unwrap_err().to_string().contains("drills.json"));
    }
}
