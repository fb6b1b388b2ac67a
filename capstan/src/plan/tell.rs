//! The answer, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use capstan_rehearsal::{Course, Load, Step, What};
use serde::Serialize;

use super::changes::{Becomes, Change};
use super::room::{Answers, Room};
use crate::output::{How, Show};

/// What the model leaves out, so that nobody takes it for foretold.
const NOT_MODELLED: [&str; 4] = [
    "how long this cloud takes: machines boot, and join, in the times of the simulator",
    "your workloads: draining a node takes no time",
    "what one cloud does differently from another: the capacity of its hosts, its networks and failures",
    "names of new machines",
];

/// What a manifest would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// What of its objects changes.
    changes: Vec<Change>,
    /// Machines that come and go, in order.
    steps: Vec<Step>,
    /// The same, counted.
    summary: Vec<Sum>,
    /// How long it takes, by the model.
    model_seconds: u64,
    /// What machines occupy now.
    now: Load,
    /// The most that they occupy at one time.
    peak: Load,
    /// What clouds have left.
    room: Vec<Room>,
    /// Providers whose clouds say what they have left.
    #[serde(skip)]
    asked: Vec<&'static str>,
    /// What was under way already.
    under_way: Vec<Step>,
    /// What may stand in the way.
    warnings: Vec<String>,
    /// What the model leaves out.
    not_modelled: [&'static str; 4],
}

/// Machines of one owner.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sum {
    of: String,
    created: usize,
    replaced: usize,
    deleted: usize,
}

impl Plan {
    /// Of what changes, what happened on the copy, and what to mind.
    pub fn new(changes: Vec<Change>, course: Course, answers: Answers, warnings: Vec<String>) -> Self {
        let (now, peak) = course.loads(|_| true, |machine| answers.size(machine));
        let asked = answers.asked();
        let warnings = answers.warnings.into_iter().chain(warnings).collect();
        Self {
            changes,
            summary: sums(&course.steps),
            model_seconds: course.steps.last().map_or(0, |step| step.seconds),
            steps: course.steps,
            now,
            peak,
            room: answers.rooms,
            asked,
            under_way: course.before,
            warnings,
            not_modelled: NOT_MODELLED,
        }
    }

    /// Nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.steps.is_empty()
    }
}

/// Who loses as many machines as it gets has them replaced.
fn sums(steps: &[Step]) -> Vec<Sum> {
    let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for step in steps {
        let (created, deleted) = all.entry(&step.machine.of).or_default();
        match step.what {
            What::Created => *created += 1,
            What::Deleted => *deleted += 1,
            What::Ready | What::Deleting => {}
        }
    }
    let sum = |(of, (created, deleted)): (&str, (usize, usize))| {
        let replaced = created.min(deleted);
        Sum { of: of.to_owned(), created: created - replaced, replaced, deleted: deleted - replaced }
    };
    all.into_iter().map(sum).filter(|sum| sum.created + sum.replaced + sum.deleted > 0).collect()
}

impl Show for Plan {
    fn text(&self, how: &How) -> String {
        if self.is_empty() {
            let mut text = "nothing changes\n".to_owned();
            section(&mut text, "already under way", &lines(&self.under_way));
            section(&mut text, "warnings", &self.warnings);
            return text;
        }
        let mut text = String::new();
        let changes: Vec<String> = self.changes.iter().map(changed).collect();
        section(&mut text, "changes", &changes);
        section(&mut text, "already under way", &lines(&self.under_way));
        let heading = format!("what happens, {} by the model", about(self.model_seconds));
        section(&mut text, &heading, &lines(&self.steps));
        let mut sums: Vec<String> = self.summary.iter().map(Sum::line).collect();
        if sums.is_empty() {
            sums.push("no machine comes or goes".to_owned());
        } else {
            sums.push(self.capacity());
            sums.extend(self.room.iter().map(Room::line));
        }
        section(&mut text, "in sum", &sums);
        section(&mut text, "warnings", &self.warnings);
        if how.wide {
            section(&mut text, "not modelled", &self.not_modelled.map(str::to_owned));
        } else {
            text.push_str("not modelled: this cloud's pace, your workloads (-o wide says more)\n");
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
        let mut text = format!("at most {} {machines} at a time, {more} more than now", self.peak.machines);
        if self.peak.unsized_machines == 0 {
            let _ = write!(text, " ({} CPUs, {} MiB)", self.peak.size.cpus, self.peak.size.memory_mib);
        }
        if self.room.is_empty() && more > 0 {
            let asked = match self.asked.as_slice() {
                [] => "no cloud is asked".to_owned(),
                [only] => format!("only {only} is asked"),
                several => format!("only {} are asked", several.join(" and ")),
            };
            let _ = write!(text, "; what is left is not known: {asked}");
        }
        text
    }
}

impl Sum {
    fn line(&self) -> String {
        let counts = [(self.created, "created"), (self.replaced, "replaced"), (self.deleted, "deleted")];
        let said: Vec<String> =
            counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        format!("{}: {}", self.of, said.join(", "))
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
    match change.becomes {
        Becomes::Created => format!("{} is created", change.object),
        Becomes::Changed => format!("{}: {}", change.object, change.fields.join(", ")),
        Becomes::Deleted => format!("{} is deleted", change.object),
    }
}

/// A line for each step. Machines that are not there yet are numbered: what they will be called is not known.
fn lines(steps: &[Step]) -> Vec<String> {
    let mut new: BTreeMap<&str, usize> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.what == What::Created) {
        let count = counts.entry(&step.machine.of).or_default();
        *count += 1;
        new.insert(&step.machine.name, *count);
    }
    let line = |step: &Step| {
        let word = match step.what {
            What::Created => "create",
            What::Ready => "ready",
            What::Deleting => "drain",
            What::Deleted => "gone",
        };
        format!("{:>6}  {word:7} {}", clock(step.seconds), word_for(step, &new))
    };
    steps.iter().map(line).collect()
}

fn word_for(step: &Step, new: &BTreeMap<&str, usize>) -> String {
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
    use capstan_rehearsal::MachineOf;

    use super::*;
    use crate::plugins::Plugins;

    fn step(seconds: u64, what: What, name: &str, of: &str, existed: bool) -> Step {
        let machine = MachineOf {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            cluster: "c".to_owned(),
            of: of.to_owned(),
            version: "v1.36.0".to_owned(),
            failure_domain: String::new(),
            existed,
            infrastructure: None,
        };
        Step { seconds, what, machine }
    }

    #[test]
    fn a_plan_reads_as_an_ordered_list_with_its_sum() {
        let workers = "MachineDeployment/w";
        let steps = vec![
            step(0, What::Created, "w-new", workers, false),
            step(62, What::Ready, "w-new", workers, false),
            step(63, What::Deleting, "w-old", workers, true),
            step(130, What::Deleted, "w-old", workers, true),
        ];
        let present = ["w-old", "other"].map(|name| step(0, What::Ready, name, workers, true).machine);
        let course = Course { steps, present: present.to_vec(), rested: true, ..Course::default() };
        let change = Change {
            object: workers.to_owned(),
            becomes: Becomes::Changed,
            fields: vec!["spec.x: 1 → 2".to_owned()],
        };
        let plan = Plan::new(
            vec![change],
            course,
            Answers::none(Plugins::new(Vec::new())),
            vec!["mind the gap".to_owned()],
        );
        let how = How { wide: false, paint: capstan_view::Paint::Plain, now: jiff::Timestamp::UNIX_EPOCH };
        assert_eq!(
            plan.text(&how),
            "changes
  MachineDeployment/w: spec.x: 1 → 2
what happens, about 3 min by the model
    0:00  create  new machine 1 of MachineDeployment/w, v1.36.0
    1:02  ready   new machine 1 of MachineDeployment/w, v1.36.0
    1:03  drain   w-old of MachineDeployment/w, v1.36.0
    2:10  gone    w-old of MachineDeployment/w, v1.36.0
in sum
  MachineDeployment/w: 1 replaced
  at most 3 machines at a time, 1 more than now; what is left is not known: no cloud is asked
warnings
  mind the gap
not modelled: this cloud's pace, your workloads (-o wide says more)
"
        );
        assert!(!plan.is_empty());
        let nothing =
            Plan::new(Vec::new(), Course::default(), Answers::none(Plugins::new(Vec::new())), Vec::new());
        assert!(nothing.is_empty());
        assert_eq!(nothing.text(&how), "nothing changes\n");
    }

    #[test]
    fn an_owner_that_gets_and_loses_machines_has_them_replaced() {
        let of = "KubeadmControlPlane/c";
        let created = |name| step(0, What::Created, name, of, false);
        let deleted = |name| step(9, What::Deleted, name, of, true);
        let steps = [created("a"), created("b"), deleted("x"), deleted("y"), deleted("z")];
        let sum = Sum { of: of.to_owned(), created: 0, replaced: 2, deleted: 1 };
        assert_eq!(sums(&steps), [sum]);
    }
}
