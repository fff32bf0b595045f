//! One session of an agent program: its room, its folders, its login, and the checks that run below it.

pub mod check;
pub mod check_door;
pub mod check_keeper;
pub mod checkout_setup;
pub mod client_folder;
pub mod client_version;
pub mod conversations;
pub mod denied;
pub mod files;
pub mod git_settings;
pub mod login;
pub mod login_copies;
pub mod login_turn;
pub mod network;
pub mod plan;
pub(crate) mod refused_places;
pub mod settings_guard;
pub mod shared;
pub mod shell;
