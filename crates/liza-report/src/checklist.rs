//! The checklist before work continues, and the possible decisions with their commands.

use liza_core::model::State;

pub(super) fn questions(state: &State) -> Vec<String> {
    let branch = state.board.config().ok().map(|config| config.integration_branch.as_str());
    // The name is printed inside a command to copy, so it must not contain anything that a shell interprets.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let branch = branch.filter(|branch| branch.chars().all(plain)).unwrap_or("INTEGRATION_BRANCH");
    [
        format!("Does the merged work match what you wanted? `git log --first-parent {branch}`"),
        "Read one approved change yourself; `liza show TASK` names its commit".to_owned(),
        "Is every question above answered? `liza answer TASK \"…\"`".to_owned(),
        "Do the specifications still describe what you want?".to_owned(),
        "Do the anomalies share a cause? `liza analyze`".to_owned(),
        "Should a discovery become a task? `liza convert-discovery DISC TASK`".to_owned(),
        "Is the result worth its cost?".to_owned(),
    ]
    .map(|question| format!("- [ ] {question}"))
    .to_vec()
}

/// Each decision with its occasion and its commands.
pub(super) fn decisions() -> Vec<String> {
    let choices: [(&str, &str, &[&str]); 6] = [
        ("continue", "no change is needed", &["liza resume"]),
        (
            "adjust specs",
            "the specifications were wrong: edit them and record the change",
            &[
                "liza spec-change --spec REF --change \"…\" --triggered-by TASK",
                "liza resume --decision \"adjust specs\" --note \"…\"",
            ],
        ),
        (
            "adjust contracts",
            "the agents' rules were wrong: edit `contracts/`",
            &["liza resume --decision \"adjust contracts\" --note \"…\""],
        ),
        (
            "replan",
            "the tasks were wrong: block them, so that the planner revises them",
            &[
                "liza mark-blocked TASK --reason \"…\" --question \"…\"",
                "liza resume --decision replan --note \"…\"",
            ],
        ),
        (
            "pivot",
            "the goal was wrong: abort it, record why, state a new one",
            &["liza abort", "liza resume --decision pivot --note \"…\"", "liza goal new \"…\""],
        ),
        (
            "stop",
            "no more work is wanted: end the goal for good, as `liza abort` does",
            &["liza resume --decision stop --note \"…\""],
        ),
    ];
    let mut lines = Vec::new();
    for (name, when, commands) in choices {
        lines.push(format!("- **{name}**: {when}"));
        lines.extend(commands.iter().map(|command| format!("  - `{command}`")));
    }
    lines
}
