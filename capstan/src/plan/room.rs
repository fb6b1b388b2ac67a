//! Whether the clouds have what a plan takes: what they say to its orders, and how much is left of their limits. Providers
//! ask them; what that means for the plan is worked out here.

use std::collections::{BTreeMap, BTreeSet};

use capstan_controller::Client;
use capstan_object::Key;
use capstan_provider_kit::{Amount, CapacityAnswer, CapacityQuestion, Left, PlannedMachine, Quota, Size};
use capstan_rehearsal::{Course, Load, MachineOf, What};
use serde::Serialize;
use serde_json::Value;

use crate::plugins::Plugins;

/// What the clouds say.
pub struct Answers {
    /// What is left beside what is needed.
    pub rooms: Vec<Room>,
    /// Why orders would fail.
    pub warnings: Vec<String>,
    /// Sizes that only the clouds know.
    sizes: BTreeMap<Key, Size>,
    /// The providers that know sizes of their own machines.
    plugins: Plugins,
}

/// What one account or project of a cloud has left.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Room {
    /// Whose limits these are.
    pub place: String,
    /// What is needed beyond what is there, at most.
    pub needs: Load,
    /// What is left, as the cloud says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// What people call the providers whose clouds are asked.
pub fn asked(plugins: &Plugins) -> Vec<&'static str> {
    let asked = plugins.providers().filter(|provider| provider.capacity().is_some());
    asked.map(|provider| provider.title()).collect()
}

/// Asks the clouds that new machines of a course are ordered from.
pub async fn ask(plugins: &Plugins, client: &Client, manifest: &[Value], course: &Course) -> Answers {
    let machines = machines(course);
    let question = CapacityQuestion { client, manifest, objects: &course.objects, machines: &machines };
    let mut answers = Answers::none(plugins.clone());
    for capacity in plugins.providers().filter_map(|provider| provider.capacity()) {
        let CapacityAnswer { quotas, sizes, warnings } = capacity.answer(question).await;
        answers.sizes.extend(sizes);
        answers.warnings.extend(warnings);
        for quota in &quotas {
            let counts = |machine: &MachineOf| quota.machines.contains(&key(machine));
            let (now, peak) = course.loads(counts, |machine| answers.size(machine));
            let room = Room::of(quota, more(now, peak));
            answers.warnings.extend(room.exceeded(quota));
            answers.rooms.push(room);
        }
    }
    answers.warnings.dedup();
    answers
}

fn key(machine: &MachineOf) -> Key {
    Key::new(machine.namespace.as_str(), machine.name.as_str())
}

/// Machines that would be created, and then those that are there, each once.
fn machines(course: &Course) -> Vec<PlannedMachine> {
    let created = course.steps.iter().filter(|step| step.what == What::Created).map(|step| &step.machine);
    let all = created.map(|machine| (machine, true)).chain(course.present.iter().map(|it| (it, false)));
    let mut known = BTreeSet::new();
    let planned = all.filter_map(|(machine, new)| {
        Some(PlannedMachine {
            key: key(machine),
            cluster: machine.cluster.clone(),
            of: machine.of.clone(),
            version: machine.version.clone(),
            failure_domain: machine.failure_domain.clone(),
            new,
            infrastructure: machine.infrastructure.clone()?,
        })
    });
    planned.filter(|machine| known.insert(machine.key.clone())).collect()
}

impl Answers {
    /// Where nobody was asked.
    pub fn none(plugins: Plugins) -> Self {
        Self { rooms: Vec::new(), warnings: Vec::new(), sizes: BTreeMap::new(), plugins }
    }

    /// How large a machine is: by its own words, or its cloud's.
    pub fn size(&self, machine: &MachineOf) -> Option<Size> {
        let own = self.plugins.size(machine.infrastructure.as_deref()?);
        own.or_else(|| self.sizes.get(&key(machine)).copied())
    }

    /// What people call the providers whose clouds are asked.
    pub fn asked(&self) -> Vec<&'static str> {
        asked(&self.plugins)
    }
}

fn more(now: Load, peak: Load) -> Load {
    Load {
        machines: peak.machines.saturating_sub(now.machines),
        size: Size {
            cpus: peak.size.cpus.saturating_sub(now.size.cpus),
            memory_mib: peak.size.memory_mib.saturating_sub(now.size.memory_mib),
        },
        unsized_machines: peak.unsized_machines,
    }
}

impl Room {
    fn of(quota: &Quota, needs: Load) -> Self {
        let place = quota.scope.clone();
        match &quota.left {
            Ok(left) => Self { place, needs, left: Some(*left), unknown: None },
            Err(why) => Self { place, needs, left: None, unknown: Some(why.clone()) },
        }
    }

    /// What is needed, what is left of it, and what it is called.
    fn amounts(&self) -> Vec<(u64, Amount, &'static str)> {
        let Some(left) = self.left else { return Vec::new() };
        let mut all = vec![(self.needs.machines, left.machines, "machines")];
        if self.needs.unsized_machines == 0 {
            all.push((self.needs.size.cpus, left.cpus, "CPUs"));
            all.push((self.needs.size.memory_mib, left.memory_mib, "MiB of memory"));
        }
        all.into_iter().filter_map(|(needs, left, what)| Some((needs, left?, what))).collect()
    }

    /// Limits that the plan runs into.
    fn exceeded(&self, quota: &Quota) -> Vec<String> {
        let beyond = self.amounts().into_iter().filter_map(|(needs, left, what)| match left {
            Amount::Limited(left) if i64::try_from(needs).is_ok_and(|needs| needs > left.max(0)) => {
                Some(format!(
                    "{}: {} has room for {} more {what}, and {needs} more are needed at a time: raise the limit or \
                     delete what is not used",
                    quota.exceeded,
                    self.place,
                    left.max(0)
                ))
            }
            _ => None,
        });
        beyond.collect()
    }

    /// A line for people.
    pub fn line(&self) -> String {
        if let Some(why) = &self.unknown {
            return format!("what {} has left is not known: {why}", self.place);
        }
        let part = |(needs, left, what): (u64, Amount, &str)| match left {
            Amount::Limited(left) => format!("{needs} of {left} {what}"),
            Amount::Unlimited => format!("{needs} {what} (no limit)"),
        };
        let parts: Vec<String> = self.amounts().into_iter().map(part).collect();
        match parts.is_empty() {
            true => format!("{} does not say what it has left", self.place),
            false => format!("of what {} has left: {}", self.place, parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(machines: i64, cpus: Option<Amount>, memory_mib: Option<i64>) -> Quota {
        let left = Left {
            machines: Some(Amount::Limited(machines)),
            cpus,
            memory_mib: memory_mib.map(Amount::Limited),
        };
        let exceeded = capstan_controller::catalogue::OBSERVE;
        Quota { scope: "project demo".to_owned(), machines: BTreeSet::new(), left: Ok(left), exceeded }
    }

    fn needs(machines: u64, cpus: u64, memory_mib: u64) -> Load {
        Load { machines, size: Size { cpus, memory_mib }, unsized_machines: 0 }
    }

    #[test]
    fn what_is_needed_is_told_beside_what_is_left_and_warned_of_where_it_is_more() {
        let left = quota(3, Some(Amount::Unlimited), Some(4096));
        let fits = Room::of(&left, needs(3, 6, 4096));
        assert_eq!(
            fits.line(),
            "of what project demo has left: 3 of 3 machines, 6 CPUs (no limit), 4096 of 4096 MiB of memory"
        );
        assert_eq!(fits.exceeded(&left), [""; 0]);
        let beyond = Room::of(&left, needs(4, 6, 5000)).exceeded(&left);
        assert_eq!(beyond.len(), 2, "{beyond:?}");
        assert!(beyond[0].starts_with(&format!("{}: ", left.exceeded)), "{beyond:?}");
        assert!(beyond[0].contains("room for 3 more machines, and 4 more are needed"), "{beyond:?}");
        let lowered = quota(-2, None, None);
        let used_up = Room::of(&lowered, needs(1, 0, 0)).exceeded(&lowered);
        assert!(used_up[0].contains("room for 0 more machines"), "{used_up:?}");
    }
}
