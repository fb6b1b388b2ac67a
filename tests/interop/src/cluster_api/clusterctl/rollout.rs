//! `clusterctl alpha rollout`: a restart replaces machines, and nothing is replaced while paused.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::own::{Bed, NAME, NAMESPACE};
use crate::api::{Api, content};
use crate::bed::cluster::Cluster;
use crate::bed::{Server, wait};

const TIMEOUT: Duration = Duration::from_secs(180);

/// A resource that can be rolled out.
struct Target {
    /// Resource argument of clusterctl.
    resource: String,
    /// Path in the API.
    path: String,
    /// Label of its machines.
    label: String,
}

pub(super) async fn run(bed: &Bed<'_>, plane: &mut Server, cluster: &Cluster<'_>) -> Result<()> {
    let api = plane.api()?;
    let workers = format!("{NAME}-workers");
    let group = "cluster.x-k8s.io";
    let targets = [
        Target {
            resource: format!("machinedeployment/{workers}"),
            path: format!("/apis/{group}/v1beta2/namespaces/{NAMESPACE}/machinedeployments/{workers}"),
            label: format!("{group}/deployment-name={workers}"),
        },
        Target {
            resource: format!("kubeadmcontrolplane/{NAME}"),
            path: format!(
                "/apis/controlplane.{group}/v1beta2/namespaces/{NAMESPACE}/kubeadmcontrolplanes/{NAME}"
            ),
            label: format!("{group}/control-plane-name={NAME}"),
        },
    ];
    for target in &targets {
        let resource = target.resource.as_str();
        let before = machines(&api, target).await?;
        bed.ctl(plane, &["alpha", "rollout", "restart", resource]).await?;
        replaced(&api, target, &before).await?;
        cluster.wait_available(1, 1, &mut || plane.check()).await?;

        let before = machines(&api, target).await?;
        bed.ctl(plane, &["alpha", "rollout", "pause", resource]).await?;
        let arguments = ["alpha", "rollout", "restart", resource, "--namespace", NAMESPACE];
        let refused = bed.clusterctl.refused(&plane.kubeconfig, &arguments).await?;
        ensure!(
            refused.contains("paused"),
            "restarting a paused {resource} was refused for another reason: {refused}"
        );
        // clusterctl refuses this, the API accepts it: the controller must wait.
        let after = json!({"spec": {"rollout": {"after": after_the_last(&api, target).await?}}});
        let changed = api.patch(&target.path, content::MERGE_PATCH, &after).await?.success()?;
        wait_observed(&api, target, &changed).await?;
        let now = machines(&api, target).await?;
        ensure!(now == before, "{resource} is paused, yet {before:?} became {now:?}");
        bed.ctl(plane, &["alpha", "rollout", "resume", resource]).await?;
        replaced(&api, target, &before).await?;
        cluster.wait_available(1, 1, &mut || plane.check()).await?;
    }
    Ok(())
}

async fn list(api: &Api, target: &Target) -> Result<Vec<Value>> {
    let label = target.label.replace('=', "%3D").replace('/', "%2F");
    let path =
        format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/machines?labelSelector={label}");
    let mut list = api.get(&path).await?.success()?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        other => bail!("no list of machines: {other}"),
    }
}

async fn machines(api: &Api, target: &Target) -> Result<BTreeSet<String>> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Ok(list(api, target).await?.iter().map(name).collect())
}

/// A time after the creation of every machine of a target.
async fn after_the_last(api: &Api, target: &Target) -> Result<String> {
    let mut last = Timestamp::UNIX_EPOCH;
    for machine in list(api, target).await? {
        let created = machine["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        last = last.max(created.parse()?);
    }
    Ok((last + SignedDuration::from_secs(1)).to_string())
}

/// Waits until the controller has observed the new generation of a target.
async fn wait_observed(api: &Api, target: &Target, changed: &Value) -> Result<()> {
    let generation = changed["metadata"]["generation"].as_i64();
    let what = format!("generation {generation:?} of {} is observed", target.resource);
    wait::until(&what, TIMEOUT, || async {
        let object = api.get(&target.path).await?.success()?;
        let status = &object["status"];
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut paused =
            conditions.filter(|condition| condition["type"] == "Paused" && condition["status"] == "True");
        let seen = status["observedGeneration"].as_i64() >= generation;
        let seen = seen || paused.any(|condition| condition["observedGeneration"].as_i64() >= generation);
        Ok(seen.then_some(()))
    })
    .await
}

/// Waits until all machines are replaced by as many new ones.
async fn replaced(api: &Api, target: &Target, before: &BTreeSet<String>) -> Result<()> {
    let what = format!("the machines of {} are replaced", target.resource);
    wait::until(&what, TIMEOUT, || async {
        let now = machines(api, target).await?;
        Ok((now.len() == before.len() && now.is_disjoint(before)).then_some(()))
    })
    .await
}
