//! Faults that testers or earlier runs found, as beginnings of a simulation: each move is accepted or refused as it should be, no
//! promise is broken, and the goal ends once nothing breaks any more. `found.txt` has all that was ever found, with its place.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use liza_core::model::{AgentId, Role, TaskId};
use liza_explore::alphabet::{Action, Outcome};
use liza_explore::edits::Edit;
use liza_explore::properties::names;
use liza_explore::simulate::{Move, play, simulate};
use liza_explore::world::Size;
use liza_trial::arms::Script;

const TWO: Size = Size::new(2, 2, 2);
const VALIDATED: Size = Size { validation: true, ..TWO };

/// A beginning, with the name by which `found.txt` knows it.
struct Case {
    name: &'static str,
    size: Size,
    moves: Vec<Move>,
}

fn coder(number: u32) -> AgentId {
    AgentId::new(Role::Coder, number)
}

fn reviewer(number: u32) -> AgentId {
    AgentId::new(Role::CodeReviewer, number)
}

fn t(number: usize) -> TaskId {
    TWO.task_ids().nth(number - 1).unwrap()
}

fn all(actions: impl IntoIterator<Item = Action>) -> Vec<Move> {
    actions.into_iter().map(Move::from).collect()
}

fn refused(action: Action) -> Vec<Move> {
    vec![Move::Refused(action)]
}

fn claimed(by: AgentId, task: usize) -> Vec<Move> {
    all([Action::Reserve(by, t(task)), Action::Claim(by, t(task))])
}

fn submitted(by: AgentId, task: usize) -> Vec<Move> {
    [claimed(by, task), all([Action::Submit(by, t(task))])].concat()
}

fn approved(by: AgentId, task: usize, reviewer: AgentId) -> Vec<Move> {
    let verdict = all([Action::ClaimReview(reviewer, t(task)), Action::Approve(reviewer, t(task))]);
    [submitted(by, task), verdict].concat()
}

fn case(name: &'static str, parts: &[Vec<Move>]) -> Case {
    Case { name, size: TWO, moves: parts.concat() }
}

fn validated(name: &'static str, parts: &[Vec<Move>]) -> Case {
    Case { size: VALIDATED, ..case(name, parts) }
}

fn work_behind_other_work() -> Vec<Case> {
    let written = |edit| all([Action::Edit(t(1), edit)]);
    vec![
        case(
            "an approval written by hand stalls reviews",
            &[submitted(coder(1), 1), written(Edit::Approved), submitted(coder(2), 2)],
        ),
        case("APPROVED without a commit", &[claimed(coder(1), 1), written(Edit::Approved)]),
        case(
            "an answered task waits for its coder, who is busy",
            &[
                claimed(coder(1), 1),
                all([Action::Block(coder(1), t(1))]),
                claimed(coder(1), 2),
                all([Action::HumanAnswers(t(1))]),
                claimed(coder(2), 1),
            ],
        ),
        case(
            "a held merge stalls reviews",
            &[
                approved(coder(1), 1, reviewer(1)),
                all([Action::HoldMerge(reviewer(1), t(1))]),
                approved(coder(2), 2, reviewer(1)),
            ],
        ),
        case(
            "a planning session without a result uses up no trigger",
            &[all([
                Action::HumanBlocks(t(1)),
                Action::PlannerStarts,
                Action::PlannerStops,
                Action::PlannerStarts,
            ])],
        ),
        case(
            "a task that is blocked again while the planner looks at it",
            &[all([
                Action::HumanBlocks(t(1)),
                Action::PlannerStarts,
                Action::PlannerUnblocks(t(1)),
                Action::HumanBlocks(t(1)),
                Action::PlannerStops,
                Action::PlannerStarts,
            ])],
        ),
    ]
}

fn deaths_between_two_writes() -> Vec<Case> {
    let lost = || [approved(coder(1), 1, reviewer(1)), all([Action::LoseMerge(reviewer(1), t(1))])].concat();
    vec![
        case(
            "a review that ended without a verdict kept its holder",
            &[
                submitted(coder(1), 1),
                all([Action::ClaimReview(reviewer(1), t(1)), Action::Crash(reviewer(1), t(1))]),
                all([Action::ClaimReview(reviewer(2), t(1))]),
            ],
        ),
        case(
            "a merge without its record",
            &[lost(), all([Action::Restart(reviewer(1)), Action::Merge(reviewer(2), t(1))])],
        ),
        case(
            "a merge without its record, and a person who blocks the task",
            &[lost(), all([Action::HumanBlocks(t(1)), Action::HumanAcceptsIntegration])],
        ),
        case(
            "a coder that died with its reservation",
            &[all([Action::Reserve(coder(1), t(1)), Action::Long, Action::Short]), claimed(coder(2), 1)],
        ),
        validated(
            "a reviewer that died in a validation",
            &[
                submitted(coder(1), 1),
                all([Action::ClaimReview(reviewer(1), t(1)), Action::Long, Action::Short]),
                all([Action::ClaimReview(reviewer(2), t(1))]),
            ],
        ),
        case(
            "the task of a coder that has left",
            &[claimed(coder(1), 1), all([Action::Leave(coder(1))]), claimed(coder(2), 1)],
        ),
    ]
}

fn words_of_replaced_agents_and_stale_results() -> Vec<Case> {
    vec![
        case(
            "a submission after the lease was taken over",
            &[
                claimed(coder(1), 1),
                all([Action::Long, Action::Short, Action::Restart(coder(2))]),
                claimed(coder(2), 1),
                all([Action::LateSubmit(coder(1), t(1))]),
            ],
        ),
        case(
            "an approval after a restart",
            &[
                submitted(coder(1), 1),
                all([Action::ClaimReview(reviewer(1), t(1)), Action::Restart(reviewer(1))]),
                all([Action::LateApproval(reviewer(1), t(1))]),
            ],
        ),
        case(
            "a coder that renews its lease after a suspend",
            &[
                claimed(coder(1), 1),
                all([Action::Long, Action::Renew(coder(1))]),
                refused(Action::Claim(coder(2), t(1))),
                all([Action::Submit(coder(1), t(1))]),
            ],
        ),
        validated(
            "a red and a held validation",
            &[
                submitted(coder(1), 1),
                all([
                    Action::ClaimReview(reviewer(1), t(1)),
                    Action::Validate(reviewer(1), t(1), Outcome::Red),
                ]),
                submitted(coder(2), 2),
                all([
                    Action::ClaimReview(reviewer(1), t(2)),
                    Action::Validate(reviewer(1), t(2), Outcome::Held),
                ]),
            ],
        ),
        validated(
            "a validation that passed is not forgotten",
            &[
                submitted(coder(1), 1),
                all([
                    Action::ClaimReview(reviewer(1), t(1)),
                    Action::Validate(reviewer(1), t(1), Outcome::Green),
                    Action::BeginReview(reviewer(1), t(1)),
                    Action::Approve(reviewer(1), t(1)),
                ]),
                refused(Action::HumanRetriesValidation(t(1))),
                all([Action::Merge(reviewer(1), t(1))]),
            ],
        ),
    ]
}

fn verdicts_and_other_coders() -> Vec<Case> {
    let rejected = || {
        let verdict = all([Action::ClaimReview(reviewer(1), t(1)), Action::Reject(reviewer(1), t(1))]);
        [submitted(coder(1), 1), verdict].concat()
    };
    let approved_by_hand = || all([Action::Edit(t(1), Edit::Approved)]);
    vec![
        case(
            "a rejected task whose coder has left",
            &[rejected(), all([Action::Leave(coder(1))]), claimed(coder(2), 1)],
        ),
        case(
            "a rejected commit that is submitted again",
            &[rejected(), claimed(coder(1), 1), refused(Action::SubmitAgain(coder(1), t(1)))],
        ),
        case(
            "a coder whose task was unblocked for another coder",
            &[
                claimed(coder(1), 1),
                all([Action::Block(coder(1), t(1)), Action::HumanUnblocks(t(1))]),
                refused(Action::Reserve(coder(1), t(1))),
                claimed(coder(2), 1),
            ],
        ),
        case(
            "a status written by hand is no approval",
            &[submitted(coder(1), 1), approved_by_hand(), refused(Action::Merge(reviewer(1), t(1)))],
        ),
        case(
            "a task that a person has set to MERGED, and one who rejects it",
            &[
                submitted(coder(1), 1),
                all([Action::Edit(t(1), Edit::Merged), Action::HumanRejects(t(1))]),
                claimed(coder(1), 1),
            ],
        ),
        case(
            "a person's verdict on a status written by hand",
            &[
                submitted(coder(1), 1),
                approved_by_hand(),
                all([Action::HumanApproves(t(1)), Action::Merge(reviewer(1), t(1))]),
            ],
        ),
    ]
}

fn cases() -> Vec<Case> {
    let all = [
        work_behind_other_work(),
        deaths_between_two_writes(),
        words_of_replaced_agents_and_stale_results(),
        verdicts_and_other_coders(),
    ];
    all.into_iter().flatten().collect()
}

/// Covers: PV-03, AX-01, AX-02, AX-03
#[test]
fn what_was_found_once_is_not_there_any_more() {
    let broken = |case: &Case| Some(format!("{}: {}", case.name, play(case.size, &case.moves).broken?));
    assert_eq!(cases().iter().filter_map(broken).collect::<Vec<_>>(), Vec::<String>::new());
}

/// A move that should be refused and is not, and the reverse, are noticed.
///
/// Covers: PV-03
#[test]
fn a_case_whose_moves_go_otherwise_is_broken() {
    let broken = |moves: &[Move]| play(TWO, moves).broken.unwrap();
    assert!(broken(&refused(Action::Reserve(coder(1), t(1)))).contains("is accepted"));
    assert!(broken(&all([Action::Claim(coder(1), t(1))])).contains("is refused"));
}

/// Covers: PV-03
#[test]
fn everything_that_was_ever_found_has_a_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    let (list, page) = (read("found.txt"), read("../../docs/reference/requirements.md"));
    let (cases, mut found) = (cases(), BTreeSet::new());
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let [id, kind, place] = [(); 3].map(|()| words.next().unwrap_or_default());
        found.insert(id);
        let exists = match kind {
            "case" => cases.iter().any(|case| case.name == place),
            "promise" => names().any(|name| name == place),
            "script" => Script::ALL.iter().any(|script| script.words() == place),
            "seed" => {
                let seed = place.parse().unwrap();
                assert_eq!(simulate(Size::of_seed(seed), seed, None).broken, None, "{line}");
                true
            }
            "pairs" | "outside" => !place.is_empty(),
            _ => false,
        };
        assert!(exists, "there is no such {kind}: {line}");
    }
    let rules = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let findings = rules.filter(|id| ["AC-", "AT-", "AX-"].iter().any(|kind| id.starts_with(kind)));
    let without: Vec<&str> = findings.filter(|id| !found.contains(id)).collect();
    assert_eq!(without, Vec::<&str>::new(), "no place in found.txt");
}
