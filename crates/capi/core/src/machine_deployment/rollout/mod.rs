//! The rollout planner: how many machines each MachineSet of a deployment should have next.
//!
//! ```text
//! state of the sets ───▶ acknowledge moved machines
//!                      ──▶ scale the current set up, as surge allows
//!                      ──▶ scale old sets down, as availability allows
//!                      ──▶ prefer in-place updates over surge
//!                      ──▶ break a deadlock of unavailable old machines ──▶ plan
//! ```
//!
//! One pure step. It makes no assumption about which machines a MachineSet deletes first, and earlier requests may
//! still be in progress. The resulting order of creations and deletions is upstream's; `cargo xtask planner-goldens`
//! replays its recorded sequences.

mod budget;
mod in_place;
mod on_delete;
mod rolling_update;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use capstan_object::{IntOrString, Time};

pub use budget::{max_surge, max_unavailable};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// Machines are created and deleted within bounds.
    RollingUpdate {
        /// How many machines may exist beyond the replicas.
        max_surge: IntOrString,
        /// How many replicas may be unavailable.
        max_unavailable: IntOrString,
    },
    /// Old machines are replaced when a user deletes them.
    OnDelete,
}

/// The planner's input for one MachineSet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetState {
    pub name: String,
    /// When it was created; `None` sorts first.
    pub created: Option<Time>,
    pub wanted: i32,
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.availableReplicas`.
    pub available: i32,
    /// `status.upToDateReplicas`.
    pub up_to_date: i32,
    /// An old set whose machines may be updated in place and moved to the current set.
    pub in_place: bool,
    /// Machines whose move to this set was acknowledged in an earlier step.
    pub acknowledged: BTreeSet<String>,
}

/// The planner's input for one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineState {
    pub name: String,
    /// The MachineSet that controls it.
    pub set: String,
    /// It was moved to its set and the planner has not counted it there yet.
    pub pending_acknowledge: bool,
    /// It is being updated in place.
    pub updating: bool,
}

/// The input of one planning step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// `spec.replicas` of the deployment.
    pub desired: i32,
    pub strategy: Strategy,
    /// The set that matches the deployment's template.
    pub current: SetState,
    /// All other sets.
    pub old: Vec<SetState>,
    pub machines: Vec<MachineState>,
}

/// Why a set's size changes, or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Machines moved from an old set are counted now.
    Acknowledged(Vec<String>),
    /// The current set is larger than the deployment.
    AboveDesired,
    /// More machines may be created.
    Room {
        /// Machines that exist or were requested.
        existing: i32,
        /// `spec.replicas` of the deployment.
        desired: i32,
        /// Machines allowed beyond that.
        surge: i32,
    },
    /// More machines are available than required.
    SpareAvailability { available: i32, minimum: i32 },
    /// The deleted machines were never created, or are unavailable anyway.
    NothingLost,
    /// A user deleted machines of an old set; they are recreated in the current one.
    DeletedByUser,
    /// Machines are moved to the set with this name instead of being deleted.
    MovesTo(String),
    /// One machine beyond the replicas, so that others can be updated in place.
    OneForInPlace,
    /// This many machines are not created, because in-place updates take precedence.
    SurgeDropped(i32),
    /// One unavailable machine of an old set is deleted despite the bound on unavailability.
    Deadlock,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acknowledged(names) => write!(f, "machines {} moved here", names.join(",")),
            Self::AboveDesired => f.write_str("more machines than the deployment wants"),
            Self::Room { existing, desired, surge: 0 } => {
                write!(f, "{existing} of {desired} machines")
            }
            Self::Room { existing, desired, surge } => {
                write!(f, "{existing} of {desired} machines and {surge} surge")
            }
            Self::SpareAvailability { available, minimum } => {
                write!(f, "{available} machines available, {minimum} needed")
            }
            Self::NothingLost => f.write_str("no available machine is lost"),
            Self::DeletedByUser => f.write_str("machines were deleted"),
            Self::MovesTo(set) => write!(f, "machines move to {set} and are updated in place"),
            Self::OneForInPlace => f.write_str("one more machine makes room for in-place updates"),
            Self::SurgeDropped(count) => write!(f, "{count} surge not used, in-place updates come first"),
            Self::Deadlock => f.write_str("one unavailable old machine goes so that the rollout can proceed"),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetPlan {
    pub name: String,
    /// Desired `spec.replicas`.
    pub replicas: i32,
    /// The set to which it moves machines instead of deleting them.
    pub move_to: Option<String>,
    /// Sets from which it receives machines.
    pub receive_from: BTreeSet<String>,
    /// Machines whose move is counted and not completed yet.
    pub acknowledged: BTreeSet<String>,
    /// Reasons, in the order found.
    pub reasons: Vec<Reason>,
}

/// The next step of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub current: SetPlan,
    /// Old sets, in the order they were given.
    pub old: Vec<SetPlan>,
}

impl Plan {
    pub fn set(&self, name: &str) -> Option<&SetPlan> {
        std::iter::once(&self.current).chain(&self.old).find(|set| set.name == name)
    }
}

/// Plans the next step.
pub fn plan(rollout: &Rollout) -> Plan {
    let mut step = Step::new(rollout);
    match &rollout.strategy {
        Strategy::RollingUpdate { .. } => {
            step.acknowledge_moved_machines();
            step.scale_current_set();
            step.scale_down_old_sets();
            step.prefer_in_place_updates();
            step.break_deadlock();
        }
        Strategy::OnDelete => {
            step.scale_current_set();
            step.follow_deletions();
        }
    }
    step.finish()
}

/// The state of one planning step.
struct Step<'a> {
    rollout: &'a Rollout,
    /// The current set, including moved machines.
    current: SetState,
    /// Old sets in the order in which they shrink.
    old: Vec<SetState>,
    /// Changed sizes.
    intents: BTreeMap<String, i32>,
    plans: BTreeMap<String, SetPlan>,
}

impl<'a> Step<'a> {
    fn new(rollout: &'a Rollout) -> Self {
        let plans = std::iter::once(&rollout.current)
            .chain(&rollout.old)
            .map(|set| (set.name.clone(), SetPlan { name: set.name.clone(), ..SetPlan::default() }))
            .collect();
        Self {
            rollout,
            current: rollout.current.clone(),
            old: rollout.old.clone(),
            intents: BTreeMap::new(),
            plans,
        }
    }

    fn all_sets(&self) -> impl Iterator<Item = &SetState> {
        self.old.iter().chain(std::iter::once(&self.current))
    }

    fn intent(&self, set: &SetState) -> i32 {
        self.intents.get(&set.name).copied().unwrap_or(set.wanted)
    }

    fn plan_of(&mut self, name: &str) -> &mut SetPlan {
        self.plans.entry(name.to_owned()).or_default()
    }

    fn note(&mut self, name: &str, reason: Reason) {
        let reasons = &mut self.plan_of(name).reasons;
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }

    fn intend(&mut self, name: &str, replicas: i32, reason: Reason) {
        self.intents.insert(name.to_owned(), replicas);
        self.note(name, reason);
    }

    fn scale_current_set(&mut self) {
        let wanted = self.current.wanted;
        let desired = self.rollout.desired;
        let name = self.current.name.clone();
        if wanted > desired {
            self.intend(&name, desired, Reason::AboveDesired);
        } else if wanted < desired {
            let surge = budget::max_surge(&self.rollout.strategy, desired);
            // A set may have requested more than exists, or not yet deleted its surplus: the larger number counts, so
            // that existing machines never exceed the surge.
            let existing: i32 = self.all_sets().map(|set| set.wanted.max(set.replicas)).sum();
            let mut room = (desired + surge - existing).max(0);
            if matches!(self.rollout.strategy, Strategy::RollingUpdate { .. }) {
                room = room.min(desired - wanted);
            }
            if room > 0 {
                self.intend(&name, wanted + room, Reason::Room { existing, desired, surge });
            }
        }
    }

    fn finish(mut self) -> Plan {
        let current = self.current.clone();
        let mut sized = |set: &SetState| {
            let replicas = self.intents.get(&set.name).copied().unwrap_or(set.wanted);
            let mut plan = self.plans.remove(&set.name).unwrap_or_default();
            plan.replicas = replicas;
            plan
        };
        let current = sized(&current);
        let old = self.rollout.old.iter().map(sized).collect();
        Plan { current, old }
    }
}
