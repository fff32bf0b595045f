//! The remote of a team, and the refs that machines exchange on it.

pub(crate) mod push;
pub(crate) mod work_remote;
