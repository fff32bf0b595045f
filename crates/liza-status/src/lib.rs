//! Everything that screens and the watcher derive from the blackboard; nothing here changes it.
//!
//! Pure, like the core: time and facts come in as arguments.
//!
//! | module | content |
//! |---|---|
//! | [`forecast`] | the next step of a task or an agent as data, and its sentence |
//! | [`alarms`] | the table of alarms and their conditions |
//! | [`needs_you`] | the decisions that wait for the human |
//! | [`view`] | plain data for screens and JSON |
//! | [`words`] | the other sentences |
//! | [`action`] | the actions of a person on a screen, as command lines |

#![forbid(unsafe_code)]

pub mod action;
pub mod alarms;
pub mod command_line;
pub mod forecast;
pub mod needs_you;
pub mod task_words;
pub mod view;
pub mod words;
