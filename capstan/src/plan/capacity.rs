//! Capacity and quota of the clouds. Providers query them; this compares the answers with what the plan needs.

use std::collections::{BTreeMap, BTreeSet};

use capstan_controller::Client;
use capstan_object::Key;
use capstan_provider_kit::{
    Amount, CapacityAnswer, CapacityQuestion, Left, OtherLimit, PlannedMachine, Quota, Refusal, Size,
};
use capstan_rehearsal::{Load, MachineEventKind, MachineInfo, Preview};
use serde::Serialize;
use serde_json::Value;

use crate::plugins::Plugins;

/// Answers of the clouds.
pub struct CapacityReport {
    pub quotas: Vec<QuotaUse>,
    /// Why machines could not be created.
    pub refusals: Vec<Refusal>,
    pub warnings: Vec<String>,
    /// Sizes of machines whose spec does not have them.
    sizes: BTreeMap<Key, Size>,
    plugins: Plugins,
}

/// What the plan needs of the quota of an account or project.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaUse {
    #[serde(rename = "place")]
    pub scope: String,
    /// Peak of the plan minus current use.
    pub needs: Load,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Other limits that machines or clusters of the plan count for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherUse>,
    /// Why the quota is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// What the plan needs of a limit besides those of machines, CPUs and memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherUse {
    pub what: &'static str,
    pub needs: u64,
    pub left: Amount,
}

/// Titles of the providers that report quota.
pub fn reporting_providers(plugins: &Plugins) -> Vec<&'static str> {
    let asked = plugins.providers().filter(|provider| provider.capacity().is_some());
    asked.map(|provider| provider.title()).collect()
}

/// Queries the clouds in which the simulation creates machines.
pub async fn check(
    plugins: &Plugins,
    client: &Client,
    manifest: &[Value],
    course: &Preview,
) -> CapacityReport {
    let machines = machines(course);
    let question = CapacityQuestion { client, manifest, objects: &course.objects, machines: &machines };
    let mut report = CapacityReport::none(plugins.clone());
    for capacity in plugins.providers().filter_map(|provider| provider.capacity()) {
        let CapacityAnswer { quotas, sizes, refusals, warnings } = capacity.answer(question).await;
        report.sizes.extend(sizes);
        report.refusals.extend(refusals);
        report.warnings.extend(warnings);
        for quota in &quotas {
            let counts = |machine: &MachineInfo| quota.machines.contains(&key(machine));
            let (now, peak) = course.loads(counts, |machine| report.size(machine));
            let mut used = QuotaUse::of(quota, more(now, peak));
            used.others = quota.others.iter().map(|limit| OtherUse::of(limit, course)).collect();
            used.others.retain(|other| other.needs > 0);
            report.warnings.extend(used.exceeded(quota));
            report.quotas.push(used);
        }
    }
    report.refusals.dedup();
    report.warnings.dedup();
    report
}

fn key(machine: &MachineInfo) -> Key {
    Key::new(machine.namespace.as_str(), machine.name.as_str())
}

/// Machines that the plan creates, then existing ones, each once.
fn machines(course: &Preview) -> Vec<PlannedMachine> {
    let created =
        course.steps.iter().filter(|step| step.what == MachineEventKind::Created).map(|step| &step.machine);
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

impl CapacityReport {
    /// Without any query.
    pub fn none(plugins: Plugins) -> Self {
        Self {
            quotas: Vec::new(),
            refusals: Vec::new(),
            warnings: Vec::new(),
            sizes: BTreeMap::new(),
            plugins,
        }
    }

    /// Size of a machine, from its spec or its cloud.
    pub fn size(&self, machine: &MachineInfo) -> Option<Size> {
        let own = self.plugins.size(machine.infrastructure.as_deref()?);
        own.or_else(|| self.sizes.get(&key(machine)).copied())
    }

    pub fn reporting_providers(&self) -> Vec<&'static str> {
        reporting_providers(&self.plugins)
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

impl OtherUse {
    fn of(limit: &OtherLimit, course: &Preview) -> Self {
        let taken = |machine: &MachineInfo| limit.by_machine.get(&key(machine)).copied().unwrap_or_default();
        let (now, peak) = course.amounts(taken);
        let needs = peak.saturating_sub(now).saturating_add(limit.besides);
        Self { what: limit.what, needs, left: limit.left }
    }
}

impl QuotaUse {
    fn of(quota: &Quota, needs: Load) -> Self {
        let scope = quota.scope.clone();
        match &quota.left {
            Ok(left) => Self { scope, needs, left: Some(*left), others: Vec::new(), unknown: None },
            Err(why) => Self { scope, needs, left: None, others: Vec::new(), unknown: Some(why.clone()) },
        }
    }

    /// (needed, left, unit) of every limit that the cloud reports.
    fn amounts(&self) -> Vec<(u64, Amount, &'static str)> {
        let mut all = Vec::new();
        if let Some(left) = self.left {
            all.push((self.needs.machines, left.machines, "machines"));
            if self.needs.unsized_machines == 0 {
                all.push((self.needs.size.cpus, left.cpus, "CPUs"));
                all.push((self.needs.size.memory_mib, left.memory_mib, "MiB of memory"));
            }
        }
        let known = all.into_iter().filter_map(|(needs, left, what)| Some((needs, left?, what)));
        known.chain(self.others.iter().map(|other| (other.needs, other.left, other.what))).collect()
    }

    /// A warning for every limit that the plan exceeds.
    fn exceeded(&self, quota: &Quota) -> Vec<String> {
        let beyond = self.amounts().into_iter().filter_map(|(needs, left, what)| match left {
            Amount::Limited(left) if i64::try_from(needs).is_ok_and(|needs| needs > left.max(0)) => {
                Some(format!(
                    "{}: quota exceeded for {}: {needs} {what} needed, {} left: raise the limit or delete unused machines",
                    quota.exceeded,
                    self.scope,
                    left.max(0)
                ))
            }
            _ => None,
        });
        beyond.collect()
    }

    pub fn line(&self) -> String {
        if let Some(why) = &self.unknown {
            return format!("quota of {}: unknown: {why}", self.scope);
        }
        let part = |(needs, left, what): (u64, Amount, &str)| match left {
            Amount::Limited(left) => format!("{needs} of {left} free {what}"),
            Amount::Unlimited => format!("{needs} {what} (no limit)"),
        };
        let parts: Vec<String> = self.amounts().into_iter().map(part).collect();
        match parts.is_empty() {
            true => format!("quota of {}: not reported", self.scope),
            false => format!("quota of {}: {}", self.scope, parts.join(", ")),
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
        let scope = "project demo".to_owned();
        Quota { scope, machines: BTreeSet::new(), left: Ok(left), others: Vec::new(), exceeded }
    }

    fn needs(machines: u64, cpus: u64, memory_mib: u64) -> Load {
        Load { machines, size: Size { cpus, memory_mib }, unsized_machines: 0 }
    }

    #[test]
    fn needed_and_free_quota_are_shown_and_a_shortage_is_a_warning() {
        let left = quota(3, Some(Amount::Unlimited), Some(4096));
        let fits = QuotaUse::of(&left, needs(3, 6, 4096));
        assert_eq!(
            fits.line(),
            "quota of project demo: 3 of 3 free machines, 6 CPUs (no limit), 4096 of 4096 free MiB of memory"
        );
        assert_eq!(fits.exceeded(&left), [""; 0]);
        let beyond = QuotaUse::of(&left, needs(4, 6, 5000)).exceeded(&left);
        assert_eq!(beyond.len(), 2, "{beyond:?}");
        assert!(beyond[0].starts_with(&format!("{}: ", left.exceeded)), "{beyond:?}");
        assert!(beyond[0].contains("4 machines needed, 3 left"), "{beyond:?}");
        let lowered = quota(-2, None, None);
        let used_up = QuotaUse::of(&lowered, needs(1, 0, 0)).exceeded(&lowered);
        assert!(used_up[0].contains("1 machines needed, 0 left"), "{used_up:?}");
    }

    #[test]
    fn other_limits_count_at_the_peak_of_the_plan_and_besides_its_machines() {
        let machine = |name: &str| MachineInfo {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            ..MachineInfo::default()
        };
        let step = |what, name| capstan_rehearsal::MachineEvent {
            seconds: 0,
            what,
            machine: machine(name),
            why: String::new(),
        };
        let course = Preview {
            present: vec![machine("old")],
            steps: vec![step(MachineEventKind::Created, "new"), step(MachineEventKind::Deleted, "old")],
            ..Preview::default()
        };
        let taken = |name: &str| (Key::new("default", name), 2);
        let limit = OtherLimit {
            what: "volumes",
            left: Amount::Limited(2),
            by_machine: BTreeMap::from([taken("old"), taken("new")]),
            besides: 1,
        };
        let quota = quota(9, None, None);
        let mut used = QuotaUse::of(&quota, needs(1, 0, 0));
        used.others.push(OtherUse::of(&limit, &course));
        assert_eq!(used.line(), "quota of project demo: 1 of 9 free machines, 3 of 2 free volumes");
        assert!(used.exceeded(&quota)[0].contains("3 volumes needed, 2 left"), "{used:?}");
    }
}
