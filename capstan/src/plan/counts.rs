//! Machines of a plan, counted by owner.

use std::collections::BTreeMap;

use capstan_rehearsal::{MachineEvent, MachineEventKind};
use serde::Serialize;

/// Machines of one owner. As many created as deleted count as replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineCount {
    /// `Kind/name`.
    pub of: String,
    pub created: usize,
    pub replaced: usize,
    pub deleted: usize,
}

pub fn machine_counts<'a>(steps: impl Iterator<Item = &'a MachineEvent>) -> Vec<MachineCount> {
    let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for step in steps {
        let (created, deleted) = all.entry(&step.machine.of).or_default();
        match step.what {
            MachineEventKind::Created => *created += 1,
            MachineEventKind::Deleted => *deleted += 1,
            MachineEventKind::Ready | MachineEventKind::Deleting => {}
        }
    }
    let sum = |(of, (created, deleted)): (&str, (usize, usize))| {
        let replaced = created.min(deleted);
        MachineCount { of: of.to_owned(), created: created - replaced, replaced, deleted: deleted - replaced }
    };
    all.into_iter().map(sum).filter(|count| !count.is_empty()).collect()
}

impl MachineCount {
    pub fn is_empty(&self) -> bool {
        self.created + self.replaced + self.deleted == 0
    }

    pub fn line(&self) -> String {
        format!("{}: {}", self.of, self.words(""))
    }

    /// Such as `2 created, 1 deleted`; `unit` is between number and verb.
    pub fn words(&self, unit: &str) -> String {
        let counts = [(self.created, "created"), (self.replaced, "replaced"), (self.deleted, "deleted")];
        let parts = counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, verb)| match (unit, n) {
            ("", _) => format!("{n} {verb}"),
            (_, 1) => format!("1 {unit} {verb}"),
            _ => format!("{n} {unit}s {verb}"),
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use capstan_rehearsal::MachineInfo;

    use super::*;

    #[test]
    fn created_and_deleted_machines_of_an_owner_count_as_replaced() {
        let of = "KubeadmControlPlane/c";
        let step = |what| {
            let machine = MachineInfo { of: of.to_owned(), ..MachineInfo::default() };
            MachineEvent { seconds: 0, what, machine, why: String::new() }
        };
        let steps = [
            step(MachineEventKind::Created),
            step(MachineEventKind::Created),
            step(MachineEventKind::Deleted),
            step(MachineEventKind::Deleted),
            step(MachineEventKind::Deleted),
        ];
        let count = MachineCount { of: of.to_owned(), created: 0, replaced: 2, deleted: 1 };
        assert_eq!(machine_counts(steps.iter()), std::slice::from_ref(&count));
        assert_eq!(count.line(), "KubeadmControlPlane/c: 2 replaced, 1 deleted");
        assert_eq!(count.words("machine"), "2 machines replaced, 1 machine deleted");
    }
}
