//! Defaults and validation of the kinds: what upstream does in webhooks, as pure functions.
//!
//! ```text
//! object ── default ──▶ object ── validate(new, old) ──▶ field errors, in upstream's words
//! ```
//!
//! Used in process by our own API server and by the webhook server on any other. What needs another object
//! (the pool of a claim) is a function of its own that takes it as a parameter.

mod addons;
mod cluster;
mod common;
mod ipam;
mod kubeadm_config;
mod kubeadm_control_plane;
mod machine;
mod machine_deployment;
mod machine_drain_rule;
mod machine_health_check;
mod machine_pool;
mod machine_set;

use capstan_object::{Kind, Object};
pub use capstan_schema::field::FieldError;
use serde_json::Value;

pub use common::{IMMUTABLE, validate_template_meta};
pub use ipam::pool_differs_from_claim;
pub use kubeadm_control_plane::validate_scale;

use crate::addons::{ClusterResourceSet, ClusterResourceSetBinding};
use crate::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use crate::clusterctl::Provider;
use crate::controlplane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use crate::core::{
    Cluster, Machine, MachineDeployment, MachineDrainRule, MachineHealthCheck, MachinePool, MachineSet,
};
use crate::ipam::{IPAddress, IPAddressClaim};

/// What upstream hides behind feature gates; what our controllers look after is on here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// `spec.topology` of clusters, for a plane that makes clusters of classes. Ours does not, and a cluster that it
    /// took in would wait for ever.
    pub cluster_topology: bool,
    /// Templates of control planes.
    pub control_plane_templates: bool,
    /// Boot data for Ignition.
    pub ignition: bool,
    /// Taints of machines.
    pub machine_taints: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { cluster_topology: false, control_plane_templates: true, ignition: true, machine_taints: true }
    }
}

impl Features {
    /// Upstream's own defaults: everything still experimental is off.
    pub const UPSTREAM: Self = Self {
        cluster_topology: false,
        control_plane_templates: false,
        ignition: false,
        machine_taints: false,
    };

    /// Everything.
    pub const ALL: Self =
        Self { cluster_topology: true, control_plane_templates: true, ignition: true, machine_taints: true };
}

/// Defaults and rules of a kind.
pub trait Admission: Object {
    /// Fills in what was left out. `old` is the stored object on update.
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        Ok(())
    }

    /// What is wrong with the object, or with changing `old` into it.
    fn validate(&self, _old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        Vec::new()
    }
}

impl Admission for Provider {}

/// Defaults and rules of a kind over JSON, for servers that hold objects so.
#[derive(Clone, Copy)]
pub struct Rules {
    /// The kind, in its stored version, which objects must be in.
    pub kind: Kind,
    /// Adds defaults; nothing that is there is removed. Whether anything was added.
    pub default: fn(&mut Value, Option<&Value>) -> Result<bool, AdmissionError>,
    /// See [`Admission::validate`].
    pub validate: fn(&Value, Option<&Value>, &Features) -> AdmissionVerdict,
}

impl Rules {
    /// The rules of a kind.
    pub fn of<T: Admission>() -> Self {
        Self { kind: T::KIND, default: default_value::<T>, validate: validate_value::<T> }
    }
}

/// What is wrong with an object, if it can be read at all.
pub type AdmissionVerdict = Result<Vec<FieldError>, AdmissionError>;

/// Why an object could not be admitted at all.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The JSON is no object of this kind.
    #[error("the object cannot be read as a {kind}: {source}")]
    Shape {
        /// Kind that was expected.
        kind: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A default cannot be worked out.
    #[error("{0}")]
    Default(FieldError),
}

/// Defaults and rules of every kind.
pub fn all() -> [Rules; 16] {
    [
        Rules::of::<Cluster>(),
        Rules::of::<Machine>(),
        Rules::of::<MachineSet>(),
        Rules::of::<MachineDeployment>(),
        Rules::of::<MachinePool>(),
        Rules::of::<MachineHealthCheck>(),
        Rules::of::<MachineDrainRule>(),
        Rules::of::<ClusterResourceSet>(),
        Rules::of::<ClusterResourceSetBinding>(),
        Rules::of::<KubeadmConfig>(),
        Rules::of::<KubeadmConfigTemplate>(),
        Rules::of::<KubeadmControlPlane>(),
        Rules::of::<KubeadmControlPlaneTemplate>(),
        Rules::of::<IPAddress>(),
        Rules::of::<IPAddressClaim>(),
        Rules::of::<Provider>(),
    ]
}

/// Defaults and rules of a kind in its stored version; `None` for kinds of others.
pub fn rules(group: &str, kind: &str) -> Option<Rules> {
    all().into_iter().find(|rules| (rules.kind.group, rules.kind.kind) == (group, kind))
}

fn typed<T: Object>(value: &Value) -> Result<T, AdmissionError> {
    T::deserialize(value).map_err(|source| AdmissionError::Shape { kind: T::KIND.kind, source })
}

fn untyped<T: Object>(object: &T) -> Result<Value, AdmissionError> {
    serde_json::to_value(object).map_err(|source| AdmissionError::Shape { kind: T::KIND.kind, source })
}

fn default_value<T: Admission>(object: &mut Value, old: Option<&Value>) -> Result<bool, AdmissionError> {
    let mut defaulted: T = typed(object)?;
    let before = untyped(&defaulted)?;
    let old = old.map(typed::<T>).transpose()?;
    Admission::default(&mut defaulted, old.as_ref()).map_err(AdmissionError::Default)?;
    let after = untyped(&defaulted)?;
    overlay(&before, &after, object);
    Ok(before != after)
}

fn validate_value<T: Admission>(
    object: &Value,
    old: Option<&Value>,
    features: &Features,
) -> AdmissionVerdict {
    let old = old.map(typed::<T>).transpose()?;
    Ok(typed::<T>(object)?.validate(old.as_ref(), features))
}

/// Writes into `target` what `after` has and `before` has not: a typed value leaves out what is empty, and that
/// must not be lost from the object a user sent.
fn overlay(before: &Value, after: &Value, target: &mut Value) {
    if before == after {
        return;
    }
    match (after, target) {
        (Value::Object(after), Value::Object(target)) => {
            for (key, value) in after {
                overlay(&before[key], value, target.entry(key.as_str()).or_insert(Value::Null));
            }
        }
        (after, target) => *target = after.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_added_and_nothing_is_taken_away() {
        let mut machine = json!({ "metadata": { "annotations": {} }, "spec": { "clusterName": "one", "version": "1.2.3" } });
        let rules = rules("cluster.x-k8s.io", "Machine").expect("rules");
        (rules.default)(&mut machine, None).expect("defaults");
        assert_eq!(
            machine,
            json!({
                "metadata": { "annotations": {}, "labels": { "cluster.x-k8s.io/cluster-name": "one" } },
                "spec": { "clusterName": "one", "version": "v1.2.3", "deletion": { "nodeDeletionTimeoutSeconds": 10 } },
            })
        );
    }

    #[test]
    fn what_is_no_object_of_the_kind_is_named() {
        let rules = rules("cluster.x-k8s.io", "Machine").expect("rules");
        let error =
            (rules.validate)(&json!({ "spec": 1 }), None, &Features::default()).expect_err("no machine");
        assert!(error.to_string().starts_with("the object cannot be read as a Machine: "), "{error}");
    }
}
