//! The effects that get a fault, and the faults.

use capstan_harness::Fault;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The process dies after the effect
    Crash,
    /// The effect happens, its response is lost
    Lost,
    /// The process dies before the effect
    CrashBefore,
    /// The effect is refused
    Refused,
    /// All watches break after the effect
    Cut,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Crash, Self::Lost, Self::CrashBefore, Self::Refused, Self::Cut];

    /// Name in tables.
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

    pub fn of(fault: &Fault) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.at(fault.effect()) == *fault)
    }
}

/// Distance in a sample between the effects of different kinds of faults. The same in every sample, so that a finer
/// sample contains a coarser one.
const APART: usize = 7;

/// The effects that get a fault.
#[derive(Debug, Clone)]
pub struct Plan {
    pub kinds: Vec<Kind>,
    /// One effect in this many.
    pub every: usize,
    /// Index of the first one.
    pub offset: usize,
    /// If not empty, only these effects.
    pub effects: Vec<usize>,
    /// Copies at the same time.
    pub jobs: usize,
}

impl Plan {
    /// The faults at an effect. In a sample every kind of fault hits other effects.
    pub fn faults(&self, effect: usize) -> Vec<Fault> {
        let chosen = |at: usize| match self.effects.as_slice() {
            [] => (effect + self.offset + at * APART).is_multiple_of(self.every),
            named => named.contains(&effect),
        };
        let kinds = self.kinds.iter().enumerate().filter(|(at, _)| chosen(*at));
        kinds.map(|(_, kind)| kind.at(effect)).collect()
    }

    /// Number of runs for a scenario whose effects with these numbers may get faults.
    pub fn runs(&self, exposed: &[usize]) -> usize {
        exposed.iter().map(|effect| self.faults(*effect).len()).sum()
    }
}
