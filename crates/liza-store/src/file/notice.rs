//! Reports of the store about a write, besides its result. The repairs are in `recovery.rs`.

use std::fmt;
use std::path::PathBuf;

/// Repairs under the lock, and steps that could not be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A person saved a version based on an older revision. The store restored its own and kept the other.
    StaleSave { kept: PathBuf, based_on: Option<u64>, current: u64 },
    /// A person saved a version based on an older revision, and the store could not restore its own.
    StaleSaveNotUndone {
        based_on: Option<u64>,
        /// The overwritten revision.
        lost: u64,
    },
    /// The file could not be edited in place, so the write lost its comments and form.
    Rewritten { kept: PathBuf },
    /// The file was deleted, emptied or cut off, and was restored.
    Restored { revision: u64 },
    /// A person put a blackboard without a revision in the place of ours.
    Adopted {
        /// The path of our last version, if it could be restored.
        kept: Option<PathBuf>,
        current: u64,
    },
    /// A command that changed the file under the lock was killed; the version before it was restored.
    ModifyUndone,
    /// The write is complete, but its log entry will be appended by the next one.
    LogDelayed { reason: String },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaleSave { kept, based_on, current } => {
                let based =
                    based_on.map_or("an older revision".to_owned(), |based| format!("revision {based}"));
                let kept = kept.display();
                write!(
                    f,
                    "a state.yaml based on {based} was saved over revision {current}, which was restored; "
                )?;
                write!(f, "the save is kept in {kept}. Merge it: liza edit --from {kept}")
            }
            Self::StaleSaveNotUndone { lost, .. } => {
                write!(
                    f,
                    "an older state.yaml was saved over revision {lost}, which could not be restored: "
                )?;
                f.write_str("liza log shows what it had changed")
            }
            Self::Rewritten { kept } => {
                let kept = kept.display();
                write!(
                    f,
                    "state.yaml could not be edited in place and was rewritten without its comments; "
                )?;
                write!(f, "the previous version is kept in {kept}. Put back what you need: liza edit")
            }
            Self::Restored { revision } => {
                write!(f, "state.yaml was deleted, emptied or cut off; revision {revision} was restored")
            }
            Self::Adopted { kept, current } => {
                write!(
                    f,
                    "a state.yaml without a revision replaced revision {current} and is used from now on"
                )?;
                match kept {
                    Some(kept) => write!(f, "; revision {current} is kept in {}", kept.display()),
                    None => Ok(()),
                }
            }
            Self::ModifyUndone => f.write_str("a `lock modify` was killed; the state before it was restored"),
            Self::LogDelayed { reason } => {
                write!(f, "written, but its log entry waits for the next write: {reason}")
            }
        }
    }
}
