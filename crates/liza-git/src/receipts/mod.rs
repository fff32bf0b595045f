//! Receipts as git keeps them: one reference whose commits only ever add files, each named by the digest of its content.

mod line;
mod store;

pub use line::LineStep;
pub use store::{RECEIPTS, REMOTE_RECEIPTS};
