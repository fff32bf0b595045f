//! Receipts as git keeps them: one reference whose commits only ever add files, each named by the digest of its content.

mod line;
mod signatures;
mod store;

pub use line::LineStep;
pub use signatures::CommitSignature;
pub use store::{RECEIPTS, REMOTE_RECEIPTS};
