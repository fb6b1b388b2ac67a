//! The plan as text and as data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use capstan_object::Key;
use capstan_provider_kit::Refusal;
use capstan_rehearsal::{Load, MachineEvent, MachineEventKind, Preview};
use serde::Serialize;

use super::capacity::{CapacityReport, QuotaUse};
use super::changes::{Change, ChangeKind};
use super::counts::{MachineCount, machine_counts};
use super::topologies::{self, TopologyPlan};
use super::warnings::deleted_clusters;
use crate::output::{Show, TextOptions};

/// What the simulation does not model.
const NOT_MODELLED: [&str; 4] = [
    "timing of this cloud: machines boot and join with the simulator's timings",
    "your workloads: draining a node takes no time",
    "details of this cloud: host capacity, networks, failures",
    "names of new machines",
];

/// Effects of a change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    changes: Vec<Change>,
    /// Clusters of a class that the change concerns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    topologies: Vec<TopologyPlan>,
    /// Created and deleted machines, in order.
    steps: Vec<MachineEvent>,
    summary: Vec<MachineCount>,
    /// Duration in simulated time.
    model_seconds: u64,
    now: Load,
    peak: Load,
    #[serde(rename = "room")]
    quotas: Vec<QuotaUse>,
    /// Titles of the providers that report quota.
    #[serde(skip)]
    reporting_providers: Vec<&'static str>,
    /// Clusters of machines of the plan that do not exist at its end.
    #[serde(skip)]
    deleted_clusters: BTreeSet<Key>,
    /// Steps that happen without the change.
    under_way: Vec<MachineEvent>,
    /// Commands to clouds that change something. Known for clusters that are resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<String>,
    /// Those of `warnings` that stop a command.
    #[serde(skip)]
    refusals: Vec<Refusal>,
    warnings: Vec<String>,
    not_modelled: [&'static str; 4],
}

impl Plan {
    pub fn new(
        changes: Vec<Change>,
        course: Preview,
        capacity: CapacityReport,
        warnings: Vec<String>,
    ) -> Self {
        let (now, peak) = course.loads(|_| true, |machine| capacity.size(machine));
        let reporting_providers = capacity.reporting_providers();
        let deleted_clusters = deleted_clusters(&course);
        let refused = capacity.refusals.iter().map(|refusal| refusal.why.clone());
        let warnings = refused.chain(capacity.warnings).chain(warnings).collect();
        Self {
            changes,
            topologies: Vec::new(),
            summary: machine_counts(course.steps.iter()),
            model_seconds: course.steps.last().map_or(0, |step| step.seconds),
            steps: course.steps,
            now,
            peak,
            quotas: capacity.quotas,
            reporting_providers,
            deleted_clusters,
            under_way: course.before,
            calls: Vec::new(),
            refusals: capacity.refusals,
            warnings,
            not_modelled: NOT_MODELLED,
        }
    }

    /// With clusters of a class.
    #[must_use]
    pub fn with_topologies(self, topologies: Vec<TopologyPlan>) -> Self {
        Self { topologies, ..self }
    }

    /// With calls that providers would make.
    #[must_use]
    pub fn calling(self, calls: Vec<String>) -> Self {
        Self { calls, ..self }
    }

    /// Why orders of a cluster would fail.
    pub fn refused(&self, cluster: &Key) -> Vec<&str> {
        let mine = self.refusals.iter().filter(|refusal| refusal.cluster == *cluster);
        mine.map(|refusal| refusal.why.as_str()).collect()
    }

    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.steps.is_empty() && self.calls.is_empty()
    }
}

impl Plan {
    /// Until the last step, in simulated time.
    pub fn duration(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.model_seconds)
    }
}

impl Show for Plan {
    fn text(&self, options: &TextOptions) -> String {
        if self.is_empty() {
            let mut text = "no changes\n".to_owned();
            section(&mut text, "already in progress", &lines(&self.under_way, &self.deleted_clusters));
            section(&mut text, "warnings", &self.warnings);
            return text;
        }
        let mut text = String::new();
        let changes: Vec<String> = self.changes.iter().map(changed).collect();
        section(&mut text, "changes", &changes);
        section(&mut text, "topologies", &topologies::lines(&self.topologies));
        section(&mut text, "calls to the cloud", &self.calls);
        section(&mut text, "already in progress", &lines(&self.under_way, &self.deleted_clusters));
        let drains = self.steps.iter().any(|step| is_drained(step, &self.deleted_clusters));
        let plus = if drains { " plus the time of drains" } else { "" };
        let heading = format!("steps ({}{plus}, simulated)", about(self.model_seconds));
        section(&mut text, &heading, &lines(&self.steps, &self.deleted_clusters));
        let mut sums: Vec<String> = self.summary.iter().map(MachineCount::line).collect();
        if sums.is_empty() {
            sums.push("no machine is created or deleted".to_owned());
        } else {
            sums.push(self.capacity());
            sums.extend(self.quotas.iter().map(QuotaUse::line));
        }
        section(&mut text, "summary", &sums);
        section(&mut text, "warnings", &self.warnings);
        if options.wide {
            section(&mut text, "not modelled", &self.not_modelled.map(str::to_owned));
        } else {
            text.push_str("not modelled: timing of this cloud, your workloads (-o wide for all)\n");
        }
        text
    }

    fn names(&self) -> Vec<String> {
        self.changes.iter().map(|change| change.object.clone()).collect()
    }
}

impl Plan {
    fn capacity(&self) -> String {
        let more = self.peak.machines.saturating_sub(self.now.machines);
        let machines = if self.peak.machines == 1 { "machine" } else { "machines" };
        let mut text = format!("peak: {} {machines}, {more} more than now", self.peak.machines);
        if self.peak.unsized_machines == 0 {
            let _ = write!(text, " ({} CPUs, {} MiB)", self.peak.size.cpus, self.peak.size.memory_mib);
        }
        if self.quotas.is_empty() && more > 0 {
            let reported = match self.reporting_providers.as_slice() {
                [] => "no provider reports it".to_owned(),
                [only] => format!("only {only} reports it"),
                several => format!("only {} report it", several.join(" and ")),
            };
            let _ = write!(text, "; quota unknown: {reported}");
        }
        text
    }
}

fn section(text: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "{heading}");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

fn changed(change: &Change) -> String {
    match change.kind {
        ChangeKind::Created => format!("{} is created", change.object),
        ChangeKind::Changed => format!("{}: {}", change.object, change.fields.join(", ")),
        ChangeKind::Deleted => format!("{} is deleted", change.object),
    }
}

/// A line for each step. New machines are numbered, since their names are not known yet.
fn lines(steps: &[MachineEvent], deleted: &BTreeSet<Key>) -> Vec<String> {
    let mut new: BTreeMap<&str, usize> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.what == MachineEventKind::Created) {
        let count = counts.entry(&step.machine.of).or_default();
        *count += 1;
        new.insert(&step.machine.name, *count);
    }
    let line = |step: &MachineEvent| {
        let verb = match step.what {
            MachineEventKind::Created => "create",
            MachineEventKind::Ready => "ready",
            MachineEventKind::Deleting if is_drained(step, deleted) => "drain",
            MachineEventKind::Deleting => "delete",
            MachineEventKind::Deleted => "deleted",
        };
        let why = match step.why.as_str() {
            "" => String::new(),
            why => format!(": not up to date: {}", capstan_view::one_line(why)),
        };
        format!("{:>6}  {verb:7} {}{why}", clock(step.seconds), machine_label(step, &new))
    };
    steps.iter().map(line).collect()
}

/// Whether a step is the start of a drain. Machines of a cluster that is deleted as a whole are not drained.
fn is_drained(step: &MachineEvent, deleted: &BTreeSet<Key>) -> bool {
    let cluster = Key::new(step.machine.namespace.as_str(), step.machine.cluster.as_str());
    step.what == MachineEventKind::Deleting && !deleted.contains(&cluster)
}

fn machine_label(step: &MachineEvent, new: &BTreeMap<&str, usize>) -> String {
    let machine = &step.machine;
    let version = if machine.version.is_empty() { String::new() } else { format!(", {}", machine.version) };
    match new.get(machine.name.as_str()).filter(|_| !machine.existed) {
        Some(number) => format!("new machine {number} of {}{version}", machine.of),
        None => format!("{} of {}{version}", machine.name, machine.of),
    }
}

fn clock(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn about(seconds: u64) -> String {
    match seconds {
        0..90 => format!("about {seconds} s"),
        _ => format!("about {} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use capstan_rehearsal::MachineInfo;

    use super::*;
    use crate::plugins::Plugins;

    fn step(seconds: u64, what: MachineEventKind, name: &str, of: &str, existed: bool) -> MachineEvent {
        let machine = MachineInfo {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            cluster: "c".to_owned(),
            of: of.to_owned(),
            version: "v1.36.0".to_owned(),
            existed,
            ..MachineInfo::default()
        };
        MachineEvent { seconds, what, machine, why: String::new() }
    }

    #[test]
    fn a_plan_lists_steps_in_order_with_a_summary() {
        let workers = "MachineDeployment/w";
        let steps = vec![
            step(0, MachineEventKind::Created, "w-new", workers, false),
            step(62, MachineEventKind::Ready, "w-new", workers, false),
            step(63, MachineEventKind::Deleting, "w-old", workers, true),
            step(130, MachineEventKind::Deleted, "w-old", workers, true),
        ];
        let present =
            ["w-old", "other"].map(|name| step(0, MachineEventKind::Ready, name, workers, true).machine);
        let cluster = serde_json::json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "default"}});
        let course = Preview {
            steps,
            present: present.to_vec(),
            idle: true,
            objects: vec![cluster],
            ..Preview::default()
        };
        let change = Change {
            object: workers.to_owned(),
            kind: ChangeKind::Changed,
            fields: vec!["spec.x: 1 → 2".to_owned()],
        };
        let plan = Plan::new(
            vec![change],
            course,
            CapacityReport::none(Plugins::new(Vec::new())),
            vec!["a warning".to_owned()],
        );
        let options =
            TextOptions { wide: false, paint: capstan_view::Paint::Plain, now: jiff::Timestamp::UNIX_EPOCH };
        assert_eq!(
            plan.text(&options),
            "changes
  MachineDeployment/w: spec.x: 1 → 2
steps (about 3 min plus the time of drains, simulated)
    0:00  create  new machine 1 of MachineDeployment/w, v1.36.0
    1:02  ready   new machine 1 of MachineDeployment/w, v1.36.0
    1:03  drain   w-old of MachineDeployment/w, v1.36.0
    2:10  deleted w-old of MachineDeployment/w, v1.36.0
summary
  MachineDeployment/w: 1 replaced
  peak: 3 machines, 1 more than now; quota unknown: no provider reports it
warnings
  a warning
not modelled: timing of this cloud, your workloads (-o wide for all)
"
        );
        assert!(!plan.is_empty());
        let nothing = Plan::new(
            Vec::new(),
            Preview::default(),
            CapacityReport::none(Plugins::new(Vec::new())),
            Vec::new(),
        );
        assert!(nothing.is_empty());
        assert_eq!(nothing.text(&options), "no changes\n");
    }

    #[test]
    fn machines_of_a_deleted_cluster_are_not_drained() {
        let of = "MachineDeployment/w";
        let steps = vec![
            step(0, MachineEventKind::Deleting, "w-old", of, true),
            step(9, MachineEventKind::Deleted, "w-old", of, true),
        ];
        let course = Preview { steps, idle: true, ..Preview::default() };
        let capacity = CapacityReport::none(Plugins::new(Vec::new()));
        let text = Plan::new(Vec::new(), course, capacity, Vec::new()).text(&TextOptions::plain());
        assert!(text.starts_with("steps (about 9 s, simulated)\n    0:00  delete  w-old of "), "{text}");
    }
}
