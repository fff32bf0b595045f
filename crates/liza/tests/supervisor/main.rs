//! Supervisors as people run them: the real program, small shell scripts as agent programs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod activity;
mod agent_ids;
mod bait;
mod builds;
mod cargo;
mod channel;
mod clients;
mod confinement;
mod conserved;
mod copies;
mod credentials;
mod downloads;
mod environment;
mod fixture;
mod flow;
mod forward;
mod full_disk;
mod guards;
mod hostile;
mod identity;
mod interactive;
mod kill;
mod liveness;
mod locked;
mod login;
mod manual_edit;
mod misbehaviour;
mod network;
mod no_result;
mod outside;
mod places;
mod planner;
mod providers;
mod rehearsal;
mod remote;
mod reviewed_text;
mod room_start;
mod rooms;
mod set_up;
mod shell;
mod spoken;
mod stop;
mod stories;
mod usage;
mod web;
