//! The guide for the human in charge: its commands run, its decisions match the code, and so does the page of alerts.

use std::collections::BTreeSet;

use liza_core::model::{DECISIONS, StopFile};
use liza_core::rules::breaker::Pattern;
use liza_status::alarms::AlarmKind;
use strum::IntoEnumIterator as _;

use crate::support::{TestProject, console};

fn guide() -> String {
    console::page("guide/in-charge.md")
}

/// Covers: SP-01, SP-03, SP-07, CM-05
#[test]
fn the_guide_for_a_day_in_charge_is_correct() {
    let (shown, seen) = console::run(&TestProject::at("shop"), &guide(), "never shown");
    assert!(shown.iter().filter(|line| line.starts_with("$ ")).count() > 12);
    assert_eq!(seen, shown);
}

/// Covers: SP-05
#[test]
fn the_page_of_alerts_explains_exactly_those_that_exist() {
    let page = console::page("reference/alerts.md");
    let rows = page.lines().filter_map(|line| {
        let row = line.strip_prefix("| ⚠️ ").or_else(|| line.strip_prefix("| 🚨 "))?;
        Some(row.split(" | ").next().unwrap().to_owned())
    });
    let explained: BTreeSet<String> = rows.collect();
    let alarms: BTreeSet<String> = AlarmKind::iter().map(|kind| kind.to_string()).collect();
    assert!(alarms.len() > 20, "{alarms:?}");
    assert_eq!(explained, alarms);
}

/// Covers: SP-01, SP-04, SP-07
#[test]
fn the_guide_names_every_decision_stop_file_and_pattern() {
    let page = guide();
    for decision in DECISIONS {
        assert!(page.contains(&format!("\n| `{decision}` |")), "{decision}");
    }
    for file in [StopFile::Pause, StopFile::Checkpoint, StopFile::Abort] {
        assert!(page.contains(&format!("touch .liza/{}`", file.name())), "{file:?}");
    }
    assert_eq!(Pattern::ALL.len(), 6, "the page describes six patterns");
}

/// Covers: CM-01, CM-05
#[test]
fn every_command_in_the_guide_exists() {
    let (page, project) = (guide(), TestProject::bare());
    let named = page.split("`liza ").chain(page.split("\n$ liza ")).skip(1);
    let word =
        |rest: &str| rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap().to_owned();
    let verbs: BTreeSet<String> = named.map(word).filter(|verb| !verb.is_empty()).collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in verbs {
        let known = project.liza(&[&verb, "--help"]).code == 0;
        assert!(known, "liza {verb}");
    }
}
