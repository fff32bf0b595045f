//! Work in git: claim, worktree, review, merge, recovery, through the real program and the real git.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod audit;
mod bad_input;
mod begin;
mod checkout;
mod checkout_setup;
mod claim;
mod cost;
mod doctor;
mod evidence;
mod facts;
mod finish;
mod fixture;
mod full_disk;
mod gate;
mod git_programs;
mod guide;
mod head_build;
mod holdout;
mod impact;
mod integration_head;
mod interrupted;
mod keeping;
mod merge;
mod race;
mod receipts;
mod recover;
mod remote;
mod remote_repair;
mod secrets;
mod signed;
mod submit;
mod tampering;
mod torture;
mod unapproved;
mod unusual_repositories;
mod upgrade;
mod validation;
mod verdict;
mod verify;
mod verify_validation;
