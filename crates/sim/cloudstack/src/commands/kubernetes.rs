//! Records of Kubernetes clusters that others manage. Clusters that CloudStack itself would make are not simulated.

use serde_json::{Value, json};

use super::{job, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::compute::KubernetesCluster;
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listKubernetesSupportedVersions",
        "id:none zoneid:zone minimumkubernetesversionid:none",
        list_versions,
    ),
    sync(
        "listKubernetesClusters",
        "id:kubernetes name state clustertype account domainid:domain projectid:project listall:flag",
        list,
    ),
    job(
        "createKubernetesCluster",
        "name! description zoneid:zone! clustertype networkid:network serviceofferingid:serviceoffering \
         account domainid:domain projectid:project asnumber:number cniconfigurationid:none \
         controlnodes:number etcdnodes:number externalloadbalanceripaddress kubernetesversionid:none masternodes:number \
         noderootdisksize:number size:number",
        "user.kubernetes.cluster.CreateKubernetesClusterCmd",
        create,
    ),
    job(
        "deleteKubernetesCluster",
        "id:kubernetes!",
        "user.kubernetes.cluster.DeleteKubernetesClusterCmd",
        delete,
    ),
    sync(
        "addVirtualMachinesToKubernetesCluster",
        "id:kubernetes! virtualmachineids:vm[]! iscontrolnode:flag",
        add,
    ),
    sync("removeVirtualMachinesFromKubernetesCluster", "id:kubernetes! virtualmachineids:vm[]!", remove),
    job(
        "startKubernetesCluster",
        "id:kubernetes!",
        "user.kubernetes.cluster.StartKubernetesClusterCmd",
        start,
    ),
    job("stopKubernetesCluster", "id:kubernetes!", "user.kubernetes.cluster.StopKubernetesClusterCmd", stop),
    job(
        "scaleKubernetesCluster",
        "id:kubernetes! maxsize:number minsize:number nodeids:vm[] serviceofferingid:serviceoffering \
         size:number",
        "user.kubernetes.cluster.ScaleKubernetesClusterCmd",
        scale,
    ),
    sync("getKubernetesClusterConfig", "id:kubernetes!", config),
];

fn list_versions(_: &mut Cloud, _: &Call) -> Result<Answer> {
    Ok(Answer::List("kubernetessupportedversion", Vec::new()))
}

fn list(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let scope = cloud.scope(call)?;
    if let Some(kind) =
        call.text("clustertype").filter(|kind| !["CloudManaged", "ExternalManaged"].contains(kind))
    {
        return Err(unknown_type(kind));
    }
    let shown = cloud
        .kubernetes_clusters
        .iter()
        .filter(|cluster| {
            cloud.shows(call, scope, cluster.account)
                && call.selects(&cloud.kubernetes_clusters, "id", cluster.key)
                && call.names("name", &cluster.name)
                && call.names("clustertype", "ExternalManaged")
                && call.names("state", "Running")
                && call.keyword_in(&[&cluster.name])
        })
        .map(|cluster| cloud.show_kubernetes_cluster(cluster.key, call.caller))
        .collect();
    Ok(Answer::List("kubernetescluster", shown))
}

fn unknown_type(name: &str) -> ApiError {
    ApiError::invalid(format!(
        "Unable to resolve cluster type {name} to a supported value (CloudManaged, ExternalManaged)"
    ))
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    match call.text("clustertype") {
        Some("ExternalManaged") => {}
        Some("CloudManaged") | None => {
            let text = "this simulator keeps records of ExternalManaged clusters only";
            return Err(ApiError::runtime(text).wrapped());
        }
        Some(other) => return Err(unknown_type(other)),
    }
    let balancer = call.filled("externalloadbalanceripaddress");
    if balancer.is_some_and(|address| address.parse::<std::net::IpAddr>().is_err()) {
        return Err(ApiError::runtime("Invalid external load balancer IP address").wrapped());
    }
    let owner = cloud.owner(call)?;
    let name = call.text("name").unwrap_or_default().to_owned();
    let it = KubernetesCluster {
        description: call.filled("description").unwrap_or(&name).to_owned(),
        name,
        account: owner,
        zone: call.the(&cloud.zones, "zoneid")?,
        network: call.key(&cloud.networks, "networkid"),
        offering: call.key(&cloud.service_offerings, "serviceofferingid"),
        members: Vec::new(),
    };
    let uuid = cloud.fresh_uuid();
    let key = cloud.kubernetes_clusters.insert(uuid.clone(), cloud.now, it);
    let caller = call.caller;
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"kubernetescluster": cloud.show_kubernetes_cluster(key, caller)}))
    });
    Ok(Answer::Job(Submission { id: Some(uuid), ..submission.about("KubernetesCluster") }))
}

fn delete(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.kubernetes_clusters, "id")?;
    let allowed = cloud.may_operate(call.caller, cloud.kubernetes_clusters[key].account);
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        if !allowed {
            return Err(ApiError { code: 530, ..ApiError::not_yours() });
        }
        if cloud.kubernetes_clusters[key].removed {
            return Err(ApiError::runtime("Invalid cluster id specified"));
        }
        cloud.kubernetes_clusters.remove(key);
        Ok(success())
    });
    Ok(Answer::Job(submission.about("KubernetesCluster")))
}

/// A record of the caller's.
fn own(cloud: &Cloud, call: &Call) -> Result<Key<KubernetesCluster>> {
    let key = call.the(&cloud.kubernetes_clusters, "id")?;
    cloud.allow(call.caller, cloud.kubernetes_clusters[key].account)?;
    Ok(key)
}

/// A record of the caller's, for a command that raises every refusal again as an internal error.
fn own_wrapped(cloud: &Cloud, call: &Call) -> Result<Key<KubernetesCluster>> {
    let key = call.the(&cloud.kubernetes_clusters, "id")?;
    if cloud.kubernetes_clusters[key].removed {
        return Err(ApiError::runtime("Invalid Kubernetes cluster ID specified").wrapped());
    }
    cloud.allow(call.caller, cloud.kubernetes_clusters[key].account).map_err(internal)?;
    Ok(key)
}

/// The same refusal as an internal error.
fn internal(refused: ApiError) -> ApiError {
    ApiError { code: 530, ..refused }.wrapped()
}

/// A machine may be in as many records, and as often, as its owner likes.
fn add(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own_wrapped(cloud, call)?;
    for vm in call.keys(&cloud.vms, "virtualmachineids") {
        let row = &cloud.vms[vm];
        if row.removed {
            return Err(ApiError::runtime("Invalid VM ID specified").wrapped());
        }
        cloud.allow(call.caller, row.account).map_err(internal)?;
    }
    for vm in call.keys(&cloud.vms, "virtualmachineids") {
        let members = &mut cloud.kubernetes_clusters[key].members;
        if !members.contains(&vm) {
            members.push(vm);
        }
    }
    Ok(Answer::Body(success()))
}

/// Members come first, then those that are none.
fn remove(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own_wrapped(cloud, call)?;
    let named = call.keys(&cloud.vms, "virtualmachineids");
    let held = cloud.kubernetes_clusters[key].members.clone();
    cloud.kubernetes_clusters[key].members.retain(|member| !named.contains(member));
    let mut shown: Vec<Value> = held
        .iter()
        .filter(|member| named.contains(member))
        .map(|member| json!({"id": cloud.vms[*member].uuid, "success": true}))
        .collect();
    for (at, vm) in named.iter().enumerate() {
        if held.contains(vm) || named[..at].contains(vm) {
            continue;
        }
        let row = &cloud.vms[*vm];
        let text = if row.removed { "VM is already removed" } else { "VM is not part of the cluster" };
        shown.push(json!({"id": row.uuid, "success": false, "displaytext": text}));
    }
    Ok(Answer::List("removevirtualmachinesfromkubernetesclusterresponse", shown))
}

fn unsupported(cloud: &Cloud, call: &Call, text: impl Fn(&str) -> String) -> Result<Answer> {
    let key = own(cloud, call)?;
    let refused = ApiError::runtime(text(&cloud.kubernetes_clusters[key].name));
    Ok(Answer::Job(Submission::once(cloud.settings.timings.rule, move |_, _| Err(refused))))
}

fn start(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    unsupported(cloud, call, |name| {
        format!("Start kubernetes cluster is not supported for an externally managed cluster ({name})")
    })
}

fn stop(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    unsupported(cloud, call, |name| {
        format!("Stop kubernetes cluster is not supported for an externally managed cluster ({name})")
    })
}

fn scale(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    unsupported(cloud, call, |name| {
        format!(
            "Kubernetes cluster {name} cannot be scaled, either service offering or cluster size or nodeids to be removed \
             or autoscaling must be passed"
        )
    })
}

fn config(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = own(cloud, call)?;
    Err(ApiError::new(
        530,
        9999,
        format!("Config not found for Kubernetes cluster : {}", cloud.kubernetes_clusters[key].name),
    ))
}
