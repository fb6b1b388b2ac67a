//! Lossless conversion between v1beta1 and v1beta2. An ExtensionConfig has v1alpha1 in place of v1beta1.
//!
//! ```text
//! object ── steps (moved and converted fields) ── decoded as the other version's type ──▶ object
//!    └─ data that the other version lacks ──▶ annotation ──▶ restored on conversion back
//! ```
//!
//! An object that does not round-trip keeps its original in an annotation. On conversion back, changes made meanwhile
//! are applied to that original, so a client of one version neither sees nor destroys data that only the other has.
//! The annotation for v1beta2 data is upstream's.

mod carry;
pub mod duration;
mod path;
mod steps;

use std::sync::Arc;

use capstan_object::Object;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::core::annotation::CONVERSION_DATA;
use crate::{addons, bootstrap, controlplane, core, ipam, runtime, v1alpha1, v1beta1};
use carry::carry;
use steps::Step;

/// Annotation for data that v1beta2 lacks.
const V1BETA1_DATA: &str = "conversion.cluster.x-k8s.io/v1beta1-data";

#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// Unknown kind or version.
    #[error("{kind} cannot be converted from {from} to {to}")]
    Unknown { kind: String, from: String, to: String },
    /// A value cannot be converted.
    #[error("{kind} cannot be read in {version}: {source}")]
    Shape { kind: String, version: &'static str, source: serde_json::Error },
}

/// The version of a provider's kind for v1beta1 references, by group and kind.
pub type VersionOf = Arc<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

#[derive(Clone)]
pub struct Converter {
    version_of: VersionOf,
}

impl Default for Converter {
    /// References get version v1beta2.
    fn default() -> Self {
        Self::new(Arc::new(|_, _| None))
    }
}

/// The differences between the versions of one kind.
struct Pair {
    group: &'static str,
    kind: &'static str,
    /// The version before v1beta2.
    earlier: &'static str,
    steps: Vec<Step>,
    read_v1beta1: fn(Value) -> serde_json::Result<Value>,
    read_v1beta2: fn(Value) -> serde_json::Result<Value>,
}

fn read<T: Serialize + DeserializeOwned>(value: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

fn pair<Old: Object, New: Object>(steps: Vec<Step>) -> Pair {
    let (group, kind) = (New::KIND.group, New::KIND.kind);
    // A kind that is the same in both versions has one type.
    let earlier = if Old::KIND.version == New::KIND.version { "v1beta1" } else { Old::KIND.version };
    Pair { group, kind, earlier, steps, read_v1beta1: read::<Old>, read_v1beta2: read::<New> }
}

fn pairs() -> [Pair; 17] {
    [
        pair::<v1beta1::cluster_class::ClusterClass, core::ClusterClass>(steps::cluster_class()),
        pair::<v1beta1::core::Cluster, core::Cluster>(steps::cluster()),
        pair::<v1beta1::core::Machine, core::Machine>(steps::machine()),
        pair::<v1beta1::core::MachineSet, core::MachineSet>(steps::machine_set()),
        pair::<v1beta1::core::MachineDeployment, core::MachineDeployment>(steps::machine_deployment()),
        pair::<v1beta1::core::MachinePool, core::MachinePool>(steps::machine_pool()),
        pair::<v1beta1::core::MachineHealthCheck, core::MachineHealthCheck>(steps::machine_health_check()),
        pair::<core::MachineDrainRule, core::MachineDrainRule>(Vec::new()),
        pair::<v1beta1::addons::ClusterResourceSet, addons::ClusterResourceSet>(steps::conditions(&[], &[])),
        pair::<v1beta1::addons::ClusterResourceSetBinding, addons::ClusterResourceSetBinding>(Vec::new()),
        pair::<v1beta1::bootstrap::KubeadmConfig, bootstrap::KubeadmConfig>(steps::kubeadm_config()),
        pair::<v1beta1::bootstrap::KubeadmConfigTemplate, bootstrap::KubeadmConfigTemplate>(
            steps::kubeadm_config_spec("spec.template.spec"),
        ),
        pair::<v1beta1::controlplane::KubeadmControlPlane, controlplane::KubeadmControlPlane>(
            steps::kubeadm_control_plane(),
        ),
        pair::<v1beta1::controlplane::KubeadmControlPlaneTemplate, controlplane::KubeadmControlPlaneTemplate>(
            steps::kubeadm_control_plane_template(),
        ),
        pair::<v1beta1::ipam::IPAddress, ipam::IPAddress>(Vec::new()),
        pair::<v1beta1::ipam::IPAddressClaim, ipam::IPAddressClaim>(steps::conditions(&[], &[])),
        pair::<v1alpha1::ExtensionConfig, runtime::ExtensionConfig>(steps::conditions(&[], &[])),
    ]
}

fn pair_of(group: &str, kind: &str) -> Option<Pair> {
    pairs().into_iter().find(|pair| (pair.group, pair.kind) == (group, kind))
}

/// Groups and kinds that exist in both versions.
pub fn kinds() -> [(&'static str, &'static str); 17] {
    pairs().map(|pair| (pair.group, pair.kind))
}

impl Converter {
    /// Uses this lookup for versions of providers' kinds.
    pub fn new(version_of: VersionOf) -> Self {
        Self { version_of }
    }

    /// Converts an object.
    pub fn convert(&self, object: Value, version: &str) -> Result<Value, ConversionError> {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, from) = api_version.split_once('/').unwrap_or(("", &api_version));
        if from == version {
            return Ok(object);
        }
        let unknown =
            || ConversionError::Unknown { kind: kind.clone(), from: from.to_owned(), to: version.to_owned() };
        let pair = pair_of(group, &kind).ok_or_else(unknown)?;
        let up = match (from, version) {
            (from, "v1beta2") if from == pair.earlier => true,
            ("v1beta2", to) if to == pair.earlier => false,
            _ => return Err(unknown()),
        };
        let mut converted = self.convert_between(&pair, object, up)?;
        if let Value::Object(fields) = &mut converted {
            fields.insert("apiVersion".to_owned(), format!("{group}/{version}").into());
            fields.insert("kind".to_owned(), kind.into());
        }
        Ok(converted)
    }

    fn convert_between(&self, pair: &Pair, object: Value, up: bool) -> Result<Value, ConversionError> {
        // Data that only one of the versions has, kept in its annotation.
        let (kept_for_target, kept_for_source) =
            if up { (CONVERSION_DATA, V1BETA1_DATA) } else { (V1BETA1_DATA, CONVERSION_DATA) };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        without_loss(
            object,
            kept_for_target,
            kept_for_source,
            |body| self.map(pair, body, &namespace, up),
            |body| self.map(pair, body, &namespace, !up),
        )
    }

    /// Moves and converts fields, then decodes the result as the other version's type, which drops unknown and empty
    /// fields.
    fn map(
        &self,
        pair: &Pair,
        mut object: Value,
        namespace: &str,
        up: bool,
    ) -> Result<Value, ConversionError> {
        if up {
            pair.steps.iter().for_each(|step| step.up(&mut object));
        } else {
            let context = steps::Context { namespace, version_of: &*self.version_of };
            pair.steps.iter().rev().for_each(|step| step.down(&mut object, &context));
        }
        let (version, read) =
            if up { ("v1beta2", pair.read_v1beta2) } else { (pair.earlier, pair.read_v1beta1) };
        read(object).map_err(|source| ConversionError::Shape { kind: pair.kind.to_owned(), version, source })
    }
}

/// Converts an object by `there`, which may lose data. What `back` does not restore is kept in the annotation
/// `kept_for_source`; data in `kept_for_target` is restored, with the changes made meanwhile. Both functions take and
/// return objects without type and metadata.
pub fn without_loss<E>(
    mut object: Value,
    kept_for_target: &str,
    kept_for_source: &str,
    there: impl Fn(Value) -> Result<Value, E>,
    back: impl Fn(Value) -> Result<Value, E>,
) -> Result<Value, E> {
    let mut metadata = object.as_object_mut().and_then(|o| o.remove("metadata")).unwrap_or_default();
    let source = body(object);
    let original = take_annotation(&mut metadata, kept_for_target)
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .map(body);
    let plain = there(source.clone())?;
    let target = match original {
        None => plain,
        Some(mut original) => {
            let before = there(back(original.clone())?)?;
            carry(&before, &plain, &mut original);
            original
        }
    };
    if back(target.clone())? != source {
        put_annotation(&mut metadata, kept_for_source, source.to_string());
    }
    let mut converted = target.as_object().cloned().unwrap_or_default();
    if !metadata.is_null() {
        converted.insert("metadata".to_owned(), metadata);
    }
    Ok(Value::Object(converted))
}

/// The converted part: everything except the type.
fn body(object: Value) -> Value {
    let mut fields = match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    for key in ["apiVersion", "kind", "metadata"] {
        fields.remove(key);
    }
    Value::Object(fields)
}

fn take_annotation(metadata: &mut Value, name: &str) -> Option<String> {
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(name)?.as_str()?.to_owned();
    if annotations.is_empty() {
        metadata.as_object_mut()?.remove("annotations");
    }
    Some(text)
}

fn put_annotation(metadata: &mut Value, name: &str, text: String) {
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = Value::Object(Map::new());
    }
    metadata["annotations"][name] = text.into();
}
