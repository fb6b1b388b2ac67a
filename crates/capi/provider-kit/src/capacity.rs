//! Capacity of a cloud for a plan: the provider's part of `capstan plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_capi_core::secret::Secret;
use capstan_controller::{ApiError, Client, Code};
use capstan_object::Key;
use futures::future::BoxFuture;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The size of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    pub cpus: u64,
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u64,
}

impl Size {
    /// From `spec.cpus` and `spec.memoryMiB` of an infrastructure machine.
    pub fn in_spec(object: &Value) -> Option<Self> {
        let field = |field: &str| object["spec"][field].as_u64();
        Some(Self { cpus: field("cpus")?, memory_mib: field("memoryMiB")? })
    }
}

/// How `plan` simulates a provider's machines: by the contract, with these differences. A provider without a model is
/// simulated with [`Size::in_spec`] and provider ids derived from the kind.
#[derive(Debug, Clone, Copy)]
pub struct MachineModel {
    /// The kind of infrastructure machine, such as `KVMMachine`.
    pub kind: &'static str,
    /// Prefix of provider ids, such as `kvm:///`.
    pub provider_id_prefix: &'static str,
    /// The size of an object's machine, if the object determines it.
    pub size: fn(&Value) -> Option<Size>,
}

/// Asks clouds about the machines of a plan, read-only.
pub trait Capacity: Send + Sync {
    /// Answers for the provider's own machines only. Must limit its own waiting: a cloud that does not respond within
    /// seconds is reported as a quota that is not known.
    fn answer<'a>(&'a self, question: CapacityQuestion<'a>) -> BoxFuture<'a, CapacityAnswer>;
}

/// The plan.
#[derive(Clone, Copy)]
pub struct CapacityQuestion<'a> {
    /// The management cluster, for Secrets with credentials.
    pub client: &'a Client,
    /// Objects that would be applied; they take precedence over existing ones.
    pub manifest: &'a [Value],
    /// All objects except Secrets, at the end of the plan.
    pub objects: &'a [Value],
    /// Existing machines and those that would be created.
    pub machines: &'a [PlannedMachine],
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlannedMachine {
    /// Namespace and name; new machines have the plan's names.
    pub key: Key,
    pub cluster: String,
    /// `Kind/name` of its owner, such as its MachineDeployment; empty if it has none.
    pub of: String,
    pub version: String,
    /// Empty if the provider chooses.
    pub failure_domain: String,
    /// It does not exist yet.
    pub new: bool,
    /// Infrastructure object of the cluster.
    pub infrastructure: Arc<Value>,
}

impl PlannedMachine {
    /// Whether its infrastructure object has this kind.
    pub fn is_of(&self, kind: &str) -> bool {
        is_infrastructure(&self.infrastructure, kind)
    }
}

impl CapacityQuestion<'_> {
    /// An object by kind and name, at the end of the plan.
    pub fn object(&self, kind: &str, key: &Key) -> Option<&Value> {
        self.objects.iter().find(|object| {
            let meta = &object["metadata"];
            is_infrastructure(object, kind)
                && meta["namespace"] == key.namespace.as_str()
                && meta["name"] == key.name.as_str()
        })
    }

    /// A Secret of the manifest, or an existing one.
    pub async fn secret(&self, key: &Key) -> Result<Option<Secret>, ApiError> {
        match applied(self.manifest, key) {
            Some(secret) => Ok(Some(secret)),
            None => self.client.get::<Secret>(key).await,
        }
    }

    /// Clusters that get new machines.
    pub fn growing(&self) -> BTreeSet<Key> {
        let new = self.machines.iter().filter(|machine| machine.new);
        new.map(|machine| Key::new(machine.key.namespace.as_str(), machine.cluster.as_str())).collect()
    }
}

fn applied(manifest: &[Value], key: &Key) -> Option<Secret> {
    let object = manifest.iter().find(|object| {
        let meta = &object["metadata"];
        let namespace = meta["namespace"].as_str().unwrap_or("default");
        object["kind"] == "Secret" && namespace == key.namespace && meta["name"] == key.name.as_str()
    })?;
    let mut secret: Secret = serde_json::from_value(object.clone()).ok()?;
    for (field, text) in object["stringData"].as_object().into_iter().flatten() {
        secret.data.insert(field.clone(), text.as_str()?.as_bytes().to_vec());
    }
    Some(secret)
}

fn is_infrastructure(object: &Value, kind: &str) -> bool {
    object["kind"] == kind
        && object["apiVersion"].as_str().is_some_and(|api| api.contains("cluster.x-k8s.io/"))
}

/// The answers of clouds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CapacityAnswer {
    /// Limits that apply to machines of the plan.
    pub quotas: Vec<Quota>,
    /// Sizes that only the cloud knows, by machine.
    pub sizes: BTreeMap<Key, Size>,
    /// Orders that the cloud cannot carry out as the plan has them.
    pub refusals: Vec<Refusal>,
    /// What could not be checked: error code, problem, and fix.
    pub warnings: Vec<String>,
}

/// Why orders of a cluster would fail until the manifest or the cloud changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub cluster: Key,
    /// What is ordered, error code, problem, and fix.
    pub why: String,
}

/// The limits of one account, project or host.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// Owner of the limits, such as "CloudStack project demo".
    pub scope: String,
    /// The machines that count, by the plan's names.
    pub machines: BTreeSet<Key>,
    /// What is left now, or why that is unknown.
    pub left: Result<Left, String>,
    /// Limits besides those of machines, CPUs and memory.
    pub others: Vec<OtherLimit>,
    /// Error code if the plan needs more.
    pub exceeded: Code,
}

/// A limit besides those of machines, CPUs and memory, such as that of volumes.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLimit {
    /// In the plural, such as "volumes".
    pub what: &'static str,
    pub left: Amount,
    /// What each machine takes as long as it exists; a machine without an entry takes nothing.
    pub by_machine: BTreeMap<Key, u64>,
    /// What the plan takes besides its machines, such as for the load balancer of a new cluster.
    pub besides: u64,
}

/// What is left of limits; `None` if the cloud does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Left {
    pub machines: Option<Amount>,
    pub cpus: Option<Amount>,
    #[serde(rename = "memoryMiB")]
    pub memory_mib: Option<Amount>,
}

/// A remaining amount; negative if a limit was lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Limited(i64),
    Unlimited,
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limited(most) => serializer.collect_str(most),
            Self::Unlimited => serializer.serialize_str("Unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_the_manifest_are_used_before_they_exist() {
        let manifest = [json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
            "data": {"api-key": "YQ=="}, "stringData": {"secret-key": "s"}})];
        let keys = applied(&manifest, &Key::new("default", "keys")).expect("applied");
        assert_eq!((&keys.data["api-key"][..], &keys.data["secret-key"][..]), (&b"a"[..], &b"s"[..]));
        assert!(applied(&manifest, &Key::new("other", "keys")).is_none());
    }
}
