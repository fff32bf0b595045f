//! The exit codes, in one place. Nothing else in the program knows a number.

use liza_core::model::RefusalClass;

/// The way in which the program ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    #[default]
    Success,
    /// Refused, invalid, or a usage error.
    Refused,
    /// The lock was not acquired.
    Locked,
    /// Git failed: a conflict, a red integration test.
    Git,
    /// The blackboard is broken, or has changed since it was read.
    Inconsistent,
    /// A required program is missing.
    Missing,
    /// To an agent: stop now.
    Stop,
    /// The exit code of an agent program, or of a command that a supervisor executed.
    Session(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Refused => 1,
            Exit::Locked => 2,
            Exit::Git => 3,
            Exit::Inconsistent => 4,
            Exit::Missing => 5,
            Exit::Stop => 42,
            Exit::Session(code) => code,
        }
    }
}

impl From<RefusalClass> for Exit {
    fn from(class: RefusalClass) -> Self {
        match class {
            RefusalClass::Refused => Exit::Refused,
            RefusalClass::Inconsistent => Exit::Inconsistent,
            RefusalClass::Stop => Exit::Stop,
        }
    }
}
