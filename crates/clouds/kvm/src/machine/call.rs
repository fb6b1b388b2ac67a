//! Calls to the host.

use std::sync::Arc;

use capstan_controller::{Call, Outcome, View};
use capstan_provider_kit::order;
use serde::{Deserialize, Serialize};

use super::Order;
use crate::backend::{Backend, BackendError, Id};
use crate::code;
use crate::types::KVMMachine;

/// A call to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum MachineCall {
    Create {
        id: Id,
        /// The complete order; `None` in intents of older releases, which did not record it.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "order")]
        order: Option<Box<Order>>,
    },
    Destroy {
        id: Id,
    },
}

impl MachineCall {
    pub fn id(&self) -> &Id {
        match self {
            Self::Create { id, .. } | Self::Destroy { id } => id,
        }
    }
}

impl Call for MachineCall {
    fn idempotency_key(&self) -> String {
        self.id().to_string()
    }

    fn journalled(&self) -> bool {
        true
    }

    fn summary(&self) -> String {
        match self {
            Self::Create { id, .. } => format!("create-machine {id}"),
            Self::Destroy { id } => format!("destroy-machine {id}"),
        }
    }
}

pub(super) async fn make(
    call: &MachineCall,
    object: &Arc<KVMMachine>,
    view: &View,
    backend: Arc<dyn Backend>,
) -> Outcome {
    let work: Box<dyn FnOnce() -> Result<(), BackendError> + Send> = match call {
        MachineCall::Create { id, order: Some(order) } => {
            let user_data = match order.boot_data.read(&object.metadata.namespace, view).await {
                Ok(user_data) => user_data,
                Err(error) => return error.outcome(code::BOOT_DATA),
            };
            let spec = order.specification(id, user_data);
            Box::new(move || backend.create(&spec))
        }
        MachineCall::Create { id, order: None } => {
            return Outcome::failed(code::HOST, format!("machine {id} has no order"));
        }
        MachineCall::Destroy { id } => {
            let id = id.clone();
            Box::new(move || backend.destroy(&id))
        }
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(())) => Outcome::done(),
        Ok(Err(error)) => Outcome::failed(code::HOST, error.to_string()),
        Err(error) => Outcome::unknown(error.to_string()),
    }
}
