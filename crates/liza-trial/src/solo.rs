//! The arms without Liza: one agent that decides itself when it is done.

use crate::arms::{Arm, Script, Setting};
use crate::dice::Die;
use crate::facts::kinds;
use crate::outcome::{CodingSession, Outcome, Submission};
use crate::work::{Coder, Content, Defect, Flaw};

/// Lets one agent work, at most that many sessions if it has the team's budget.
pub(crate) fn run(mut coder: Coder<'_>, setting: &Setting, budget: u32) -> Outcome {
    let mut outcome = Outcome { sessions: 1, ..Outcome::default() };
    if matches!(setting.script, Some(Script::Hangs | Script::Loops)) {
        let is_over_time = setting.script == Some(Script::Hangs);
        outcome.seen.sessions.push(CodingSession { is_over_time, has_result: false });
        return Outcome { unended: true, ..outcome };
    }
    let mut content = coder.first(setting.script);
    outcome.seen.submissions.push(done(&coder, content, setting.script));
    for review in 1..setting.arm.solo_sessions(budget) {
        let is_red = content.is_red();
        if !is_red && setting.arm != Arm::SoloBudget {
            break;
        }
        outcome.sessions += 1;
        // The agent reviews its own work as well as a reviewer with its program would.
        let throw = coder.dice.roll(Die::Review(0), review);
        let is_found = is_red || content.is_rejected(setting.rates, false, throw);
        outcome.found_by_tests |= is_red;
        outcome.found_by_review |= !is_red && is_found && content.defect.is_some();
        if is_found {
            content = coder.rework(content);
        }
    }
    let head = merged(content, setting.script);
    Outcome { merged: true, defective: head.defect.is_some(), harmed: coder.has_harmed, ..outcome }
}

/// What the agent calls done at first; nobody refuses it.
fn done(coder: &Coder<'_>, content: Content, script: Option<Script>) -> Submission {
    Submission {
        content,
        facts: kinds(coder.material, &content),
        is_dirty: script == Some(Script::ForgetsCommit),
        is_stale: script == Some(Script::StaleBase),
        is_accepted: true,
    }
}

/// The branch after the agent has said that it is done.
fn merged(content: Content, script: Option<Script>) -> Content {
    let flaw = match script {
        Some(Script::ForgetsCommit) => Flaw::NotCommitted,
        Some(Script::StaleBase) => Flaw::Clash,
        Some(_) | None => return content,
    };
    Content { defect: Some(Defect { flaw, is_visible: false, blind: [false; 2] }), ..content }
}
