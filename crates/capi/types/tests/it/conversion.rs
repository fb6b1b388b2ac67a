//! Objects round-trip through the other version.

use capstan_capi_types::conversion::{Converter, kinds};
use capstan_capi_types::definitions::definitions;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Random objects of a schema, deterministic for a seed.
struct Arbitrary(u64);

impl Arbitrary {
    fn below(&mut self, bound: u64) -> u64 {
        // splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).expect("an index")]
    }

    fn value(&mut self, schema: &Value, name: &str) -> Value {
        if let Some(words) = schema["enum"].as_array() {
            return self.pick(words).clone();
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return self.pick(&[json!(0), json!(3), json!("40%")]).clone();
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            return self.pick(&[json!("a"), json!(1), json!({ "a": [true] }), json!([])]).clone();
        }
        match schema["type"].as_str().unwrap_or_default() {
            "string" => self.text(schema, name),
            "boolean" => (self.below(2) == 0).into(),
            "integer" => {
                let least = schema["minimum"].as_i64().unwrap_or(0);
                (least + i64::try_from(self.below(4)).expect("a number")).into()
            }
            "array" => (0..self.below(3)).map(|_| self.value(&schema["items"], name)).collect(),
            _ => self.object(schema),
        }
    }

    fn text(&mut self, schema: &Value, name: &str) -> Value {
        let is_duration = ["imeout", "ttl", "Period", "timeoutForControlPlane"];
        if schema["format"] == "date-time" {
            self.pick(&[json!("2026-01-02T03:04:05Z"), json!("2025-12-31T23:59:59Z")]).clone()
        } else if is_duration.iter().any(|part| name.contains(part)) {
            self.pick(&[json!("10m0s"), json!("1h0m0s"), json!("90s"), json!("1.5s"), json!("0s")]).clone()
        } else if name == "apiVersion" {
            self.pick(&[json!("infrastructure.example/v1"), json!("bootstrap.example/v1beta2")]).clone()
        } else {
            self.pick(&[json!("a"), json!("b-c"), json!("v1.2.3")]).clone()
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut fields = Map::new();
        let required = schema["required"].as_array();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.is_some_and(|names| names.iter().any(|other| other == name));
            if is_required || self.below(3) == 0 {
                fields.insert(name.clone(), self.value(property, name));
            }
        }
        if let Some(values) = schema.get("additionalProperties") {
            for _ in 0..self.below(3) {
                let name = self.pick(&["a", "b", "c.example/d"]).to_owned();
                let value = self.value(values, "");
                fields.insert(name.to_owned(), value);
            }
        }
        Value::Object(fields)
    }
}

/// Schemas of a version, with group and kind.
fn schemas(version: &str) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for definition in definitions() {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        for entry in spec["versions"].as_array().expect("versions") {
            if entry["name"] == version {
                let schema = entry["schema"]["openAPIV3Schema"].clone();
                found.push((text(&spec["group"]), text(&spec["names"]["kind"]), schema));
            }
        }
    }
    found
}

fn object(schema: &Value, group: &str, kind: &str, version: &str, seed: u64) -> Value {
    let mut object = Arbitrary(seed).object(schema);
    object["apiVersion"] = format!("{group}/{version}").into();
    object["kind"] = kind.into();
    object["metadata"] = json!({ "name": "one", "namespace": "default", "annotations": { "a": "b" } });
    object
}

#[test]
fn all_kinds_but_the_inventory_have_both_versions() {
    assert_eq!(schemas("v1beta1").len(), 16);
    assert_eq!(schemas("v1alpha1").len(), 1);
    assert_eq!(schemas("v1beta2").len(), 17);
    assert_eq!(kinds().len(), 17);
}

fn survives(from: &str, to: &str, seed: u64) {
    let converter = Converter::default();
    for (group, kind, schema) in schemas(from) {
        // The only kind whose earlier version has another name.
        let to = if to == "v1beta1" && kind == "ExtensionConfig" { "v1alpha1" } else { to };
        let original = object(&schema, &group, &kind, from, seed);
        let there = converter.convert(original.clone(), to).expect("converted");
        assert_eq!(there["apiVersion"], format!("{group}/{to}"));
        let back = converter.convert(there.clone(), from).expect("converted back");
        assert_eq!(back, original, "by way of {there:#}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_object_in_v1beta2_survives_v1beta1(seed: u64) {
        survives("v1beta2", "v1beta1", seed);
    }

    #[test]
    fn an_object_in_v1beta1_survives_v1beta2(seed: u64) {
        survives("v1beta1", "v1beta2", seed);
        survives("v1alpha1", "v1beta2", seed);
    }
}

#[test]
fn a_v1beta1_manifest_keeps_its_meaning() {
    let converter = Converter::default();
    let up = |object: Value| {
        let mut converted = converter.convert(object, "v1beta2").expect("converted");
        converted.as_object_mut().expect("an object").remove("metadata");
        converted
    };
    assert_eq!(
        up(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "MachineDeployment",
            "metadata": { "name": "md", "namespace": "default" },
            "spec": {
                "clusterName": "one",
                "replicas": 2,
                "minReadySeconds": 5,
                "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "deletePolicy": "Oldest" } },
                "selector": { "matchLabels": { "a": "b" } },
                "template": { "spec": {
                    "clusterName": "one",
                    "nodeDrainTimeout": "10m0s",
                    "bootstrap": { "configRef": { "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfigTemplate", "name": "md" } },
                    "infrastructureRef": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "CloudStackMachineTemplate", "name": "md" },
                } },
            },
        })),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineDeployment",
            "spec": {
                "clusterName": "one",
                "replicas": 2,
                "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } },
                "deletion": { "order": "Oldest" },
                "selector": { "matchLabels": { "a": "b" } },
                "template": { "spec": {
                    "clusterName": "one",
                    "minReadySeconds": 5,
                    "deletion": { "nodeDrainTimeoutSeconds": 600 },
                    "bootstrap": { "configRef": { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "md" } },
                    "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "CloudStackMachineTemplate", "name": "md" },
                } },
            },
        })
    );
    assert_eq!(
        up(json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
            "kind": "KubeadmControlPlane",
            "spec": {
                "version": "v1.30.0",
                "machineTemplate": {
                    "infrastructureRef": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta3", "kind": "A", "name": "cp" },
                    "nodeDrainTimeout": "1m0s",
                },
                "rolloutStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } },
                "kubeadmConfigSpec": {
                    "clusterConfiguration": { "apiServer": { "extraArgs": { "b": "2", "a": "1" }, "timeoutForControlPlane": "20m0s" } },
                    "joinConfiguration": { "nodeRegistration": { "kubeletExtraArgs": { "v": "" } } },
                },
            },
        })),
        json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmControlPlane",
            "spec": {
                "version": "v1.30.0",
                "machineTemplate": { "spec": {
                    "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "A", "name": "cp" },
                    "deletion": { "nodeDrainTimeoutSeconds": 60 },
                } },
                "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } },
                "kubeadmConfigSpec": {
                    "clusterConfiguration": { "apiServer": { "extraArgs": [{ "name": "a", "value": "1" }, { "name": "b", "value": "2" }] } },
                    "initConfiguration": { "timeouts": { "controlPlaneComponentHealthCheckSeconds": 1200 } },
                    "joinConfiguration": {
                        "nodeRegistration": { "kubeletExtraArgs": [{ "name": "v", "value": "" }] },
                        "timeouts": { "controlPlaneComponentHealthCheckSeconds": 1200 },
                    },
                },
            },
        })
    );
}

#[test]
fn a_change_in_v1beta1_keeps_v1beta2_only_data() {
    let converter = Converter::default();
    let stored = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": { "name": "one", "namespace": "default" },
        "spec": {
            "clusterName": "one",
            "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": { "apiGroup": "a.example", "kind": "A", "name": "one" },
            "minReadySeconds": 7,
        },
        "status": { "phase": "Updating" },
    });
    let mut seen = converter.convert(stored.clone(), "v1beta1").expect("v1beta1");
    assert_eq!(seen["status"]["phase"], "Running");
    assert_eq!(seen["spec"]["infrastructureRef"]["namespace"], "default");
    seen["spec"]["nodeDrainTimeout"] = "30s".into();
    let mut expected = stored;
    expected["spec"]["deletion"] = json!({ "nodeDrainTimeoutSeconds": 30 });
    assert_eq!(converter.convert(seen, "v1beta2").expect("v1beta2"), expected);
}

#[test]
fn invalid_versions_and_durations_are_named() {
    let converter = Converter::default();
    let machine =
        |spec: Value| json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "spec": spec });
    let error = converter.convert(machine(json!({})), "v1").expect_err("no such version");
    assert_eq!(error.to_string(), "Machine cannot be converted from v1beta1 to v1");
    let error =
        converter.convert(machine(json!({ "nodeDrainTimeout": "soon" })), "v1beta2").expect_err("soon");
    assert!(
        error.to_string().starts_with("Machine cannot be read in v1beta2: invalid type: string \"soon\""),
        "{error}"
    );
}
