//! A chart with the shape of Cilium's, rendered in this process: agents, an operator, and the check of a version.

use std::sync::Arc;

use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::cni::{Chart, Cni, Order, Render, Renderer, Source};
use futures::future::BoxFuture;
use serde_json::{Value, json};

struct InProcess;

impl Render for InProcess {
    fn render<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(render(&order.values)))
    }
}

fn render(values: &Value) -> Result<String, String> {
    let tag = values["image"]["tag"].as_str().unwrap_or("v1.16.5");
    if tag == "wrong" {
        return Err("execution error at (cilium/templates/validate.yaml): no such tag".to_owned());
    }
    let objects = match values["preflight"]["enabled"] == true {
        true => vec![
            workload("DaemonSet", "cilium-pre-flight-check", tag),
            workload("Deployment", "cilium-pre-flight-check", tag),
        ],
        false => vec![
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": "cilium-ca", "namespace": "kube-system"}, "stringData": {"ca.key": "hidden"},
            }),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "cilium-config", "namespace": "kube-system"},
                "data": {
                    "enable-policy": values["policyEnforcementMode"].as_str().unwrap_or("default"),
                    "upgrade-compatibility": values["upgradeCompatibility"].as_str().unwrap_or_default(),
                },
            }),
            workload("DaemonSet", "cilium", tag),
            workload("Deployment", "cilium-operator", tag),
        ],
    };
    Ok(objects.iter().map(|object| format!("---\n{object}\n")).collect())
}

fn workload(kind: &str, name: &str, tag: &str) -> Value {
    let labels = json!({"k8s-app": name});
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "hostNetwork": true, "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "it", "image": format!("quay.io/cilium/{name}:{tag}")}],
            }},
        },
    });
    if kind == "Deployment" {
        object["spec"]["replicas"] = 1.into();
    }
    object
}

/// A server whose clusters get the chart.
pub fn settings() -> Settings {
    let chart =
        Chart { reference: "/charts/cilium".to_owned(), version: None, content: Some("1".to_owned()) };
    Settings {
        cni: Cni::default().with_cilium(Source::Chart(chart)),
        renderer: Renderer::new(Arc::new(InProcess)),
        ..Settings::default()
    }
}
