//! The confinement of sessions: what a role may read and write, the stage that restricts itself and starts the client, and
//! the level that was reached.
//!
//! A plan is data and is made outside; the operating system's side is `sys::confinement`. Decides nothing about tasks.

mod allowed_variables;
mod caches;
mod cargo_home;
mod check;
mod check_keeper;
mod client_folder;
mod conversations;
mod credentials;
mod descriptor;
mod environment;
mod filter_keeper;
mod git_room;
mod git_settings;
mod level;
mod login;
mod login_copies;
mod login_turn;
mod nested_repositories;
mod plan;
mod program_keeper;
mod program_run;
mod readable;
mod repository_guard;
mod settings_guard;
mod stage;
mod start;
mod system_folders;
mod wrapper;

pub(crate) use caches::{cache_variables, cargo_home, check_caches, remove_check_caches};
pub(crate) use check::{CheckEnd, PLAN_VARIABLE, run_check};
pub(crate) use check_keeper::{Caller, detach, run_kept};
pub(crate) use client_folder::ClientFolder;
pub(crate) use conversations::conversations_of;
pub(crate) use environment::{EnvironmentUse, Variable, is_of_database, passed_environment};
pub(crate) use filter_keeper::{KeptFilters, kept_filter, serve_filter};
pub(crate) use git_room::{GitSurroundings, RoomRules, git_grants};
pub(crate) use git_settings::inert_git_variables;
pub(crate) use level::{Level, MODEL_ONLY, record_level, recorded_level};
pub(crate) use login_copies::{LoginCopies, RefusedLogin};
pub(crate) use login_turn::{LoginTurn, TakenTurn, can_read_expiry, login_turn};
pub(crate) use nested_repositories::remove_nested_repositories;
pub(crate) use plan::{Plan, RoomSettings, Surroundings, make_plan};
pub(crate) use program_keeper::{KEEP, serve_keeper};
pub(crate) use program_run::{ProgramRun, RunEnd, RunStage};
pub(crate) use readable::DiskLook;
pub(crate) use repository_guard::{GuardExtent, RepositoryGuard};
pub(crate) use settings_guard::SettingsGuard;
pub(crate) use stage::{StageInput, StageOrder, serve};
pub(crate) use start::{StageSocket, probe, too_low, wrapped_stage_command};
pub(crate) use wrapper::wrapper_words;
