//! submit-verdict: the binding verdict on exactly one commit.

use crate::model::{
    Actor, AgentId, AgentStatus, Approval, Approver, Assignment, EventName, FIRST_OF, HistoryEvent,
    LogAction, MergeHold, PRIOR_FEEDBACK, PriorWork, REVIEW_DEADLOCK, Refusal, Role, Section, Sha, Task,
    TaskId, TaskStatus, WITHOUT_VALIDATION,
};
use crate::rules::approvals::{has_approval, incomplete_approval};
use crate::rules::impact::{APPROVALS, count_approval};
use crate::rules::validation::is_validated;
use crate::text::one_line;

use super::blocking::at_review_limit;
use super::operation::{LoadScope, Rule};
use super::ownership::own_review;
use super::permission::{HUMAN, REVIEWING_OR_HUMAN, Rights};
use super::reply::{TaskReply, WorktreeFacts};
use super::tx::{Tx, non_blank, required};
use super::wt_merge::check_commit;

/// Approves or rejects a submission; refused if the worktree has moved.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitVerdict {
    pub task: TaskId,
    pub verdict: Verdict,
    /// `None` if there is no worktree.
    pub facts: Option<WorktreeFacts>,
    /// The commit that the human judges, if the task names none.
    pub commit: Option<Sha>,
    /// The difference from the change that the reviewer read, because the integration branch moved.
    pub moved: Option<MovedChange>,
}

/// A change that its merge would no longer make as the reviewer has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedChange {
    /// The head of the integration branch now.
    pub head: Sha,
    /// Conflicts, and the files that would change in another way.
    pub what: Vec<String>,
}

/// The evidence of an approval that names none.
const NO_EVIDENCE: &str = "none";

/// The most refusals of one review for a moved change: on a busy branch a review must end too.
const MAX_MOVES: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Clear to merge, with the evidence: commands, results, a test per criterion. Optional for a person.
    Approved(Option<String>),
    /// The human's approval, whose word also replaces the commands that validate the task at its merge. The gate judges
    /// all the same.
    WithoutValidation(Option<String>),
    Rejected(String),
}

impl Rule for SubmitVerdict {
    type Reply = TaskReply;
    const VERB: &'static str = "submit-verdict";
    const RIGHTS: Rights = REVIEWING_OR_HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let id = &self.task;
        if tx.actor == Actor::Human {
            return match incomplete_approval(id, tx.board.body(id)?) {
                Some(prior) => self.complete(tx, prior),
                None => self.by_human(tx, tx.task(id)?),
            };
        }
        let mut task = tx.task(id)?;
        let (reviewer, work, commit) = own_review(tx, &task)?;
        if let Some(named) = &self.commit {
            check_commit(&task, &commit, named)?;
        }
        let facts = self.facts.as_ref().ok_or_else(|| Refusal::WorktreeMissing { task: id.clone() })?;
        if !facts.head.names_same_commit(&commit) {
            return Err(Refusal::HeadMoved { task: id.clone(), head: facts.head.clone(), commit });
        }
        if !facts.changed_tracked.is_empty() {
            return Err(Refusal::ReviewTouched { task: id.clone(), paths: facts.changed_tracked.clone() });
        }
        match &self.verdict {
            Verdict::WithoutValidation(_) => {
                let (actor, allowed) = (tx.actor.to_string(), HUMAN.names());
                return Err(Refusal::NotPermitted {
                    actor,
                    verb: "submit-verdict --without-validation",
                    allowed,
                });
            }
            Verdict::Approved(evidence) => {
                let evidence = check_evidence(tx, evidence.as_deref())?;
                if !is_validated(tx.config()?, &task.record, &commit, None) {
                    return Err(Refusal::NoReceipt { task: id.clone(), commit });
                }
                if let Some(moved) = &self.moved {
                    task = refuse_moved(tx, task, moved)?;
                }
                match count_own_approval(tx, &mut task, reviewer, &commit)? {
                    true => {
                        let event = approval(tx, &commit, evidence);
                        approve(tx, &mut task, (work, commit), Approver::Agent(reviewer), event)?;
                    }
                    false => leave_to_another(tx, &mut task, work, commit, evidence),
                }
            }
            Verdict::Rejected(reason) => {
                let reason = check_reason(&task, reason)?;
                send_back(tx, &mut task, work, commit, reason)?;
            }
        }
        end_review_handoff(tx, &mut task)?;
        task.record.clear_exit_counts();
        tx.free_agents([reviewer], id, AgentStatus::Idle)?;
        Ok(tx.put(task))
    }
}

impl SubmitVerdict {
    /// The human's verdict needs no review: it ends a running one, and adds the missing approval of a status
    /// that was written by hand.
    fn by_human(&self, tx: &mut Tx<'_>, task: Task) -> Result<TaskReply, Refusal> {
        let (work, commit) = match &task.status {
            TaskStatus::ReadyForReview { work, commit, .. } => (work.clone(), commit.clone()),
            TaskStatus::Approved { work, commit, held, .. }
                if !has_approval(&task.record) || self.answers_gate(held.as_ref()) =>
            {
                (work.clone(), commit.clone())
            }
            TaskStatus::Draft
            | TaskStatus::Unclaimed { .. }
            | TaskStatus::Claimed { .. }
            | TaskStatus::Rejected { .. }
            | TaskStatus::Approved { .. }
            | TaskStatus::IntegrationFailed { .. }
            | TaskStatus::Blocked { .. }
            | TaskStatus::Merged { .. }
            | TaskStatus::Superseded { .. }
            | TaskStatus::Abandoned => {
                return Err(tx.wrong_status(&task, "READY_FOR_REVIEW, or APPROVED without an approval"));
            }
        };
        if let Some(named) = &self.commit {
            check_commit(&task, &commit, named)?;
        }
        tx.free_agents(task.status.review().map(|review| review.by), &self.task, AgentStatus::Idle)?;
        self.give(tx, task, (work, commit))
    }

    fn give(
        &self,
        tx: &mut Tx<'_>,
        mut task: Task,
        (work, commit): (Assignment, Sha),
    ) -> Result<TaskReply, Refusal> {
        match &self.verdict {
            Verdict::Approved(evidence) | Verdict::WithoutValidation(evidence) => {
                let evidence = evidence.as_deref().and_then(|text| non_blank(Some(text)));
                let mut event = approval(tx, &commit, evidence);
                if matches!(self.verdict, Verdict::WithoutValidation(_)) {
                    event = event.with(WITHOUT_VALIDATION, true);
                }
                approve(tx, &mut task, (work, commit), Approver::Human, event)?;
            }
            Verdict::Rejected(reason) => {
                let reason = required(reason, "the reason for the rejection")?;
                send_back(tx, &mut task, work, commit, reason)?;
            }
        }
        end_review_handoff(tx, &mut task)?;
        task.record.clear_exit_counts();
        Ok(tx.put(task))
    }
}

impl SubmitVerdict {
    /// True if the human rejects a change of the gate.
    fn answers_gate(&self, held: Option<&MergeHold>) -> bool {
        matches!((held, &self.verdict), (Some(MergeHold::Gate(_)), Verdict::Rejected(_)))
    }

    /// The human's verdict on a task that a person has set to APPROVED, without a commit or a coder. An
    /// approval names the commit. A rejection is of the worktree's content; without a coder, any may claim.
    fn complete(&self, tx: &mut Tx<'_>, prior: PriorWork) -> Result<TaskReply, Refusal> {
        let id = &self.task;
        let record = tx.board.body(id)?.record().clone();
        let named = self.commit.clone().or_else(|| record.review_commit.clone());
        let is_approval = !matches!(self.verdict, Verdict::Rejected(_));
        if named.is_none() && is_approval {
            return Err(Refusal::Missing { what: "the commit that you approve (--commit SHA)" });
        }
        let seen = || self.facts.as_ref().map(|facts| facts.head.clone());
        let commit = named.or_else(seen).or_else(|| prior.base.clone());
        let mut task =
            Task { id: id.clone(), status: TaskStatus::Unclaimed { prior: prior.clone() }, record };
        if let (Some(coder), Some(worktree), Some(commit)) = (prior.coder, prior.worktree, commit) {
            let work = Assignment { coder, worktree, base: prior.base };
            task.record.review_commit = Some(commit.clone());
            return self.give(tx, task, (work, commit));
        }
        let Verdict::Rejected(reason) = &self.verdict else {
            return Err(Refusal::Missing {
                what: "the coder whose work it is: send the task back (REJECTED)",
            });
        };
        let reason = required(reason, "the reason for the rejection")?.to_owned();
        task.push_event(tx.event(EventName::Rejected).with("reason", reason.as_str()));
        task.status = TaskStatus::Unclaimed { prior: PriorWork::default() };
        tx.log(LogAction::Task(EventName::Rejected), Some(id), &one_line(&reason, 200));
        Ok(tx.put(task))
    }
}

/// Refuses an approval of a change that its reviewer has not read as it is now. The review goes on at the new
/// head; after two refusals the merge decides.
fn refuse_moved(tx: &mut Tx<'_>, mut task: Task, moved: &MovedChange) -> Result<Task, Refusal> {
    let TaskStatus::ReadyForReview { review: Some(review), .. } = &mut task.status else { return Ok(task) };
    if review.moves >= MAX_MOVES {
        return Ok(task);
    }
    review.moves += 1;
    review.head = Some(moved.head.clone());
    let (id, head, what) = (task.id.clone(), moved.head.clone(), moved.what.clone());
    let detail = format!("integration is at {}: {}", head.short(), one_line(&what.join(", "), 200));
    tx.log(LogAction::ChangeMoved, Some(&id), &detail);
    tx.put(task);
    Err(tx.refuse_but_write(Refusal::ChangeMoved { task: id, head, what }))
}

/// Counts the approval of a code reviewer; true if the task is approved by it.
fn count_own_approval(
    tx: &Tx<'_>,
    task: &mut Task,
    reviewer: AgentId,
    commit: &Sha,
) -> Result<bool, Refusal> {
    let (config, program) = (tx.config()?, tx.agent(reviewer)?.client);
    let model = config.model(reviewer.role()).map(str::to_owned);
    let head = task.status.review().and_then(|review| review.head.clone());
    let approval = Approval { agent: reviewer, program, model, commit: commit.clone(), head };
    Ok(count_approval(config, &mut task.record, approval))
}

/// The first approval of work of high impact: another code reviewer judges the same commit.
fn leave_to_another(tx: &mut Tx<'_>, task: &mut Task, work: Assignment, commit: Sha, evidence: Option<&str>) {
    let event = approval(tx, &commit, evidence);
    task.push_event(event.with(FIRST_OF, APPROVALS.to_string()));
    let detail = format!("commit {}, the first of {APPROVALS} approvals", commit.short());
    tx.log(LogAction::Task(EventName::Approved), Some(&task.id), &detail);
    task.status = TaskStatus::ReadyForReview { work, commit, review: None };
}

fn approval(tx: &Tx<'_>, commit: &Sha, evidence: Option<&str>) -> HistoryEvent {
    let event = tx.event(EventName::Approved).with("commit", commit.as_str());
    event.with("evidence", evidence.unwrap_or(NO_EVIDENCE))
}

fn approve(
    tx: &mut Tx<'_>,
    task: &mut Task,
    (work, commit): (Assignment, Sha),
    by: Approver,
    event: HistoryEvent,
) -> Result<(), Refusal> {
    let mut detail = format!("commit {}", commit.short());
    if event.more.contains_key(WITHOUT_VALIDATION) {
        detail.push_str(", without validation");
    }
    if let Some(evidence) = event.text("evidence").filter(|text| text != NO_EVIDENCE) {
        detail.push_str(&format!(": {}", one_line(&evidence, 200)));
    }
    task.push_event(event);
    tx.log(LogAction::Task(EventName::Approved), Some(&task.id), &detail);
    // Its coder no longer waits for a verdict.
    tx.stop_waiting(work.coder)?;
    task.status = TaskStatus::Approved { work, commit, by: Some(by), held: None };
    Ok(())
}

fn send_back(
    tx: &mut Tx<'_>,
    task: &mut Task,
    work: Assignment,
    commit: Sha,
    reason: &str,
) -> Result<(), Refusal> {
    let mut detail = one_line(reason, 200);
    tx.stop_waiting(work.coder)?;
    let event = tx.event(EventName::Rejected).with("commit", commit.as_str());
    reject(task, work, commit, reason, event.with("reason", reason));
    let record = &mut task.record;
    let cycles = record.review_cycles_current.unwrap_or(0).saturating_add(1);
    record.review_cycles_current = Some(cycles);
    record.review_cycles_total = Some(record.review_cycles_total.unwrap_or(0).saturating_add(1));
    if cycles >= tx.config()?.max_review_cycles(record) {
        at_review_limit(tx, task, cycles);
        detail = format!("BLOCKED ({REVIEW_DEADLOCK}): {detail}");
    }
    tx.log(LogAction::Task(EventName::Rejected), Some(&task.id), &detail);
    Ok(())
}

/// Sends the task back to its coder.
pub(super) fn reject(task: &mut Task, work: Assignment, commit: Sha, reason: &str, event: HistoryEvent) {
    task.record.rejection_reason = Some(reason.to_owned());
    task.record.approvals = None;
    task.record.review_commit = Some(commit.clone());
    task.push_event(event);
    task.status = TaskStatus::Rejected { work, commit, reason: reason.to_owned() };
}

/// Notes from one code reviewer's session to the next end with the review; the coder's next claim must not
/// take them for a handoff of its own work.
pub(super) fn end_review_handoff(tx: &mut Tx<'_>, task: &mut Task) -> Result<(), Refusal> {
    let notes = tx.board.handoffs()?.get(&task.id);
    if notes.is_some_and(|notes| notes.reader() == Role::CodeReviewer) {
        task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
        tx.drop_handoff(&task.id)?;
    }
    Ok(())
}

/// An agent's approval names its evidence.
fn check_evidence<'t>(tx: &Tx<'_>, evidence: Option<&'t str>) -> Result<Option<&'t str>, Refusal> {
    let evidence = non_blank(evidence);
    if let Some(text) = evidence.filter(|text| is_unfilled(text)) {
        return Err(Refusal::UnfilledTemplate { what: "the approval", placeholder: placeholder(text) });
    }
    match (evidence, tx.actor) {
        (None, Actor::Agent(..)) => Err(Refusal::Missing {
            what: "the evidence: what you ran, with what result, and which test shows each criterion",
        }),
        _ => Ok(evidence),
    }
}

/// The gaps in the templates of the prompts.
const PLACEHOLDERS: [&str; 10] = [
    "[count]",
    "[impact]",
    "[fix]",
    "[1-2 sentence assessment]",
    "file:line — Issue description",
    "[issues now fixed]",
    "[issues not addressed]",
    "[issues partially addressed]",
    "[command and its result]",
    "[criterion]",
];

fn placeholder(text: &str) -> &'static str {
    PLACEHOLDERS.into_iter().find(|placeholder| text.contains(placeholder)).unwrap_or_default()
}

fn is_unfilled(text: &str) -> bool {
    !placeholder(text).is_empty()
}

/// From the second rejection on, the reason must cover the earlier feedback.
fn check_reason<'t>(task: &Task, reason: &'t str) -> Result<&'t str, Refusal> {
    let reason = required(reason, "the reason for the rejection")?;
    if is_unfilled(reason) {
        return Err(Refusal::UnfilledTemplate { what: "the rejection", placeholder: placeholder(reason) });
    }
    let again = task.record.review_cycles_current.unwrap_or(0) >= 1;
    if again && !reason.to_lowercase().contains(&PRIOR_FEEDBACK.to_lowercase()) {
        return Err(Refusal::PriorFeedbackMissing { task: task.id.clone() });
    }
    Ok(reason)
}
