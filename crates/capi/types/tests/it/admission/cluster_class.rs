//! ClusterClasses, and clusters in the light of their class.

use capstan_capi_types::admission::validate_with_class;
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
                    "spec.patches[0].definitions[0].jsonPatches[0].valueFrom.variable: Invalid value: \"nope\": variable with name \"nope\" cannot be found",
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

#[test]
fn clusters_in_the_light_of_their_class() {
    let typed = |class: Value| -> ClusterClass { serde_json::from_value(class).expect("a class") };
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
                "spec.topology.version: Invalid value: \"v1.31.0\": version must be in the kubernetesVersions list of the ClusterClass",
            ],
        ),
    ] {
        let mut new = old.clone();
        new.spec.topology.version = version.to_owned();
        let errors = validate_with_class(&new, Some(&old), class);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "{version}");
    }
}
