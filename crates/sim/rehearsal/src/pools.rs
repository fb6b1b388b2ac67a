//! A model of pools: the provider keeps an object for each machine, and replaces machines one by one, a new one first. That
//! is the contract of providers whose pools have Machines. Pools of other providers are not modelled.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use capstan_capi_core::paused;
use capstan_capi_types::core::{Machine, MachinePool, condition, label};
use capstan_controller::{ApiError, Deletion, KindName, Patch};
use capstan_object::{Conditions as _, Key, Object as _};
use serde_json::{Map, Value, json};

use crate::infrastructure::{Model, Snapshot, is_deleting, is_provisioned};

/// On the provider's machines: what they were made from. Those that were recorded get what their pool had then.
const REVISION: &str = "capstan.dev/plan-revision";

/// A Machine of a pool with the boot data and the version of its pool.
pub(crate) fn with_boot_data(mut machine: Machine, pools: &[MachinePool]) -> Machine {
    let pool = pools.iter().find(|pool| machine.metadata.is_owned_by(&pool.metadata.uid));
    if let Some(template) = pool.map(|pool| &pool.spec.template.spec) {
        machine.spec.bootstrap.data_secret_name = template.bootstrap.data_secret_name.clone();
        if machine.spec.version.is_empty() {
            machine.spec.version = template.version.clone();
        }
    }
    machine
}

/// A machine of a pool.
struct Member<'a> {
    key: Key,
    object: &'a Value,
    machine: Option<&'a Machine>,
}

impl Member<'_> {
    fn is_deleting(&self) -> bool {
        is_deleting(self.object) || self.machine.is_some_and(|machine| machine.metadata.is_deleting())
    }

    fn is_ready(&self) -> bool {
        self.machine.is_some_and(|machine| machine.status.conditions.is_condition_true(condition::READY))
    }

    fn revision(&self) -> Option<&str> {
        self.object["metadata"]["annotations"][REVISION].as_str()
    }
}

fn hash(parts: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What machines of a pool are made from.
fn revision(pool: &MachinePool, object: &Value) -> String {
    let mut spec = object["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("providerIDList");
    }
    hash(&[&spec.to_string(), &pool.spec.template.spec.version])
}

impl Model {
    /// The kind of a pool's machines: as reported, or named like the pool.
    fn machine_kind(&self, kind: &KindName, object: &Value) -> Option<&KindName> {
        let reported = object["status"]["infrastructureMachineKind"].as_str();
        let name = reported.or_else(|| kind.kind.strip_suffix("Pool"))?;
        self.kinds.iter().find(|it| it.group == kind.group && it.kind == name)
    }

    pub(crate) async fn pool(&self, snapshot: &Snapshot, pool: &MachinePool) -> Result<(), ApiError> {
        let meta = &pool.metadata;
        let reference = &pool.spec.template.spec.infrastructure_ref;
        let key = Key::new(&meta.namespace, &reference.name);
        let cluster = snapshot.clusters.get(&Key::new(&meta.namespace, &pool.spec.cluster_name));
        let held = snapshot.objects.get(&(reference.api_group.clone(), reference.kind.clone(), key.clone()));
        let (Some(cluster), Some((kind, object))) = (cluster, held) else { return Ok(()) };
        let Some(machine_kind) = self.machine_kind(kind, object) else { return Ok(()) };
        if paused::why(Some(cluster), meta, &kind.kind).is_some() {
            return Ok(());
        }
        let members = members(snapshot, pool, machine_kind);
        if is_deleting(object) {
            for member in members.iter().filter(|member| !member.is_deleting()) {
                self.delete(machine_kind, member).await?;
            }
            let finalized = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
            if members.is_empty() && !finalized {
                let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                self.client.patch(kind, &key, None, &patch).await?;
            }
            return Ok(());
        }
        let revision = revision(pool, object);
        for member in members.iter().filter(|member| member.revision().is_none()) {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {REVISION: revision}}}));
            self.client.patch(machine_kind, &member.key, None, &patch).await?;
        }
        let live: Vec<&Member<'_>> = members.iter().filter(|member| !member.is_deleting()).collect();
        let wanted = pool.spec.replicas.map_or(1, |replicas| usize::try_from(replicas).unwrap_or(0));
        self.report(kind, &key, object, machine_kind, &live, wanted).await?;
        let has_data =
            pool.spec.template.spec.bootstrap.data_secret_name.as_ref().is_some_and(|it| !it.is_empty());
        if cluster.status.initialization.infrastructure_provisioned != Some(true)
            || !has_data
            || cluster.metadata.is_deleting()
            || meta.is_deleting()
        {
            return Ok(());
        }
        let (mut current, mut outdated): (Vec<&Member<'_>>, Vec<&Member<'_>>) =
            live.iter().copied().partition(|member| member.revision().is_none_or(|it| it == revision));
        // One more than wanted while machines are replaced.
        let most = wanted + usize::from(!outdated.is_empty());
        let missing = most.saturating_sub(live.len()).min(wanted.saturating_sub(current.len()));
        for number in 0..missing {
            let body = machine(pool, (kind, object), machine_kind, &revision, &self.suffix(&key, number));
            self.client.create(machine_kind, &meta.namespace, &body).await?;
        }
        // As many outdated machines stay as are needed until current ones are ready.
        let ready = current.iter().filter(|member| member.is_ready()).count();
        let replaceable = (ready + outdated.len()).saturating_sub(wanted).min(outdated.len());
        outdated.sort_by_key(|member| (member.is_ready(), member.key.name.clone()));
        current.sort_by_key(|member| (member.is_ready(), member.key.name.clone()));
        let surplus = current.len().saturating_sub(wanted);
        for member in outdated.iter().take(replaceable).chain(current.iter().take(surplus)) {
            self.delete(machine_kind, member).await?;
        }
        Ok(())
    }

    /// A name that no machine of the pool had before: the store changes with each of them.
    fn suffix(&self, pool: &Key, number: usize) -> String {
        let revision = self.store.revision().to_string();
        hash(&[&pool.to_string(), &revision, &number.to_string()]).chars().take(5).collect()
    }

    /// Deletes a machine by way of its Machine, so that its node is drained.
    async fn delete(&self, kind: &KindName, member: &Member<'_>) -> Result<(), ApiError> {
        let deleted = match member.machine {
            Some(machine) => {
                self.client.delete(&KindName::of::<Machine>(), &machine.key(), &Deletion::default()).await
            }
            None => self.client.delete(kind, &member.key, &Deletion::default()).await,
        };
        match deleted {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Reports the machines of a pool, as the contract wants it.
    async fn report(
        &self,
        kind: &KindName,
        key: &Key,
        object: &Value,
        machine_kind: &KindName,
        live: &[&Member<'_>],
        wanted: usize,
    ) -> Result<(), ApiError> {
        let ids = live.iter().filter_map(|member| member.object["spec"]["providerID"].as_str());
        let mut ids: Vec<&str> = ids.filter(|id| !id.is_empty()).collect();
        ids.sort_unstable();
        let known: Vec<&str> = object["spec"]["providerIDList"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if ids != known {
            let patch = Patch::Merge(json!({"spec": {"providerIDList": ids}}));
            self.client.patch(kind, key, None, &patch).await?;
        }
        let mut status = Map::new();
        let mut set = |field: &str, value: Value| {
            if object["status"][field] != value {
                status.insert(field.to_owned(), value);
            }
        };
        set("replicas", live.len().into());
        set("infrastructureMachineKind", machine_kind.kind.as_ref().into());
        let provisioned = live.iter().filter(|member| is_provisioned(member.object)).count();
        if provisioned >= wanted && !is_provisioned(object) {
            set("ready", true.into());
            set("initialization", json!({"provisioned": true}));
        }
        // What its controller said about machines that are complete in the copy.
        let waits = object["status"]["conditions"].as_array().is_some_and(|conditions| {
            conditions.iter().any(|it| it["type"] == "Ready" && it["status"] != "True")
        });
        if waits && live.len() == wanted && live.iter().all(|member| member.is_ready()) {
            set("conditions", Value::Null);
        }
        if !status.is_empty() {
            let patch = Patch::Merge(json!({ "status": status }));
            self.client.patch(kind, key, Some("status"), &patch).await?;
        }
        Ok(())
    }
}

/// The machines of a pool, by name.
fn members<'a>(snapshot: &'a Snapshot, pool: &MachinePool, kind: &KindName) -> Vec<Member<'a>> {
    let name = label::value(&pool.metadata.name);
    let of_pool = snapshot.objects.iter().filter(|((_, _, key), (held, object))| {
        let labels = &object["metadata"]["labels"];
        held == kind
            && key.namespace == pool.metadata.namespace
            && labels[label::POOL_NAME] == name.as_str()
            && labels[label::CLUSTER_NAME] == pool.spec.cluster_name.as_str()
    });
    let member = |((_, _, key), (_, object)): (&'a (String, String, Key), &'a (KindName, Value))| {
        let machine = snapshot.machines.iter().find(|machine| {
            let reference = &machine.spec.infrastructure_ref;
            machine.metadata.namespace == key.namespace
                && reference.kind == kind.kind
                && reference.name == key.name
        });
        Member { key: key.clone(), object, machine }
    };
    of_pool.map(member).collect()
}

/// A new machine of a pool.
fn machine(
    pool: &MachinePool,
    (pool_kind, object): (&KindName, &Value),
    kind: &KindName,
    revision: &str,
    suffix: &str,
) -> Value {
    let meta = &object["metadata"];
    let name = format!("{}-{suffix}", meta["name"].as_str().unwrap_or_default());
    let owner = json!({
        "apiVersion": pool_kind.api_version(), "kind": pool_kind.kind, "name": meta["name"], "uid": meta["uid"],
    });
    let template = &object["spec"]["template"];
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {
            "name": name, "namespace": pool.metadata.namespace, "ownerReferences": [owner],
            "annotations": {REVISION: revision},
            "labels": {
                label::CLUSTER_NAME: pool.spec.cluster_name,
                label::POOL_NAME: label::value(&pool.metadata.name),
            },
        },
        "spec": if template.is_object() { template.clone() } else { json!({}) },
    })
}
