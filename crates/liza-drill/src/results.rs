//! The results of drills, in a file beside the blackboard; no task knows of them.

use std::io;
use std::path::Path;

use liza_core::evidence::{DrillRecord, ReviewerRates};
use liza_host::durable;
use liza_team::observe::drills::{file, read_records};

/// Adds the result of a review to those of the project with this `.liza`.
pub fn add_record(folder: &Path, record: DrillRecord) -> io::Result<()> {
    let mut records = read_records(folder)?;
    records.push(record);
    durable::replace_private_file(&file(folder), serde_json::to_string_pretty(&records)?.as_bytes())
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
    use liza_core::evidence::{Defect, reviewer_rates};
    use liza_core::model::Timestamp;

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
        let found = reviewer_rates(&all);
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
