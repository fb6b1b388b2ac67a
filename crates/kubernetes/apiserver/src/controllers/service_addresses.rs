//! Keeps the default ServiceCIDR, the `kubernetes` Service, and one IPAddress per cluster IP, whatever clients delete
//! and whatever a crash between two writes leaves behind.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::Value;

use super::keyed::{Keyed, Progress};
use crate::auth::bucket::{IP_ADDRESSES, SERVICE_CIDRS, SERVICES};
use crate::bootstrap;
use crate::controllers::Committed;
use crate::health::Stage;
use crate::http::options::DeleteOptions;
use crate::object::{self, Meta};
use crate::parts::ServerParts;
use crate::services::{DEFAULT_CIDR, MANAGED_BY, MANAGER, cluster_addresses, ensure_recorded};
use crate::status::{Result, Status};
use crate::verbs::delete::delete_object;

const USER: &str = "system:apiserver";
const KUBERNETES: &str = "default/kubernetes";

/// The buckets that this controller watches.
pub(crate) fn watches(bucket: &str) -> bool {
    matches!(bucket, SERVICES | IP_ADDRESSES | SERVICE_CIDRS)
}

/// Keys are `BUCKET KEY`.
pub(crate) struct ServiceAddresses;

fn work(bucket: &str, key: &str) -> String {
    format!("{bucket} {key}")
}

impl Keyed for ServiceAddresses {
    const WORK: &'static str = "reconciling addresses of Services";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        if parts.services.is_none() {
            return BTreeSet::new();
        }
        [SERVICES, IP_ADDRESSES]
            .into_iter()
            .flat_map(|bucket| {
                let snapshot = parts.store.snapshot(bucket);
                snapshot.range("", None).map(|entry| work(bucket, &entry.key)).collect::<Vec<_>>()
            })
            .collect()
    }

    fn on_change(&self, parts: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        let Some(services) = &parts.services else { return };
        match (&*change.bucket, change.gone) {
            (SERVICES, _) => {
                dirty.extend(services.take_freed().iter().map(|a| work(IP_ADDRESSES, &a.to_string())));
                if change.gone && &*change.key == KUBERNETES {
                    dirty.insert(work(SERVICES, KUBERNETES));
                }
            }
            (bucket, _) => drop(dirty.insert(work(bucket, &change.key))),
        }
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, key: &str) -> Result<Progress> {
        let (bucket, key) = key.split_once(' ').unwrap_or_default();
        if !parts.startup.has_reached(Stage::Services) {
            // The start creates them itself; two at a time would take each other's address.
            return Err(Status::internal("the server is starting"));
        }
        match bucket {
            SERVICES => record_service(parts, key).await?,
            IP_ADDRESSES => {
                check_address(parts, key).await?;
                if parts.store.get(SERVICES, KUBERNETES).is_none() {
                    bootstrap::service_objects(parts).await?;
                }
            }
            _ if key == DEFAULT_CIDR => bootstrap::service_objects(parts).await?,
            _ => {}
        }
        Ok(Progress::Done)
    }
}

/// A Service whose addresses are not recorded was stored by an older version.
async fn record_service(parts: &Arc<ServerParts>, key: &str) -> Result<()> {
    let Some(service) = stored(parts, SERVICES, key) else {
        return if key == KUBERNETES { bootstrap::service_objects(parts).await } else { Ok(()) };
    };
    for address in cluster_addresses(&service) {
        if parts.store.get(IP_ADDRESSES, &address.to_string()).is_none() {
            ensure_recorded(parts, address, &service).await?;
        }
    }
    Ok(())
}

/// Deletes the IPAddress of a Service that does not have it, and creates the one of a Service that does.
pub(crate) async fn check_address(parts: &Arc<ServerParts>, name: &str) -> Result<()> {
    let (Ok(address), Some(services)) = (name.parse::<Ipv4Addr>(), &parts.services) else { return Ok(()) };
    let Some(object) = stored(parts, IP_ADDRESSES, name) else {
        return match holder(parts, address) {
            Some(service) => ensure_recorded(parts, address, &service).await,
            None => Ok(()),
        };
    };
    if object["metadata"]["labels"][MANAGED_BY] != MANAGER {
        return Ok(());
    }
    let parent = &object["spec"]["parentRef"];
    let text = |field: &str| parent[field].as_str().unwrap_or_default();
    let key = object::key(text("namespace"), text("name"));
    if text("group").is_empty() && text("resource") == "services" {
        if stored(parts, SERVICES, &key).is_some_and(|service| cluster_addresses(&service).contains(&address))
        {
            return Ok(());
        }
        if services.holds(&key, address) {
            return Err(Status::internal("the Service of an address is not stored yet"));
        }
    }
    let registry = parts.registry.load_full();
    let Some(resource) = registry.find("networking.k8s.io", "v1", "ipaddresses").cloned() else {
        return Ok(());
    };
    let call = parts.internal_call(USER, resource, "", name);
    let options = DeleteOptions { uid: Some(object.uid().to_owned()), ..DeleteOptions::default() };
    match delete_object(&call, name, &options).await {
        // Deleted or replaced meanwhile, which is a change of its own.
        Err(status) if !matches!(&*status.reason, "NotFound" | "Conflict") => Err(status),
        _ => Ok(()),
    }
}

/// The Service that has an address.
fn holder(parts: &ServerParts, address: Ipv4Addr) -> Option<Value> {
    let key = parts.services.as_ref()?.holder(address)?;
    stored(parts, SERVICES, &key).filter(|service| cluster_addresses(service).contains(&address))
}

fn stored(parts: &ServerParts, bucket: &str, key: &str) -> Option<Value> {
    serde_json::from_slice(&parts.store.get(bucket, key)?.value).ok()
}
