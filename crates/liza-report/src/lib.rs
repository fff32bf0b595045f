//! The reports on a sprint: the summary at a checkpoint, the retrospective at the end. Pages are pure
//! functions of the blackboard, the log and `now`; only `summary::write` writes a file. Knows neither git nor processes.

#![forbid(unsafe_code)]

mod burn_up;
mod checklist;
mod judging;
mod markdown;
mod markdown_line;
pub mod retro;
pub mod summary;
mod tasks;

use liza_host::secrets::Masker;

pub use markdown_line::markdown_line;

pub fn masker() -> Masker {
    // A variable that is not valid text cannot occur in a text.
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Masker::new(texts)
}
