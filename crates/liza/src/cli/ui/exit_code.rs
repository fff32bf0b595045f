//! The exit codes, in one place. Nothing else in the program knows a number.

use liza_core::model::RefusalClass;

/// How the program ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    #[default]
    Success,
    /// Refused, invalid, or called wrongly.
    Refused,
    /// The lock could not be had.
    Locked,
    /// Git failed: a conflict, a red integration test.
    Git,
    /// The blackboard is broken, or has moved on since it was read.
    Inconsistent,
    /// A program that is needed is missing.
    Missing,
    /// To an agent: stop now.
    Stop,
    /// Of a session helper: as the agent program ended.
    Session(u8),
}

impl Exit {
    /// The number.
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
