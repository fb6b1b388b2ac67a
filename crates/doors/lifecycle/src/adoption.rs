//! Clusters of EKS Anywhere that are taken over: their manifests arrive paused, and what was generated from these gets the
//! labels by which it is known. EKS Anywhere gives its objects no label of a cluster, or other ones.

use capstan_controller::KindName;
use capstan_object::{Key, Object as _};
use capstan_provider_kit::FrontEnd;
use serde_json::{Value, json};

use crate::names::{self, SYSTEM_NAMESPACE, annotation, label};
use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};

/// EKS Anywhere's manifests, for `capstan adopt`.
pub struct TakeOver;

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn group(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

/// Names of the configs of a Cluster, by kind.
fn configs(cluster: &Value) -> Vec<(&str, &str)> {
    let spec = &cluster["spec"];
    let groups = spec["workerNodeGroupConfigurations"].as_array().into_iter().flatten();
    let mut all = vec![(CloudStackDatacenterConfig::KIND.kind, text(spec, "/datacenterRef/name"))];
    for place in std::iter::once(&spec["controlPlaneConfiguration"]).chain(groups) {
        let config = (CloudStackMachineConfig::KIND.kind, text(place, "/machineGroupRef/name"));
        if !all.contains(&config) {
            all.push(config);
        }
    }
    all
}

/// Whether an object with this kind and name is generated for a cluster.
fn is_generated(object: &Value, cluster: &Value) -> bool {
    let (kind, name, own) =
        (text(object, "/kind"), text(object, "/metadata/name"), text(cluster, "/metadata/name"));
    let groups = cluster["spec"]["workerNodeGroupConfigurations"].as_array().into_iter().flatten();
    let mut groups = groups.map(|group| text(group, "/name"));
    match kind {
        "Cluster" | "CloudStackCluster" | "KubeadmControlPlane" => name == own,
        // Their names end with numbers or times, and both controllers make new ones.
        "CloudStackMachineTemplate" | "KubeadmConfigTemplate" => true,
        "MachineDeployment" => groups.any(|group| name == names::deployment(own, group)),
        "MachineHealthCheck" => {
            name == names::control_plane_health_check(own)
                || groups.any(|group| name == names::worker_health_check(own, group))
        }
        _ => false,
    }
}

impl FrontEnd for TakeOver {
    fn kinds(&self) -> Vec<KindName> {
        vec![
            KindName::of::<Cluster>(),
            KindName::of::<CloudStackDatacenterConfig>(),
            KindName::of::<CloudStackMachineConfig>(),
        ]
    }

    fn manifests(&self, objects: &[Value], cluster: &Key) -> Vec<Value> {
        let ours = |object: &&Value| group(object) == Cluster::KIND.group;
        let is = |object: &Value, kind: &str, name: &str| {
            text(object, "/kind") == kind && text(object, "/metadata/name") == name
        };
        let mut all = objects.iter().filter(ours);
        if cluster.namespace != SYSTEM_NAMESPACE {
            return Vec::new();
        }
        let Some(own) = all.find(|object| is(object, Cluster::KIND.kind, &cluster.name)) else {
            return Vec::new();
        };
        let namespace = text(own, "/metadata/namespace");
        let beside = |object: &&Value| ours(object) && text(object, "/metadata/namespace") == namespace;
        let configs = configs(own).into_iter().filter_map(|(kind, name)| {
            objects.iter().filter(beside).find(|object| is(object, kind, name)).cloned()
        });
        let mut manifests: Vec<Value> = std::iter::once(own.clone()).chain(configs).collect();
        for manifest in &mut manifests {
            if !manifest["metadata"]["annotations"].is_object() {
                manifest["metadata"]["annotations"] = json!({});
            }
            manifest["metadata"]["annotations"][annotation::PAUSED] = "true".into();
        }
        manifests
    }

    fn connect(&self, object: &mut Value, manifests: &[Value]) {
        let Some(cluster) = manifests.first() else { return };
        let is_of_cluster_api = group(object).ends_with("cluster.x-k8s.io");
        if !is_of_cluster_api
            || text(object, "/metadata/namespace") != SYSTEM_NAMESPACE
            || !is_generated(object, cluster)
        {
            return;
        }
        if !object["metadata"]["labels"].is_object() {
            object["metadata"]["labels"] = json!({});
        }
        let labels = &mut object["metadata"]["labels"];
        labels[label::CLUSTER_NAME] = cluster["metadata"]["name"].clone();
        labels[label::CLUSTER_NAMESPACE] = cluster["metadata"]["namespace"].clone();
    }

    fn is_shared(&self, object: &Value) -> bool {
        group(object) == Cluster::KIND.group && text(object, "/kind") != Cluster::KIND.kind
    }

    fn is_paused(&self, object: &Value) -> bool {
        // EKS Anywhere reconciles with any other value, and would do so beside us.
        object["metadata"]["annotations"][annotation::PAUSED] == "true"
    }

    fn pause(&self) -> Value {
        json!({"metadata": {"annotations": {annotation::PAUSED: "true"}}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api: &str, kind: &str, namespace: &str, name: &str) -> Value {
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
    }

    const OWN: &str = "anywhere.eks.amazonaws.com/v1alpha1";

    fn cluster() -> Value {
        let mut cluster = object(OWN, "Cluster", "default", "one");
        cluster["spec"] = json!({
            "datacenterRef": {"kind": "CloudStackDatacenterConfig", "name": "dc"},
            "controlPlaneConfiguration": {"machineGroupRef": {"name": "all"}},
            "workerNodeGroupConfigurations": [{"name": "md-0", "machineGroupRef": {"name": "all"}}],
        });
        cluster
    }

    #[test]
    fn a_cluster_comes_with_its_configs_paused() {
        let objects = [
            object(OWN, "CloudStackMachineConfig", "default", "all"),
            object(OWN, "CloudStackMachineConfig", "other", "all"),
            object(OWN, "CloudStackMachineConfig", "default", "unused"),
            object("cluster.x-k8s.io/v1beta1", "Cluster", "eksa-system", "one"),
            cluster(),
            object(OWN, "CloudStackDatacenterConfig", "default", "dc"),
            object("example.com/v1", "Cluster", "default", "one"),
        ];
        let found = TakeOver.manifests(&objects, &Key::new("eksa-system", "one"));
        let names: Vec<String> = found
            .iter()
            .map(|it| format!("{} {} {}", it["kind"], it["metadata"]["namespace"], it["metadata"]["name"]))
            .collect();
        assert_eq!(
            names,
            [
                r#""Cluster" "default" "one""#,
                r#""CloudStackDatacenterConfig" "default" "dc""#,
                r#""CloudStackMachineConfig" "default" "all""#,
            ]
        );
        assert!(found.iter().all(|it| TakeOver.is_paused(it)) && !TakeOver.is_paused(&cluster()));
        assert_eq!(TakeOver.manifests(&objects, &Key::new("default", "one")), [Value::Null; 0]);
    }

    #[test]
    fn what_eks_anywhere_goes_on_reconciling_is_not_paused() {
        for (value, is_paused) in [("true", true), ("false", false), ("", false), ("True", false)] {
            let mut cluster = cluster();
            cluster["metadata"]["annotations"] = json!({annotation::PAUSED: value});
            assert_eq!(TakeOver.is_paused(&cluster), is_paused, "{value:?}");
        }
    }

    #[test]
    fn only_what_the_manifests_stand_for_is_connected() {
        let capi = "cluster.x-k8s.io/v1beta1";
        let manifests = [cluster()];
        for (kind, name, is_connected) in [
            ("Cluster", "one", true),
            ("MachineDeployment", "one-md-0", true),
            ("MachineDeployment", "one-by-hand", false),
            ("MachineHealthCheck", "one-kcp-unhealthy", true),
            ("MachineHealthCheck", "one-md-0-worker-unhealthy", true),
            ("MachineHealthCheck", "by-hand", false),
            ("CloudStackMachineTemplate", "one-control-plane-template-1700000000000", true),
            ("Machine", "one-md-0-abcde", false),
        ] {
            let mut object = object(capi, kind, "eksa-system", name);
            TakeOver.connect(&mut object, &manifests);
            let labels = json!({label::CLUSTER_NAME: "one", label::CLUSTER_NAMESPACE: "default"});
            let expected = if is_connected { labels } else { Value::Null };
            assert_eq!(
                object["metadata"].get("labels").cloned().unwrap_or_default(),
                expected,
                "{kind} {name}"
            );
        }
    }
}
