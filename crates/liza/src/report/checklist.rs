//! What to look at before going on, and what can be decided, with the commands to type.

use liza_core::model::State;

/// What to look at.
pub(super) fn questions(state: &State) -> Vec<String> {
    let config = state.board.config.ready().cloned().unwrap_or_default();
    // A name of a branch that would not stay inside its quotes is not one that git knows either.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let branch = if config.integration_branch.chars().all(plain) {
        config.integration_branch
    } else {
        "INTEGRATION_BRANCH".to_owned()
    };
    [
        format!("Is what was merged what you wanted? `git log --first-parent {branch}`"),
        "Read one approved change yourself: `liza show TASK` names its commit".to_owned(),
        "Is every question above answered? `liza note \"…\" --for TASK`".to_owned(),
        "Do the specifications still say what you mean?".to_owned(),
        "Do the anomalies have a cause in common? `liza analyze`".to_owned(),
        "Should a discovery become a task? `liza convert-discovery DISC TASK`".to_owned(),
        "Is it worth what it costs?".to_owned(),
    ]
    .map(|question| format!("- [ ] {question}"))
    .to_vec()
}

/// What can be decided: what each is for, and what to type.
pub(super) fn decisions() -> Vec<String> {
    let choices: [(&str, &str, &[&str]); 6] = [
        ("continue", "all is well", &["liza resume --decision continue"]),
        (
            "adjust specs",
            "the documents were wrong: edit them, say what changed",
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
            "the tasks were wrong: put them before the planner",
            &["liza mark-blocked TASK", "liza resume --decision replan --note \"…\""],
        ),
        (
            "pivot",
            "the goal was wrong: give it up, keep what was learned, state another",
            &["liza abort", "liza resume --decision pivot --note \"…\"", "liza goal new \"…\""],
        ),
        (
            "stop",
            "enough: the goal ends for good, as with `liza abort`",
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
