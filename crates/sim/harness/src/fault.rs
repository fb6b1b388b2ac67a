//! What goes wrong, and at which effect.

use std::fmt;
use std::time::Duration;

/// A fault at the effect with a number, counted from 0 over the whole run, restarts included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies right after the effect has happened, before it hears so.
    CrashAfter(usize),
    /// The process dies right before the effect happens.
    CrashBefore(usize),
    /// The effect happens; the answer is lost.
    LoseReply(usize),
    /// The effect does not happen; the answer is this HTTP status.
    Refuse(usize, u16),
    /// The effect happens only after a time.
    Delay(usize, Duration),
    /// All watches break when the effect has happened.
    CutWatches(usize),
}

/// What goes wrong when, as the effects of a run get their numbers.
pub trait Misfortune: Send + Sync {
    /// What strikes at the effect that is about to happen.
    fn strike(&self, effect: usize) -> Vec<Fault>;

    /// From here on the scenario is to be disturbed: what it does before only prepares it.
    fn exposed(&self) {}
}

impl Misfortune for Vec<Fault> {
    fn strike(&self, effect: usize) -> Vec<Fault> {
        self.iter().filter(|fault| fault.effect() == effect).copied().collect()
    }
}

impl Fault {
    /// The number of the effect it strikes at.
    pub fn effect(&self) -> usize {
        match self {
            Self::CrashAfter(effect)
            | Self::CrashBefore(effect)
            | Self::LoseReply(effect)
            | Self::Refuse(effect, _)
            | Self::Delay(effect, _)
            | Self::CutWatches(effect) => *effect,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CrashAfter(effect) => write!(f, "crash after effect {effect}"),
            Self::CrashBefore(effect) => write!(f, "crash before effect {effect}"),
            Self::LoseReply(effect) => write!(f, "answer of effect {effect} lost"),
            Self::Refuse(effect, code) => write!(f, "effect {effect} refused with {code}"),
            Self::Delay(effect, time) => write!(f, "effect {effect} delayed by {time:?}"),
            Self::CutWatches(effect) => write!(f, "watches cut after effect {effect}"),
        }
    }
}
