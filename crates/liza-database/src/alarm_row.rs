//! The raised alarms that are still true, for the watchers of all machines: one row, derived from one
//! revision. The machine that changes it raises the new alarms; one that sees an older revision changes
//! nothing.

use std::collections::BTreeSet;

use liza_core::model::{Revision, Timestamp};

use crate::connection::{Fields, ResultSet, quoted};
use crate::store::DatabaseStore;
use liza_store::{DatabaseReason, RaisedAlarms, StoreError};

/// The number of attempts while other machines change the row.
const ATTEMPTS: usize = 20;

struct AlarmRow {
    seen: (Revision, Timestamp),
    keys: String,
}

impl AlarmRow {
    fn of(row: Fields<'_>) -> Self {
        let revision = Revision(u64::try_from(row.number(0)).unwrap_or(0));
        Self { seen: (revision, Timestamp::from_unix(row.number(1))), keys: row.text(2).to_owned() }
    }
}

/// Records the alarms that are true on that revision at that time; returns the new ones.
pub(crate) fn raise_alarms(
    store: &DatabaseStore,
    keys: &BTreeSet<String>,
    stays: &dyn Fn(&str) -> bool,
    seen: (Revision, Timestamp),
) -> Result<RaisedAlarms, StoreError> {
    let line = |key: &String| key.replace('\n', " ");
    for _ in 0..ATTEMPTS {
        let known = alarm_row(store)?;
        if known.as_ref().is_some_and(|known| seen < known.seen) {
            return Ok(RaisedAlarms::Outdated);
        }
        let raised: BTreeSet<&str> = known.iter().flat_map(|known| known.keys.lines()).collect();
        let new = keys.iter().filter(|key| !raised.contains(line(key).as_str())).cloned().collect();
        let kept = raised.iter().filter(|key| stays(key)).map(|key| (*key).to_owned());
        let lines: BTreeSet<String> = keys.iter().map(line).chain(kept).collect();
        let text = lines.into_iter().collect::<Vec<_>>().join("\n");
        let is_same = known.as_ref().is_some_and(|known| known.keys == text);
        if is_same || replace_alarm_row(store, known.as_ref(), &text, seen)? {
            return Ok(RaisedAlarms::New(new));
        }
    }
    Err(store.error(DatabaseReason::Slow, "other machines always changed the alerts first").into())
}

fn alarm_row(store: &DatabaseStore) -> Result<Option<AlarmRow>, StoreError> {
    let results = store
        .query(|project| format!("SELECT revision, at, keys FROM liza.alarms WHERE project = {project}"))?;
    Ok(results.first().and_then(ResultSet::first).map(AlarmRow::of))
}

/// Replaces the row if it is still the known one; false if another machine was faster.
fn replace_alarm_row(
    store: &DatabaseStore,
    known: Option<&AlarmRow>,
    keys: &str,
    (revision, at): (Revision, Timestamp),
) -> Result<bool, StoreError> {
    let (keys, at) = (quoted(keys), at.unix());
    let results = store.query_rows(|project| match known {
        None => format!(
            "INSERT INTO liza.alarms (project, revision, at, keys) \
             VALUES ({project}, {revision}, {at}, {keys}) ON CONFLICT DO NOTHING"
        ),
        Some(AlarmRow { seen, keys: known }) => format!(
            "UPDATE liza.alarms SET revision = {revision}, at = {at}, keys = {keys} \
             WHERE project = {project} AND revision = {} AND at = {} AND keys = {}",
            seen.0,
            seen.1.unix(),
            quoted(known)
        ),
    })?;
    Ok(results.first().is_some_and(|result| result.count == 1))
}
