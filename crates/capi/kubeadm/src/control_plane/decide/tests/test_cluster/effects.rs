//! Applies effects to the in-memory objects.

use capstan_controller::{Effect, Patch};
use capstan_object::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::TestCluster;
use crate::control_plane::calls::{ControlPlaneCall, InstalledObject};
use crate::testing::object;

impl TestCluster {
    pub(super) fn apply(&mut self, effect: Effect<ControlPlaneCall>) {
        self.version += 1;
        let version = self.version.to_string();
        match effect {
            Effect::Create { kind, mut body } => {
                body["metadata"]["resourceVersion"] = version.into();
                body["metadata"]["uid"] = format!("uid-{}", body["metadata"]["name"]).into();
                body["metadata"]["creationTimestamp"] = Time::new(self.now).to_string().into();
                let name = body["metadata"]["name"].as_str().expect("a name").to_owned();
                match kind.kind.as_ref() {
                    "Secret" => drop(self.secrets.insert(name, typed(body))),
                    "KubeadmConfig" => drop(self.configs.insert(name, typed(body))),
                    "Machine" => {
                        // The Machine controller takes ownership of its objects.
                        for part in
                            [self.configs.get_mut(&name).map(|c| &mut c.metadata)].into_iter().flatten()
                        {
                            part.owner_references = vec![object(
                                "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: m, uid: m}",
                            )];
                        }
                        if let Some(part) = self.infrastructure.get_mut(&name) {
                            part["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "m"}]);
                        }
                        assert!(self.machines.insert(name, typed(body)).is_none(), "a name is used once");
                    }
                    "SimMachine" => drop(self.infrastructure.insert(name, body)),
                    other => panic!("created {other}"),
                }
            }
            Effect::Patch { target, patch: Patch::Merge(patch), .. } => {
                let name = target.key.name.as_str();
                match target.kind.kind.as_ref() {
                    "Machine" => merge(self.machines.get_mut(name).expect("a machine"), &patch, &version),
                    "KubeadmConfig" => merge(self.configs.get_mut(name).expect("a config"), &patch, &version),
                    "Secret" => merge(self.secrets.get_mut(name).expect("a secret"), &patch, &version),
                    "SimMachine" => merge(self.infrastructure.get_mut(name).expect("one"), &patch, &version),
                    other => panic!("patched {other}"),
                }
            }
            Effect::Delete { target, .. } => match target.kind.kind.as_ref() {
                "Machine" => {
                    let machine = self.machines.get_mut(&target.key.name).expect("a machine");
                    machine.metadata.deletion_timestamp = Some(Time::new(self.now));
                    machine.metadata.resource_version = version;
                }
                "KubeadmConfig" => drop(self.configs.remove(&target.key.name)),
                "SimMachine" => drop(self.infrastructure.remove(&target.key.name)),
                other => panic!("deleted {other}"),
            },
            Effect::Call(call) => self.make(call),
            other => panic!("{other:?}"),
        }
    }

    fn make(&mut self, call: ControlPlaneCall) {
        let reached = self.reached.as_mut().expect("a workload cluster");
        match call {
            ControlPlaneCall::RemoveMember { id, nodes, .. } => {
                assert!(!nodes.is_empty());
                self.etcd(|members, leader| {
                    let gone = members.iter().position(|member| member.id == id).expect("a member");
                    let gone = members.remove(gone);
                    assert_ne!(gone.name, *leader, "the leader is not removed");
                });
            }
            ControlPlaneCall::MoveLeader { from, to } => self.etcd(|_, leader| {
                assert_eq!(*leader, from);
                *leader = to;
            }),
            ControlPlaneCall::Bind { name } => reached.bindings.get_or_insert_default().push(name),
            ControlPlaneCall::Change { what, change } => match what {
                InstalledObject::KubeadmConfig => {
                    merge(reached.kubeadm_config.as_mut().expect("one"), &change, "2")
                }
                InstalledObject::KubeProxy => merge(reached.kube_proxy.as_mut().expect("one"), &change, "2"),
                InstalledObject::CoreDns => merge(reached.coredns.as_mut().expect("one"), &change, "2"),
                InstalledObject::CoreDnsConfig => {
                    merge(reached.coredns_config.as_mut().expect("one"), &change, "2")
                }
            },
        }
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

/// Merges a patch; its resourceVersion guard must match.
fn merge<T: Serialize + DeserializeOwned>(object: &mut T, patch: &Value, version: &str) {
    let mut value = serde_json::to_value(&*object).expect("JSON");
    let guard = &patch["metadata"]["resourceVersion"];
    assert!(guard.is_null() || *guard == value["metadata"]["resourceVersion"], "a conflict: {patch}");
    lay_over(&mut value, patch);
    value["metadata"]["resourceVersion"] = version.into();
    *object = typed(value);
}

fn lay_over(base: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(base.as_object_mut().expect("an object").remove(key)),
            value => lay_over(&mut base[key], value),
        }
    }
}
