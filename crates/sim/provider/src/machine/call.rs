//! What is asked of the site.

use std::sync::Arc;

use capstan_controller::{Call, Outcome, Resolution, View};
use capstan_guest::SiteError;
use capstan_provider_kit::order;
use capstan_sim_site::{Ground, GroundError};
use serde::{Deserialize, Serialize};

use super::Order;
use crate::types::SimMachine;
use crate::{code, site};

/// What is asked of the site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MachineCall {
    /// Create a machine.
    Create {
        /// Its id.
        id: String,
        /// The machine as the site is told of it; none in intents of releases that did not journal it.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<Order>>,
    },
    /// Destroy a machine.
    Destroy {
        /// Its id.
        id: String,
    },
}

impl Call for MachineCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Create { id, .. } | Self::Destroy { id } => id.clone(),
        }
    }

    fn journalled(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { id, .. } => format!("create-vm {id}"),
            Self::Destroy { id } => format!("destroy-vm {id}"),
        }
    }
}

pub(super) async fn make(
    call: &MachineCall,
    object: &Arc<SimMachine>,
    view: &View,
    ground: &Ground,
) -> Outcome {
    match call {
        MachineCall::Create { id, order } => {
            let Some(order) = order else {
                return Outcome::failed(code::REFUSED, format!("machine {id} has no order"));
            };
            let user_data = match order.boot_data.read(&object.metadata.namespace, view).await {
                Ok(user_data) => user_data,
                Err(error) => return error.outcome(code::BOOT_DATA),
            };
            match ground.create(order.specification(id, user_data)).await {
                // Once is all there is of an id: it exists, or did. A look tells which.
                Ok(_) | Err(GroundError::Refused(SiteError::Exists(_))) => Outcome::done(),
                Err(error) => site::outcome(error),
            }
        }
        MachineCall::Destroy { id } => match ground.destroy(id).await {
            Ok(()) | Err(GroundError::Refused(SiteError::NoSuchVm(_))) => Outcome::done(),
            Err(error) => site::outcome(error),
        },
    }
}

/// What became of a call that nobody heard the end of. The site answers for certain.
pub(super) async fn resolve(call: &MachineCall, ground: &Ground) -> Result<Resolution, GroundError> {
    let (id, wanted) = match call {
        MachineCall::Create { id, .. } => (id, true),
        MachineCall::Destroy { id } => (id, false),
    };
    let there = ground.vm(id).await?.is_some();
    Ok(if there == wanted { Resolution::happened() } else { Resolution::DidNotHappen })
}
