//! Calls for an OpenStackServer. Each is one request that was complete when it was decided.

use capstan_controller::{Call, Intent, ObserveError, Outcome, Resolution, View};
use capstan_openstack_client::block_storage::Volume;
use capstan_openstack_client::compute::Server;
use capstan_openstack_client::network::{
    self as neutron, FloatingIp, FloatingIpChange, NewTrunk, Port, PortChange, Trunk,
};
use capstan_openstack_client::{Deletion, Error, Id};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta1::AddressPair;
use capstan_provider_kit::{order, resolution};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::order::{PortOrder, ServerOrder, VolumeOrder};
use crate::code;
use crate::error::{CloudError, failed};
use crate::mark::{self, Owner};
use crate::project::{Access, SETTLED};

/// What Nova takes, in characters of base64.
const MOST_USER_DATA: usize = 65_535;

/// A call to the cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum ServerCall {
    CreatePort {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<PortOrder>>,
    },
    SetPortTags {
        port: String,
        tags: Vec<String>,
    },
    SetTrunkTags {
        trunk: String,
        tags: Vec<String>,
    },
    SetAddressPairs {
        port: String,
        pairs: Vec<AddressPair>,
    },
    AssociateAddress {
        address: String,
        port: String,
    },
    CreateTrunk {
        name: String,
        port: String,
        /// None in intents of releases that made it up later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    CreateVolume {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<VolumeOrder>>,
    },
    CreateServer {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<ServerOrder>>,
    },
    DeleteServer {
        id: String,
    },
    /// Takes ports from a trunk.
    RemoveSubPorts {
        trunk: String,
        ports: Vec<String>,
    },
    /// In intents of older releases also the removal and deletion of its sub-ports.
    DeleteTrunk {
        id: String,
    },
    DeletePort {
        id: String,
    },
    DeleteVolume {
        id: String,
    },
}

impl Call for ServerCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::CreatePort { name, .. } => format!("port/{name}"),
            Self::SetPortTags { port, .. } => format!("tags/{port}"),
            Self::SetTrunkTags { trunk, .. } => format!("tags/{trunk}"),
            Self::SetAddressPairs { port, .. } => format!("pairs/{port}"),
            Self::AssociateAddress { address, .. } => format!("floatingip/{address}"),
            Self::CreateTrunk { name, .. } => format!("trunk/{name}"),
            Self::CreateVolume { name, .. } => format!("volume/{name}"),
            Self::CreateServer { name, .. } => format!("server/{name}"),
            Self::RemoveSubPorts { trunk, .. } => format!("subports/{trunk}"),
            Self::DeleteServer { id }
            | Self::DeleteTrunk { id }
            | Self::DeletePort { id }
            | Self::DeleteVolume { id } => id.clone(),
        }
    }

    fn journalled(&self) -> bool {
        !matches!(
            self,
            Self::SetPortTags { .. }
                | Self::SetTrunkTags { .. }
                | Self::SetAddressPairs { .. }
                | Self::AssociateAddress { .. }
        )
    }

    fn summary(&self) -> String {
        match self {
            Self::CreatePort { name, .. } => format!("create-port {name}"),
            Self::SetPortTags { port, .. } => format!("set-tags {port}"),
            Self::SetTrunkTags { trunk, .. } => format!("set-trunk-tags {trunk}"),
            Self::SetAddressPairs { port, .. } => format!("set-address-pairs {port}"),
            Self::AssociateAddress { address, port } => format!("associate {address} with {port}"),
            Self::CreateTrunk { name, .. } => format!("create-trunk {name}"),
            Self::CreateVolume { name, .. } => format!("create-volume {name}"),
            Self::CreateServer { name, .. } => format!("create-server {name}"),
            Self::DeleteServer { id } => format!("delete-server {id}"),
            Self::RemoveSubPorts { trunk, ports } => {
                format!("remove-sub-ports {} of {trunk}", ports.join(" "))
            }
            Self::DeleteTrunk { id } => format!("delete-trunk {id}"),
            Self::DeletePort { id } => format!("delete-port {id}"),
            Self::DeleteVolume { id } => format!("delete-volume {id}"),
        }
    }
}

pub(super) async fn make(
    call: &ServerCall,
    object: &OpenStackServer,
    view: &View,
    access: &Access,
) -> Outcome {
    if let ServerCall::CreateServer { name, order } = call {
        return match order {
            Some(order) => create_server(name, order, object, view, access).await,
            None => incomplete(call),
        };
    }
    match carry_out(call, object, access).await {
        Ok(true) => Outcome::done(),
        Ok(false) => incomplete(call),
        Err(error) => {
            forget(call, access).await;
            failed(&error)
        }
    }
}

/// An intent of another release, whose order cannot be read: the next reconcile decides anew.
fn incomplete(call: &ServerCall) -> Outcome {
    Outcome::failed(code::FAILED, format!("{}: the order is not complete", call.summary()))
}

/// Makes a call; false if its order is not complete.
async fn carry_out(call: &ServerCall, object: &OpenStackServer, access: &Access) -> Result<bool, Error> {
    let client = &access.client;
    match call {
        ServerCall::CreatePort { order: Some(order), .. } => {
            access.put(&client.create::<Port>(&order.request()).await?).await;
        }
        ServerCall::CreateVolume { order: Some(order), .. } => {
            access.put(&client.create::<Volume>(&order.request()).await?).await;
        }
        ServerCall::CreateTrunk { name, port, description: Some(description) } => {
            let new = NewTrunk {
                port_id: port.as_str().into(),
                name: name.clone(),
                description: Some(description.clone()),
            };
            access.put(&client.create::<Trunk>(&new).await?).await;
        }
        ServerCall::CreatePort { .. }
        | ServerCall::CreateVolume { .. }
        | ServerCall::CreateTrunk { .. }
        | ServerCall::CreateServer { .. } => return Ok(false),
        ServerCall::SetPortTags { port, tags } => {
            let held = client.set_tags::<Port>(&port.as_str().into(), tags).await?;
            access.change::<Port>(port, |item| item.tags = held).await;
        }
        ServerCall::SetTrunkTags { trunk, tags } => {
            let held = client.set_tags::<Trunk>(&trunk.as_str().into(), tags).await?;
            access.change::<Trunk>(trunk, |item| item.tags = held).await;
        }
        ServerCall::SetAddressPairs { port, pairs } => {
            let pair = |it: &AddressPair| neutron::AddressPair {
                ip_address: it.ip_address.clone(),
                mac_address: it.mac_address.clone().unwrap_or_default(),
            };
            let pairs = Some(pairs.iter().map(pair).collect());
            let change = PortChange { allowed_address_pairs: pairs, ..PortChange::default() };
            access.put(&client.update::<Port>(&port.as_str().into(), &change).await?).await;
        }
        ServerCall::AssociateAddress { address, port } => {
            let change = FloatingIpChange { port_id: Some(port.as_str().into()), fixed_ip_address: None };
            access.put(&client.update::<FloatingIp>(&address.as_str().into(), &change).await?).await;
            // Nova shows it among the addresses of the server.
            access.forget::<Server>().await;
        }
        ServerCall::DeleteServer { id } => {
            if client.delete::<Server>(&Id::new(id.as_str())).await? == Deletion::Absent {
                access.remove::<Server>(id).await;
            }
            // Nova removes it in the background.
            access.change::<Server>(id, |held| held.task_state = Some("deleting".to_owned())).await;
        }
        ServerCall::RemoveSubPorts { trunk, ports } => {
            let ports: Vec<Id<Port>> = ports.iter().map(|port| port.as_str().into()).collect();
            client.remove_sub_ports(&trunk.as_str().into(), &ports).await?;
            let free = |held: &mut Trunk| held.sub_ports.retain(|sub| !ports.contains(&sub.port_id));
            access.change(trunk, free).await;
        }
        ServerCall::DeleteTrunk { id } => {
            client.delete::<Trunk>(&Id::new(id.as_str())).await?;
            access.remove::<Trunk>(id).await;
        }
        ServerCall::DeletePort { id } => {
            client.delete::<Port>(&Id::new(id.as_str())).await?;
            access.remove::<Port>(id).await;
            if object.spec.floating_ip_pool_ref.is_some() {
                // The floating IP of the port is free now.
                access.forget::<FloatingIp>().await;
            }
        }
        ServerCall::DeleteVolume { id } => {
            client.delete::<Volume>(&Id::new(id.as_str())).await?;
            access.remove::<Volume>(id).await;
        }
    }
    Ok(true)
}

async fn create_server(
    name: &str,
    order: &ServerOrder,
    object: &OpenStackServer,
    view: &View,
    access: &Access,
) -> Outcome {
    let user_data = match &order.boot_data {
        Some(reference) => match reference.read(&object.metadata.namespace, view).await {
            Ok(data) => Some(data),
            Err(error) => return error.outcome(code::BOOT_DATA),
        },
        None => None,
    };
    let length = user_data.as_ref().map_or(0, |data| data.len().div_ceil(3) * 4);
    if length > MOST_USER_DATA {
        let message = format!(
            "the user data of the server has {length} characters in base64, and Nova takes {MOST_USER_DATA}: shorten files \
             and commands of the bootstrap configuration"
        );
        return Outcome::failed(code::BOOT_DATA, message);
    }
    let made = access.client.create_server(&order.request(name, user_data.as_deref())).await;
    access.forget::<Server>().await;
    match made {
        Ok(id) => Outcome::Done(json!({"id": id})),
        Err(error) => failed(&error),
    }
}

async fn forget(call: &ServerCall, access: &Access) {
    match call {
        ServerCall::CreatePort { .. }
        | ServerCall::SetPortTags { .. }
        | ServerCall::SetAddressPairs { .. }
        | ServerCall::DeletePort { .. } => access.forget::<Port>().await,
        ServerCall::AssociateAddress { .. } => access.forget::<FloatingIp>().await,
        ServerCall::CreateTrunk { .. }
        | ServerCall::SetTrunkTags { .. }
        | ServerCall::RemoveSubPorts { .. }
        | ServerCall::DeleteTrunk { .. } => {
            access.forget::<Trunk>().await;
            access.forget::<Port>().await;
        }
        ServerCall::CreateVolume { .. } | ServerCall::DeleteVolume { .. } => access.forget::<Volume>().await,
        ServerCall::CreateServer { .. } | ServerCall::DeleteServer { .. } => access.forget::<Server>().await,
    }
}

/// The outcome of a call whose response was lost: what the cloud has now decides.
pub(super) async fn resolve(
    intent: &Intent<ServerCall>,
    object: &OpenStackServer,
    view: &View,
    access: &Access,
) -> Result<Resolution, ObserveError> {
    forget(&intent.call, access).await;
    let mark = mark::of(&object.metadata);
    let outside = |error: Error| ObserveError::from(CloudError::of(&error));
    let (there, wanted) = match &intent.call {
        ServerCall::CreatePort { name, .. } => {
            let all = access.all::<Port>(SETTLED).await.map_err(outside)?;
            let ours =
                |port: &Port| port.name == *name && mark::owner(&port.description, &mark) == Owner::Ours;
            (all.iter().any(ours), true)
        }
        ServerCall::CreateTrunk { port, .. } => {
            let all = access.all::<Trunk>(SETTLED).await.map_err(outside)?;
            (all.iter().any(|trunk| trunk.port_id.as_str() == port), true)
        }
        ServerCall::CreateVolume { name, .. } => {
            let all = access.all::<Volume>(SETTLED).await.map_err(outside)?;
            let ours = |volume: &Volume| {
                volume.name == *name && mark::owner(&volume.description, &mark) == Owner::Ours
            };
            (all.iter().any(ours), true)
        }
        ServerCall::CreateServer { .. } => {
            let all = access.all::<Server>(SETTLED).await.map_err(outside)?;
            if let Some(server) = all.iter().find(|server| mark::is_on_server(server, &mark)) {
                return Ok(Resolution::Happened(json!({"id": server.id})));
            }
            (false, true)
        }
        ServerCall::DeleteServer { id } => {
            let all = access.all::<Server>(SETTLED).await.map_err(outside)?;
            let stays = |server: &Server| server.id.as_str() == id && server.task_state.is_none();
            (all.iter().any(stays), false)
        }
        ServerCall::DeletePort { id } => {
            let all = access.all::<Port>(SETTLED).await.map_err(outside)?;
            (all.iter().any(|port| port.id.as_str() == id), false)
        }
        // Decided anew from what is left.
        ServerCall::SetPortTags { .. }
        | ServerCall::SetTrunkTags { .. }
        | ServerCall::SetAddressPairs { .. }
        | ServerCall::AssociateAddress { .. }
        | ServerCall::RemoveSubPorts { .. }
        | ServerCall::DeleteTrunk { .. }
        | ServerCall::DeleteVolume { .. } => return Ok(Resolution::DidNotHappen),
    };
    Ok(resolution(there == wanted, wanted, (intent.at.timestamp(), view.now()), "OpenStack"))
}
