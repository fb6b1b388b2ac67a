//! Typed objects and their JSON.

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment};
use capstan_object::{Object, to_value};
use serde_json::{Value, json};

fn reads_and_writes<T: Object>(object: &Value) {
    let typed: T = serde_json::from_value(object.clone()).expect("an object");
    assert_eq!(&to_value(&typed).expect("JSON"), object);
}

#[test]
fn objects_round_trip() {
    reads_and_writes::<Cluster>(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "paused": false,
            "clusterNetwork": { "apiServerPort": 6443, "pods": { "cidrBlocks": ["10.0.0.0/16"] } },
            "controlPlaneEndpoint": { "host": "10.0.0.1", "port": 6443 },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SimCluster", "name": "one" },
            "topology": {
                "classRef": { "name": "small" },
                "version": "v1.36.0",
                "variables": [{ "name": "zone", "value": { "name": "a" } }],
                "workers": { "machineDeployments": [{ "class": "default", "name": "md", "replicas": 0 }] },
            },
        },
        "status": {
            "conditions": [{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
                "reason": "Available",
                "message": "",
            }],
            "initialization": { "infrastructureProvisioned": true },
            "phase": "Provisioned",
            "observedGeneration": 2,
            "deprecated": { "v1beta1": { "failureMessage": "no room" } },
        },
    }));
    reads_and_writes::<Machine>(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": { "name": "one-0", "namespace": "default" },
        "spec": {
            "clusterName": "one",
            "bootstrap": { "dataSecretName": "" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SimMachine", "name": "one-0" },
            "providerID": "sim://one-0",
            "minReadySeconds": 0,
            "taints": [{ "key": "a", "effect": "NoSchedule", "propagation": "Always" }],
        },
        "status": { "nodeRef": { "name": "one-0" }, "phase": "Running" },
    }));
    reads_and_writes::<MachineDeployment>(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        "metadata": { "name": "md", "namespace": "default" },
        "spec": {
            "clusterName": "one",
            "replicas": 3,
            "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 0 } } },
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "clusterName": "one" } },
        },
    }));
    reads_and_writes::<KubeadmControlPlane>(&json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": { "name": "cp", "namespace": "default" },
        "spec": {
            "version": "v1.36.0",
            "machineTemplate": { "spec": { "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SimMachineTemplate", "name": "cp",
            } } },
            "kubeadmConfigSpec": {
                "clusterConfiguration": {
                    "apiServer": { "certSANs": ["a.example"], "extraArgs": [{ "name": "v", "value": "" }] },
                    "encryptionAlgorithm": "ECDSA-P256",
                },
                "initConfiguration": { "nodeRegistration": { "taints": [] } },
                "mounts": [["/dev/a", "/mnt"]],
            },
        },
    }));
}

#[test]
fn objects_with_missing_fields_can_be_decoded() {
    let machine: Machine = serde_json::from_value(json!({ "metadata": { "name": "a" } })).expect("a machine");
    assert_eq!(machine.spec.cluster_name, "");
    assert_eq!(to_value(&machine).expect("JSON")["spec"], Value::Null);
}
