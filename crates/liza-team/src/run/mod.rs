//! A whole team in one process: its members, the lock that allows only one, its progress. `supervisor`
//! supervises a team and a lone agent alike.

pub mod demo;
pub mod detached;
mod first_run;
pub mod front;
pub mod playbook;
mod posts;
mod progress;
mod rehearsal_copy;
mod run_lock;
mod watcher_observer;

pub use first_run::{TOKEN_BUDGET, first_run_notice, is_first_run};
pub use posts::{TeamOptions, leave_planning_to_other, team_posts};
pub use progress::progress_line;
pub use rehearsal_copy::is_rehearsal_copy;
pub use rehearsal_copy::{CopyError, close_in, copy_for_rehearsal, copy_identity, copy_named, is_demo};
pub use run_lock::is_team_running;
pub use run_lock::{AlreadyRunning, RunLock};
pub use watcher_observer::WatcherObserver;
