//! A whole team in one process: who is in it, that there is only one, how far it is.
//!
//! Supervises nothing itself: that is `supervisor`, which a team shares with a lone agent.

mod crew;
mod onlooker;
mod only;
mod progress;

pub use crew::{Wanted, crew};
pub use onlooker::Onlooker;
pub use only::{OnlyRun, Running};
pub use progress::progress_line;
