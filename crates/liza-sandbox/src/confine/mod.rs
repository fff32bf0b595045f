//! The confinement of sessions: a role's rights on files, the stage that restricts itself and starts the
//! client, and the level that was reached. A plan is data from outside; the system's side is
//! `sys::confinement`.

mod allowed_variables;
pub mod caches;
mod cargo_home;
mod copies;
mod credentials;
mod descriptor;
mod downloads;
pub mod environment;
mod exits;
mod filter_keeper;
mod forward;
mod git_room;
mod home;
mod level;
mod local_ports;
mod placed;
pub mod plan;
mod program_keeper;
mod program_run;
mod readable;
mod room;
mod room_copy;
pub mod stage;
pub mod start;
pub mod streams;
mod system_folders;
mod wrapper;

pub use caches::{
    YourCache, cache_variables, check_caches, merge_caches, remove_check_caches, review_caches,
    validation_caches, your_caches,
};
pub use copies::{COPIES, ThrowAwayCopy, can_copy};
pub use environment::{
    EnvironmentUse, Variable, is_of_database, is_withheld, named_tools, passed_environment,
    search_path_outside,
};
pub use exits::NOT_STARTED;
pub use filter_keeper::{KeptFilters, kept_filter, serve_filter};
pub use forward::{Forwarding, forwarded, serve_forward};
pub use git_room::{GitSurroundings, RoomRules, git_grants};
pub use home::{expand, has_logins, is_read_by_sessions};
pub use level::{Confined, Level, RecordedSession, forget_session, record_session, recorded_session};
pub use local_ports::local_ports;
pub use placed::{Placed, PlacedFiles};
pub use plan::{Plan, RoomSettings, Surroundings, make_plan, rules_everything};
pub use program_keeper::{KEEP, KeptStreams, run_kept, serve_keeper};
pub use program_run::{ProgramRun, RunEnd, RunStage};
pub use readable::DiskLook;
pub use room_copy::RoomCopy;
pub use stage::{StageInput, StageOrder, serve};
pub use start::{StageSocket, probe, too_low, wrapped_stage_command};
pub use wrapper::wrapper_words;
