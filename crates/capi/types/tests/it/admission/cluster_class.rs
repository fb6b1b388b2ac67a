//! ClusterClasses, and clusters in the light of their class.

use capstan_capi_types::admission::{
    FieldError, validate_class_in_use, validate_with_class, version_to_arrive,
};
use capstan_capi_types::core::{Cluster, ClusterClass};

use super::*;

fn template(kind: &str) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": "t" })
}

fn class() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": { "name": "quick", "namespace": "default" },
        "spec": {
            "infrastructure": { "templateRef": template("SimClusterTemplate") },
            "controlPlane": {
                "templateRef": template("KubeadmControlPlaneTemplate"),
                "machineInfrastructure": { "templateRef": template("SimMachineTemplate") },
            },
            "workers": { "machineDeployments": [{
                "class": "default-worker",
                "bootstrap": { "templateRef": template("KubeadmConfigTemplate") },
                "infrastructure": { "templateRef": template("SimMachineTemplate") },
            }] },
            "variables": [
                { "name": "image", "required": true, "schema": { "openAPIV3Schema": { "type": "string" } } },
            ],
            "patches": [{
                "name": "image",
                "enabledIf": "{{ ne .image \"\" }}",
                "definitions": [{
                    "selector": {
                        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                        "kind": "SimMachineTemplate",
                        "matchResources": { "machineDeploymentClass": { "names": ["default-*"] } },
                    },
                    "jsonPatches": [
                        { "op": "add", "path": "/spec/template/spec/image", "valueFrom": { "variable": "image" } },
                    ],
                }],
            }],
        },
    })
}

fn with_patch(change: &Value) -> Value {
    let mut patch = class()["spec"]["patches"][0].clone();
    patch = patched(&patch, change);
    json!({ "spec": { "patches": [patch] } })
}

fn with_change(change: &Value) -> Value {
    let mut definition = class()["spec"]["patches"][0]["definitions"][0].clone();
    definition["jsonPatches"] = json!([change]);
    with_patch(&json!({ "definitions": [definition] }))
}

#[test]
fn classes() {
    created(
        CORE,
        "ClusterClass",
        &class(),
        &[
            (json!({}), &[]),
            (
                json!({ "spec": { "infrastructure": { "templateRef": { "kind": "SimCluster" } } } }),
                &[
                    "spec.infrastructure.ref.kind: Invalid value: \"SimCluster\": template kind must be of form \"<name>Template\"",
                ],
            ),
            (
                json!({ "spec": { "controlPlane": { "naming": { "template": "{{ .nope }}" } } } }),
                &[
                    "spec.controlPlane.naming.template: Invalid value: \"{{ .nope }}\": invalid ControlPlane name template: line 1: map has no entry for key \"nope\"",
                ],
            ),
            (
                json!({ "spec": { "kubernetesVersions": ["v1.30.0", "v1.32.0"] } }),
                &[
                    "spec.kubernetesVersion[1]: Invalid value: \"v1.32.0\": expecting a version with minor 30 or 31, found version 1.32.0",
                ],
            ),
            (
                with_patch(&json!({ "enabledIf": "{{ if }}" })),
                &[
                    "spec.patches[0].enabledIf: Invalid value: \"{{ if }}\": template can not be parsed: line 1: missing value for if",
                ],
            ),
            (
                with_patch(&json!({ "name": "inline" })),
                &["spec.patches[0].name: Required value: \"inline\" can not be used as the name of a patch"],
            ),
            (
                with_change(&json!({ "op": "add", "path": "/spec/x", "valueFrom": { "variable": "nope" } })),
                &[
                    "spec.patches[0].definitions[0].jsonPatches[0].valueFrom.variable: Invalid value: \"nope\": variable with name nope cannot be found",
                ],
            ),
            (
                with_change(
                    &json!({ "op": "add", "path": "/spec/x", "valueFrom": { "variable": "builtin.cluster.name" } }),
                ),
                &[],
            ),
            (
                with_change(
                    &json!({ "op": "add", "path": "/spec/x", "valueFrom": { "variable": "builtin.cluster.size" } }),
                ),
                &[
                    "spec.patches[0].definitions[0].jsonPatches[0].valueFrom.variable: Invalid value: \"builtin.cluster.size\": not a defined builtin variable",
                ],
            ),
            (with_change(&json!({ "op": "remove", "path": "/spec/x" })), &[]),
            (
                json!({ "spec": { "patches": [{ "name": "ext", "external": { "generatePatchesExtension": "x" } }] } }),
                &[],
            ),
            (
                json!({ "spec": { "patches": [{ "name": "ext", "external": { "discoverVariablesExtension": "x" } }] } }),
                &[
                    "spec.patches[0].external: Invalid value: {\"discoverVariablesExtension\":\"x\"}: one of validateTopologyExtension and generatePatchesExtension must be defined",
                ],
            ),
        ],
    );
    updated(
        CORE,
        "ClusterClass",
        &class(),
        &[(
            json!({ "spec": { "infrastructure": { "templateRef": { "kind": "KVMClusterTemplate" } } } }),
            &[
                "spec.infrastructure.templateRef.kind: Forbidden: kind cannot be changed from \"SimClusterTemplate\" to \"KVMClusterTemplate\" to prevent incompatible changes in the Clusters",
            ],
        )],
    );
}

fn typed(class: Value) -> ClusterClass {
    serde_json::from_value(class).expect("a class")
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn clusters_in_the_light_of_their_class() {
    let plain = typed(class());
    let planned = typed(patched(
        &class(),
        &json!({ "spec": { "kubernetesVersions": ["v1.30.0", "v1.31.1", "v1.32.0"] } }),
    ));
    let old: Cluster = serde_json::from_value(with_topology()).expect("a cluster");
    for (class, version, expected) in [
        (&plain, "v1.31.0", vec![]),
        (
            &plain,
            "v1.32.0",
            vec![
                "spec.topology.version: Invalid value: \"v1.32.0\": version cannot be increased from \"1.30.0\" to \"1.32.0\"",
            ],
        ),
        (&planned, "v1.32.0", vec![]),
        (
            &planned,
            "v1.31.0",
            vec![
                "spec.topology.version: Invalid value: \"v1.31.0\": version must match one of the versions defined in the ClusterClass",
            ],
        ),
    ] {
        let mut new = old.clone();
        new.spec.topology.version = version.to_owned();
        let errors = validate_with_class(&new, Some(&old), class);
        assert_eq!(texts(&errors), expected, "{version}");
    }
}

#[test]
fn workers_and_health_checks_must_fit_the_class() {
    let check = |of: &Value| {
        let cluster = patched(&with_topology(), &json!({ "spec": { "topology": of } }));
        let cluster: Cluster = serde_json::from_value(cluster).expect("a cluster");
        texts(&validate_with_class(&cluster, None, &typed(class())))
    };
    let deployment = |health_check: Value| {
        let worker = json!({ "class": "default-worker", "name": "md", "healthCheck": health_check });
        json!({ "workers": { "machineDeployments": [worker] } })
    };
    for (of, expected) in [
        (
            json!({ "workers": { "machineDeployments": [
                { "class": "default-worker", "name": "md" }, { "class": "nope", "name": "md" },
            ] } }),
            vec![
                "spec.topology.workers.machineDeployments[1].class: Invalid value: \"nope\": MachineDeploymentClass with name \"nope\" does not exist in ClusterClass \"quick\"",
                "spec.topology.workers.machineDeployments[1].name: Invalid value: \"md\": name must be unique. MachineDeployment with name \"md\" is defined more than once",
            ],
        ),
        (
            json!({ "controlPlane": { "healthCheck": { "checks": { "nodeStartupTimeoutSeconds": 0 } } } }),
            vec![],
        ),
        (
            json!({ "controlPlane": { "healthCheck": { "checks": { "nodeStartupTimeoutSeconds": 29 } } } }),
            vec![
                "spec.topology.controlPlane.healthCheck.checks.nodeStartupTimeoutSeconds: Invalid value: 29: must be at least 30s",
            ],
        ),
        (
            json!({ "controlPlane": { "healthCheck": { "enabled": true } } }),
            vec![
                "spec.topology.controlPlane.healthCheck.enable: Forbidden: cannot be set to true as healthCheck definition is not available in the Cluster topology or the ClusterClass",
            ],
        ),
        (
            deployment(json!({
                "checks": { "nodeStartupTimeoutSeconds": 3 }, "remediation": { "maxInFlight": "x" },
            })),
            vec![
                "spec.topology.workers.machineDeployments[md].healthCheck.checks.nodeStartupTimeoutSeconds: Invalid value: 3: must be at least 30s",
                "spec.topology.workers.machineDeployments[md].healthCheck.remediation.maxInFlight: Invalid value: \"x\": must be either an int or a percentage: invalid value for IntOrString: invalid type: string is not a percentage",
            ],
        ),
        (
            deployment(json!({ "enabled": true })),
            vec![
                "spec.topology.workers.machineDeployments[md].healthCheck.enable: Forbidden: cannot be set to true as healthCheck definition is not available in the Cluster topology or the ClusterClass",
            ],
        ),
    ] {
        assert_eq!(check(&of), expected, "{of}");
    }
}

#[test]
fn a_version_waits_until_the_one_before_has_arrived() {
    let plain = typed(class());
    let old: Cluster = serde_json::from_value(with_topology()).expect("a cluster");
    for (version, annotations, expected) in [
        ("v1.30.1", json!({}), Some("1.30.0")),
        ("v1.31.0", json!({}), Some("1.30.0")),
        // Refused by itself, and reported besides.
        ("vlatest", json!({}), Some("1.30.0")),
        ("v1.30.0", json!({}), None),
        ("v1.29.0", json!({}), None),
        ("v1.32.0", json!({}), None),
        ("v1.31.0", json!({ "unsafe.topology.cluster.x-k8s.io/disable-update-version-check": "" }), None),
    ] {
        let mut new = old.clone();
        new.spec.topology.version = version.to_owned();
        new.metadata.annotations = serde_json::from_value(annotations).expect("annotations");
        assert_eq!(version_to_arrive(&new, &old, &plain).as_deref(), expected, "{version}");
    }
}

#[test]
fn a_class_keeps_what_its_clusters_use() {
    let health = json!({ "checks": { "nodeStartupTimeoutSeconds": 60 } });
    let mut old = class();
    old["spec"]["kubernetesVersions"] = json!(["v1.30.0", "v1.31.0"]);
    old["spec"]["controlPlane"]["healthCheck"] = health.clone();
    old["spec"]["workers"]["machineDeployments"][0]["healthCheck"] = health;
    old["spec"]["workers"]["machinePools"] = json!([{ "class": "pool" }]);
    let topology = json!({ "spec": { "topology": {
        "controlPlane": { "healthCheck": { "enabled": true } },
        "workers": {
            "machineDeployments": [
                { "class": "default-worker", "name": "md", "replicas": 2, "healthCheck": { "enabled": true } },
            ],
            "machinePools": [{ "class": "pool", "name": "mp" }],
        },
    } } });
    let cluster: Cluster = serde_json::from_value(patched(&with_topology(), &topology)).expect("a cluster");
    let worker = |change: Value| {
        let worker = patched(&old["spec"]["workers"]["machineDeployments"][0], &change);
        json!({ "spec": { "workers": { "machineDeployments": [worker] } } })
    };
    let autoscaled = json!({ "metadata": { "annotations": {
        "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "3",
    } } });
    for (change, expected) in [
        (json!({ "spec": { "kubernetesVersions": null } }), vec![]),
        (
            json!({ "spec": { "kubernetesVersions": ["v1.31.0"] } }),
            vec![
                "spec.kubernetesVersions: Forbidden: Kubernetes Version v1.30.0 is used by Cluster \"one\" but not set in ClusterClass",
            ],
        ),
        (
            json!({ "spec": { "workers": { "machineDeployments": null, "machinePools": null } } }),
            vec![
                "spec.workers.machineDeployments: Forbidden: MachineDeploymentClass \"default-worker\" cannot be deleted because it is used by Cluster \"one\"",
                "spec.workers.machinePools: Forbidden: MachinePoolClass \"pool\" cannot be deleted because it is used by Cluster \"one\"",
            ],
        ),
        (
            json!({ "spec": { "controlPlane": { "healthCheck": null } } }),
            vec![
                "spec.controlPlane.healthCheck: Forbidden: healthCheck cannot be deleted because it is used by Cluster(s) \"one\"",
            ],
        ),
        (
            worker(json!({ "healthCheck": null })),
            vec![
                "spec.workers.machineDeployments[default-worker].healthCheck: Forbidden: healthCheck cannot be deleted because it is used by Cluster(s) \"one\"",
            ],
        ),
        (
            worker(autoscaled),
            vec![
                "spec.topology.workers.machineDeployments[md].replicas: Invalid value: 2: cannot be set for cluster \"one\" in namespace \"default\" if the source class \"default-worker\" of this MachineDeploymentTopology has autoscaler annotations",
            ],
        ),
    ] {
        let (old, new) = (typed(old.clone()), typed(patched(&old, &change)));
        let errors = validate_class_in_use(&old, &new, std::slice::from_ref(&cluster));
        assert_eq!(texts(&errors), expected, "{change}");
        assert!(validate_class_in_use(&old, &new, &[]).is_empty(), "nobody uses it");
    }
}
