//! Everything of Liza that touches the world: commands, git, processes, screens.
//!
//! The rules are in `liza-core`, the blackboard is in `liza-store`; nothing here decides what a state may become.
#![cfg_attr(
    all(test, feature = "portable-sys"),
    allow(
        unused_imports,
        reason = "some tests exist only for Linux; this feature is for compiling, not for running"
    )
)]
// `sys::confinement::seccomp` is the one exception.
#![deny(unsafe_code)]

mod accepted_gate;
mod activity;
#[doc(hidden)]
pub mod benchmark;
pub mod channel;
mod checkout_setup;
pub mod cli;
mod columns;
mod confine;
pub mod contracts;
mod database_health;
pub mod demo;
mod denied;
pub mod doctor;
pub mod engine;
mod failing_jobs;
pub mod git;
mod identity;
pub mod lifecycle;
mod live_view;
mod log_text;
mod machine;
mod missing_logins;
mod model_proxy;
pub mod observations;
pub mod playbook;
pub mod project;
pub mod prompts;
pub mod providers;
mod pull_request;
mod push_access;
pub mod reconcile;
pub mod report;
pub mod run;
mod running_merge;
mod session_files;
mod session_network;
mod session_output;
mod session_plan;
mod settings_text;
mod socket_folder;
pub mod supervisor;
mod sys;
mod team_file;
mod tui;
pub mod watch;
