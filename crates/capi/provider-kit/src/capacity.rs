//! Whether a cloud has what a plan takes: the provider's part of `capstan plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_capi_core::secret::Secret;
use capstan_controller::{ApiError, Client, Code};
use capstan_object::Key;
use futures::future::BoxFuture;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// How large a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// Cores.
    pub cpus: u64,
    /// Memory in MiB.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u64,
}

impl Size {
    /// The size that an infrastructure machine has in its own `spec.cpus` and `spec.memoryMiB`.
    pub fn in_spec(object: &Value) -> Option<Self> {
        let said = |field: &str| object["spec"][field].as_u64();
        Some(Self { cpus: said("cpus")?, memory_mib: said("memoryMiB")? })
    }
}

/// How `plan` simulates a provider's machines: as any provider's, by the contract, with what differs said here. A provider
/// without a model is simulated with [`Size::in_spec`] and provider ids named after the kind.
#[derive(Debug, Clone, Copy)]
pub struct MachineModel {
    /// The kind of infrastructure machine, such as `KVMMachine`.
    pub kind: &'static str,
    /// What a provider id begins with, such as `kvm:///`.
    pub provider_id_prefix: &'static str,
    /// How large the machine of an object is, where the object says so itself.
    pub size: fn(&Value) -> Option<Size>,
}

/// Asks clouds about machines that a plan would order. Nothing is ordered or changed.
pub trait Capacity: Send + Sync {
    /// Answers for the provider's own machines and is silent about all others. Bounds its own waiting: a cloud that does
    /// not answer within seconds is a quota that is not known.
    fn answer<'a>(&'a self, question: CapacityQuestion<'a>) -> BoxFuture<'a, CapacityAnswer>;
}

/// What a plan would do.
#[derive(Clone, Copy)]
pub struct CapacityQuestion<'a> {
    /// The management cluster, for Secrets with credentials.
    pub client: &'a Client,
    /// Objects that would be applied; they go before those that are there.
    pub manifest: &'a [Value],
    /// All objects but Secrets, as they are when the plan is done.
    pub objects: &'a [Value],
    /// Machines that are there, and those that would be created, each once.
    pub machines: &'a [PlannedMachine],
}

/// A machine of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedMachine {
    /// Namespace and name; those of new machines are the plan's.
    pub key: Key,
    /// Name of its cluster.
    pub cluster: String,
    /// `Kind/name` of what it is a replica of; empty if it is of nothing.
    pub of: String,
    /// Kubernetes version.
    pub version: String,
    /// Failure domain; empty if the provider chooses.
    pub failure_domain: String,
    /// It is yet to be created.
    pub new: bool,
    /// The object that stands for it at its provider.
    pub infrastructure: Arc<Value>,
}

impl PlannedMachine {
    /// Whether it is made from objects of a kind of infrastructure.
    pub fn is_of(&self, kind: &str) -> bool {
        is_infrastructure(&self.infrastructure, kind)
    }
}

impl CapacityQuestion<'_> {
    /// An object of Cluster API or a provider by kind and name, as it is when the plan is done.
    pub fn object(&self, kind: &str, key: &Key) -> Option<&Value> {
        self.objects.iter().find(|object| {
            let meta = &object["metadata"];
            is_infrastructure(object, kind)
                && meta["namespace"] == key.namespace.as_str()
                && meta["name"] == key.name.as_str()
        })
    }

    /// A Secret of the manifest, which will be there, or else one that is there.
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

/// What clouds say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CapacityAnswer {
    /// Limits that hold for machines of the plan.
    pub quotas: Vec<Quota>,
    /// Sizes that only the cloud knows, by machine.
    pub sizes: BTreeMap<Key, Size>,
    /// Why orders would fail: the code, what, and the fix.
    pub warnings: Vec<String>,
}

/// The limits of one account, project or host.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// Whose limits these are, as in "CloudStack project demo".
    pub scope: String,
    /// The machines that count, by the plan's names.
    pub machines: BTreeSet<Key>,
    /// What is left now, or why that is not known.
    pub left: Result<Left, String>,
    /// The code of a plan that needs more.
    pub exceeded: Code,
}

/// What is left of limits; absent where the cloud does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Left {
    /// Machines.
    pub machines: Option<Amount>,
    /// Cores.
    pub cpus: Option<Amount>,
    /// Memory in MiB.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: Option<Amount>,
}

/// How much of something may be had. Limits that were lowered leave less than nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Limited(i64),
    /// Without bound.
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
    fn secrets_of_the_manifest_are_used_before_they_are_there() {
        let manifest = [json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
            "data": {"api-key": "YQ=="}, "stringData": {"secret-key": "s"}})];
        let keys = applied(&manifest, &Key::new("default", "keys")).expect("applied");
        assert_eq!((&keys.data["api-key"][..], &keys.data["secret-key"][..]), (&b"a"[..], &b"s"[..]));
        assert!(applied(&manifest, &Key::new("other", "keys")).is_none());
    }
}
