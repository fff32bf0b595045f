//! Checks of the blackboard: the file or the database, the log, settings and specifications.

use std::collections::BTreeSet;
use std::path::Path;

use liza_core::model::{State, Status};
use liza_core::rules::invariants::{DiskFacts as _, count_violations};
use liza_core::text::count;
use liza_store::ProjectDisk;
use liza_team::observe::database_health::{DatabaseFinding, Verdict, database_findings};
use liza_team::observe::vision_gap;
use liza_team::project::{Project, now};
use liza_team::session::plan::succeeds_in_stage;

use super::result::{Check, broken, good, warning};

pub(super) fn blackboard(project: &Project) -> Check {
    match project.store().validate(now()) {
        Ok(wrong) if wrong.is_empty() => good("blackboard", "valid"),
        Ok(wrong) => {
            let first = wrong.first().map(ToString::to_string).unwrap_or_default();
            let found = format!("{}, the first: {first}", count_violations(&wrong));
            broken("blackboard", found, "show all: liza validate; correct them: liza edit")
        }
        Err(error) => broken("blackboard", error.to_string(), "liza edit"),
    }
}

/// The database of the blackboard; nothing if it is a file.
pub(super) fn database(project: &Project) -> Vec<Check> {
    let checked = |finding: DatabaseFinding| match finding.verdict {
        Verdict::Good => good("database", finding.found),
        Verdict::Warning(fix) => warning("database", finding.found, fix),
        Verdict::Broken(fix) => broken("database", finding.found, fix),
    };
    match database_findings(project.store()) {
        Ok(findings) => findings.into_iter().map(checked).collect(),
        Err(error) => vec![broken("database", error.to_string(), "for details: liza status")],
    }
}

/// Tries, from where sessions are, whether the database lets them in: they have no password.
pub(super) fn open_database(project: &Project, state: &State, liza: &Path) -> Option<Check> {
    let ((address, _), config) = (project.store().database()?, state.board.config().ok()?);
    let arguments = ["doctor", "--reach", address.as_str()].map(str::to_owned);
    Some(match succeeds_in_stage(project, config, liza, arguments.into()).transpose()? {
        Ok(true) => {
            let fix = "scram-sha-256 in place of trust in pg_hba.conf, for 127.0.0.1 and ::1 too; or keep its port from \
                       sessions: liza config network_ports";
            broken("database", "a session gets in without a password, and could write the blackboard", fix)
        }
        Ok(false) => good("database", "no session gets in without a password, as tried from inside a stage"),
        Err(error) => {
            let found = format!("whether a session gets in without a password cannot be tried: {error}");
            warning("database", found, "for details: liza doctor, in a terminal of your own")
        }
    })
}

pub(super) fn log(project: &Project) -> Check {
    match project.store().log_faults() {
        Ok(damaged) if damaged.is_empty() => good("log", "every entry can be read"),
        Ok(damaged) => {
            let first = damaged.first().cloned().unwrap_or_default();
            warning("log", format!("{} damaged, the first: {first}", damaged.len()), "check .liza/log.yaml")
        }
        Err(error) => warning("log", error.to_string(), "check .liza/log.yaml"),
    }
}

/// Keys that have no effect because they are probably misspelled.
pub(super) fn misspelled(project: &Project) -> Option<Check> {
    let keys = project.store().misspelled_keys().unwrap_or_default();
    let found: Vec<String> = keys.iter().map(ToString::to_string).collect();
    (!found.is_empty()).then(|| warning("keys", found.join("; "), "liza edit"))
}

/// The specification files of the goal and the open tasks.
pub(super) fn specifications(project: &Project, state: &State) -> Check {
    let open = state.bodies().filter(|(_, body)| !body.record().status.is_some_and(Status::is_terminal));
    let named = open.filter_map(|(_, body)| body.record().spec_ref.as_deref());
    let goal = state.board.goal.ready().and_then(|goal| goal.spec_ref.as_deref());
    let goal = goal.map(|reference| reference.split('#').next().unwrap_or(reference));
    let files: BTreeSet<&str> =
        named.chain(goal).map(|reference| reference.split('#').next().unwrap_or(reference)).collect();
    let disk = ProjectDisk::new(project.root());
    let missing: Vec<&str> = files.iter().copied().filter(|file| !disk.spec_exists(file)).collect();
    if missing.is_empty() {
        return match (vision_gap(project, state), goal) {
            (Some(gap), Some(vision)) => {
                warning("specifications", gap.problem(vision), gap.command(vision).to_string())
            }
            (Some(_), None) | (None, _) => {
                good("specifications", format!("{}, none missing", count(files.len(), "file")))
            }
        };
    }
    let fix = "write them; for a vision document to fill in: liza init --template";
    warning("specifications", format!("missing: {}", missing.join(", ")), fix)
}
