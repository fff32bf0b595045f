//! The shared parts of commands for input and output: console, screen, layout, errors, exit codes, help.

pub(crate) mod buffer_console;
pub(crate) mod clean;
pub(crate) mod console;
pub(crate) mod error;
pub(crate) mod event_printer;
pub(crate) mod exit_code;
pub(crate) mod help;
pub(crate) mod layout;
pub(crate) mod log_text;
pub(crate) mod old_names;
pub(crate) mod output;
pub(crate) mod program_name;
pub(crate) mod session_output;
pub(crate) mod settings_text;
pub(crate) mod story;
pub(crate) mod suggestions;
pub(crate) mod theme_name;
