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
    /// Exactly these effects, which may be none, instead of a sample.
    pub effects: Option<Vec<usize>>,
    /// Copies at the same time.
    pub jobs: usize,
}

impl Plan {
    /// The faults at an effect. In a sample every kind of fault hits other effects.
    pub fn faults(&self, effect: usize) -> Vec<Fault> {
        let chosen = |at: usize| match &self.effects {
            None => (effect + self.offset + at * APART).is_multiple_of(self.every),
            Some(named) => named.contains(&effect),
        };
        let kinds = self.kinds.iter().enumerate().filter(|(at, _)| chosen(*at));
        kinds.map(|(_, kind)| kind.at(effect)).collect()
    }

    /// Number of runs for a scenario whose effects with these numbers may get faults.
    pub fn runs(&self, exposed: &[usize]) -> usize {
        exposed.iter().map(|effect| self.faults(*effect).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(effects: Option<Vec<usize>>) -> Plan {
        Plan { kinds: vec![Kind::Crash, Kind::Lost], every: 4, offset: 1, effects, jobs: 1 }
    }

    #[test]
    fn a_sample_has_every_kind_of_fault_at_other_effects() {
        let faults: Vec<_> = (0..8).flat_map(|effect| plan(None).faults(effect)).collect();
        assert_eq!(
            faults,
            [Fault::LoseReply(0), Fault::CrashAfter(3), Fault::LoseReply(4), Fault::CrashAfter(7)]
        );
        assert_eq!(plan(None).runs(&[0, 1, 2, 3]), 2);
    }

    #[test]
    fn an_empty_choice_of_effects_is_no_sample() {
        let named = plan(Some(vec![2]));
        assert_eq!(named.faults(2), [Fault::CrashAfter(2), Fault::LoseReply(2)]);
        assert_eq!(named.faults(3), []);
        assert_eq!(plan(Some(Vec::new())).runs(&(0..64).collect::<Vec<_>>()), 0);
    }
}
