//! Tables of what a cluster should consist of.

use serde_json::{Value, json};

use super::*;
use crate::testing::{applied, blueprint, class, cluster, computed as compute};

fn fresh(cluster: &capstan_capi_types::core::Cluster) -> Current {
    Current { cluster: cluster.clone(), ..Current::default() }
}

fn compute_fresh(of_class: Value, of_cluster: Value) -> Desired {
    let cluster = cluster(of_cluster);
    compute(&blueprint(class(of_class), &cluster), &fresh(&cluster)).expect("a desired state")
}

#[test]
fn a_new_cluster_gets_objects_of_every_template() {
    let desired = compute_fresh(json!({}), json!({}));
    let control_plane = &desired.control_plane.body;
    assert_eq!(control_plane["kind"], "ControlPlane");
    assert_eq!(
        (&control_plane["spec"]["replicas"], &control_plane["spec"]["version"]),
        (&json!(3), &json!("v1.35.0"))
    );
    let machines = desired.control_plane_machines.as_ref().expect("machines");
    let reference = &control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"];
    assert_eq!(*reference, json!({"apiGroup": "infra", "kind": "MachineTemplate", "name": machines.name()}));
    let labels = json!({"cluster.x-k8s.io/cluster-name": "one", "topology.cluster.x-k8s.io/owned": ""});
    assert_eq!(control_plane["spec"]["machineTemplate"]["metadata"]["labels"], labels);
    assert_eq!(desired.infrastructure.body["metadata"]["labels"], labels);
    assert_eq!(
        desired.infrastructure.body["metadata"]["annotations"],
        json!({
            "cluster.x-k8s.io/cloned-from-name": "ic",
            "cluster.x-k8s.io/cloned-from-groupkind": "InfraClusterTemplate.infra",
        })
    );
    // An owner reference is applied as a whole: the Cluster's own controller sets this one.
    let owner = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "one", "uid": "u1",
        "controller": true, "blockOwnerDeletion": true,
    }]);
    assert_eq!(
        (
            &desired.infrastructure.body["metadata"]["ownerReferences"],
            &control_plane["metadata"]["ownerReferences"]
        ),
        (&owner, &owner)
    );
    let deployment = &desired.deployments["md"];
    let spec = &deployment.object.spec;
    assert_eq!((spec.replicas, spec.template.spec.version.as_str()), (Some(2), "v1.35.0"));
    assert_eq!(spec.template.spec.infrastructure_ref.name, deployment.infrastructure.name());
    assert_eq!(
        deployment.bootstrap.body["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"],
        "md"
    );
    assert!(
        spec.selector
            .match_labels
            .iter()
            .all(|(key, text)| spec.template.metadata.labels.get(key) == Some(text))
    );
    assert_eq!(desired.control_plane_health_check, None);
}

#[test]
fn names_are_deterministic_and_follow_the_class() {
    let (one, two) = (compute_fresh(json!({}), json!({})), compute_fresh(json!({}), json!({})));
    assert_eq!(one.control_plane.name(), two.control_plane.name());
    assert!(one.control_plane.name().starts_with("one-"));
    let other = compute_fresh(json!({}), json!({"metadata": {"uid": "u2"}}));
    assert_ne!(one.control_plane.name(), other.control_plane.name());
    let named = compute_fresh(
        json!({"spec": {
            "controlPlane": {"naming": {"template": "{{ .cluster.name }}-cp"}},
            "infrastructure": {"naming": {"template": "infra-{{ .cluster.name }}"}},
        }}),
        json!({}),
    );
    assert_eq!((named.control_plane.name(), named.infrastructure.name()), ("one-cp", "infra-one"));
}

#[test]
fn the_topology_overrides_the_class() {
    let of_class = json!({"spec": {
        "controlPlane": {
            "metadata": {"labels": {"a": "class", "b": "class"}},
            "deletion": {"nodeDrainTimeoutSeconds": 1, "nodeDeletionTimeoutSeconds": 2},
        },
    }});
    let of_cluster = json!({"spec": {"topology": {
        "controlPlane": {
            "metadata": {"labels": {"a": "cluster"}, "annotations": {"x": "y"}},
            "deletion": {"nodeDrainTimeoutSeconds": 9},
            "taints": [{"key": "t", "effect": "NoSchedule", "propagation": "Always"}],
        },
        "workers": {"machineDeployments": [{
            "class": "worker", "name": "md", "failureDomain": "z1", "minReadySeconds": 7,
            "metadata": {"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": "", "keep": "1"}},
        }]},
    }}});
    let desired = compute_fresh(of_class, of_cluster);
    let body = &desired.control_plane.body;
    assert_eq!(
        (&body["metadata"]["labels"]["a"], &body["metadata"]["labels"]["b"]),
        (&json!("cluster"), &json!("class"))
    );
    assert_eq!(body["spec"]["machineTemplate"]["metadata"]["annotations"], json!({"x": "y"}));
    let machine = &body["spec"]["machineTemplate"]["spec"];
    assert_eq!(machine["deletion"], json!({"nodeDrainTimeoutSeconds": 9, "nodeDeletionTimeoutSeconds": 2}));
    assert_eq!(machine["taints"][0]["key"], "t");
    let deployment = &desired.deployments["md"].object;
    let spec = &deployment.spec;
    assert_eq!(
        (spec.replicas, &*spec.template.spec.failure_domain, spec.template.spec.min_ready_seconds),
        (None, "z1", Some(7))
    );
    let annotations: Vec<&String> = deployment.metadata.annotations.keys().collect();
    assert_eq!(annotations, ["keep"], "annotations about upgrades stay in the topology");
}

#[test]
fn health_checks_are_of_the_class_unless_the_topology_has_its_own() {
    let of_class = json!({"spec": {
        "controlPlane": {"healthCheck": {"checks": {"nodeStartupTimeoutSeconds": 60}}},
    }});
    let checks = |of_cluster: Value| compute_fresh(of_class.clone(), of_cluster).control_plane_health_check;
    let check = checks(json!({})).expect("a health check");
    assert_eq!(check.spec.checks.node_startup_timeout_seconds, Some(60));
    assert_eq!(check.spec.selector.match_labels.len(), 2);
    let own = json!({"spec": {"topology": {"controlPlane": {"healthCheck": {"checks": {"nodeStartupTimeoutSeconds": 90}}}}}});
    assert_eq!(checks(own).and_then(|check| check.spec.checks.node_startup_timeout_seconds), Some(90));
    let off = json!({"spec": {"topology": {"controlPlane": {"healthCheck": {"enabled": false}}}}});
    assert_eq!(checks(off), None);
}

#[test]
fn patches_see_variables_and_cannot_change_what_the_topology_sets() {
    let of_class = json!({"spec": {
        "variables": [
            {"name": "flavor", "required": false, "schema": {"openAPIV3Schema": {"type": "string", "default": "big"}}},
        ],
        "patches": [
            {"name": "flavor", "definitions": [
                {
                    "selector": {"apiVersion": "infra/v1beta2", "kind": "MachineTemplate", "matchResources": {
                        "controlPlane": true, "machineDeploymentClass": {"names": ["worker"]},
                    }},
                    "jsonPatches": [{"op": "replace", "path": "/spec/template/spec/flavor", "valueFrom": {"variable": "flavor"}}],
                },
            ]},
            {"name": "control plane", "definitions": [{
                "selector": {"apiVersion": "cp/v1beta2", "kind": "ControlPlaneTemplate", "matchResources": {"controlPlane": true}},
                "jsonPatches": [
                    {"op": "add", "path": "/spec/template/spec/config/args/-", "valueFrom": {"template": "{{ .builtin.controlPlane.version }}"}},
                    {"op": "add", "path": "/spec/template/spec/replicas", "value": 9},
                    {"op": "add", "path": "/spec/template/metadata/labels/own", "value": "1"},
                ],
            }]},
        ],
    }});
    let of_cluster = json!({"spec": {"topology": {"workers": {"machineDeployments": [{
        "class": "worker", "name": "md",
        "variables": {"overrides": [{"name": "flavor", "value": "huge"}]},
    }]}}}});
    let desired = compute_fresh(of_class, of_cluster);
    let flavor = |intent: &Intent| intent.body["spec"]["template"]["spec"]["flavor"].clone();
    assert_eq!(desired.control_plane_machines.as_ref().map(flavor), Some(json!("big")));
    assert_eq!(flavor(&desired.deployments["md"].infrastructure), "huge");
    let body = &desired.control_plane.body;
    assert_eq!(body["spec"]["config"]["args"], json!(["v1.35.0"]));
    assert_eq!(body["spec"]["replicas"], 3);
    assert_eq!(body["metadata"]["labels"]["own"], "1");
    assert_eq!(body["metadata"]["labels"]["topology.cluster.x-k8s.io/owned"], "");
}

#[test]
fn names_of_existing_objects_are_kept() {
    let of = cluster(json!({}));
    let blueprint = blueprint(class(json!({})), &of);
    let first = compute(&blueprint, &fresh(&of)).expect("new");
    let mut current = applied(&of, &first, &["v1.35.0"]);
    let running = current.deployments.get_mut("md").expect("a deployment");
    std::sync::Arc::make_mut(&mut running.object).metadata.name = "from-before".to_owned();
    let again = compute(&blueprint, &current).expect("desired");
    assert_eq!(again.control_plane, first.control_plane);
    assert_eq!(again.deployments["md"].object.metadata.name, "from-before");
    assert_eq!(again.deployments["md"].bootstrap, first.deployments["md"].bootstrap);
    assert!(again.upgrade.is_done());
}

/// What is upgraded to what, as the cluster goes on.
#[test]
fn the_control_plane_is_upgraded_first_and_then_workers_one_at_a_time() {
    let two = json!({"spec": {"topology": {"workers": {"machineDeployments": [
        {"class": "worker", "name": "a"}, {"class": "worker", "name": "b"},
    ]}}}});
    let mut of = cluster(two);
    let first = compute(&blueprint(class(json!({})), &of), &fresh(&of)).expect("new");
    let mut current = applied(&of, &first, &["v1.35.0"]);
    of.spec.topology.version = "v1.36.0".to_owned();
    current.cluster.spec.topology.version = "v1.36.0".to_owned();
    let blueprint = blueprint(class(json!({})), &of);
    let versions = |desired: &Desired| {
        let workers = desired.deployments.values().map(|it| it.object.spec.template.spec.version.clone());
        let control_plane = desired.control_plane.body["spec"]["version"].as_str().unwrap_or_default();
        std::iter::once(control_plane.to_owned()).chain(workers).collect::<Vec<_>>()
    };
    let (old, new) = ("v1.35.0", "v1.36.0");

    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, old, old], "the control plane begins");
    assert!(desired.upgrade.control_plane_starting && desired.upgrade.deployments.pending.len() == 2);

    let mut current = applied(&current.cluster, &desired, &["v1.35.0", "v1.36.0"]);
    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, old, old], "the control plane is not done");
    assert!(desired.upgrade.control_plane_upgrading);

    current = applied(&current.cluster, &desired, &["v1.36.0"]);
    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, new, old], "the first workers");

    current = applied(&current.cluster, &desired, &["v1.36.0"]);
    current.deployments.get_mut("a").expect("a").upgrading = true;
    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, new, old], "one at a time");

    current.deployments.get_mut("a").expect("a").upgrading = false;
    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, new, new]);

    current = applied(&current.cluster, &desired, &["v1.36.0"]);
    assert!(compute(&blueprint, &current).expect("desired").upgrade.is_done());
}

#[test]
fn workers_can_be_held_back_and_new_ones_wait_for_the_control_plane() {
    let hold = json!({"spec": {"topology": {"workers": {"machineDeployments": [
        {"class": "worker", "name": "a", "metadata": {"annotations": {"topology.cluster.x-k8s.io/hold-upgrade-sequence": ""}}},
        {"class": "worker", "name": "b"},
    ]}}}});
    let mut of = cluster(hold);
    let first = compute(&blueprint(class(json!({})), &of), &fresh(&of)).expect("new");
    let mut current = applied(&of, &first, &["v1.36.0"]);
    of.spec.topology.version = "v1.36.0".to_owned();
    let mut running = first.control_plane.body.clone();
    running["spec"]["version"] = "v1.36.0".into();
    running["status"] = json!({"versions": [{"version": "v1.36.0"}]});
    current.control_plane = Some(capstan_capi_core::contract::External::new(
        first.control_plane.kind.clone(),
        ContractVersion::V1Beta2,
        running,
    ));
    let desired = compute(&blueprint(class(json!({})), &of), &current).expect("desired");
    assert_eq!(desired.upgrade.deployments.deferred.len(), 2, "the one that holds, and the one after it");

    current.deployments.clear();
    current.control_plane = Some(capstan_capi_core::contract::External::new(
        first.control_plane.kind.clone(),
        ContractVersion::V1Beta2,
        first.control_plane.body.clone(),
    ));
    let desired = compute(&blueprint(class(json!({})), &of), &current).expect("desired");
    assert!(desired.upgrade.control_plane_provisioning);
    assert_eq!(desired.upgrade.deployments.pending_create.len(), 2);
}

#[test]
fn an_upgrade_over_several_minors_passes_through_them() {
    let of_class =
        json!({"spec": {"kubernetesVersions": ["v1.33.0", "v1.34.0", "v1.35.0", "v1.36.0", "v1.37.0"]}});
    let mut of = cluster(json!({"spec": {"topology": {"version": "v1.33.0"}}}));
    let mut desired = compute(&blueprint(class(of_class.clone()), &of), &fresh(&of)).expect("new");
    of.spec.topology.version = "v1.37.0".to_owned();
    let blueprint = blueprint(class(of_class), &of);
    let mut steps = Vec::new();
    for _ in 0..20 {
        let version = desired.control_plane.body["spec"]["version"].as_str().unwrap_or_default().to_owned();
        let mut current = applied(&of, &desired, &[&version]);
        current.cluster = of.clone();
        current.cluster.spec.control_plane_ref = reference(&desired.control_plane);
        desired = compute(&blueprint, &current).expect("desired");
        let workers = &desired.deployments["md"].object.spec.template.spec.version;
        let step = format!(
            "{} {workers}",
            desired.control_plane.body["spec"]["version"].as_str().unwrap_or_default()
        );
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    assert_eq!(
        steps,
        [
            "v1.34.0 v1.33.0",
            "v1.35.0 v1.33.0",
            "v1.36.0 v1.33.0",
            "v1.36.0 v1.36.0",
            "v1.37.0 v1.36.0",
            "v1.37.0 v1.37.0",
        ]
    );
}

/// A class with pools, and a cluster with two of them and no deployment.
fn with_pools() -> (capstan_capi_types::core::ClusterClass, capstan_capi_types::core::Cluster) {
    let of_class = json!({"spec": {
        "workers": {"machinePools": [{
            "class": "pool",
            "metadata": {"labels": {"from": "class"}},
            "failureDomains": ["a"],
            "bootstrap": {"templateRef": {"apiVersion": "boot/v1beta2", "kind": "BootTemplate", "name": "b"}},
            "infrastructure": {"templateRef": {"apiVersion": "infra/v1beta2", "kind": "PoolTemplate", "name": "p"}},
        }]},
        "patches": [{"name": "flavor", "definitions": [{
            "selector": {
                "apiVersion": "infra/v1beta2", "kind": "PoolTemplate",
                "matchResources": {"machinePoolClass": {"names": ["pool"]}},
            },
            "jsonPatches": [{
                "op": "replace", "path": "/spec/template/spec/flavor",
                "valueFrom": {"template": "{{ .builtin.machinePool.topologyName }}-{{ .builtin.machinePool.replicas }}"},
            }],
        }]}],
    }});
    let of = cluster(json!({"spec": {"topology": {"workers": {"machineDeployments": [], "machinePools": [
        {"class": "pool", "name": "a", "replicas": 3}, {"class": "pool", "name": "b", "replicas": 1},
    ]}}}}));
    (class(of_class), of)
}

#[test]
fn a_pool_is_made_of_objects_and_not_of_templates() {
    let (class, of) = with_pools();
    let desired = compute(&blueprint(class, &of), &fresh(&of)).expect("desired");
    let pool = &desired.pools["a"];
    let object = &pool.object;
    assert!(object.metadata.name.starts_with("one-a-"), "{}", object.metadata.name);
    assert_eq!(object.metadata.labels.get("from").map(String::as_str), Some("class"));
    assert_eq!(object.metadata.labels.get(label::TOPOLOGY_POOL_NAME).map(String::as_str), Some("a"));
    assert_eq!(
        (object.spec.replicas, object.spec.failure_domains.as_slice()),
        (Some(3), &["a".to_owned()][..])
    );
    let machine = &object.spec.template.spec;
    assert_eq!(machine.version, "v1.35.0");
    assert_eq!(machine.infrastructure_ref, reference(&pool.infrastructure));
    assert_eq!(machine.bootstrap.config_ref, reference(&pool.bootstrap));
    assert_eq!((&*pool.infrastructure.kind.kind, &*pool.bootstrap.kind.kind), ("Pool", "Boot"));
    // Patched as a template, with the pool's builtin variables.
    assert_eq!(pool.infrastructure.body["spec"], json!({"flavor": "a-3"}));
    let owners = &pool.infrastructure.body["metadata"]["ownerReferences"];
    assert_eq!((owners[0]["kind"].as_str(), owners[0]["controller"].as_bool()), (Some("Cluster"), None));
    // The names stay.
    let again =
        compute(&blueprint(with_pools().0, &of), &applied(&of, &desired, &["v1.35.0"])).expect("again");
    assert_eq!(again.pools["a"].object, desired.pools["a"].object);
}

#[test]
fn pools_are_upgraded_after_the_control_plane_one_at_a_time() {
    let (of_class, mut of) = with_pools();
    let first = compute(&blueprint(of_class.clone(), &of), &fresh(&of)).expect("new");
    let current = applied(&of, &first, &["v1.35.0"]);
    of.spec.topology.version = "v1.36.0".to_owned();
    let blueprint = blueprint(of_class, &of);
    let versions = |desired: &Desired| {
        let workers = desired.pools.values().map(|it| it.object.spec.template.spec.version.clone());
        let control_plane = desired.control_plane.body["spec"]["version"].as_str().unwrap_or_default();
        std::iter::once(control_plane.to_owned()).chain(workers).collect::<Vec<_>>()
    };
    let (old, new) = ("v1.35.0", "v1.36.0");
    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, old, old], "the control plane begins");
    let mut current = applied(&current.cluster, &desired, &[new]);
    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, new, old], "the first pool");
    current = applied(&current.cluster, &desired, &[new]);
    current.pools.get_mut("a").expect("a").upgrading = true;
    let desired = compute(&blueprint, &current).expect("desired");
    assert_eq!(versions(&desired), [new, new, old], "one at a time");
    assert_eq!((desired.upgrade.pools.upgrading.len(), desired.upgrade.pools.pending.len()), (1, 1));
    current.pools.get_mut("a").expect("a").upgrading = false;
    assert_eq!(versions(&compute(&blueprint, &current).expect("desired")), [new, new, new]);
}
