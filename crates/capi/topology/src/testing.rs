//! A class, its templates and a cluster, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::contract::{ContractVersion, External};
use capstan_capi_runtime::HookAnswer;
use capstan_capi_types::core::{Cluster, ClusterClass, MachineDeployment, MachinePool};
use capstan_capi_types::{admission, variables};
use capstan_controller::KindName;
use serde_json::{Value, json};

use crate::ask::{Answers, Ask, Stop};
use crate::blueprint::{Blueprint, WorkerTemplates};
use crate::current::{Current, CurrentDeployment, CurrentPool};
use crate::desired::{self, Desired};

pub fn external(group: &str, kind: &str, name: &str, spec: Value) -> External {
    let plural = format!("{}s", kind.to_lowercase());
    let kind = KindName::namespaced(group, "v1beta2", kind, plural);
    let value = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    });
    External::new(kind, ContractVersion::V1Beta2, value)
}

pub fn template(group: &str, kind: &str, name: &str, spec: Value) -> External {
    external(group, kind, name, json!({"template": {"spec": spec}}))
}

pub fn class(change: Value) -> ClusterClass {
    let mut class = json!({
        "metadata": {"name": "quick", "namespace": "ns", "generation": 1},
        "spec": {
            "infrastructure": {"templateRef": {"apiVersion": "infra/v1beta2", "kind": "InfraClusterTemplate", "name": "ic"}},
            "controlPlane": {
                "templateRef": {"apiVersion": "cp/v1beta2", "kind": "ControlPlaneTemplate", "name": "cp"},
                "machineInfrastructure": {"templateRef": {"apiVersion": "infra/v1beta2", "kind": "MachineTemplate", "name": "cpm"}},
            },
            "workers": {"machineDeployments": [{
                "class": "worker",
                "bootstrap": {"templateRef": {"apiVersion": "boot/v1beta2", "kind": "BootTemplate", "name": "b"}},
                "infrastructure": {"templateRef": {"apiVersion": "infra/v1beta2", "kind": "MachineTemplate", "name": "m"}},
            }]},
        },
    });
    merge(&mut class, change);
    let mut class: ClusterClass = serde_json::from_value(class).expect("a class");
    class.status.variables = variables::definitions(&class.spec.variables);
    class.status.observed_generation = 1;
    class
}

pub fn cluster(change: Value) -> Cluster {
    let mut cluster = json!({
        "metadata": {"name": "one", "namespace": "ns", "uid": "u1"},
        "spec": {"topology": {
            "classRef": {"name": "quick"},
            "version": "v1.35.0",
            "controlPlane": {"replicas": 3},
            "workers": {"machineDeployments": [{"class": "worker", "name": "md", "replicas": 2}]},
        }},
    });
    merge(&mut cluster, change);
    serde_json::from_value(cluster).expect("a cluster")
}

pub fn merge(base: &mut Value, change: Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change,
    }
}

pub fn blueprint(class: ClusterClass, cluster: &Cluster) -> Blueprint {
    let mut topology = cluster.spec.topology.clone();
    admission::default_variables(&mut topology, &class).expect("variables");
    Blueprint {
        topology,
        infrastructure: template("infra", "InfraClusterTemplate", "ic", json!({"network": "a"})),
        control_plane: template("cp", "ControlPlaneTemplate", "cp", json!({"config": {"args": []}})),
        control_plane_machines: Some(template("infra", "MachineTemplate", "cpm", json!({"flavor": "small"}))),
        deployments: BTreeMap::from([(
            "worker".to_owned(),
            WorkerTemplates {
                bootstrap: template("boot", "BootTemplate", "b", json!({"files": []})),
                infrastructure: template("infra", "MachineTemplate", "m", json!({"flavor": "small"})),
            },
        )]),
        pools: BTreeMap::from([(
            "pool".to_owned(),
            WorkerTemplates {
                bootstrap: template("boot", "BootTemplate", "b", json!({"files": []})),
                infrastructure: template("infra", "PoolTemplate", "p", json!({"flavor": "small"})),
            },
        )]),
        class: Arc::new(class),
    }
}

/// A desired state without extensions: every lifecycle hook passes.
pub fn computed(blueprint: &Blueprint, current: &Current) -> Result<Desired, String> {
    let mut answers = Answers::default();
    loop {
        match desired::compute(blueprint, current, &answers) {
            Ok(desired) => return Ok(desired),
            Err(Stop::Ask(ask)) => match *ask {
                Ask::Lifecycle { hook, .. } => answers.hooks.insert(hook, HookAnswer::default()),
                Ask::Templates { handler, .. } | Ask::UpgradePlan { handler, .. } => {
                    return Err(format!("{handler} is asked"));
                }
            },
            Err(stop) => return Err(stop.to_string()),
        };
    }
}

/// What a cluster consists of once everything that is desired was applied.
pub fn applied(cluster: &Cluster, desired: &Desired, control_plane_versions: &[&str]) -> Current {
    let external = |intent: &crate::desired::Intent, status: Value| {
        let mut body = intent.body.clone();
        body["status"] = status;
        External::new(intent.kind.clone(), ContractVersion::V1Beta2, body)
    };
    let mut cluster = cluster.clone();
    cluster.spec.infrastructure_ref = crate::desired::reference(&desired.infrastructure);
    cluster.spec.control_plane_ref = crate::desired::reference(&desired.control_plane);
    let versions: Vec<Value> =
        control_plane_versions.iter().map(|version| json!({"version": version, "replicas": 1})).collect();
    let deployments = desired.deployments.iter().map(|(name, of)| {
        let running = CurrentDeployment {
            object: Arc::new(MachineDeployment::clone(&of.object)),
            bootstrap: Some(external(&of.bootstrap, Value::Null)),
            infrastructure: Some(external(&of.infrastructure, Value::Null)),
            upgrading: false,
        };
        (name.clone(), running)
    });
    let pools = desired.pools.iter().map(|(name, of)| {
        let running = CurrentPool {
            object: Arc::new(MachinePool::clone(&of.object)),
            bootstrap: Some(external(&of.bootstrap, Value::Null)),
            infrastructure: Some(external(&of.infrastructure, Value::Null)),
            upgrading: false,
        };
        (name.clone(), running)
    });
    Current {
        pools: pools.collect(),
        referenced: true,
        infrastructure: Some(external(&desired.infrastructure, Value::Null)),
        control_plane: Some(external(&desired.control_plane, json!({"versions": versions}))),
        control_plane_machines: desired.control_plane_machines.as_ref().map(|it| external(it, Value::Null)),
        deployments: deployments.collect(),
        health_checks: BTreeMap::new(),
        cluster,
    }
}
