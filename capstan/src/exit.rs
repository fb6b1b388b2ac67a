//! How a command ended, as scripts see it.

use std::process::ExitCode;

/// The end of a command. An error is [`Exit::Failed`], wrong arguments too: 2 always means that something differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// Something failed; stderr says what.
    Failed = 1,
    /// What is there differs from what was asked about.
    Differs = 2,
    /// It was not there in time.
    TimedOut = 3,
    /// It cannot get there until somebody does something about it.
    Blocked = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
