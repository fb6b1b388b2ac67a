//! Which effects are disturbed, and how.

use capstan_harness::Fault;

/// A kind of misfortune.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The process dies after the effect
    Crash,
    /// The effect happens, its answer is lost
    Lost,
    /// The process dies before the effect
    CrashBefore,
    /// The effect is refused
    Refused,
    /// All watches break after the effect
    Cut,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Crash, Self::Lost, Self::CrashBefore, Self::Refused, Self::Cut];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash after",
            Self::Lost => "answer lost",
            Self::CrashBefore => "crash before",
            Self::Refused => "refused",
            Self::Cut => "watches cut",
        }
    }

    /// The fault at an effect.
    pub fn at(self, effect: usize) -> Fault {
        match self {
            Self::Crash => Fault::CrashAfter(effect),
            Self::Lost => Fault::LoseReply(effect),
            Self::CrashBefore => Fault::CrashBefore(effect),
            Self::Refused => Fault::Refuse(effect, 503),
            Self::Cut => Fault::CutWatches(effect),
        }
    }

    /// The kind of a fault.
    pub fn of(fault: &Fault) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.at(fault.effect()) == *fault)
    }
}

/// How far apart the effects are at which kinds of misfortune strike in a sample: the same in every sample, so that a
/// finer one contains a coarser one.
const APART: usize = 7;

/// The effects that are disturbed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// With what.
    pub kinds: Vec<Kind>,
    /// One effect in so many.
    pub every: usize,
    /// Which one of them.
    pub offset: usize,
    /// Only these effects, if any are named.
    pub effects: Vec<usize>,
    /// Copies at the same time.
    pub jobs: usize,
}

impl Plan {
    /// What is done to an effect. In a sample every kind of misfortune strikes at other effects.
    pub fn faults(&self, effect: usize) -> Vec<Fault> {
        let chosen = |at: usize| match self.effects.as_slice() {
            [] => (effect + self.offset + at * APART).is_multiple_of(self.every),
            named => named.contains(&effect),
        };
        let kinds = self.kinds.iter().enumerate().filter(|(at, _)| chosen(*at));
        kinds.map(|(_, kind)| kind.at(effect)).collect()
    }

    /// How many runs a story takes that exposes these effects.
    pub fn runs(&self, exposed: std::ops::Range<usize>) -> usize {
        exposed.map(|effect| self.faults(effect).len()).sum()
    }
}
