//! The findings of `liza doctor` about a project's database: version, rights, speed, clock, durability. The
//! store collects the facts.

use std::time::Duration;

use liza_store::{DatabaseReport, Store, StoreError};

/// A round trip that makes every command slow.
const SLOW: Duration = Duration::from_millis(100);
/// A difference of the clocks, in seconds, that makes times on screens misleading.
const CLOCK_LIMIT: i64 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFinding {
    pub verdict: Verdict,
    pub found: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// It works, but not as well as it could.
    Warning(&'static str),
    Broken(&'static str),
}

/// Nothing if the blackboard is a file.
pub fn database_findings(store: &Store) -> Result<Vec<DatabaseFinding>, StoreError> {
    let Some((address, name)) = store.database() else { return Ok(Vec::new()) };
    let place = format!("{name} in {address}");
    Ok(store.database_report()?.map(|report| judged(&place, &report)).unwrap_or_default())
}

fn judged(place: &str, report: &DatabaseReport) -> Vec<DatabaseFinding> {
    let finding = |verdict: Verdict, found: String| DatabaseFinding { verdict, found };
    let version = report.version.split(" on ").next().unwrap_or_default();
    let mut findings = vec![finding(Verdict::Good, format!("{place}: {version}, tables {}", report.tables))];
    if report.is_standby {
        let fix = "put the address of the server that takes writes into .liza/store.yaml";
        findings
            .push(finding(Verdict::Broken(fix), "it is a standby server, which takes no writes".to_owned()));
    } else if !report.may_write {
        let fix = "as the owner: GRANT USAGE ON SCHEMA liza TO USER; \
                   GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA liza TO USER";
        findings.push(finding(Verdict::Broken(fix), "this user may not write".to_owned()));
    }
    if report.is_read_only && !report.is_standby {
        let fix = "as the owner: ALTER DATABASE NAME RESET default_transaction_read_only";
        findings.push(finding(Verdict::Broken(fix), "it is set to take no writes".to_owned()));
    }
    if !report.stores_all_text() {
        let fix = "use a database with the encoding UTF8: liza export, liza init --store, liza import";
        let found = format!("its encoding is {}, which does not have every letter", report.encoding);
        findings.push(finding(Verdict::Broken(fix), found));
    }
    let milliseconds = report.round_trip.as_secs_f64() * 1000.0;
    let trip = format!("a round trip takes {milliseconds:.1} ms");
    findings.push(match report.round_trip > SLOW {
        true => finding(Verdict::Warning("run agents nearer to the database"), trip),
        false => finding(Verdict::Good, trip),
    });
    let ahead = report.clock_difference;
    let clock = match ahead {
        0 => "its clock agrees with this machine's".to_owned(),
        ahead if ahead > 0 => format!("its clock is {ahead} s ahead of this machine's"),
        ahead => format!("its clock is {} s behind this machine's", -ahead),
    };
    findings.push(match ahead.abs() > CLOCK_LIMIT {
        true => finding(Verdict::Warning("set this machine's clock; leases follow the database's"), clock),
        false => finding(Verdict::Good, clock),
    });
    findings.push(match report.durability_risk() {
        Some(risk) => {
            let fix = "switch it on in postgresql.conf: without it, a crash of the server can lose confirmed writes";
            finding(Verdict::Warning(fix), risk)
        }
        None => finding(Verdict::Good, durability(report)),
    });
    if report.encrypted == Some(false) && !place.contains("localhost") && !is_local(place) {
        let fix = "remove sslmode=disable from .liza/store.yaml and from LIZA_STORE_URL";
        findings.push(finding(Verdict::Warning(fix), "the connection is not encrypted".to_owned()));
    }
    findings
}

/// True if an address names a socket or this machine.
fn is_local(place: &str) -> bool {
    ["@127.0.0.1", "@[::1]", "host=/", "@%2F", "@%2f", "///"].iter().any(|local| place.contains(local))
}

fn durability(report: &DatabaseReport) -> String {
    let settings = report.durability.iter().filter(|(_, value)| !value.is_empty());
    let settings: Vec<String> = settings.map(|(name, value)| format!("{name} {value}")).collect();
    format!("confirmed writes survive a crash of the server: {}", settings.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> DatabaseReport {
        DatabaseReport {
            version: "PostgreSQL 15.8 on x86_64".to_owned(),
            tables: 1,
            round_trip: Duration::from_millis(2),
            clock_difference: 0,
            may_write: true,
            is_standby: false,
            is_read_only: false,
            encoding: "UTF8".to_owned(),
            durability: vec![("fsync".to_owned(), "on".to_owned())],
            encrypted: Some(true),
        }
    }

    fn bad(report: &DatabaseReport, place: &str) -> Vec<String> {
        let findings = judged(place, report).into_iter();
        findings.filter(|finding| finding.verdict != Verdict::Good).map(|finding| finding.found).collect()
    }

    /// Covers: MM-01, MM-12
    #[test]
    fn each_weakness_of_a_database_is_named() {
        let far = "shop in postgres://liza@db.example/team";
        let good = judged(far, &report());
        assert_eq!(good.first().unwrap().found, format!("{far}: PostgreSQL 15.8, tables 1"));
        assert!(bad(&report(), far).is_empty(), "{good:?}");
        let standby = DatabaseReport { is_standby: true, ..report() };
        assert_eq!(bad(&standby, far), ["it is a standby server, which takes no writes"]);
        assert_eq!(bad(&DatabaseReport { may_write: false, ..report() }, far), ["this user may not write"]);
        let read_only = DatabaseReport { is_read_only: true, ..report() };
        assert_eq!(bad(&read_only, far), ["it is set to take no writes"]);
        let latin = DatabaseReport { encoding: "LATIN1".to_owned(), ..report() };
        assert_eq!(bad(&latin, far), ["its encoding is LATIN1, which does not have every letter"]);
        let slow = DatabaseReport { round_trip: Duration::from_millis(250), ..report() };
        assert_eq!(bad(&slow, far), ["a round trip takes 250.0 ms"]);
        let behind = DatabaseReport { clock_difference: -600, ..report() };
        assert_eq!(bad(&behind, far), ["its clock is 600 s behind this machine's"]);
        let off = vec![("synchronous_commit".to_owned(), "off".to_owned())];
        assert_eq!(bad(&DatabaseReport { durability: off, ..report() }, far), ["synchronous_commit is off"]);
        let open = DatabaseReport { encrypted: Some(false), ..report() };
        assert_eq!(bad(&open, far), ["the connection is not encrypted"]);
        assert!(bad(&open, "shop in postgres://liza@127.0.0.1/team").is_empty());
    }
}
