//! Faults, and the effects at which they are injected.

use std::fmt;
use std::time::Duration;

/// A fault at the effect with this number, counted from 0 over the whole run, restarts included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies after the effect, before it gets the response.
    CrashAfter(usize),
    /// The process dies before the effect.
    CrashBefore(usize),
    /// The effect happens; its response is lost.
    LoseReply(usize),
    /// The effect fails with this HTTP status.
    Refuse(usize, u16),
    /// The effect is delayed.
    Delay(usize, Duration),
    /// All watches break after the effect.
    CutWatches(usize),
}

/// Chooses the faults of a run while its effects get their numbers.
pub trait FaultPlan: Send + Sync {
    /// Faults at the effect that is about to happen.
    fn faults_at(&self, effect: usize) -> Vec<Fault>;

    /// The scenario has finished its preparation: faults are injected from here on.
    fn enabled(&self) {}
}

impl FaultPlan for Vec<Fault> {
    fn faults_at(&self, effect: usize) -> Vec<Fault> {
        self.iter().filter(|fault| fault.effect() == effect).copied().collect()
    }
}

impl Fault {
    /// Number of the effect.
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
            Self::LoseReply(effect) => write!(f, "response to effect {effect} lost"),
            Self::Refuse(effect, code) => write!(f, "effect {effect} refused with {code}"),
            Self::Delay(effect, time) => write!(f, "effect {effect} delayed by {time:?}"),
            Self::CutWatches(effect) => write!(f, "watches cut after effect {effect}"),
        }
    }
}
