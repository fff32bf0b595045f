//! The git program: its start, its settings, and the repository that it is started in.

pub(crate) mod accepted_programs;
pub(crate) mod borrowed_git_dir;
pub(crate) mod command;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod filter_command;
pub(crate) mod known_answers;
pub(crate) mod known_settings;
pub(crate) mod leftovers;
pub(crate) mod limits;
pub(crate) mod output;
pub(crate) mod pipes;
pub(crate) mod program_changes;
pub(crate) mod programs;
pub(crate) mod refs;
pub(crate) mod refs_on_disk;
pub(crate) mod repo;
pub(crate) mod room;
pub(crate) mod version;
