//! Calls to the site.

use std::sync::Arc;

use capstan_controller::{Call, Outcome, Resolution, View};
use capstan_guest::SiteError;
use capstan_provider_kit::order;
use capstan_sim_site::{SiteCallError, SiteHandle};
use serde::{Deserialize, Serialize};

use super::Order;
use crate::types::SimMachine;
use crate::{code, site};

/// A call to the site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MachineCall {
    Create {
        id: String,
        /// The complete order; `None` in intents of older releases, which did not record it.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<Order>>,
    },
    Destroy {
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
    site: &SiteHandle,
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
            match site.create(order.specification(id, user_data)).await {
                // Ids are never reused: the machine exists or existed. The next reconcile finds out.
                Ok(_) | Err(SiteCallError::Refused(SiteError::Exists(_))) => Outcome::done(),
                Err(error) => site::outcome(error),
            }
        }
        MachineCall::Destroy { id } => match site.destroy(id).await {
            Ok(()) | Err(SiteCallError::Refused(SiteError::NoSuchVm(_))) => Outcome::done(),
            Err(error) => site::outcome(error),
        },
    }
}

/// Looks up the result of a call whose response was lost. The site's state is authoritative.
pub(super) async fn resolve(call: &MachineCall, site: &SiteHandle) -> Result<Resolution, SiteCallError> {
    let (id, wanted) = match call {
        MachineCall::Create { id, .. } => (id, true),
        MachineCall::Destroy { id } => (id, false),
    };
    let there = site.vm(id).await?.is_some();
    Ok(if there == wanted { Resolution::happened() } else { Resolution::DidNotHappen })
}
