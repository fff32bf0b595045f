//! Work of high impact needs two judges; and a judge unlike the author comes first, if one is free.

use crate::model::{
    AgentId, AgentRecord, Approval, Board, Config, FactKind, Impact, ReviewDiversity, Role, TaskId,
    TaskRecord, Timestamp,
};

use super::claimable::can_work;

/// The approvals that work of high impact needs.
pub const APPROVALS: usize = 2;

/// The facts that raise the impact.
const RAISING: [FactKind; 5] = [
    FactKind::Protected,
    FactKind::Deciding,
    FactKind::HighImpact,
    FactKind::TestsDeleted,
    FactKind::TestsSkipped,
];

/// The reasons that a task has a high impact; none if its impact is normal. The facts are those of its last
/// submission: they raise the word of the plan and never lower it.
pub fn high_impact(config: &Config, record: &TaskRecord) -> Vec<String> {
    let mut reasons = Vec::new();
    if record.impact == Some(Impact::High) {
        reasons.push("the plan says so".to_owned());
    }
    let Some(facts) = &record.facts else { return reasons };
    let raising = RAISING.into_iter().filter(|kind| facts.count(*kind) > 0);
    reasons.extend(raising.map(|kind| kind.words().to_owned()));
    let lines = facts.added.saturating_add(facts.removed);
    if lines > config.high_impact_lines as usize {
        reasons.push(format!("{lines} changed lines"));
    }
    reasons
}

/// The approvals of exactly the commit under review.
pub fn approvals(record: &TaskRecord) -> impl Iterator<Item = &Approval> {
    record
        .approvals
        .iter()
        .flatten()
        .filter(|approval| Some(&approval.commit) == record.review_commit.as_ref())
}

pub fn has_approved(record: &TaskRecord, agent: AgentId) -> bool {
    approvals(record).any(|approval| approval.agent == agent)
}

/// Counts an approval, once for each agent; true if no other one is needed.
pub(crate) fn count_approval(config: &Config, record: &mut TaskRecord, approval: Approval) -> bool {
    if high_impact(config, record).is_empty() {
        return true;
    }
    let mut all = record.approvals.take().unwrap_or_default();
    all.retain(|known| known.commit == approval.commit && known.agent != approval.agent);
    all.push(approval);
    let is_enough = all.len() >= APPROVALS;
    record.approvals = Some(all);
    is_enough
}

/// True if this code reviewer, whose program and model are the author's, leaves a review to another one that is
/// free and unlike the author. Only for the time in which a free agent looks for work again: no agent waits longer.
pub fn leaves_review(board: &Board, task: &TaskId, reviewer: AgentId, now: Timestamp) -> bool {
    let other = || {
        let config =
            board.config.ready().filter(|config| config.review_diversity == ReviewDiversity::Prefer)?;
        let (summary, record, agents) =
            (board.summary(task)?, board.body(task).ok()?.record(), board.agents.ready()?);
        let submitted = record.past().last_submission?;
        let author = maker(config, agents.get(&summary.assigned_to?)?)?;
        let differs = |entry: &AgentRecord| maker(config, entry).is_some_and(|maker| maker != author);
        let is_free = |id: AgentId, entry: &AgentRecord| {
            id.role() == Role::CodeReviewer
                && entry.current_task.is_none()
                && can_work(board, entry, now)
                && !summary.review_dropped_by.contains(&id)
                && !summary.approved_so_far.contains(&id)
        };
        let is_new = now < submitted + config.coder_poll_interval;
        let mut agents_here = agents.iter();
        let other = agents_here.find(|(id, entry)| is_free(**id, entry) && differs(entry))?;
        (is_new && !differs(agents.get(&reviewer)?)).then_some(*other.0)
    };
    other().is_some()
}

/// The program of an agent's sessions, and the model that its role asks for; `None` before its first session.
fn maker<'a>(config: &'a Config, entry: &'a AgentRecord) -> Option<(&'a str, Option<&'a str>)> {
    Some((entry.client.as_deref()?, config.model(entry.role)))
}
