//! Everything that screens and the watcher derive from the blackboard; nothing here changes it.

pub mod action;
pub mod alarms;
pub mod command_line;
pub mod forecast;
pub(crate) mod held;
pub mod needs_you;
pub mod stop_files;
pub mod task_words;
pub mod view;
pub mod words;
