//! A snapshot of everything that decisions are based on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::Digest;
use capstan_object::Key;
use capstan_store::Store;
use jiff::SignedDuration;
use jiff::Timestamp;
use serde_json::Value;

use super::super::GuestCluster;
use super::super::state::Size;
use crate::request::NodeRequest;

/// Observed kinds: bucket in the store, and prefix of the keys.
const OBSERVED: [(&str, &str, &str); 14] = [
    ("Node", "/nodes", ""),
    ("Pod", "/pods", ""),
    ("Secret", "/secrets", "kube-system/bootstrap-token-"),
    ("ConfigMap", "/configmaps", "kube-public/cluster-info"),
    ("DaemonSet", "apps/daemonsets", ""),
    ("Deployment", "apps/deployments", ""),
    ("ReplicaSet", "apps/replicasets", ""),
    ("StatefulSet", "apps/statefulsets", ""),
    ("Job", "batch/jobs", ""),
    ("PodDisruptionBudget", "policy/poddisruptionbudgets", ""),
    ("PersistentVolume", "/persistentvolumes", ""),
    ("PersistentVolumeClaim", "/persistentvolumeclaims", ""),
    ("VolumeAttachment", "storage.k8s.io/volumeattachments", ""),
    // Last: kubelets update Leases all the time, which must not trigger a reconcile.
    ("Lease", "coordination.k8s.io/leases", "kube-node-lease/"),
];

/// A machine as the cluster observes it.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) vm: String,
    pub(super) node: Arc<NodeRequest>,
    pub(super) size: Size,
    /// Its kubelet runs and reaches an API server.
    pub(super) posts: bool,
    pub(super) registers: bool,
    pub(super) network: bool,
    pub(super) silent_since: Option<Timestamp>,
    /// The `ClusterConfiguration` of its static Pods; `None` for workers.
    pub(super) control_plane: Option<Arc<Value>>,
}

/// Objects by kind and key, each with the revision it was read at.
pub(super) type Objects = BTreeMap<&'static str, BTreeMap<Arc<str>, (u64, Arc<Value>)>>;

pub(super) struct Snapshot {
    pub(super) now: Timestamp,
    /// Time from a Pod's binding to its readiness.
    pub(super) pod_start: SignedDuration,
    pub(super) heartbeat: Option<SignedDuration>,
    pub(super) machines: Vec<Machine>,
    /// Nodes whose machine was destroyed, and since when.
    pub(super) orphans: BTreeMap<String, Timestamp>,
    pub(super) objects: Objects,
}

impl Snapshot {
    /// `earlier` is the previous snapshot: unchanged objects are not read again.
    pub(super) fn take(cluster: &Arc<GuestCluster>, earlier: &Objects) -> Self {
        let store = cluster.plane.store();
        let mut objects = BTreeMap::new();
        for (kind, bucket, prefix) in OBSERVED {
            let entries = store.snapshot(bucket);
            let earlier = earlier.get(kind);
            let read = entries.range(prefix, None).filter_map(|entry| {
                let known = earlier.and_then(|earlier| earlier.get(&*entry.key));
                let object = match known.filter(|(revision, _)| *revision == entry.revision) {
                    Some((_, object)) => object.clone(),
                    None => Arc::new(serde_json::from_slice(&entry.value).ok()?),
                };
                Some((entry.key.clone(), (entry.revision, object)))
            });
            objects.insert(kind, read.collect());
        }
        let state = cluster.state.lock();
        let machines = state.machines.iter().map(|(vm, member)| Machine {
            vm: vm.clone(),
            node: member.node.clone(),
            size: member.size,
            posts: state.posts(vm),
            registers: member.registers,
            network: member.network,
            silent_since: member.silent_since,
            control_plane: member.control_plane.as_ref().map(|serving| serving.configuration.clone()),
        });
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::ZERO);
        Self {
            now: cluster.env.now(),
            pod_start: signed(cluster.options.timings.pod),
            heartbeat: cluster.options.heartbeat.map(signed),
            machines: machines.collect(),
            orphans: state.orphans.clone(),
            objects,
        }
    }

    /// All objects of a kind, ordered by namespace and name.
    pub(super) fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.get(kind).into_iter().flat_map(BTreeMap::values).map(|(_, object)| &**object)
    }

    /// An object by `namespace/name`, or by name if cluster-scoped.
    pub(super) fn get(&self, kind: &str, key: &str) -> Option<&Value> {
        self.objects.get(kind)?.get(key).map(|(_, object)| &**object)
    }

    /// The machine of a Node: of several with the same name, a running one.
    pub(super) fn machine_of(&self, node: &str) -> Option<&Machine> {
        let named = || self.machines.iter().filter(|machine| machine.node.name == node);
        named().find(|machine| machine.posts).or_else(|| named().next_back())
    }

    /// The time of the snapshot in RFC 3339.
    pub(super) fn stamp(&self) -> String {
        stamp(self.now)
    }

    /// Objects of a kind that an owner controls.
    pub(super) fn controlled<'a>(&'a self, kind: &str, owner: &'a Value) -> impl Iterator<Item = &'a Value> {
        let (uid, namespace) = (uid(owner), namespace(owner));
        self.all(kind)
            .filter(move |object| self::namespace(object) == namespace && controller_uid(object) == Some(uid))
    }
}

/// Revisions of the observed kinds, without Leases.
pub(super) fn revisions(store: &Store<Digest>) -> [u64; OBSERVED.len() - 1] {
    std::array::from_fn(|n| store.bucket_revision(OBSERVED[n].1))
}

pub(super) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

pub(super) fn key(object: &Value) -> Key {
    Key::new(namespace(object), name(object))
}

pub(super) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Uid of the controlling owner.
pub(super) fn controller_uid(object: &Value) -> Option<&str> {
    controller(object)?["uid"].as_str()
}

/// The controlling owner.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

/// A controlling owner reference.
pub(super) fn controlled_by(api_version: &str, kind: &str, owner: &Value) -> Value {
    serde_json::json!([{
        "apiVersion": api_version, "kind": kind, "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    }])
}

pub(super) fn node_name(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty())
}

/// A Pod that has finished.
pub(super) fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}
