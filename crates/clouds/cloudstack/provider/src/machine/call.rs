//! What is asked of the cloud for a machine.

use std::sync::Arc;

use capstan_cloudstack_client::commands::{
    AssignToLoadBalancerRule, DestroyVirtualMachine, GetVirtualMachineUserData,
    ListLoadBalancerRuleInstances, ListVirtualMachines, ListVolumes, RemoveFromLoadBalancerRule,
};
use capstan_cloudstack_client::model::VirtualMachine;
use capstan_cloudstack_client::{Code, Error, VirtualMachineId, VolumeId};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::{Call, Intent, ObserveError, Outcome, Resolution, View};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Seen, deploy, observe, ssh};
use crate::clouds::{Access, Clouds};
use crate::code;
use crate::isolated_network::SETTLE;
use crate::trouble::{Trouble, failed};

/// What is asked of the cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MachineCall {
    /// Order a machine.
    Deploy {
        /// Its name.
        name: String,
        /// How many orders failed before.
        attempt: u32,
    },
    /// Destroy a machine, and the data disk it was ordered with.
    Destroy {
        /// Its id.
        id: String,
    },
    /// Have the load balancer lead to it.
    Attach {
        /// The rule.
        rule: String,
        /// Its id.
        id: String,
    },
    /// Have the load balancer lead to it no longer.
    Detach {
        /// The rule.
        rule: String,
        /// Its id.
        id: String,
    },
    /// Have a port of the address lead to its SSH.
    Forward {
        /// The address.
        address: String,
        /// Its id.
        id: String,
    },
    /// Have none lead there.
    Unforward {
        /// The address.
        address: String,
        /// Its id.
        id: String,
    },
}

impl Call for MachineCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Deploy { name, .. } => name.clone(),
            Self::Destroy { id } => id.clone(),
            Self::Attach { rule, id } | Self::Detach { rule, id } => format!("{rule}/{id}"),
            Self::Forward { address, id } | Self::Unforward { address, id } => format!("ssh/{address}/{id}"),
        }
    }

    fn journalled(&self) -> bool {
        matches!(
            self,
            Self::Deploy { .. } | Self::Destroy { .. } | Self::Forward { .. } | Self::Unforward { .. }
        )
    }

    fn summary(&self) -> String {
        match self {
            Self::Deploy { name, .. } => format!("deploy-vm {name}"),
            Self::Destroy { id } => format!("destroy-vm {id}"),
            Self::Attach { rule, id } => format!("add-member {id} to {rule}"),
            Self::Detach { rule, id } => format!("remove-member {id} from {rule}"),
            Self::Forward { address, id } => format!("forward-ssh {address} to {id}"),
            Self::Unforward { address, id } => format!("unforward-ssh {address} to {id}"),
        }
    }
}

async fn reach(object: &CloudStackMachine, view: &View, clouds: &Clouds) -> Result<(Seen, Access), Trouble> {
    let seen = observe::surroundings(object, view)?;
    let lost = || Trouble::new(code::FAILED, "NoFailureDomain", "the failure domain of the machine is gone");
    let domain = seen.domain.clone().ok_or_else(lost)?;
    let access = clouds.access(&domain.spec, view).await?;
    Ok((seen, access))
}

pub(super) async fn make(
    call: &MachineCall,
    object: &Arc<CloudStackMachine>,
    view: &View,
    clouds: &Clouds,
) -> Outcome {
    let (seen, access) = match reach(object, view, clouds).await {
        Ok(reached) => reached,
        Err(trouble) => return trouble.outcome(),
    };
    let done = match call {
        MachineCall::Deploy { .. } => {
            let order = match deploy::order(object, &seen, &access, view).await {
                Ok(order) => order,
                Err(trouble) => return trouble.outcome(),
            };
            match access.client.start(&order).await {
                Ok(taken) => {
                    if let Some(id) = &taken.id {
                        access.sight.deploying(&taken.job, id).await;
                    }
                    return Outcome::Done(json!({"id": taken.id, "job": taken.job}));
                }
                Err(error) => match deploy::lacks_key(object, &access, &error).await {
                    Some(trouble) => return trouble.outcome(),
                    None => Err(error),
                },
            }
        }
        MachineCall::Destroy { id } => destroy(&id.as_str().into(), object, &access).await,
        MachineCall::Attach { rule, id } => attach(rule, id, &access).await,
        MachineCall::Detach { rule, id } => {
            let request = RemoveFromLoadBalancerRule {
                id: rule.as_str().into(),
                virtualmachineids: vec![id.as_str().into()],
            };
            match access.client.run(&request).await {
                // A rule that is gone leads nowhere.
                Err(error) if error.code() == Some(Code::Parameter) => Ok(()),
                done => done.map(drop),
            }
        }
        MachineCall::Forward { address, id } => {
            match ssh::forward(address, id, &ssh::sources(&seen), &access).await {
                Ok(port) => return Outcome::Done(json!({"port": port})),
                Err(error) => Err(error),
            }
        }
        MachineCall::Unforward { address, id } => ssh::end(address, id, &access).await,
    };
    match done {
        Ok(()) => Outcome::done(),
        Err(error) => failed(&error, &access.secret),
    }
}

/// One that is a member already fails the command, so members are looked up if it fails.
async fn attach(rule: &str, id: &str, access: &Access) -> Result<(), Error> {
    let request = AssignToLoadBalancerRule { id: rule.into(), virtualmachineids: vec![id.into()] };
    let Err(error) = access.client.run(&request).await else { return Ok(()) };
    let members = ListLoadBalancerRuleInstances { id: rule.into(), applied: None };
    match access.client.list(&members).await?.iter().any(|member| member.id.as_str() == id) {
        true => Ok(()),
        false => Err(error),
    }
}

async fn destroy(id: &VirtualMachineId, object: &CloudStackMachine, access: &Access) -> Result<(), Error> {
    let client = &access.client;
    let expunge = access.sight.may_expunge(client).await?;
    let volumeids = own_disks(id, object, access).await?;
    let request = DestroyVirtualMachine { id: id.clone(), expunge: Some(expunge), volumeids };
    let done = client.run(&request).await;
    access.sight.changed(id).await;
    match done {
        // Not known any more: gone, which is what was wanted.
        Err(error) if error.code() == Some(Code::Parameter) => Ok(()),
        done => done.map(drop),
    }
}

/// The data disk that the machine was ordered with. Volumes that somebody attached later stay.
async fn own_disks(
    id: &VirtualMachineId,
    object: &CloudStackMachine,
    access: &Access,
) -> Result<Vec<VolumeId>, Error> {
    let disk = &object.spec.disk_offering;
    if disk.id.is_empty() && disk.name.is_empty() {
        return Ok(Vec::new());
    }
    let question = ListVolumes {
        virtualmachineid: Some(id.clone()),
        r#type: Some("DATADISK".to_owned()),
        scope: access.scope(),
        ..ListVolumes::default()
    };
    let found = access.client.list(&question).await?;
    // CloudStack calls the disk that comes with a machine DATA and its number.
    let comes_along = |name: &str| {
        name.strip_prefix("DATA-").is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let ours = found.into_iter().filter(|volume| volume.name.as_deref().is_some_and(comes_along));
    Ok(ours.map(|volume| volume.id).collect())
}

/// What became of a call that nobody heard the end of.
pub(super) async fn resolve(
    intent: &Intent<MachineCall>,
    object: &Arc<CloudStackMachine>,
    view: &View,
    clouds: &Clouds,
) -> Result<Resolution, ObserveError> {
    let outside = |trouble: Trouble| ObserveError::outside(trouble.code, trouble.message);
    let (seen, access) = reach(object, view, clouds).await.map_err(outside)?;
    let lost = |error: Error| outside(access.trouble(&error));
    match &intent.call {
        MachineCall::Deploy { name, .. } => {
            if let Some(machine) = taken(name, object, &seen, &access, view).await.map_err(lost)? {
                return Ok(Resolution::Happened(json!({"id": machine.id, "job": machine.jobid})));
            }
            let young = view.now().duration_since(intent.at.timestamp()) < SETTLE;
            Ok(match young {
                true => Resolution::NotYetKnown { reason: "it may still appear in CloudStack".to_owned() },
                false => Resolution::DidNotHappen,
            })
        }
        MachineCall::Destroy { id } => {
            let id: VirtualMachineId = id.as_str().into();
            access.sight.changed(&id).await;
            let question =
                ListVirtualMachines { id: Some(id), scope: access.scope(), ..ListVirtualMachines::default() };
            let gone = access.client.list(&question).await.map_err(lost)?.is_empty();
            Ok(if gone { Resolution::happened() } else { Resolution::DidNotHappen })
        }
        MachineCall::Forward { address, id } => {
            let port = ssh::port_of(address, id, &access).await.map_err(lost)?;
            // What lets packets in may be missing: the call is made again unless everybody may come.
            let whole = ssh::sources(&seen) == [crate::isolated_network::EVERYBODY];
            Ok(match port.filter(|_| whole) {
                Some(port) => Resolution::Happened(json!({"port": port})),
                None => Resolution::DidNotHappen,
            })
        }
        // Made again, they find what is left to do.
        MachineCall::Attach { .. } | MachineCall::Detach { .. } | MachineCall::Unforward { .. } => {
            Ok(Resolution::DidNotHappen)
        }
    }
}

/// The machine of a name that boots with our boot data: names are not unique, the data of a machine is.
async fn taken(
    name: &str,
    object: &CloudStackMachine,
    seen: &Seen,
    access: &Access,
    view: &View,
) -> Result<Option<VirtualMachine>, Error> {
    let question = ListVirtualMachines {
        name: Some(name.to_owned()),
        scope: access.scope(),
        ..ListVirtualMachines::default()
    };
    let found = access.client.list(&question).await?;
    let ours = match (&seen.machine, &seen.domain) {
        (Some(machine), Some(domain)) => {
            deploy::user_data(object, machine, &domain.spec.name, view).await.ok()
        }
        _ => None,
    };
    let ours = ours.and_then(|data| serde_json::to_value(&data).ok());
    for machine in found.into_iter().filter(|machine| machine.name.as_deref() == Some(name)) {
        let question = GetVirtualMachineUserData { virtualmachineid: machine.id.clone() };
        let theirs = access.client.call(&question).await?.userdata;
        let same = match (&ours, &theirs) {
            (Some(ours), Some(theirs)) => ours.as_str() == Some(theirs.expose()),
            // Without the data what people are shown has to do.
            _ => machine.displayname.as_deref() == seen.machine.as_ref().map(|it| it.metadata.name.as_str()),
        };
        if same {
            return Ok(Some(machine));
        }
    }
    Ok(None)
}
