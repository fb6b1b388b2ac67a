//! An in-memory management cluster and workload cluster that apply a control plane's decisions.

mod effects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_capi_core::contract::{ContractVersion, External, Lookup};
use capstan_capi_core::workload::Node;
use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{Health, KindName, Look, ObjectRef};
use capstan_object::{Conditions, Time};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::certificates::{Keys, Purpose, SeededKeys};
use crate::control_plane::Settings;
use crate::control_plane::decide::decide;
use crate::control_plane::decide::scope::Decided;
use crate::control_plane::installed::{COMPONENTS, pod_name};
use crate::control_plane::observed::{
    EtcdMember, EtcdState, InPlace, Observed, ObservedMachine, Workload, WorkloadState,
};
use crate::control_plane::rollout::candidate;
use crate::testing::object;
use capstan_capi_core::secret::Secret;

pub fn moment(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

pub struct TestCluster {
    pub control_plane: KubeadmControlPlane,
    pub cluster: Cluster,
    pub machines: BTreeMap<String, Machine>,
    pub configs: BTreeMap<String, KubeadmConfig>,
    pub infrastructure: BTreeMap<String, Value>,
    pub secrets: BTreeMap<String, Secret>,
    /// The workload cluster, once a machine has booted.
    pub reached: Option<WorkloadState>,
    /// Set while the workload cluster is unreachable.
    pub silent: Option<String>,
    pub health: Health,
    pub has_template: bool,
    /// What an extension says about a machine, if there is one.
    pub extension: Option<fn(&str) -> InPlace>,
    pub now: Timestamp,
    version: u64,
}

impl TestCluster {
    /// A cluster with infrastructure, and a control plane without machines yet.
    pub fn new(replicas: i32, rest: &str) -> Self {
        let control_plane = object(&format!(
            "
metadata:
  name: blue-cp
  namespace: fleet
  uid: kcp-uid
  generation: 1
  ownerReferences: [{{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: blue, uid: cluster-uid}}]
spec:
  replicas: {replicas}
  version: v1.34.1
  machineTemplate: {{spec: {{infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: SimMachineTemplate, name: cp}}}}}}
{rest}
"
        ));
        let mut cluster = crate::testing::cluster();
        cluster.status.initialization.infrastructure_provisioned = Some(true);
        Self {
            control_plane,
            cluster,
            machines: BTreeMap::new(),
            configs: BTreeMap::new(),
            infrastructure: BTreeMap::new(),
            secrets: BTreeMap::new(),
            reached: None,
            silent: None,
            health: Health::default(),
            has_template: true,
            extension: None,
            now: moment("2026-11-15T08:00:00Z"),
            version: 0,
        }
    }

    /// All machines exist and are healthy; machine `n` is node `n<n>`, the first one leads etcd.
    pub fn running(replicas: i32, rest: &str) -> Self {
        let mut test = Self::new(replicas, rest);
        for n in 1..=replicas {
            test.settle();
            let name = test.booting().expect("a machine that boots");
            test.boot(&name, &format!("n{n}"));
            test.own(60);
        }
        test.settle();
        assert_eq!(test.settle(), [""; 0], "at rest");
        assert_eq!(test.machines.len(), usize::try_from(replicas).expect("a number"));
        test
    }

    pub fn booting(&self) -> Option<String> {
        let found = self.machines.values().find(|machine| machine.status.node_ref.name.is_empty());
        found.map(|machine| machine.metadata.name.clone())
    }

    pub fn machine_of(&self, node: &str) -> String {
        let found = self.machines.values().find(|machine| machine.status.node_ref.name == node);
        found.expect("a machine").metadata.name.clone()
    }

    pub fn own(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// A machine becomes a control plane node, with its etcd member.
    pub fn boot(&mut self, machine: &str, node: &str) {
        let now = Time::new(self.now);
        let found = self.machines.get_mut(machine).expect("a machine");
        found.spec.provider_id = format!("sim://{node}");
        found.status.node_ref.name = node.to_owned();
        let version = found.spec.version.clone();
        let reached = self.reached.get_or_insert_with(|| WorkloadState {
            kubeadm_config: Some(object(&format!(
                "{{metadata: {{name: kubeadm-config, resourceVersion: '1'}}, data: {{ClusterConfiguration: \"kubernetesVersion: {version}\\nnetworking: {{dnsDomain: cluster.local}}\\n\"}}}}"
            ))),
            kube_proxy: Some(json!({
                "metadata": {"resourceVersion": "1"},
                "spec": {"template": {"spec": {"containers": [{"name": "kube-proxy", "image": format!("registry.example/kube-proxy:{version}")}]}}},
            })),
            ..WorkloadState::default()
        });
        let mut made: Node = object(&format!(
            "
metadata: {{name: {node}, labels: {{node-role.kubernetes.io/control-plane: ''}}}}
spec: {{providerID: 'sim://{node}', taints: [{{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}}]}}
status: {{conditions: [{{type: Ready, status: 'True'}}]}}
"
        ));
        made.metadata.creation_timestamp = Some(now);
        reached.nodes.insert(node.to_owned(), Arc::new(made));
        for component in COMPONENTS {
            let pod = object("status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}");
            reached.pods.insert(pod_name(component, node), Ok(pod));
        }
        let id = 100 + u64::try_from(reached.nodes.len()).expect("few");
        let (mut members, mut leader) = match std::mem::take(&mut reached.etcd) {
            EtcdState::Members { members, leader } => (members, leader),
            _ => (Vec::new(), node.to_owned()),
        };
        if leader.is_empty() {
            leader = node.to_owned();
        }
        members.push(EtcdMember { id, name: node.to_owned(), ..EtcdMember::default() });
        reached.etcd = EtcdState::Members { members, leader };
    }

    /// Marks a machine that is being deleted as drained and waiting at its hooks; `None` if there is none.
    pub fn drained(&mut self) -> Option<String> {
        let found = self.machines.values_mut().find(|machine| machine.metadata.is_deleting())?;
        found.status.conditions.set_condition(object(
            "{type: Deleting, status: 'True', reason: WaitingForPreTerminateHook, lastTransitionTime: '2026-11-15T08:00:00Z'}",
        ));
        Some(found.metadata.name.clone())
    }

    /// Removes machines that are being deleted and have no hook, with their nodes.
    pub fn reap(&mut self) -> Vec<String> {
        let hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";
        let gone: Vec<String> = self
            .machines
            .values()
            .filter(|machine| {
                machine.metadata.is_deleting() && !machine.metadata.annotations.contains_key(hook)
            })
            .map(|machine| machine.metadata.name.clone())
            .collect();
        for name in &gone {
            let machine = self.machines.remove(name).expect("a machine");
            self.configs.remove(name);
            self.infrastructure.remove(name);
            if let Some(reached) = &mut self.reached {
                reached.nodes.remove(&machine.status.node_ref.name);
            }
        }
        gone
    }

    pub fn members(&self) -> Vec<String> {
        let etcd = self.reached.as_ref().map(|reached| reached.etcd.members()).unwrap_or_default();
        etcd.iter().map(|member| member.name.clone()).collect()
    }

    pub fn etcd(&mut self, change: impl FnOnce(&mut Vec<EtcdMember>, &mut String)) {
        if let Some(EtcdState::Members { members, leader }) =
            self.reached.as_mut().map(|reached| &mut reached.etcd)
        {
            change(members, leader);
        }
    }

    pub fn set(&mut self, machine: &str, kind: &str, status: &str) {
        let at = Time::new(self.now - SignedDuration::from_mins(1));
        let condition =
            format!("{{type: {kind}, status: '{status}', reason: x, lastTransitionTime: '{at}'}}");
        let machine = self.machines.get_mut(machine).expect("a machine");
        machine.status.conditions.set_condition(object(&condition));
    }

    pub fn seen(&self) -> Observed {
        let machines = self.machines.values().map(|machine| ObservedMachine {
            machine: Arc::new(machine.clone()),
            config: self.configs.get(&machine.metadata.name).cloned().map(Arc::new),
            infrastructure: match self.infrastructure.get(&machine.metadata.name) {
                Some(value) => Lookup::Object(Box::new(external("SimMachine", value.clone()))),
                None => Lookup::Missing,
            },
        });
        let is_plane = |seen: &ObservedMachine| {
            seen.machine.metadata.labels.contains_key("cluster.x-k8s.io/control-plane")
        };
        let (machines, workers): (Vec<ObservedMachine>, Vec<ObservedMachine>) = machines.partition(is_plane);
        let secret = |purpose: Purpose| self.secrets.get(&purpose.secret_name("blue")).cloned();
        let template = json!({"metadata": {"name": "cp", "namespace": "fleet",
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "blue", "uid": "cluster-uid"}]},
            "spec": {"template": {"spec": {"flavor": "small"}}}});
        let mut made: Vec<_> =
            self.configs.values().map(|config| (ObjectRef::to(config), config.metadata.clone())).collect();
        for value in self.infrastructure.values() {
            let object = external("SimMachine", value.clone());
            made.push((object.reference(), object.metadata));
        }
        let initialized = self.control_plane.status.initialization.control_plane_initialized == Some(true);
        let workload = match (&self.silent, &self.reached) {
            (Some(why), _) => Workload::Unreachable(why.clone()),
            (None, Some(reached)) if self.secrets.contains_key("blue-kubeconfig") => {
                let mut reached = if initialized { copy(reached) } else { first(reached) };
                if self
                    .machines
                    .values()
                    .all(|machine| machine.spec.version == self.control_plane.spec.version)
                {
                    reached.bindings = None;
                }
                Workload::Reached(Box::new(reached))
            }
            (None, _) if machines.is_empty() => Workload::NotAsked,
            (None, _) => Workload::Unreachable("cluster fleet/blue does not answer".to_owned()),
        };
        Observed {
            cluster: Some(Arc::new(self.cluster.clone())),
            template: match self.has_template {
                true => Lookup::Object(Box::new(external("SimMachineTemplate", template))),
                false => Lookup::Missing,
            },
            machines,
            workers: workers.iter().map(|seen| seen.machine.metadata.name.clone()).collect(),
            made,
            certificates: [
                Purpose::ClusterCa,
                Purpose::EtcdCa,
                Purpose::FrontProxyCa,
                Purpose::ServiceAccount,
                Purpose::ApiServerEtcdClient,
            ]
            .into_iter()
            .filter_map(|purpose| Some((purpose, secret(purpose)?)))
            .collect(),
            kubeconfig: secret(Purpose::Kubeconfig),
            workload,
            health: self.health.clone(),
            seed: SeededKeys::new(7).seed("kcp").expect("a seed"),
            former_templates: BTreeMap::new(),
            in_place: InPlace::NotAsked,
        }
    }

    /// What is seen if an extension is asked about the machine that would be deleted next.
    fn asked(&self) -> Observed {
        let mut seen = self.seen();
        let cluster = Arc::new(self.cluster.clone());
        let plane = seen.plane(Arc::new(self.control_plane.clone()), cluster, self.now);
        if let (Some(says), Some(member)) = (&self.extension, candidate(&plane)) {
            seen.in_place = says(&member.machine.metadata.name);
        }
        seen
    }

    pub fn decided(&self) -> Decided {
        let look = Look::new(Arc::new(self.control_plane.clone()), self.asked(), self.now);
        decide(&Settings::default(), &look)
    }

    /// Decides and applies until nothing is left to do. Returns summaries of the effects.
    pub fn settle(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        for _ in 0..12 {
            let decision = self.decided();
            self.control_plane.metadata = decision.object.metadata.clone();
            self.control_plane.spec = decision.object.spec.clone();
            if decision.effects.is_empty() {
                let changed = self.control_plane.status != decision.object.status;
                self.control_plane.status = decision.object.status;
                if changed {
                    continue;
                }
                return done;
            }
            for planned in decision.effects {
                done.push(planned.effect.summary());
                self.apply(planned.effect);
            }
        }
        panic!("no end: {done:#?}")
    }

    pub fn condition(&self, kind: &str) -> (String, String, String) {
        let found = self.control_plane.status.conditions.condition(kind).expect("a condition");
        (format!("{:?}", found.status), found.reason.clone(), found.message.clone())
    }

    pub fn machine_condition(&self, machine: &str, kind: &str) -> (String, String) {
        let found = self.machines[machine].status.conditions.condition(kind).expect("a condition");
        (format!("{:?}", found.status), found.message.clone())
    }
}

/// What is readable before the control plane is initialized.
fn first(reached: &WorkloadState) -> WorkloadState {
    WorkloadState { kubeadm_config: reached.kubeadm_config.clone(), ..WorkloadState::default() }
}

fn copy(reached: &WorkloadState) -> WorkloadState {
    WorkloadState {
        nodes: reached.nodes.clone(),
        pods: reached.pods.clone(),
        etcd: reached.etcd.clone(),
        kubeadm_config: reached.kubeadm_config.clone(),
        kube_proxy: reached.kube_proxy.clone(),
        coredns: reached.coredns.clone(),
        coredns_config: reached.coredns_config.clone(),
        bindings: Some(reached.bindings.clone().unwrap_or_default()),
        expiries: reached.expiries.clone(),
    }
}

fn external(kind: &str, value: Value) -> External {
    let plural = format!("{}s", kind.to_lowercase());
    let kind = KindName::namespaced("infrastructure.cluster.x-k8s.io", "v1beta1", kind, &*plural);
    External::new(kind, ContractVersion::V1Beta2, value)
}

/// Summaries without the random parts of names, each once.
pub fn summaries(done: &[String]) -> Vec<String> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    done.iter()
        .map(|text| match text.split_once("blue-cp-") {
            Some((before, name)) => format!("{before}blue-cp{}", &name[5..]),
            None => text.clone(),
        })
        .filter(|text| seen.insert(text.clone()))
        .collect()
}
