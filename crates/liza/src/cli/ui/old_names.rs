//! The names of the scripts that came before Liza: called by one of them, the program runs the verb of that
//! name.
//!
//! `liza setup` makes the links. Only the name is translated; the arguments are those of the verb.

use std::ffi::OsString;
use std::path::Path;

pub(crate) const OLD_NAMES: [(&str, &str); 17] = [
    ("liza-init.sh", "init"),
    ("liza-lock.sh", "lock"),
    ("liza-validate.sh", "validate"),
    ("liza-watch.sh", "watch"),
    ("liza-analyze.sh", "analyze"),
    ("liza-checkpoint.sh", "checkpoint"),
    ("liza-agent.sh", "agent"),
    ("liza-claim-task.sh", "claim-task"),
    ("liza-submit-for-review.sh", "submit-for-review"),
    ("liza-submit-verdict.sh", "submit-verdict"),
    ("liza-add-task.sh", "add-task"),
    ("wt-create.sh", "wt-create"),
    ("wt-merge.sh", "wt-merge"),
    ("wt-delete.sh", "wt-delete"),
    ("update-sprint-metrics.sh", "update-sprint-metrics"),
    ("clear-stale-review-claims.sh", "clear-stale-review-claims"),
    ("release-claim.sh", "release-claim"),
];

/// The command line with the verb in it, if the program was called by an old name.
pub(crate) fn translate(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let called = arguments.first().and_then(|first| Path::new(first).file_name());
    let verb = OLD_NAMES.iter().find(|(name, _)| called.is_some_and(|called| called == *name));
    if let Some((_, verb)) = verb {
        arguments.splice(..1, ["liza".into(), OsString::from(verb)]);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: CM-01
    #[test]
    fn an_old_name_is_a_verb_and_any_other_name_is_not() {
        let line = |words: &[&str]| translate(words.iter().map(OsString::from).collect());
        assert_eq!(line(&["/x/wt-create.sh", "--fresh", "a"]), ["liza", "wt-create", "--fresh", "a"]);
        assert_eq!(line(&["/x/wt-create.sh.bak", "a"]), ["/x/wt-create.sh.bak", "a"]);
        assert_eq!(line(&["liza", "status"]), ["liza", "status"]);
        assert!(line(&[]).is_empty());
    }
}
