//! The retrospective page.

use liza_core::model::{Metrics, Sprint, SprintStatus};
use liza_host::secrets::Masker;
use liza_report::retro::render;

use crate::boards::{ago, empty, full, now, sprint};

/// Covers: SP-09
#[test]
fn a_retrospective_is_filled_from_the_data() {
    let mut state = full();
    sprint(&mut state).status = SprintStatus::Completed;
    sprint(&mut state).timeline.ended = Some(ago(5));
    let mut before = Sprint::begin(1, "goal-1", ago(900));
    before.timeline.ended = Some(ago(310));
    before.metrics = Metrics {
        tasks_done: 6,
        iterations_total: 7,
        review_verdict_approvals: 6,
        review_verdict_approval_rate_percent: Some(100),
        ..Metrics::default()
    };
    let page = render(&state, Some(&before), Vec::new(), &Masker::default(), now());
    insta::assert_snapshot!(page);
    assert!(!page.contains("a1B2"), "secrets are masked");
}

/// Covers: SP-09
#[test]
fn the_retrospective_of_an_empty_sprint_is_short() {
    insta::assert_snapshot!(render(&empty(), None, Vec::new(), &Masker::default(), now()));
}
