//! What is asked of the cloud for a machine. Each call is one request that was complete when it was decided.

use std::sync::Arc;

use capstan_cloudstack_client::commands::{
    AssignToLoadBalancerRule, DeleteVolume, DestroyVirtualMachine, RemoveFromLoadBalancerRule,
};
use capstan_cloudstack_client::{Code, Error, VirtualMachineId, VolumeId};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomain, CloudStackMachine};
use capstan_controller::{Call, Outcome, View};
use capstan_object::Key;
use capstan_provider_kit::order;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Answers, Order, forwarding, observe};
use crate::account_cache::may_not_expunge;
use crate::annotation;
use crate::clouds::{Access, Clouds};
use crate::code;
use crate::error::{CloudError, failed, kept};

/// A call to CloudStack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MachineCall {
    /// Order a machine.
    Deploy {
        name: String,
        /// How many orders failed before.
        attempt: u32,
        /// Everything else; none in intents of releases that did not journal it.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<Order>>,
    },
    /// Destroy a machine, and the data disk it was ordered with.
    Destroy {
        id: String,
        /// Expunge it at once.
        #[serde(default)]
        expunge: bool,
        /// The data disk.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        disks: Vec<VolumeId>,
    },
    /// Delete the data disk of a machine that somebody else destroyed.
    DeleteDisk {
        /// Id of the volume.
        disk: VolumeId,
    },
    /// Have the load balancer lead to it.
    Attach { rule: String, id: String },
    /// Have the load balancer lead to it no longer.
    Detach { rule: String, id: String },
    /// Have a port of the address lead to its SSH.
    Forward {
        address: String,
        id: String,
        /// The port; none in intents of releases that chose it later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// Let everybody in.
        #[serde(default)]
        open: bool,
        /// The network, where the address is a VPC's. Tiers have no firewall: the rule says itself who may connect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<String>,
        /// Sources that the rule of a tier admits; everybody if empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cidrs: Vec<String>,
    },
    /// Have none lead there.
    Unforward {
        address: String,
        id: String,
        /// The rule; none in intents of releases that chose it later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// Let some in to a port of the address.
    OpenFirewall {
        address: String,
        port: u16,
        /// Sources that are admitted.
        cidrs: Vec<String>,
    },
    /// Let nobody in by a rule any more.
    CloseFirewall { address: String, rule: String },
}

impl Call for MachineCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Deploy { name, .. } => name.clone(),
            Self::Destroy { id, .. } => id.clone(),
            Self::DeleteDisk { disk } => format!("disk/{disk}"),
            Self::Attach { rule, id } | Self::Detach { rule, id } => format!("{rule}/{id}"),
            Self::Forward { address, id, .. } | Self::Unforward { address, id, .. } => {
                format!("ssh/{address}/{id}")
            }
            Self::OpenFirewall { address, port, .. } => format!("firewall/{address}/{port}"),
            Self::CloseFirewall { rule, .. } => format!("firewall/{rule}"),
        }
    }

    fn journalled(&self) -> bool {
        !matches!(self, Self::Attach { .. } | Self::Detach { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::Deploy { name, .. } => format!("deploy-vm {name}"),
            Self::Destroy { id, .. } => format!("destroy-vm {id}"),
            Self::DeleteDisk { disk } => format!("delete-disk {disk}"),
            Self::Attach { rule, id } => format!("add-member {id} to {rule}"),
            Self::Detach { rule, id } => format!("remove-member {id} from {rule}"),
            Self::Forward { address, id, port, .. } => {
                format!("forward-ssh {address} {} to {id}", port.unwrap_or_default())
            }
            Self::Unforward { address, id, .. } => format!("unforward-ssh {address} to {id}"),
            Self::OpenFirewall { address, port, cidrs } => {
                format!("open-firewall {address} {port} to {}", cidrs.join(","))
            }
            Self::CloseFirewall { address, rule } => format!("close-firewall {address} {rule}"),
        }
    }
}

/// The cloud that a call goes to: that of the failure domain which its order names, or which its machine is in.
pub(super) async fn access(
    call: &MachineCall,
    object: &CloudStackMachine,
    view: &View,
    clouds: &Clouds,
) -> Result<Access, CloudError> {
    let domain = match call {
        // The object may not say yet where it was placed.
        MachineCall::Deploy { order: Some(order), .. } => {
            let name = names::failure_domain_object(&order.failure_domain, &order.cluster);
            view.get::<CloudStackFailureDomain>(&Key::new(object.metadata.namespace.as_str(), name))?
        }
        _ => observe::domain_of(object, view)?,
    };
    let lost =
        || CloudError::new(code::FAILED, "NoFailureDomain", "the failure domain of the machine is gone");
    clouds.access(&domain.ok_or_else(lost)?.spec, view).await
}

pub(super) async fn make(
    call: &MachineCall,
    object: &Arc<CloudStackMachine>,
    view: &View,
    clouds: &Clouds,
    answers: &Answers,
) -> Outcome {
    let access = match access(call, object, view, clouds).await {
        Ok(access) => access,
        Err(cause) => return cause.outcome(),
    };
    let (client, rules) = (&access.client, &answers.rules);
    let done = match call {
        MachineCall::Deploy { name, order, .. } => {
            return match order {
                Some(order) => deploy(name, order, object, &access, view).await,
                None => incomplete(call),
            };
        }
        MachineCall::Destroy { id, expunge, disks } => {
            answers.disks.forget(id);
            match destroy(&id.as_str().into(), *expunge, disks, &access).await {
                Err(error) => return kept(&error, &access.secret),
                Ok(()) => Ok(()),
            }
        }
        MachineCall::DeleteDisk { disk } => match client.call(&DeleteVolume { id: disk.clone() }).await {
            // Not known any more: gone, which is what was wanted.
            Err(error) if error.is_unknown(disk.as_str()) => Ok(()),
            Err(error) => return kept(&error, &access.secret),
            Ok(_) => Ok(()),
        },
        MachineCall::Attach { rule, id } => {
            let request = AssignToLoadBalancerRule {
                id: rule.as_str().into(),
                virtualmachineids: vec![id.as_str().into()],
            };
            let done = client.run(&request).await.map(drop);
            if done.is_ok() {
                access.cache.membership(rule, id, true).await;
            }
            done
        }
        MachineCall::Detach { rule, id } => {
            let request = RemoveFromLoadBalancerRule {
                id: rule.as_str().into(),
                virtualmachineids: vec![id.as_str().into()],
            };
            access.cache.membership(rule, id, false).await;
            match client.run(&request).await {
                // A rule that is gone leads nowhere.
                Err(error) if error.code() == Some(Code::Parameter) => Ok(()),
                done => done.map(drop),
            }
        }
        MachineCall::Forward { address, id, port, open, tier, cidrs } => {
            let Some(port) = port else { return incomplete(call) };
            let admitted = forwarding::Admitted { open: *open, tier: tier.as_deref(), cidrs };
            forwarding::forward((address, *port), id, admitted, &access, rules).await
        }
        MachineCall::Unforward { address, rule, .. } => {
            let Some(rule) = rule else { return incomplete(call) };
            forwarding::end(address, rule, &access, rules).await
        }
        MachineCall::OpenFirewall { address, port, cidrs } => {
            return match forwarding::open((address, *port), cidrs, &access, rules).await {
                Ok(rule) => Outcome::Done(json!({"rule": rule})),
                Err(error) => failed(&error, &access.secret),
            };
        }
        MachineCall::CloseFirewall { address, rule } => {
            forwarding::close(address, rule, &access, rules).await
        }
    };
    match done {
        Ok(()) => Outcome::done(),
        Err(error) => failed(&error, &access.secret),
    }
}

/// Intents of earlier releases are resolved, never carried out.
fn incomplete(call: &MachineCall) -> Outcome {
    Outcome::failed(code::FAILED, format!("{}: the order is not complete", call.summary()))
}

async fn deploy(
    name: &str,
    order: &Order,
    object: &CloudStackMachine,
    access: &Access,
    view: &View,
) -> Outcome {
    let boot_data = match order.boot_data.read(&object.metadata.namespace, view).await {
        Ok(boot_data) => boot_data,
        Err(error) => return error.outcome(code::BOOT_DATA),
    };
    let user_data = match order.user_data(boot_data) {
        Ok(user_data) => user_data,
        Err(cause) => return cause.outcome(),
    };
    let (length, most) = (user_data.encoded_len(), order.user_data_limit);
    if length > most {
        let message = format!(
            "the user data of the machine has {length} characters in base64, and CloudStack takes {most} \
             (vm.userdata.max.length): shorten files and commands of the bootstrap configuration; if the server allows more, \
             set annotation {} of the CloudStackCluster to its limit",
            annotation::USER_DATA_LIMIT
        );
        return Outcome::failed(code::BOOT_DATA, message);
    }
    match access.client.start(&order.request(name, user_data)).await {
        Ok(taken) => {
            access.cache.quota().await.sent(&object.metadata.key().to_string());
            if let Some(id) = &taken.id {
                access.cache.deploying(&taken.job, id).await;
            }
            Outcome::Done(json!({"id": taken.id, "job": taken.job}))
        }
        // A server whose limit was lowered.
        Err(error) if error.refusal().is_some_and(|it| it.text.contains("User data has exceeded")) => {
            let mend = "shorten files and commands of the bootstrap configuration";
            Outcome::failed(code::BOOT_DATA, format!("{error}; {mend}"))
        }
        Err(error) => access.refused(&error).await,
    }
}

async fn destroy(
    id: &VirtualMachineId,
    expunge: bool,
    disks: &[VolumeId],
    access: &Access,
) -> Result<(), Error> {
    let request = DestroyVirtualMachine { id: id.clone(), expunge: Some(expunge), volumeids: disks.to_vec() };
    let done = access.client.run(&request).await;
    access.cache.changed(id).await;
    match done {
        // Not known any more: gone, which is what was wanted.
        Err(error) if error.is_unknown(id.as_str()) => Ok(()),
        Err(error) => {
            if expunge && may_not_expunge(&error) {
                access.cache.expunge_refused().await;
            }
            Err(error)
        }
        Ok(_) => Ok(()),
    }
}
