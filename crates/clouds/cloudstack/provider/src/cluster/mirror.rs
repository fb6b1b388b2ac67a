//! The entry of a cluster in CloudStack's own list of Kubernetes clusters (`syncWithACS`).
//!
//! The entry and its members follow the CloudStackMachines. What was sent is recorded on the object, so that the cloud is
//! asked only when something changed. A cluster is ready without its entry.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_cloudstack_client::commands::{
    AddVirtualMachinesToKubernetesCluster, CreateKubernetesCluster, DeleteKubernetesCluster,
    ListCapabilities, ListKubernetesClusters, Owner, RemoveVirtualMachinesFromKubernetesCluster,
};
use capstan_cloudstack_client::model::KubernetesCluster;
use capstan_cloudstack_client::{Class, Code, Error, NetworkId, ZoneId};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::{Call, Decision, Effect, Look, Outcome, Wait};
use capstan_object::ConditionStatus::{False, True};
use serde::{Deserialize, Serialize};

use super::CloudStackClusters;
use crate::clouds::Access;
use crate::code;
use crate::error::{CloudError, failed};

/// Whether the entry is as it should be.
pub(crate) const MIRRORED: &str = "MirroredInCloudStack";
/// What the entry was last given: its id, and the ids of its machines.
const RECORD: &str = "capstan.dev/cloudstack-mirror";
const EXTERNAL: &str = "ExternalManaged";
/// Time until a list that cannot be asked is asked again.
const BARRED: Duration = Duration::from_secs(600);

/// A machine of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Id in CloudStack.
    pub id: String,
    pub control_plane: bool,
}

/// What an object remembers of its entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Record {
    id: String,
    members: BTreeSet<String>,
}

impl Record {
    /// The status names the entry too, and does not survive a move.
    fn of(object: &CloudStackCluster) -> Self {
        let text = object.metadata.annotations.get(RECORD);
        let known: Option<Self> = text.and_then(|text| serde_json::from_str(text).ok());
        let id = object.status.cloud_stack_cluster_id.clone();
        known.unwrap_or_else(|| Self { id, ..Self::default() })
    }

    fn put(&self, object: &mut CloudStackCluster) {
        object.status.cloud_stack_cluster_id.clone_from(&self.id);
        if self.id.is_empty() {
            object.metadata.annotations.remove(RECORD);
        } else if let Ok(text) = serde_json::to_string(self) {
            object.metadata.annotations.insert(RECORD.to_owned(), text);
        }
    }
}

/// A call to CloudStack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MirrorCall {
    /// Make the entry.
    Create {
        name: String,
        /// Where.
        zone: ZoneId,
        /// The network of the first failure domain.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkId>,
        /// Where the API is reached.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        host: String,
        /// The account or project, unless it is that of the keys.
        #[serde(default, skip_serializing_if = "Owner::is_caller")]
        owner: Owner,
    },
    /// Add machines to it.
    Add {
        /// The entry.
        id: String,
        machines: Vec<String>,
        /// They are control planes.
        control_plane: bool,
    },
    /// Take machines out of it.
    Remove {
        /// The entry.
        id: String,
        machines: Vec<String>,
    },
    Delete {
        /// The entry.
        id: String,
    },
}

impl Call for MirrorCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Create { name, .. } => format!("mirror/{name}"),
            Self::Add { id, control_plane, .. } => format!("mirror-members/{id}/{control_plane}"),
            Self::Remove { id, .. } => format!("mirror-leavers/{id}"),
            Self::Delete { id } => format!("mirror/{id}"),
        }
    }

    /// Members can be added and removed any number of times.
    fn journalled(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Delete { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { name, .. } => format!("create-mirror {name}"),
            Self::Add { id, machines, .. } => format!("add-to-mirror {id} [{}]", machines.join(" ")),
            Self::Remove { id, machines } => format!("remove-from-mirror {id} [{}]", machines.join(" ")),
            Self::Delete { id } => format!("delete-mirror {id}"),
        }
    }
}

/// The manifest asks for an entry.
fn is_asked(object: &CloudStackCluster) -> bool {
    object.spec.sync_with_acs == Some(true)
}

/// Whether the cloud has to be asked for the entry.
pub(super) fn must_ask(object: &CloudStackCluster, members: &[Member]) -> bool {
    let known = Record::of(object);
    if object.metadata.is_deleting() {
        return members.is_empty() && (is_asked(object) || !known.id.is_empty());
    }
    let same =
        known.members.len() == members.len() && members.iter().all(|it| known.members.contains(&it.id));
    is_asked(object)
        && object.status.initialization.provisioned == Some(true)
        && (known.id.is_empty() || !same)
}

/// The entry: by its id, else by the name that CAPC gives it. A move changes the uid in that name.
pub(super) async fn find(
    object: &CloudStackCluster,
    cluster: &str,
    access: &Access,
) -> Result<Option<KubernetesCluster>, CloudError> {
    let known = Record::of(object).id;
    let meta = &object.metadata;
    let prefix = names::cks_prefix(cluster, &meta.name);
    let by_id = !known.is_empty();
    let question = ListKubernetesClusters {
        id: by_id.then(|| known.as_str().into()),
        keyword: (!by_id).then(|| prefix.clone()),
        clustertype: Some(EXTERNAL.to_owned()),
        scope: access.scope(),
    };
    let mut found = match access.client.list(&question).await {
        Ok(found) => found,
        Err(error) if by_id && error.code() == Some(Code::Parameter) => Vec::new(),
        Err(error) => return Err(explain(&error, access).await),
    };
    if by_id {
        return Ok(found.pop());
    }
    found.retain(|entry| entry.name.as_deref().is_some_and(|name| name.starts_with(&prefix)));
    let own = names::cks_cluster(cluster, &meta.name, &meta.uid);
    if let Some(at) = found.iter().position(|entry| entry.name.as_deref() == Some(&own)) {
        return Ok(Some(found.swap_remove(at)));
    }
    // Of several that were left behind by others none is ours for certain.
    Ok(if found.len() == 1 { found.pop() } else { None })
}

/// What an error means. A server without the Kubernetes service does not know its commands, and answers as to wrong keys.
async fn explain(error: &Error, access: &Access) -> CloudError {
    if error.class() == Class::Credentials
        && let Ok(capability) = access.client.call(&ListCapabilities {}).await
        && !capability.kubernetesserviceenabled
    {
        let message = "the Kubernetes service of CloudStack is off, so that the cluster is not in its list: remove syncWithACS \
                       from the CloudStackCluster, or ask an administrator to set cloud.kubernetes.service.enabled and \
                       restart the management server";
        return CloudError::new(code::KUBERNETES_SERVICE, "KubernetesServiceOff", message);
    }
    access.explain(error)
}

/// The list cannot be asked until somebody changes the server or the role.
fn is_barred(cause: &CloudError) -> bool {
    [code::KUBERNETES_SERVICE, code::PERMISSION].contains(&cause.code)
}

/// Keeps the entry as the machines are.
pub(super) fn keep(
    look: &Look<CloudStackClusters>,
    cluster: &str,
    decision: &mut Decision<CloudStackClusters>,
) {
    if !is_asked(&look.object) {
        return;
    }
    let entry = match &look.seen.mirror {
        None => return,
        Some(Err(cause)) => {
            if is_barred(cause) {
                decision.wait(Wait::on(cause.reason, cause.message.as_str()).code(cause.code));
                decision.again_in(BARRED);
            } else {
                cause.wait(decision);
            }
            return say(look, decision, ConditionState::new(False, cause.reason, cause.text()));
        }
        Some(Ok(entry)) => entry,
    };
    let Some(entry) = entry else {
        let Some(domain) = look.seen.domains.first() else { return };
        let (meta, zone) = (&look.object.metadata, &domain.spec.zone);
        let call = MirrorCall::Create {
            name: names::cks_cluster(cluster, &meta.name, &meta.uid),
            zone: zone.id.as_str().into(),
            network: Some(zone.network.id.as_str().into()).filter(|_| !zone.network.id.is_empty()),
            host: look.object.spec.control_plane_endpoint.host.clone(),
            owner: look.seen.owner.clone(),
        };
        Record::default().put(&mut decision.object);
        return ask(look, decision, vec![call]);
    };
    let id = entry.id.to_string();
    let held: BTreeSet<&str> = entry.virtualmachines.iter().map(|member| member.id.as_str()).collect();
    let mut calls = Vec::new();
    for control_plane in [true, false] {
        let missing = look
            .seen
            .members
            .iter()
            .filter(|member| member.control_plane == control_plane && !held.contains(member.id.as_str()));
        let machines: Vec<String> = missing.map(|member| member.id.clone()).collect();
        if !machines.is_empty() {
            calls.push(MirrorCall::Add { id: id.clone(), machines, control_plane });
        }
    }
    let gone = held.iter().filter(|held| !look.seen.members.iter().any(|member| member.id == **held));
    let machines: Vec<String> = gone.map(|held| (*held).to_owned()).collect();
    if !machines.is_empty() {
        calls.push(MirrorCall::Remove { id: id.clone(), machines });
    }
    if !calls.is_empty() {
        decision.object.status.cloud_stack_cluster_id = id;
        return ask(look, decision, calls);
    }
    let members = look.seen.members.iter().map(|member| member.id.clone()).collect();
    Record { id, members }.put(&mut decision.object);
    say(look, decision, ConditionState::new(True, "Mirrored", ""));
}

/// Deletes the entry before the failure domains, whose keys that takes. Whether there is something left to do.
pub(super) fn delete(look: &Look<CloudStackClusters>, decision: &mut Decision<CloudStackClusters>) -> bool {
    match &look.seen.mirror {
        Some(Ok(Some(entry))) => {
            // The failure domains, and with them the keys that it takes, go after the entry.
            let call = MirrorCall::Delete { id: entry.id.to_string() };
            report_calls(look, decision, std::slice::from_ref(&call));
            decision.call(call);
            true
        }
        // There is none on record, and whoever may not look cannot have made one since.
        Some(Err(cause)) if is_barred(cause) && Record::of(&look.object).id.is_empty() => {
            say(look, decision, ConditionState::new(False, cause.reason, cause.text()));
            false
        }
        Some(Err(cause)) => {
            cause.wait(decision);
            say(look, decision, ConditionState::new(False, cause.reason, cause.text()));
            true
        }
        Some(Ok(None)) => {
            Record::default().put(&mut decision.object);
            false
        }
        None => false,
    }
}

/// Asks for calls, each by itself: the cluster is ready without its entry.
fn ask(look: &Look<CloudStackClusters>, decision: &mut Decision<CloudStackClusters>, calls: Vec<MirrorCall>) {
    report_calls(look, decision, &calls);
    for call in calls {
        decision.best_effort(Effect::Call(call));
    }
}

/// Says what is asked for, or why it failed.
fn report_calls(
    look: &Look<CloudStackClusters>,
    decision: &mut Decision<CloudStackClusters>,
    calls: &[MirrorCall],
) {
    let failure = look.failures.iter().find(|failure| calls.iter().any(|it| it.summary() == failure.effect));
    let message = match failure {
        Some(failure) => failure.error.to_string(),
        None => calls.iter().map(Call::summary).collect::<Vec<_>>().join(", "),
    };
    say(look, decision, ConditionState::new(False, "Mirroring", message));
}

fn say(look: &Look<CloudStackClusters>, decision: &mut Decision<CloudStackClusters>, state: ConditionState) {
    set_state(look, &mut decision.object.status.conditions, MIRRORED, state, None);
}

pub(super) async fn make(call: &MirrorCall, access: &Access) -> Outcome {
    let client = &access.client;
    let done = match call {
        MirrorCall::Create { name, zone, network, host, owner } => {
            let request = CreateKubernetesCluster {
                name: name.clone(),
                description: format!("{name} managed by Capstan"),
                zoneid: zone.clone(),
                networkid: network.clone(),
                clustertype: EXTERNAL.to_owned(),
                externalloadbalanceripaddress: Some(host.clone()).filter(|host| !host.is_empty()),
                owner: owner.clone(),
            };
            client.run(&request).await.map(drop)
        }
        MirrorCall::Add { id, machines, control_plane } => {
            let request = AddVirtualMachinesToKubernetesCluster {
                id: id.as_str().into(),
                virtualmachineids: machines.iter().map(|id| id.as_str().into()).collect(),
                iscontrolnode: Some(*control_plane),
            };
            client.call(&request).await.map(drop)
        }
        MirrorCall::Remove { id, machines } => {
            let request = RemoveVirtualMachinesFromKubernetesCluster {
                id: id.as_str().into(),
                virtualmachineids: machines.iter().map(|id| id.as_str().into()).collect(),
            };
            // Machines and entries that are not known any more are gone.
            match client.call(&request).await {
                Err(error) if error.code() == Some(Code::Parameter) => Ok(()),
                done => done.map(drop),
            }
        }
        MirrorCall::Delete { id } => {
            match client.run(&DeleteKubernetesCluster { id: id.as_str().into() }).await {
                Err(error) if error.is_unknown(id) => Ok(()),
                done => done.map(drop),
            }
        }
    };
    match done {
        Ok(()) => Outcome::done(),
        Err(error) => failed(&error, &access.secret),
    }
}
