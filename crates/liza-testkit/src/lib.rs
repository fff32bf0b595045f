//! Set-ups that several tests need: boards, worlds, projects and processes.
//!
//! For `[dev-dependencies]` only. A crate's tests in `tests/` may use it even if it depends on that crate; its tests in `src/` may not.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::wildcard_enum_match_arm,
    clippy::new_without_default,
    reason = "a test fails by panicking, and names what it makes"
)]

pub mod boards;
pub mod evidence;
pub mod fuzz;
pub mod team;
pub mod worlds;
