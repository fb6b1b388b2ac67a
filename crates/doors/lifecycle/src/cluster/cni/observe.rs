//! Reads what a decision about a CNI depends on.

use capstan_capi_types::core::condition as shared;
use capstan_controller::{Client, KindName, View};
use capstan_object::{Conditions as _, Key};
use serde_json::Value;

use super::super::{Current, Settings};
use super::{AGENT, CniSeen, NAMESPACE, OPERATOR, PREFLIGHT, Rollout, Running, state};
use crate::names::SYSTEM_NAMESPACE;
use crate::types::Cluster;

pub(in crate::cluster) async fn observe(
    settings: &Settings,
    cluster: &Cluster,
    current: &Current,
    view: &View,
) -> CniSeen {
    let mut seen = CniSeen::default();
    let available = current
        .control_plane
        .as_ref()
        .is_some_and(|plane| plane.status.conditions.is_condition_true(shared::AVAILABLE));
    if !available || state::is_left(cluster, current) {
        return seen;
    }
    // What cannot be planned is reported before.
    let Ok(plan) = settings.cni.plan(cluster) else { return seen };
    if state::is_recorded(cluster, current, &plan.digest()) {
        return seen;
    }
    let render = async |from: Option<&str>| plan.manifests(&settings.renderer, view.now(), from).await;
    let manifests = render(None).await;
    if plan.has_preflight()
        && state::recorded(cluster, current).is_some()
        && let Ok(wanted) = &manifests
    {
        let running = running(cluster, view).await;
        if let Ok(running) = &running
            && running.is_other_version(wanted)
            && let Some(version) = running.minor()
        {
            seen.manifests = Some(render(Some(&version)).await);
        }
        seen.running = Some(running);
    }
    seen.manifests.get_or_insert(manifests);
    seen
}

async fn running(cluster: &Cluster, view: &View) -> Result<Running, String> {
    let workloads = view.workloads().ok_or("this plane reaches no workload clusters")?;
    let key = Key::new(SYSTEM_NAMESPACE, cluster.metadata.name.as_str());
    let client = workloads.client(&key).await.map_err(|error| error.to_string())?;
    let set = KindName::namespaced("apps", "v1", "DaemonSet", "daemonsets");
    let deployment = KindName::namespaced("apps", "v1", "Deployment", "deployments");
    Ok(Running {
        agent: rollout(&client, &set, AGENT).await?,
        operator: rollout(&client, &deployment, OPERATOR).await?,
        preflight: rollout(&client, &set, PREFLIGHT).await?,
        preflight_check: rollout(&client, &deployment, PREFLIGHT).await?,
    })
}

async fn rollout(client: &Client, kind: &KindName, name: &str) -> Result<Option<Rollout>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{} {NAMESPACE}/{name}: {error}", kind.kind);
    let reply = client.get_raw(kind, &Key::new(NAMESPACE, name)).await.map_err(|error| failed(&error))?;
    let Some(reply) = reply else { return Ok(None) };
    let object: Value = reply.parse().map_err(|error| failed(&error))?;
    let status = &object["status"];
    // A DaemonSet counts its nodes itself, a Deployment has as many Pods as it asks for.
    let (desired, ready) = match status.get("desiredNumberScheduled") {
        Some(desired) => (desired.as_i64(), status["numberReady"].as_i64()),
        None => (object["spec"]["replicas"].as_i64(), status["readyReplicas"].as_i64()),
    };
    let image = object.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str);
    Ok(Some(Rollout {
        image: image.unwrap_or_default().to_owned(),
        observed: status["observedGeneration"] == object["metadata"]["generation"],
        desired: desired.unwrap_or_default(),
        ready: ready.unwrap_or_default(),
    }))
}
