//! Faults that testers or earlier runs found, as beginnings of a simulation: each move is accepted, no promise is broken, and
//! the goal ends once nothing breaks any more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use liza_core::model::{AgentId, Role, TaskId};
use liza_explore::alphabet::{Action, Outcome};
use liza_explore::edits::Edit;
use liza_explore::simulate::play;
use liza_explore::world::Size;

const TWO: Size = Size::new(2, 2, 2);
const VALIDATED: Size = Size { validation: true, ..TWO };

fn coder(number: u32) -> AgentId {
    AgentId::new(Role::Coder, number)
}

fn reviewer(number: u32) -> AgentId {
    AgentId::new(Role::CodeReviewer, number)
}

fn t(number: usize) -> TaskId {
    TWO.task_ids().nth(number - 1).unwrap()
}

fn claimed(by: AgentId, task: usize) -> Vec<Action> {
    vec![Action::Reserve(by, t(task)), Action::Claim(by, t(task))]
}

fn submitted(by: AgentId, task: usize) -> Vec<Action> {
    [claimed(by, task), vec![Action::Submit(by, t(task))]].concat()
}

fn approved(by: AgentId, task: usize, reviewer: AgentId) -> Vec<Action> {
    let verdict = vec![Action::ClaimReview(reviewer, t(task)), Action::Approve(reviewer, t(task))];
    [submitted(by, task), verdict].concat()
}

fn plays(found: &str, size: Size, parts: &[Vec<Action>]) {
    assert_eq!(play(size, &parts.concat()).broken, None, "{found}");
}

/// Covers: PV-03, AX-01, AX-02, AX-03
#[test]
fn work_behind_other_work() {
    let written = |edit| vec![Action::Edit(t(1), edit)];
    plays(
        "an approval written by hand stalls reviews",
        TWO,
        &[submitted(coder(1), 1), written(Edit::Approved), submitted(coder(2), 2)],
    );
    plays("APPROVED without a commit", TWO, &[claimed(coder(1), 1), written(Edit::Approved)]);
    plays(
        "an answered task waits for its coder, who is busy",
        TWO,
        &[
            claimed(coder(1), 1),
            vec![Action::Block(coder(1), t(1))],
            claimed(coder(1), 2),
            vec![Action::HumanAnswers(t(1)), Action::Reserve(coder(2), t(1)), Action::Claim(coder(2), t(1))],
        ],
    );
    plays(
        "a held merge stalls reviews",
        TWO,
        &[
            approved(coder(1), 1, reviewer(1)),
            vec![Action::HoldMerge(reviewer(1), t(1))],
            approved(coder(2), 2, reviewer(1)),
        ],
    );
}

/// Covers: PV-03
#[test]
fn deaths_between_two_writes() {
    plays(
        "a review that ended without a verdict kept its holder (963e3555)",
        TWO,
        &[
            submitted(coder(1), 1),
            vec![Action::ClaimReview(reviewer(1), t(1)), Action::Crash(reviewer(1), t(1))],
            vec![Action::ClaimReview(reviewer(2), t(1))],
        ],
    );
    plays(
        "a merge without its record",
        TWO,
        &[
            approved(coder(1), 1, reviewer(1)),
            vec![Action::LoseMerge(reviewer(1), t(1)), Action::Restart(reviewer(1))],
            vec![Action::Merge(reviewer(2), t(1))],
        ],
    );
    plays(
        "a merge without its record, and a person who blocks the task",
        TWO,
        &[
            approved(coder(1), 1, reviewer(1)),
            vec![Action::LoseMerge(reviewer(1), t(1)), Action::HumanBlocks(t(1))],
            vec![Action::HumanAcceptsIntegration],
        ],
    );
    plays(
        "a coder that died with its reservation",
        TWO,
        &[vec![Action::Reserve(coder(1), t(1)), Action::Long, Action::Short], claimed(coder(2), 1)],
    );
    plays(
        "a reviewer that died in a validation",
        VALIDATED,
        &[
            submitted(coder(1), 1),
            vec![Action::ClaimReview(reviewer(1), t(1)), Action::Long, Action::Short],
            vec![Action::ClaimReview(reviewer(2), t(1))],
        ],
    );
}

/// Covers: PV-03
#[test]
fn words_of_replaced_agents_and_stale_results() {
    plays(
        "a submission after the lease was taken over",
        TWO,
        &[
            claimed(coder(1), 1),
            vec![Action::Long, Action::Short, Action::Restart(coder(2))],
            claimed(coder(2), 1),
            vec![Action::LateSubmit(coder(1), t(1))],
        ],
    );
    plays(
        "an approval after a restart",
        TWO,
        &[
            submitted(coder(1), 1),
            vec![Action::ClaimReview(reviewer(1), t(1)), Action::Restart(reviewer(1))],
            vec![Action::LateApproval(reviewer(1), t(1))],
        ],
    );
    plays(
        "a red and a held validation",
        VALIDATED,
        &[
            submitted(coder(1), 1),
            vec![Action::ClaimReview(reviewer(1), t(1)), Action::Validate(reviewer(1), t(1), Outcome::Red)],
            submitted(coder(2), 2),
            vec![Action::ClaimReview(reviewer(1), t(2)), Action::Validate(reviewer(1), t(2), Outcome::Held)],
        ],
    );
    plays(
        "a rejected task whose coder has left",
        TWO,
        &[
            submitted(coder(1), 1),
            vec![Action::ClaimReview(reviewer(1), t(1)), Action::Reject(reviewer(1), t(1))],
            vec![Action::Leave(coder(1))],
            claimed(coder(2), 1),
        ],
    );
}
