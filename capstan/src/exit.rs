//! Exit codes.

use std::process::ExitCode;

/// Exit code of a command. Wrong arguments are [`Exit::Failed`], so that 2 always means a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// A comparison found differences.
    Differs = 2,
    /// A wait ran out of time.
    TimedOut = 3,
    /// A wait ended early because a user or operator has to act first.
    Blocked = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
