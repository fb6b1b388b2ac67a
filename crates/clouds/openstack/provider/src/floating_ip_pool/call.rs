//! Calls for an OpenStackFloatingIPPool.

use capstan_controller::{Call, Intent, ObserveError, Outcome, Resolution, View};
use capstan_openstack_client::Error;
use capstan_openstack_client::network::{FloatingIp, NewFloatingIp};
use capstan_provider_kit::resolution;
use serde::{Deserialize, Serialize};

use crate::error::{CloudError, failed};
use crate::project::{Access, SETTLED};

/// A call to the cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum PoolCall {
    CreateAddress {
        /// Identifies the address in the pool.
        description: String,
        network: String,
    },
    SetTags {
        id: String,
        tags: Vec<String>,
    },
    DeleteAddress {
        id: String,
    },
}

impl Call for PoolCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::CreateAddress { description, .. } => format!("floatingip/{description}"),
            Self::SetTags { id, .. } => format!("tags/{id}"),
            Self::DeleteAddress { id } => id.clone(),
        }
    }

    fn journalled(&self) -> bool {
        !matches!(self, Self::SetTags { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::CreateAddress { network, .. } => format!("create-address in {network}"),
            Self::SetTags { id, .. } => format!("set-tags {id}"),
            Self::DeleteAddress { id } => format!("delete-address {id}"),
        }
    }
}

/// Makes a call. What it changed is taken over into the project's list; after an error that is read again.
pub(super) async fn make(call: &PoolCall, access: &Access) -> Outcome {
    match carry_out(call, access).await {
        Ok(()) => Outcome::done(),
        Err(error) => {
            access.forget::<FloatingIp>().await;
            failed(&error)
        }
    }
}

async fn carry_out(call: &PoolCall, access: &Access) -> Result<(), Error> {
    let client = &access.client;
    match call {
        PoolCall::CreateAddress { description, network } => {
            let new = NewFloatingIp {
                floating_network_id: network.as_str().into(),
                description: Some(description.clone()),
                ..NewFloatingIp::default()
            };
            access.put(&client.create::<FloatingIp>(&new).await?).await;
        }
        PoolCall::SetTags { id, tags } => {
            let held = client.set_tags::<FloatingIp>(&id.as_str().into(), tags).await?;
            access.change::<FloatingIp>(id, |item| item.tags = held).await;
        }
        PoolCall::DeleteAddress { id } => {
            client.delete::<FloatingIp>(&id.as_str().into()).await?;
            access.remove::<FloatingIp>(id).await;
        }
    }
    Ok(())
}

/// The outcome of a call whose response was lost: what the cloud has now decides.
pub(super) async fn resolve(
    intent: &Intent<PoolCall>,
    view: &View,
    access: &Access,
) -> Result<Resolution, ObserveError> {
    access.forget::<FloatingIp>().await;
    let all = access.all::<FloatingIp>(SETTLED).await;
    let all = all.map_err(|error| ObserveError::from(CloudError::of(&error)))?;
    let (there, wanted) = match &intent.call {
        PoolCall::CreateAddress { description, .. } => {
            (all.iter().any(|it| it.description == *description), true)
        }
        PoolCall::DeleteAddress { id } => (all.iter().any(|it| it.id.as_str() == id), false),
        PoolCall::SetTags { .. } => return Ok(Resolution::DidNotHappen),
    };
    Ok(resolution(there == wanted, wanted, (intent.at.timestamp(), view.now()), "OpenStack"))
}
