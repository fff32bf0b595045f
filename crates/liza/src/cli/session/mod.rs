//! Commands inside an agent session: the session's side sends them (`forward`), the supervisor's side
//! executes the permitted ones (`execute`, `verbs`).

mod client;
mod execute;
mod forward;
mod modify;
mod outside;
mod verbs;

pub(super) use execute::CommandRunner;
pub(super) use forward::forward;
pub(super) use outside::{explain_denial, explain_shell, is_confined, is_in_shell};
pub(super) use verbs::check;
