//! Defaulting and validation of the kinds: upstream's webhooks as pure functions.
//!
//! ```text
//! object ── default ──▶ object ── validate(new, old) ──▶ field errors, with upstream's messages
//! ```
//!
//! Used in process by our own API server and by the webhook server on any other. A rule that needs another object
//! (the pool of a claim) is a separate function with a parameter.

mod addons;
mod builtin;
mod class_in_use;
mod cluster;
mod cluster_class;
mod cluster_of_class;
mod common;
mod extension_config;
mod ipam;
mod kubeadm_config;
mod kubeadm_control_plane;
mod machine;
mod machine_deployment;
mod machine_drain_rule;
mod machine_health_check;
mod machine_pool;
mod machine_set;

use capstan_object::{Key, Kind, Object};
pub use capstan_schema::field::FieldError;
use serde_json::Value;

pub use class_in_use::validate_class_in_use;
pub use cluster_class::{incompatibilities, selects_class};
pub use cluster_of_class::{
    default_variables, scaled_by_class, validate_variables, validate_with_class, version_to_arrive,
};
pub use common::{IMMUTABLE, validate_template_meta};
pub use ipam::pool_differs_from_claim;
pub use kubeadm_control_plane::validate_scale;

use crate::addons::{ClusterResourceSet, ClusterResourceSetBinding};
use crate::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use crate::clusterctl::Provider;
use crate::controlplane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use crate::core::{
    Cluster, ClusterClass, Machine, MachineDeployment, MachineDrainRule, MachineHealthCheck, MachinePool,
    MachineSet,
};
use crate::ipam::{IPAddress, IPAddressClaim};
use crate::runtime::ExtensionConfig;

/// Upstream's feature gates; what our controllers support is enabled here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// ClusterClasses, and `spec.topology` of clusters.
    pub cluster_topology: bool,
    /// ControlPlane templates.
    pub control_plane_templates: bool,
    /// Ignition boot data.
    pub ignition: bool,
    /// Machine taints.
    pub machine_taints: bool,
    /// Runtime extensions.
    pub runtime_sdk: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self::ALL
    }
}

impl Features {
    /// Upstream's defaults: experimental features are off.
    pub const UPSTREAM: Self = Self {
        cluster_topology: false,
        control_plane_templates: false,
        ignition: false,
        machine_taints: false,
        runtime_sdk: false,
    };

    pub const ALL: Self = Self {
        cluster_topology: true,
        control_plane_templates: true,
        ignition: true,
        machine_taints: true,
        runtime_sdk: true,
    };
}

/// Defaulting and validation of a kind.
pub trait Admission: Object + PartialEq {
    /// Applies defaults. `old` is the stored object on update.
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        Ok(())
    }

    /// Validates an object, or the update from `old` to it.
    fn validate(&self, _old: Option<&Self>, _features: &Features) -> Vec<FieldError> {
        Vec::new()
    }

    /// The Secrets that the object makes the controllers use on behalf of whoever wrote it.
    fn secrets(&self) -> Vec<SecretUse> {
        Vec::new()
    }
}

/// A Secret that an object names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// The field that names it.
    pub path: String,
    pub secret: Key,
}

impl Admission for Provider {}

/// Defaulting and validation of a kind on JSON objects.
#[derive(Clone, Copy)]
pub struct Rules {
    /// The kind in its storage version, which objects must have.
    pub kind: Kind,
    /// Adds defaults and removes nothing. Returns whether anything was added.
    pub default: fn(&mut Value, Option<&Value>) -> Result<bool, AdmissionError>,
    /// See [`Admission::validate`].
    pub validate: fn(&Value, Option<&Value>, &Features) -> AdmissionVerdict,
    /// See [`Admission::secrets`].
    pub secrets: fn(&Value) -> Result<Vec<SecretUse>, AdmissionError>,
}

impl Rules {
    pub fn of<T: Admission>() -> Self {
        Self {
            kind: T::KIND,
            default: default_value::<T>,
            validate: validate_value::<T>,
            secrets: |object| Ok(typed::<T>(object)?.secrets()),
        }
    }
}

/// Errors of an object that can be decoded.
pub type AdmissionVerdict = Result<Vec<FieldError>, AdmissionError>;

/// Why admission failed.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The JSON is not an object of this kind.
    #[error("the object cannot be read as a {kind}: {source}")]
    Shape { kind: &'static str, source: serde_json::Error },
    /// A default cannot be determined.
    #[error("{0}")]
    Default(FieldError),
}

/// The rules of every kind.
pub fn all() -> [Rules; 18] {
    [
        Rules::of::<Cluster>(),
        Rules::of::<ClusterClass>(),
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
        Rules::of::<ExtensionConfig>(),
        Rules::of::<Provider>(),
    ]
}

/// The rules of a kind in its storage version; `None` for other kinds.
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
    let given: T = typed(object)?;
    let old = old.map(typed::<T>).transpose()?;
    let mut defaulted = given.clone();
    Admission::default(&mut defaulted, old.as_ref()).map_err(AdmissionError::Default)?;
    // Most objects have their defaults already, and nothing needs to be written as JSON.
    if defaulted == given {
        return Ok(false);
    }
    let (before, after) = (untyped(&given)?, untyped(&defaulted)?);
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

/// Adds to `target` what `after` has and `before` lacks. A typed value omits empty fields, which must not be lost
/// from the user's object.
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
    fn defaults_are_added_and_nothing_is_removed() {
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
    fn an_object_that_cannot_be_decoded_is_reported() {
        let rules = rules("cluster.x-k8s.io", "Machine").expect("rules");
        let error =
            (rules.validate)(&json!({ "spec": 1 }), None, &Features::default()).expect_err("no machine");
        assert!(error.to_string().starts_with("the object cannot be read as a Machine: "), "{error}");
    }
}
