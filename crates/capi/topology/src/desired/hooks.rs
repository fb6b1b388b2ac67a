//! Lifecycle hooks on the way to the desired state: what they let happen, what they hold back, and which are due later.

use std::collections::BTreeMap;

use capstan_capi_runtime::HookAnswer;
use capstan_capi_types::core::cluster::condition;
use capstan_capi_types::core::{Cluster, ClusterStatus};
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::{BEFORE_UPGRADE_PREFIX, PendingHooks};
use capstan_object::ConditionStatus;
use serde_json::{Value, json};

use super::object::COPIES;
use super::versions::Upgrade;
use crate::ask::{Answers, Ask, Stop};

/// Annotations wake the controller; the time is for the message that something blocks.
const ANNOTATED_RETRY_SECONDS: i32 = 20 * 60;

/// What hooks have to say about a desired state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Hooks to call once what was begun is over.
    pub pending: PendingHooks,
    pub blocking: BTreeMap<Hook, HookAnswer>,
}

impl Hooks {
    /// The shortest time after which a hook that blocks is called again.
    pub fn retry_after_seconds(&self) -> Option<i32> {
        self.blocking.values().map(|answer| answer.retry_after_seconds).min()
    }

    /// Which hooks block, in upstream's words; none if nothing does.
    pub fn message(&self, action: &str) -> Option<String> {
        message(self.blocking.iter(), action)
    }
}

pub fn message<'a>(
    blocking: impl Iterator<Item = (&'a Hook, &'a HookAnswer)>,
    action: &str,
) -> Option<String> {
    let of = |(hook, answer): (&Hook, &HookAnswer)| match answer.message.is_empty() {
        true => hook.to_string(),
        false => format!("{hook}: {}", answer.message),
    };
    let hooks: Vec<String> = blocking.map(of).collect();
    (!hooks.is_empty()).then(|| format!("Following hooks are blocking {action}: {}", hooks.join("; ")))
}

/// A Cluster as hooks get it: without status and copies of itself.
pub fn sent(cluster: &Cluster) -> Value {
    let mut cluster = cluster.clone();
    cluster.status = ClusterStatus::default();
    cluster.metadata.annotations.retain(|name, _| !COPIES.contains(&name.as_str()));
    capstan_object::to_value(&cluster).unwrap_or_default()
}

/// Calls of hooks while a desired state is computed.
pub(super) struct Calls<'a> {
    cluster: &'a Cluster,
    answers: &'a Answers,
    pub hooks: Hooks,
}

impl<'a> Calls<'a> {
    pub fn new(cluster: &'a Cluster, answers: &'a Answers) -> Self {
        let pending = PendingHooks::of(&cluster.metadata.annotations);
        Self { cluster, answers, hooks: Hooks { pending, blocking: BTreeMap::new() } }
    }

    fn is_pending(&self, hook: Hook) -> bool {
        self.hooks.pending.contains(hook)
    }

    /// The answer to a hook, or the question.
    fn answer(&self, hook: Hook, request: Value) -> Result<&'a HookAnswer, Stop> {
        self.answers.hooks.get(&hook).ok_or_else(|| {
            let mut request = request;
            request["cluster"] = sent(self.cluster);
            Stop::Ask(Box::new(Ask::Lifecycle { hook, request }))
        })
    }

    fn passes(&mut self, hook: Hook, request: Value) -> Result<bool, Stop> {
        let answer = self.answer(hook, request)?;
        if answer.is_blocking() {
            self.hooks.blocking.insert(hook, answer.clone());
        }
        Ok(!answer.is_blocking())
    }

    /// Calls a hook that is due; whether what comes after it may go on.
    fn concluded(&mut self, hook: Hook, request: Value) -> Result<bool, Stop> {
        if !self.is_pending(hook) {
            return Ok(true);
        }
        let passed = self.passes(hook, request)?;
        if passed {
            self.hooks.pending.remove(hook);
        }
        Ok(passed)
    }

    /// Before anything of a cluster is created. What is due afterwards is the record that this has passed.
    pub fn before_create(&mut self) -> Result<(), Stop> {
        if self.is_pending(Hook::AfterControlPlaneInitialized) {
            return Ok(());
        }
        let answer = self.answer(Hook::BeforeClusterCreate, json!({}))?;
        if answer.is_blocking() {
            return Err(Stop::CreationBlocked(answer.clone()));
        }
        self.hooks.pending.add(Hook::AfterControlPlaneInitialized);
        Ok(())
    }

    /// Once the control plane has its version, and before workers get it.
    pub fn after_control_plane(&mut self, upgrade: &Upgrade, found: &str) -> Result<bool, Stop> {
        let mut request = steps(upgrade);
        request["kubernetesVersion"] = found.into();
        if !self.concluded(Hook::AfterControlPlaneUpgrade, request)? {
            return Ok(false);
        }
        let request = step(upgrade, &upgrade.oldest_workers, found);
        self.concluded(Hook::BeforeWorkersUpgrade, request)
    }

    /// Once workers have the version of the control plane.
    pub fn after_workers(&mut self, upgrade: &Upgrade, found: &str) -> Result<bool, Stop> {
        let mut request = steps(upgrade);
        request["kubernetesVersion"] = found.into();
        self.concluded(Hook::AfterWorkersUpgrade, request)
    }

    /// Before the control plane gets the next version on the way to the wanted one.
    pub fn before_step(
        &mut self,
        upgrade: &Upgrade,
        found: &str,
        next: &str,
        wanted: &str,
    ) -> Result<bool, Stop> {
        if !self.is_pending(Hook::AfterClusterUpgrade) {
            if let Some(message) = self.annotated() {
                let answer = HookAnswer { retry_after_seconds: ANNOTATED_RETRY_SECONDS, message };
                self.hooks.blocking.insert(Hook::BeforeClusterUpgrade, answer);
                return Ok(false);
            }
            if !self.passes(Hook::BeforeClusterUpgrade, step(upgrade, found, wanted))? {
                return Ok(false);
            }
            self.hooks.pending.add(Hook::AfterClusterUpgrade);
        }
        if !self.passes(Hook::BeforeControlPlaneUpgrade, step(upgrade, found, next))? {
            return Ok(false);
        }
        self.hooks.pending.add(Hook::AfterControlPlaneUpgrade);
        if upgrade.workers_plan.first().is_some_and(|first| first == next) {
            self.hooks.pending.add(Hook::BeforeWorkersUpgrade);
            self.hooks.pending.add(Hook::AfterWorkersUpgrade);
        }
        Ok(true)
    }

    /// Annotations that hold an upgrade back.
    fn annotated(&self) -> Option<String> {
        let names = self.cluster.metadata.annotations.keys();
        let names: Vec<&str> =
            names.filter(|name| name.starts_with(BEFORE_UPGRADE_PREFIX)).map(String::as_str).collect();
        match names.as_slice() {
            [] => None,
            [name] => Some(format!("annotation {name} is set")),
            names => Some(format!("annotations {} are set", names.join(", "))),
        }
    }

    /// Calls what is due when an operation is over.
    pub fn after(&mut self, upgrade: &Upgrade) -> Result<(), Stop> {
        let initialized =
            self.cluster.status.conditions.iter().any(|it| {
                it.kind == condition::CONTROL_PLANE_INITIALIZED && it.status == ConditionStatus::True
            });
        if self.is_pending(Hook::AfterControlPlaneInitialized) && initialized {
            self.answer(Hook::AfterControlPlaneInitialized, json!({}))?;
            self.hooks.pending.remove(Hook::AfterControlPlaneInitialized);
        }
        let parts = [Hook::AfterControlPlaneUpgrade, Hook::AfterWorkersUpgrade];
        let due = self.is_pending(Hook::AfterClusterUpgrade)
            && upgrade.is_settled()
            && !parts.iter().any(|hook| self.is_pending(*hook));
        if due {
            let request = json!({"kubernetesVersion": self.cluster.spec.topology.version});
            self.concluded(Hook::AfterClusterUpgrade, request)?;
        }
        Ok(())
    }
}

/// The steps that are left.
fn steps(upgrade: &Upgrade) -> Value {
    let mut request = json!({});
    for (field, plan) in
        [("controlPlaneUpgrades", &upgrade.control_plane_plan), ("workersUpgrades", &upgrade.workers_plan)]
    {
        if !plan.is_empty() {
            request[field] = plan.iter().map(|version| json!({"version": version})).collect();
        }
    }
    request
}

fn step(upgrade: &Upgrade, from: &str, to: &str) -> Value {
    let mut request = steps(upgrade);
    request["fromKubernetesVersion"] = from.into();
    request["toKubernetesVersion"] = to.into();
    request
}
