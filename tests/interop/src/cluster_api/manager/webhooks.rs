//! Our webhooks on kube-apiserver, used with kubectl.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::api::Api;
use crate::bed::tool::Tool;
use crate::bed::wait;

/// A v1beta1 manifest is defaulted, stored as v1beta2 and readable in both versions. Invalid ones are rejected with a
/// message that names the field.
pub async fn check(api: &Api, kubectl: &Tool, kubeconfig: &Path, folder: &Path) -> Result<()> {
    let file = folder.join("old.json");
    let path = file.to_str().context("path")?.to_owned();
    std::fs::write(&file, old("latest").to_string())?;
    let output = kubectl.refused(kubeconfig, &["apply", "-f", &path]).await?;
    ensure_contains(
        &output,
        "spec.template.spec.version: Invalid value: \"vlatest\": must be a valid semantic version",
    )?;
    std::fs::write(&file, old("1.36.0").to_string())?;
    kubectl.run(kubeconfig, &["apply", "-f", &path]).await?;
    // Fields set by the webhooks are owned by the previous field manager.
    kubectl.run(kubeconfig, &["apply", "-f", &path, "--server-side", "--force-conflicts"]).await?;

    let stored: Value = api.get(OBJECT).await?.success()?;
    let template = &stored["spec"]["template"]["spec"];
    ensure!(template["version"] == "v1.36.0", "no default for the version: {template}");
    ensure!(template["infrastructureRef"]["apiGroup"].is_string(), "not converted: {template}");
    let read = ["get", "machinedeployments.v1beta1.cluster.x-k8s.io", "old", "-o", "json"];
    let read: Value = serde_json::from_str(&kubectl.run(kubeconfig, &read).await?)?;
    let reference = &read["spec"]["template"]["spec"]["infrastructureRef"];
    ensure!(reference["apiVersion"].is_string(), "not converted back: {reference}");

    let other =
        ["patch", "machinedeployment", "old", "--type=merge", "-p", r#"{"spec":{"clusterName":"other"}}"#];
    ensure_contains(
        &kubectl.refused(kubeconfig, &other).await?,
        "spec.clusterName: Forbidden: field is immutable",
    )?;
    kubectl.run(kubeconfig, &["delete", "machinedeployment", "old", "--wait=false"]).await?;
    wait::until("the MachineDeployment is gone", Duration::from_secs(30), || async {
        Ok((api.get(OBJECT).await?.status == 404).then_some(()))
    })
    .await
}

const OBJECT: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments/old";

fn ensure_contains(output: &str, words: &str) -> Result<()> {
    ensure!(output.contains(words), "rejected, but without {words}: {output}");
    Ok(())
}

/// Refers to no existing cluster and is paused, so that no controller acts on it.
fn old(version: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
        "metadata": {"name": "old", "annotations": {"cluster.x-k8s.io/paused": ""}},
        "spec": {
            "clusterName": "none", "replicas": 0, "selector": {},
            "template": {"spec": {
                "clusterName": "none", "version": version, "bootstrap": {"dataSecretName": "s"},
                "infrastructureRef": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "SimMachineTemplate", "name": "t",
                },
            }},
        },
    })
}
