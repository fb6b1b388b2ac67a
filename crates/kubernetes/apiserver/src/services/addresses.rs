//! Every cluster IP as an IPAddress object, so that others see what is taken and can take addresses themselves.
//!
//! The object is written before its Service, as upstream: whoever creates it has the address. What a crash leaves
//! behind is removed by `controllers/service_addresses.rs`.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{TAKEN_ADDRESS, cluster_addresses, invalid, is_service};
use crate::call::Call;
use crate::http::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::create_object;
use crate::status::Result;
use crate::verbs::delete::delete_object;

/// The label that says who manages an IPAddress.
pub(crate) const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
/// The value of the label on addresses of Services.
pub(crate) const MANAGER: &str = "ipallocator.k8s.io";
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
const USER: &str = "system:apiserver";

/// IPAddresses that a request has created for its Service.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Recorded(BTreeSet<Ipv4Addr>);

impl Recorded {
    /// Deletes them: the Service was not stored.
    pub async fn undo(self, call: &Call) {
        if !self.0.is_empty() {
            release(call, &self.0).await;
        }
    }
}

/// Creates the IPAddresses of a Service that is about to be stored. `old` is the current object of an update.
pub(crate) async fn record(call: &Call, service: &Value, old: Option<&Value>) -> Result<Recorded> {
    let mut recorded = Recorded::default();
    if call.parts.services.is_none() || !is_service(call) {
        return Ok(recorded);
    }
    let before = old.map(cluster_addresses).unwrap_or_default();
    for address in cluster_addresses(service).difference(&before) {
        match create(&call.parts, *address, service).await {
            Ok(()) => drop(recorded.0.insert(*address)),
            Err(status) => {
                recorded.undo(call).await;
                if status.reason != "AlreadyExists" {
                    return Err(status);
                }
                let all = service["spec"]["clusterIPs"].clone();
                let why = format!("failed to allocate IP {address}: {TAKEN_ADDRESS}");
                return Err(invalid(service, "spec.clusterIPs", all, why));
            }
        }
    }
    Ok(recorded)
}

/// Creates the IPAddress of a stored Service if it does not exist.
pub(crate) async fn ensure_recorded(
    parts: &Arc<ServerParts>,
    address: Ipv4Addr,
    service: &Value,
) -> Result<()> {
    match create(parts, address, service).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

async fn create(parts: &Arc<ServerParts>, address: Ipv4Addr, service: &Value) -> Result<()> {
    let Some(call) = address_call(parts, address) else { return Ok(()) };
    let object = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {
            "name": address.to_string(),
            "labels": {FAMILY: capstan_builtin::validation::family(address.into()), MANAGED_BY: MANAGER},
        },
        "spec": {"parentRef": {
            "resource": "services", "namespace": service.namespace(), "name": service.name(),
        }},
    });
    let object = crate::ownership::update(&call, None, object, &call.manager("")).await?;
    create_object(&call, object, &WriteOptions::default(), WriteKind::Create).await.map(|_| ())
}

/// Deletes the IPAddresses of a Service that no longer has them. A failure is logged: the Service is gone already.
pub(crate) async fn release(call: &Call, addresses: &BTreeSet<Ipv4Addr>) {
    for address in addresses {
        let Some(call) = address_call(&call.parts, *address) else { return };
        match delete_object(&call, &call.key(), &DeleteOptions::default()).await {
            Err(status) if status.reason != "NotFound" => {
                tracing::warn!(%address, error = %status, "the address of a service is not released");
            }
            _ => {}
        }
    }
}

fn address_call(parts: &Arc<ServerParts>, address: Ipv4Addr) -> Option<Call> {
    let registry = parts.registry.load_full();
    let resource = registry.find("networking.k8s.io", "v1", "ipaddresses")?.clone();
    Some(parts.internal_call(USER, resource, "", &address.to_string()))
}
