//! Inside of a confined session, "Permission denied" is the confinement: errors say so, with the path. Below `liza shell` no
//! command works that needs the blackboard.

use liza_team::session::check::PLAN_VARIABLE;
use liza_team::session::denied::denied_path;
use liza_team::session::shell::SHELL_VARIABLE;

use crate::cli::context::Caller;
use crate::cli::ui::error::CommandError;

/// True if the caller is a process of a confined session.
pub(in crate::cli) fn is_confined(caller: &Caller) -> bool {
    caller.on_behalf.is_none() && caller.environment.raw(PLAN_VARIABLE).is_some()
}

/// True if the caller is a process below `liza shell`.
pub(in crate::cli) fn is_in_shell(caller: &Caller) -> bool {
    caller.on_behalf.is_none() && caller.environment.raw(SHELL_VARIABLE).is_some()
}

/// The error of a command below `liza shell`, if it could not find or read the blackboard.
pub(in crate::cli) fn explain_shell(error: CommandError) -> CommandError {
    if error.code != "no_project" && denied_path(&error.message).is_none() {
        return error;
    }
    let message = "commands of Liza do not work in liza shell, which cannot read the blackboard";
    CommandError::refused("not_in_session", message).hint("run it in another terminal")
}

/// The error of a command in a confined session; a refusal by the confinement is named as such.
pub(in crate::cli) fn explain_denial(error: CommandError) -> CommandError {
    let Some(path) = denied_path(&error.message).filter(|path| !path.is_empty()) else { return error };
    let message = format!("outside the workspace: {path} ({})", error.message);
    CommandError { message, ..error }
        .hint("work in your worktree or TMPDIR, or record what you need as a question")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-03
    #[test]
    fn a_refused_path_is_named_and_other_errors_stay_as_they_are() {
        let denied = CommandError::refused("io", "cannot read /a/b: Permission denied (os error 13)");
        let error = explain_denial(denied);
        assert!(error.message.starts_with("outside the workspace: /a/b (cannot read"), "{error:?}");
        assert!(error.hint.is_some_and(|hint| hint.contains("TMPDIR")));
        let other = CommandError::refused("io", "cannot read /a/b: No such file or directory (os error 2)");
        assert_eq!(explain_denial(other.clone()), other);
    }
}
