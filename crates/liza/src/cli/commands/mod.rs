//! One file per command: its options, its help and what it prints. The rules are in `liza-core`.
//!
//! A command gets everything from its context and asks the process for nothing.

#![allow(clippy::needless_pass_by_value, reason = "every command has the same signature")]

pub(crate) mod abandon_task;
pub(crate) mod abort;
pub(crate) mod accept_integration;
pub(crate) mod add_task;
pub(crate) mod agent;
pub(crate) mod align;
pub(crate) mod analyze;
pub(crate) mod anomaly;
pub(crate) mod answer;
pub(crate) mod archive;
pub(crate) mod checkpoint;
pub(crate) mod claim_review;
pub(crate) mod claim_task;
pub(crate) mod clear_stale_review_claims;
pub(crate) mod completions;
pub(crate) mod convert_discovery;
pub(crate) mod demo;
pub(crate) mod deregister;
pub(crate) mod discover;
pub(crate) mod dismiss;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod edit_task;
pub(crate) mod finalize;
pub(crate) mod get;
pub(crate) mod goal;
pub(crate) mod graph;
pub(crate) mod handoff;
pub(crate) mod heartbeat;
pub(crate) mod init;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mark_blocked;
pub(crate) mod note;
pub(crate) mod pause;
pub(crate) mod pre_check;
pub(crate) mod recover;
pub(crate) mod register;
pub(crate) mod rehearsal;
pub(crate) mod release_claim;
pub(crate) mod resolve;
pub(crate) mod resume;
pub(crate) mod retro;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod spec_change;
pub(crate) mod sprint;
pub(crate) mod status;
pub(crate) mod submit_for_review;
pub(crate) mod submit_verdict;
pub(crate) mod supersede_task;
pub(crate) mod sync;
pub(crate) mod unblock_task;
pub(crate) mod update_sprint_metrics;
pub(crate) mod validate;
pub(crate) mod watch;
pub(crate) mod wt_create;
pub(crate) mod wt_delete;
pub(crate) mod wt_merge;
