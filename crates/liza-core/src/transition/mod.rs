//! What commands do to the blackboard: one pure function, one file per area.
//!
//! | file | commands |
//! |---|---|
//! | `plan.rs` | add-task, edit-task, finalize, unblock-task, supersede-task, abandon-task |
//! | `claim.rs` | claim-task in its two halves, release-claim, wt-create, wt-delete |
//! | `review.rs` | pre-check, submit-for-review, claim-review, submit-verdict |
//! | `merge.rs` | wt-merge |
//! | `recover.rs` | recover |
//! | `block.rs` | mark-blocked, limits, sessions that bring nothing |
//! | `agents.rs` | register, heartbeat, deregister, set-status, record-usage |
//! | `notes.rs` | handoff, anomaly, discover, convert-discovery, note, spec-change, align |
//! | `sprint.rs` | goal, sprint, checkpoint, pause, resume, abort, breaker, archive |
//!
//! `own.rs` says for whom a caller may speak and whose a claim is; `tx.rs` is the working copy that they all change.

mod agents;
mod block;
mod claim;
mod merge;
mod notes;
mod own;
mod plan;
mod recover;
mod review;
mod sprint;
mod tx;

use crate::board::Board;
use crate::change::Change;
use crate::command::{Command, Request};
use crate::permission::admit;
use crate::refusal::Refusal;

use tx::Tx;

/// Decides a command: the change to write, or why not. Nothing else may change the blackboard.
pub fn apply(board: &Board, request: &Request) -> Result<Change, Refusal> {
    admit(board, request)?;
    let mut tx = Tx::new(board, request);
    dispatch(&mut tx, &request.command)?;
    Ok(tx.finish())
}

fn dispatch(tx: &mut Tx<'_>, command: &Command) -> Result<(), Refusal> {
    match command {
        Command::AddTask { task, new } => plan::add_task(tx, task, new),
        Command::EditTask { task, edit } => plan::edit_task(tx, task, edit),
        Command::Finalize { tasks } => plan::finalize(tx, tasks),
        Command::Supersede { task, by, reason, root_cause, summary } => {
            plan::supersede(tx, task, by, &plan::Rescope { reason, root_cause, summary: summary.as_deref() })
        }
        Command::Abandon { task, reason } => plan::abandon(tx, task, reason),
        Command::Unblock { task, reset_cycles, same_coder, keep_worktree, assessment } => {
            let how = plan::Unblocking {
                reset_cycles: *reset_cycles,
                same_coder: *same_coder,
                keep_worktree: *keep_worktree,
                assessment: assessment.as_deref(),
            };
            plan::unblock(tx, task, &how)
        }
        Command::Align { summary } => notes::align(tx, summary),
        Command::CompleteGoal => sprint::complete_goal(tx),
        Command::AbortGoal | Command::Abort => sprint::abort(tx),
        Command::NewGoal { description, spec_ref } => sprint::new_goal(tx, description, spec_ref.as_deref()),
        Command::Register { agent, terminal, proven_dead } => {
            agents::register(tx, *agent, terminal, *proven_dead)
        }
        Command::Heartbeat { agents, length } => agents::heartbeat(tx, agents, *length),
        Command::Deregister { agent } => agents::deregister(tx, *agent),
        Command::SetStatus { agent, status } => agents::set_status(tx, *agent, *status),
        Command::Reserve { task, coder, head } => claim::reserve(tx, task, *coder, head),
        Command::Claim { task, coder } => claim::claim(tx, task, *coder),
        Command::CancelReservation { task, coder } => claim::cancel(tx, task, *coder),
        Command::DropReservation { task, reservation } => recover::drop_reservation(tx, task, reservation),
        Command::Recover { settled } => recover::recover(tx, settled),
        Command::ReleaseClaim { task, role, force, reason } => {
            claim::release(tx, task, *role, *force, reason.as_deref())
        }
        Command::PreCheck { task, intent } => review::pre_check(tx, task, intent),
        Command::SubmitForReview { task, commit, facts } => review::submit(tx, task, commit, facts.as_ref()),
        Command::ClaimReview { task, reviewer, head } => {
            review::claim_review(tx, task, *reviewer, head.as_ref())
        }
        Command::GiveUpReview { task, reviewer } => review::give_up(tx, task, *reviewer),
        Command::SubmitVerdict { task, verdict, facts } => review::verdict(tx, task, verdict, facts.as_ref()),
        Command::ClearStaleReviews => review::clear_stale(tx),
        Command::BeginMerge { task } => merge::begin(tx, task),
        Command::RecordMerge { task, commit, merge_commit, drift_commits } => {
            merge::merged(tx, task, commit, merge_commit, *drift_commits)
        }
        Command::RecordMergeFailure { task, commit, failure } => merge::failed(tx, task, commit, failure),
        Command::CreateWorktree { task, fresh, head } => claim::create_worktree(tx, task, *fresh, head),
        Command::DeleteWorktree { task } => claim::delete_worktree(tx, task),
        Command::MarkBlocked { task, reason, questions, attempted } => {
            block::mark_blocked(tx, task, reason, questions, attempted)
        }
        Command::CountExit { task, agent, exit } => block::count_exit(tx, task, *agent, *exit),
        Command::Handoff { task, notes, dirty } => notes::handoff(tx, task, notes, dirty),
        Command::TakeHandoff { task } => notes::take_handoff(tx, task),
        Command::Anomaly { kind, task, details } => notes::anomaly(tx, *kind, task.as_ref(), details),
        Command::Discover { task, description, severity, urgency, recommendation } => {
            notes::discover(tx, task.as_ref(), description, *severity, *urgency, recommendation.as_deref())
        }
        Command::ConvertDiscovery { discovery, task } => notes::convert(tx, *discovery, task),
        Command::Note { message, to } => notes::note(tx, message, to.as_ref()),
        Command::SpecChange { spec, change, triggered_by } => {
            notes::spec_change(tx, spec, change, triggered_by)
        }
        Command::Checkpoint { cause } => sprint::checkpoint(tx, cause),
        Command::Pause => sprint::pause(tx),
        Command::Resume { decision, note } => sprint::resume(tx, decision.as_deref(), note.as_deref()),
        Command::FollowFile { file, since } => sprint::follow_file(tx, *file, *since),
        Command::CompleteSprint => sprint::complete(tx),
        Command::NewSprint => sprint::new_sprint(tx),
        Command::SetDeadline { deadline } => sprint::set_deadline(tx, *deadline),
        Command::Retrospective { text } => sprint::retrospective(tx, text),
        Command::UpdateMetrics { metrics } => sprint::update_metrics(tx, metrics),
        Command::SeeTriggers { keys } => sprint::see_triggers(tx, keys),
        Command::RecordAnalysis { findings } => sprint::record_analysis(tx, findings),
        Command::Resolve { resolution } => sprint::resolve(tx, resolution),
        Command::Archive { tasks } => sprint::archive(tx, tasks),
        Command::RecordUsage { agent, task, usage, context_percent } => {
            agents::record_usage(tx, *agent, task.as_ref(), usage, *context_percent)
        }
    }
}
