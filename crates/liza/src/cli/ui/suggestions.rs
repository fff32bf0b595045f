//! The commands that a misspelled one probably means: never one that drops work.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use liza_core::rules::misspelled::distance;

/// The commands that the human gives only on purpose.
const NEVER: [&str; 3] = ["remove", "abort", "archive"];

/// Words for which Liza has another command.
const OTHER_WORDS: [(&str, &str); 3] = [
    ("approve", "to approve a submission: liza submit-verdict TASK APPROVED; a plan: liza plan --approve"),
    ("reject", "to reject a submission: liza submit-verdict TASK REJECTED \"REASON\""),
    ("merge", "to take the result of a goal: liza finish; approved tasks are merged by the team"),
];

/// The error with the suggestions for a misspelled command that are as good as the best one.
pub(crate) fn best_first(mut error: clap::Error) -> clap::Error {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        Some(_) | None => {
            // A word that looks like an option is not meant as a value.
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(Vec::new()));
            return error;
        }
    };
    if let Some((_, tip)) = OTHER_WORDS.iter().find(|(word, _)| distance(&typed, word) <= 1) {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(*tip)]);
        error.insert(ContextKind::Suggested, tip);
        return error;
    }
    if let Some(ContextValue::Strings(names)) = error.remove(ContextKind::SuggestedSubcommand) {
        let mut names: Vec<String> = names.into_iter().filter(|name| !NEVER.contains(&&**name)).collect();
        names.sort_by_key(|name| distance(&typed, name));
        let best = names.first().map_or(0, |name| distance(&typed, name));
        names.retain(|name| distance(&typed, name) <= best);
        if !names.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
        }
    }
    error
}
