//! The kinds on a server: versions, defaults, rules.

use capstan_controller::{Client, KindName, Patch};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::plane::{cluster_scoped, core, management};

fn at(version: &str, group: &str, kind: &str, plural: &str) -> KindName {
    KindName::namespaced(group.to_owned(), version.to_owned(), kind.to_owned(), plural.to_owned())
}

async fn get(client: &Client, kind: &KindName, name: &str) -> Value {
    let reply = client.get_raw(kind, &Key::new("default", name)).await.expect("an answer");
    reply.expect("an object").parse().expect("JSON")
}

fn deployment(api_version: &str, reference: Value) -> Value {
    json!({
        "apiVersion": format!("cluster.x-k8s.io/{api_version}"), "kind": "MachineDeployment",
        "metadata": {"name": "d"},
        "spec": {
            "clusterName": "c", "replicas": 1, "selector": {},
            "template": {"spec": {
                "clusterName": "c", "version": "1.34.0",
                "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": reference,
            }},
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_manifest_in_the_earlier_version_is_defaulted_stored_and_served_in_both() {
    let (_plane, client) = management().await;
    let old = at("v1beta1", "cluster.x-k8s.io", "MachineDeployment", "machinedeployments");
    let reference = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "SimMachineTemplate", "name": "t",
    });
    client.create(&old, "default", &deployment("v1beta1", reference.clone())).await.expect("created");
    let new = get(&client, &core("MachineDeployment", "machinedeployments"), "d").await;
    assert_eq!(new["spec"]["template"]["spec"]["version"], "v1.34.0");
    assert_eq!(new["spec"]["selector"]["matchLabels"]["cluster.x-k8s.io/deployment-name"], "d");
    assert_eq!(
        new["spec"]["template"]["spec"]["infrastructureRef"]["apiGroup"],
        "infrastructure.cluster.x-k8s.io"
    );
    // The reference has a version again once its definition is known.
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "simmachinetemplates.infrastructure.cluster.x-k8s.io",
            "labels": {"cluster.x-k8s.io/v1beta2": "v1beta1"},
        },
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "SimMachineTemplate", "plural": "simmachinetemplates", "singular": "simmachinetemplate"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    capstan_capi_plane::install(&client, &[definition]).await.expect("served");
    let mut spec = get(&client, &old, "d").await["spec"]["template"]["spec"]["infrastructureRef"].take();
    spec.as_object_mut().expect("a reference").remove("namespace");
    assert_eq!(spec, reference);
}

#[tokio::test(start_paused = true)]
async fn objects_that_upstreams_webhooks_reject_are_rejected() {
    let (_plane, client) = management().await;
    let kind = core("MachineDeployment", "machinedeployments");
    let reference =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SimMachineTemplate", "name": "t"});
    let mut bad = deployment("v1beta2", reference);
    bad["spec"]["template"]["spec"]["version"] = "latest".into();
    let refused = client.create(&kind, "default", &bad).await.expect_err("no version");
    assert!(refused.to_string().contains("must be a valid semantic version"), "{refused}");
    bad["spec"]["template"]["spec"]["version"] = "v1.34.0".into();
    client.create(&kind, "default", &bad).await.expect("created");
    let patch = Patch::Merge(json!({"spec": {"clusterName": "other"}}));
    let refused = client.patch(&kind, &Key::new("default", "d"), None, &patch).await.expect_err("immutable");
    assert!(refused.to_string().contains("field is immutable"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_stacked_control_plane_is_not_scaled_to_an_even_number() {
    let (_plane, client) = management().await;
    let kind = at("v1beta2", "controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "kubeadmcontrolplanes");
    let body = json!({
        "apiVersion": kind.api_version(), "kind": "KubeadmControlPlane", "metadata": {"name": "k"},
        "spec": {
            "replicas": 1, "version": "v1.34.0", "kubeadmConfigSpec": {"format": "cloud-config"},
            "machineTemplate": {"spec": {"infrastructureRef":
                {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SimMachineTemplate", "name": "t"}}},
        },
    });
    client.create(&kind, "default", &body).await.expect("created");
    let key = Key::new("default", "k");
    let to = |replicas: i32| Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let refused = client.patch(&kind, &key, Some("scale"), &to(2)).await.expect_err("even");
    assert!(
        refused.to_string().contains("replicas cannot be an even number when etcd is stacked"),
        "{refused}"
    );
    client.patch(&kind, &key, Some("scale"), &to(3)).await.expect("odd");
}

#[tokio::test(start_paused = true)]
async fn unchanged_definitions_are_not_written() {
    let (_plane, client) = management().await;
    let kind =
        cluster_scoped("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    let versions = || async {
        let list = client.list::<Value>(&kind, "", &capstan_controller::ListOptions::default()).await;
        let items = list.expect("definitions").items;
        items.into_iter().map(|item| item["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>()
    };
    let before = versions().await;
    let mut definitions = capstan_capi_plane::definitions();
    capstan_capi_plane::install(&client, &definitions).await.expect("installed");
    assert_eq!(versions().await, before);
    definitions[0]["spec"]["names"]["shortNames"] = json!(["short"]);
    capstan_capi_plane::install(&client, &definitions).await.expect("installed");
    assert_eq!(versions().await.iter().zip(&before).filter(|(now, then)| now != then).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_validated_against_its_class_once_that_is_reconciled() {
    let (_plane, client) = management().await;
    let (classes, clusters) = (core("ClusterClass", "clusterclasses"), core("Cluster", "clusters"));
    let template =
        |kind: &str| json!({"templateRef": {"apiVersion": "fake.example.com/v1", "kind": kind, "name": "t"}});
    let flavor =
        json!({"name": "flavor", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}});
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "quick"},
        "spec": {
            "infrastructure": template("FakeClusterTemplate"),
            "controlPlane": template("FakeControlPlaneTemplate"),
            "variables": [flavor],
        },
    });
    client.create(&classes, "default", &class).await.expect("a class");
    let cluster = |name: &str, variables: Value| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"topology": {
                "classRef": {"name": "quick"}, "version": "v1.36.0", "variables": variables,
            }},
        })
    };
    let wrong = json!([{"name": "flavor", "value": 7}]);
    client.create(&clusters, "default", &cluster("early", wrong.clone())).await.expect("nothing known yet");

    let mut definition = flavor.clone();
    definition["from"] = "inline".into();
    if let Some(fields) = definition.as_object_mut() {
        fields.remove("name");
    }
    let variables = json!([{"name": "flavor", "definitions": [definition]}]);
    let ready = json!({
        "type": "VariablesReady", "status": "True", "reason": "VariablesReady", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = Patch::Merge(
        json!({"status": {"observedGeneration": 1, "variables": variables, "conditions": [ready]}}),
    );
    let key = Key::new("default", "quick");
    client.patch(&classes, &key, Some("status"), &status).await.expect("a status");
    let refused = client.create(&clusters, "default", &cluster("late", wrong)).await.expect_err("a number");
    assert!(refused.to_string().contains("spec.topology.variables[flavor].value"), "{refused}");
    let right = json!([{"name": "flavor", "value": "big"}]);
    client.create(&clusters, "default", &cluster("late", right)).await.expect("a text");
}
