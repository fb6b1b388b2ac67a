//! A model of an infrastructure provider: what the contract requires of all of them, and nothing specific to one.
//!
//! One task observes objects and machines whenever they change, decides and acts. It keeps no state in between.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_apiserver::Digest;
use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, Machine, MachinePool, label};
use capstan_controller::{ApiError, Client, KindName, Patch, code_in};
use capstan_guest::Site;
use capstan_guest::vm::{Image, VmSpec};
use capstan_object::{Key, Object as _};
use capstan_provider_kit::decisions::waits_for;
use capstan_provider_kit::{MachineModel, Size};
use capstan_store::Store;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::events::MACHINES;
use crate::load::bucket;
use crate::pools::with_boot_data;
use crate::restore::{CPUS, MEMORY_MIB, OBJECT_TAG, balancer, keep_endpoint};

const CLUSTERS: &str = "cluster.x-k8s.io/clusters";
const POOLS: &str = "cluster.x-k8s.io/machinepools";

/// Tag of new machines: the provider id that their kubelets report.
const PROVIDER_ID_TAG: &str = "provider-id";

pub(crate) struct Model {
    pub(crate) client: Client,
    pub(crate) store: Store<Digest>,
    pub(crate) site: Site,
    /// The infrastructure kinds.
    pub(crate) kinds: Vec<KindName>,
    /// The providers' machine models.
    pub(crate) models: Vec<MachineModel>,
}

/// A snapshot of everything.
pub(crate) struct Snapshot {
    pub(crate) clusters: BTreeMap<Key, Cluster>,
    /// Machines of pools have the boot data of their pool.
    pub(crate) machines: Vec<Machine>,
    pools: Vec<MachinePool>,
    /// By group, kind and key.
    pub(crate) objects: BTreeMap<(String, String, Key), (KindName, Value)>,
}

impl Model {
    /// Follows objects and machines until it is dropped.
    pub(crate) async fn run(self) {
        let mut changes = self.site.changes();
        loop {
            let seen = self.revisions();
            self.reconcile().await;
            let changed = async {
                loop {
                    let revision = self.store.revision();
                    if self.revisions() != seen {
                        return;
                    }
                    self.store.reached(revision + 1).await;
                }
            };
            tokio::select! {
                biased;
                () = changed => {}
                changed = changes.recv() => if changed == Err(RecvError::Closed) { return },
            }
        }
    }

    fn revisions(&self) -> Vec<u64> {
        let own = self.kinds.iter().map(|kind| bucket(&kind.group, &kind.plural));
        let all = [CLUSTERS, MACHINES, POOLS].map(str::to_owned).into_iter().chain(own);
        all.map(|bucket| self.store.bucket_revision(&bucket)).collect()
    }

    fn observe(&self) -> Snapshot {
        let read = |bucket: &str| -> Vec<Value> {
            let snapshot = self.store.snapshot(bucket);
            snapshot.range("", None).filter_map(|entry| serde_json::from_slice(&entry.value).ok()).collect()
        };
        let clusters = read(CLUSTERS).into_iter().filter_map(|value| serde_json::from_value(value).ok());
        let machines = read(MACHINES).into_iter().filter_map(|value| serde_json::from_value(value).ok());
        let pools = read(POOLS).into_iter().filter_map(|value| serde_json::from_value(value).ok());
        let pools: Vec<MachinePool> = pools.collect();
        let mut objects = BTreeMap::new();
        for kind in &self.kinds {
            for object in read(&bucket(&kind.group, &kind.plural)) {
                objects.insert(
                    (kind.group.to_string(), kind.kind.to_string(), key_of(&object)),
                    (kind.clone(), object),
                );
            }
        }
        Snapshot {
            clusters: clusters.map(|cluster: Cluster| (cluster.key(), cluster)).collect(),
            machines: machines.map(|machine| with_boot_data(machine, &pools)).collect(),
            pools,
            objects,
        }
    }

    async fn reconcile(&self) {
        let snapshot = self.observe();
        self.delete_orphans(&snapshot);
        for pool in &snapshot.pools {
            if let Err(error) = self.pool(&snapshot, pool).await {
                tracing::debug!(%error, pool = pool.metadata.name, "not modelled yet");
            }
        }
        for machine in &snapshot.machines {
            if let Err(error) = self.machine(&snapshot, machine).await {
                tracing::debug!(%error, machine = machine.metadata.name, "not modelled yet");
            }
        }
        for cluster in snapshot.clusters.values() {
            if let Err(error) = self.cluster(&snapshot, cluster).await {
                tracing::debug!(%error, cluster = cluster.metadata.name, "not modelled yet");
            }
        }
        self.complete_deletions(&snapshot).await;
    }

    /// Deletes machines whose object is gone.
    fn delete_orphans(&self, snapshot: &Snapshot) {
        let there: BTreeSet<&str> =
            snapshot.objects.values().filter_map(|(_, object)| object["metadata"]["uid"].as_str()).collect();
        for vm in self.site.vms() {
            if vm.tags.get(OBJECT_TAG).is_some_and(|uid| !there.contains(uid.as_str())) {
                // It existed a moment ago.
                let _ = self.site.destroy(&vm.id);
            }
        }
    }

    async fn machine(&self, snapshot: &Snapshot, machine: &Machine) -> Result<(), ApiError> {
        let meta = &machine.metadata;
        let reference = &machine.spec.infrastructure_ref;
        let key = Key::new(&meta.namespace, &reference.name);
        let cluster = snapshot.clusters.get(&Key::new(&meta.namespace, &machine.spec.cluster_name));
        let held = snapshot.objects.get(&(reference.api_group.clone(), reference.kind.clone(), key.clone()));
        let (Some(cluster), Some((kind, object))) = (cluster, held) else { return Ok(()) };
        if paused::why(Some(cluster), meta, &kind.kind).is_some() || is_deleting(object) {
            return Ok(());
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let vm = match self.site.vm(uid) {
            Some(vm) => vm,
            // A machine that is gone is reported, never created again. The first machine of a cluster that was recorded while it
            // booted is not gone: its boot is repeated.
            None if is_provisioned(object) && !is_first_boot(machine, cluster) => return Ok(()),
            None if waits_for(machine, cluster).is_some() => return Ok(()),
            None => {
                let Some(spec) = self.specification(snapshot, machine, kind, object).await? else {
                    return Ok(());
                };
                match self.site.create(spec) {
                    Ok(vm) => vm,
                    Err(_) => return Ok(()),
                }
            }
        };
        // What its controller said about a boot that is over in the copy.
        let outdated = machine.status.node_ref.name.is_empty() && only_waits(object);
        if is_provisioned(object) {
            if outdated {
                let patch = Patch::Merge(json!({"status": {"conditions": null}}));
                self.client.patch(kind, &key, Some("status"), &patch).await?;
            }
            return Ok(());
        }
        if object["spec"]["providerID"].as_str().is_none_or(str::is_empty) {
            let id = vm.tags.get(PROVIDER_ID_TAG);
            let patch = Patch::Merge(json!({"spec": {"providerID": id}}));
            self.client.patch(kind, &key, None, &patch).await?;
        }
        let mut status = json!({
            "ready": true, "initialization": {"provisioned": true},
            "addresses": [{"type": "InternalIP", "address": vm.address.to_string()}],
        });
        // In one patch with the rest: a status without any property is refused.
        if outdated {
            status["conditions"] = Value::Null;
        }
        if !machine.spec.failure_domain.is_empty() {
            status["failureDomain"] = machine.spec.failure_domain.as_str().into();
        }
        self.client.patch(kind, &key, Some("status"), &Patch::Merge(json!({ "status": status }))).await?;
        Ok(())
    }

    async fn specification(
        &self,
        snapshot: &Snapshot,
        machine: &Machine,
        kind: &KindName,
        object: &Value,
    ) -> Result<Option<VmSpec>, ApiError> {
        let secret = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
        let secrets = KindName::namespaced("", "v1", "Secret", "secrets");
        let found = self.client.get_raw(&secrets, &Key::new(&machine.metadata.namespace, secret)).await?;
        let Some(found) = found else { return Ok(None) };
        let found: Value = found.parse()?;
        let data = found["data"]["value"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let model = self.models.iter().find(|model| kind.kind == model.kind);
        let recorded = object["spec"]["providerID"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        let id = recorded.unwrap_or_else(|| provider_id(snapshot, kind, model, &uid));
        let size = model.map_or(Size::in_spec as fn(&Value) -> _, |model| model.size)(object);
        let cpus = size.and_then(|size| size.cpus.try_into().ok()).unwrap_or(CPUS);
        Ok(data.map(|user_data| VmSpec {
            name: machine.metadata.name.clone(),
            user_data,
            image: Image { kubernetes: Some(machine.spec.version.clone()).filter(|it| !it.is_empty()) },
            address: None,
            provider_id: Some(id.clone()),
            cpus,
            memory_mib: size.map_or(MEMORY_MIB, |size| size.memory_mib),
            tags: BTreeMap::from([(OBJECT_TAG.to_owned(), uid.clone()), (PROVIDER_ID_TAG.to_owned(), id)]),
            faults: Vec::new(),
            id: uid,
        }))
    }

    async fn cluster(&self, snapshot: &Snapshot, cluster: &Cluster) -> Result<(), ApiError> {
        let name = cluster.key();
        let reference = &cluster.spec.infrastructure_ref;
        let key = Key::new(&name.namespace, &reference.name);
        let held = snapshot.objects.get(&(reference.api_group.clone(), reference.kind.clone(), key.clone()));
        let Some((kind, object)) = held else { return Ok(()) };
        if paused::why(Some(cluster), &cluster.metadata, &kind.kind).is_some() || is_deleting(object) {
            return Ok(());
        }
        let owned = object["metadata"]["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty());
        if !is_provisioned(object) && owned {
            let endpoint = &object["spec"]["controlPlaneEndpoint"];
            let port = endpoint["port"].as_i64().and_then(|port| i32::try_from(port).ok()).unwrap_or(0);
            if endpoint["host"].as_str().is_none_or(str::is_empty) {
                let chosen = self.site.endpoint(&balancer(&name));
                let wanted = if port > 0 { port } else { i32::from(chosen.port()) };
                if wanted != i32::from(chosen.port()) {
                    self.site.release(chosen);
                    keep_endpoint(&self.site, &name, &chosen.ip().to_string(), wanted);
                }
                let wanted = json!({"host": chosen.ip().to_string(), "port": wanted});
                let patch = Patch::Merge(json!({"spec": {"controlPlaneEndpoint": wanted}}));
                self.client.patch(kind, &key, None, &patch).await?;
            }
            // A default says that no controller has seen the object.
            let mut status =
                json!({"ready": true, "initialization": {"provisioned": true}, "conditions": null});
            if let Some(domains) = object["spec"]["failureDomains"].as_array() {
                let domain = |domain: &Value| json!({"name": domain["name"], "controlPlane": domain["controlPlane"].as_bool().unwrap_or(true)});
                status["failureDomains"] = domains.iter().map(domain).collect();
            }
            self.client.patch(kind, &key, Some("status"), &Patch::Merge(json!({ "status": status }))).await?;
        }
        let generation = &object["metadata"]["generation"];
        if object["status"]["observedGeneration"].is_i64()
            && object["status"]["observedGeneration"] != *generation
        {
            let patch = Patch::Merge(json!({"status": {"observedGeneration": generation}}));
            self.client.patch(kind, &key, Some("status"), &patch).await?;
        }
        self.balance(snapshot, cluster, object);
        Ok(())
    }

    /// Updates the load balancer of a cluster to its remaining control plane machines.
    fn balance(&self, snapshot: &Snapshot, cluster: &Cluster, object: &Value) {
        let name = cluster.key();
        let endpoint = &object["spec"]["controlPlaneEndpoint"];
        let Some(host) = endpoint["host"].as_str().filter(|host| !host.is_empty()) else { return };
        let held = self.site.balancer(&balancer(&name));
        let held = held.map(|held| (held.endpoint, held.members)).unwrap_or_else(|| {
            let port = endpoint["port"].as_i64().and_then(|port| i32::try_from(port).ok()).unwrap_or(0);
            (keep_endpoint(&self.site, &name, host, port), BTreeSet::new())
        });
        let members: BTreeSet<Ipv4Addr> = snapshot
            .machines
            .iter()
            .filter(|machine| {
                let meta = &machine.metadata;
                meta.namespace == name.namespace
                    && machine.spec.cluster_name == name.name
                    && meta.labels.contains_key(label::CONTROL_PLANE)
            })
            .filter_map(|machine| {
                let reference = &machine.spec.infrastructure_ref;
                let key = Key::new(&name.namespace, &reference.name);
                let held = snapshot.objects.get(&(reference.api_group.clone(), reference.kind.clone(), key));
                let (_, object) = held.filter(|(_, object)| !is_deleting(object))?;
                Some(self.site.vm(object["metadata"]["uid"].as_str()?)?.address)
            })
            .collect();
        if members != held.1 {
            self.site.balance(held.0, members);
        }
    }

    /// Completes deletions: machines with their objects, everything else when the cluster has no machines.
    async fn complete_deletions(&self, snapshot: &Snapshot) {
        let of_machines: BTreeSet<(&str, &str, &str)> = snapshot
            .machines
            .iter()
            .map(|machine| {
                let reference = &machine.spec.infrastructure_ref;
                (machine.metadata.namespace.as_str(), reference.kind.as_str(), reference.name.as_str())
            })
            .collect();
        for ((_, name, key), (kind, object)) in &snapshot.objects {
            let held = object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
            if !is_deleting(object) || !held {
                continue;
            }
            let is_machine =
                of_machines.contains(&(key.namespace.as_str(), name.as_str(), key.name.as_str()));
            let cluster = object["metadata"]["labels"][label::CLUSTER_NAME].as_str();
            let populated = snapshot.machines.iter().any(|machine| {
                machine.metadata.namespace == key.namespace
                    && Some(machine.spec.cluster_name.as_str()) == cluster
            });
            if !is_machine && populated {
                continue;
            }
            if let Some(vm) = object["metadata"]["uid"].as_str().and_then(|uid| self.site.vm(uid)) {
                // It existed a moment ago.
                let _ = self.site.destroy(&vm.id);
            }
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            if let Err(error) = self.client.patch(kind, key, None, &patch).await {
                tracing::debug!(%error, object = %key, "finalizer not removed");
            }
        }
    }
}

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

/// Whether the machine may still become the first node of its cluster.
fn is_first_boot(machine: &Machine, cluster: &Cluster) -> bool {
    machine.metadata.labels.contains_key(label::CONTROL_PLANE)
        && machine.status.node_ref.name.is_empty()
        && cluster.status.initialization.control_plane_initialized != Some(true)
}

/// Whether conditions of an infrastructure machine say that it is not ready, and none that something failed.
fn only_waits(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let failed = |condition: &Value| {
        code_in(&text(condition, "message")).is_some() || text(condition, "reason").contains("Failed")
    };
    conditions.iter().any(|condition| condition["status"] != "True") && !conditions.iter().any(failed)
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// By either contract version.
pub(crate) fn is_provisioned(object: &Value) -> bool {
    object["status"]["initialization"]["provisioned"] == true || object["status"]["ready"] == true
}

/// The provider id of a new machine: in the form of existing ones, or as the provider's model says, or named after
/// its kind.
fn provider_id(snapshot: &Snapshot, kind: &KindName, model: Option<&MachineModel>, uid: &str) -> String {
    let others = snapshot.objects.values().filter(|(held, _)| held == kind);
    let known = others.filter_map(|(_, object)| object["spec"]["providerID"].as_str());
    let known = known.filter_map(|id| id.rfind('/').map(|at| &id[..=at])).next();
    let prefix = known.or(model.map(|model| model.provider_id_prefix)).map_or_else(
        || format!("{}:///", kind.kind.to_lowercase().trim_end_matches("machine")),
        str::to_owned,
    );
    format!("{prefix}{uid}")
}
