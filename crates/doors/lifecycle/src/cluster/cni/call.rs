//! Calls to the workload cluster: the check of a version is applied there, and deleted.

use capstan_capi_addons::cluster_resource_set::{apply_all, delete_all};
use capstan_capi_types::addons::ClusterResourceSetStrategy;
use capstan_controller::{Outcome, View, catalogue};
use capstan_object::Key;
use serde_json::{Value, json};

use super::super::Settings;
use super::{Called, CniCall, NAMESPACE, PREFLIGHT};
use crate::names::SYSTEM_NAMESPACE;
use crate::types::Cluster;

pub(in crate::cluster) async fn run(
    settings: &Settings,
    call: &CniCall,
    cluster: &Cluster,
    view: &View,
) -> Outcome {
    let errors = match attempt(settings, call, cluster, view).await {
        Ok(errors) => errors,
        Err(why) => vec![why],
    };
    match serde_json::to_value(Called { errors }) {
        Ok(result) => Outcome::Done(result),
        Err(error) => Outcome::failed(catalogue::ENCODE, error.to_string()),
    }
}

async fn attempt(
    settings: &Settings,
    call: &CniCall,
    cluster: &Cluster,
    view: &View,
) -> Result<Vec<String>, String> {
    let plan = settings.cni.plan(cluster)?;
    let check = match plan.has_preflight() {
        true => plan.preflight(&settings.renderer, view.now()).await?.objects().to_vec(),
        // The chart that it came from is configured no more.
        false => well_known(),
    };
    let workloads = view.workloads().ok_or("this plane reaches no workload clusters")?;
    let key = Key::new(SYSTEM_NAMESPACE, cluster.metadata.name.as_str());
    let client = workloads.client(&key).await.map_err(|error| error.to_string())?;
    Ok(match call {
        CniCall::StartPreflight { .. } => {
            apply_all(&client, check, ClusterResourceSetStrategy::Reconcile).await
        }
        CniCall::EndPreflight { .. } => delete_all(&client, &check).await,
    })
}

fn well_known() -> Vec<Value> {
    ["DaemonSet", "Deployment"]
        .map(|kind| {
            json!({
                "apiVersion": "apps/v1", "kind": kind,
                "metadata": {"name": PREFLIGHT, "namespace": NAMESPACE},
            })
        })
        .to_vec()
}
