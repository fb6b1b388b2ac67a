//! Reads what a decision about an OpenStackFloatingIPPool is based on.

use std::collections::BTreeMap;

use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use capstan_controller::{ObserveError, View};
use capstan_object::Object as _;
use capstan_openstack_client::network::FloatingIp;
use capstan_openstack_types::names;
use capstan_openstack_types::v1alpha1::OpenStackFloatingIPPool;
use capstan_openstack_types::v1beta2::NetworkStatus;

use super::POOL;
use super::observed::{Held, PoolState, Seen};
use crate::clouds::Clouds;
use crate::error::CloudError;
use crate::mark::{self, Owner};
use crate::project::{Access, SETTLED};
use crate::{code, lookup};

pub(super) async fn observe(
    object: &OpenStackFloatingIPPool,
    view: &View,
    clouds: &Clouds,
) -> Result<Seen, ObserveError> {
    let key = object.key().to_string();
    let mut claims = view.indexed::<IPAddressClaim>(POOL, &key)?;
    claims.sort_by_cached_key(|it| {
        let meta = &it.metadata;
        (meta.creation_timestamp.as_ref().map(|time| time.timestamp()), meta.name.clone())
    });
    let mut addresses = view.indexed::<IPAddress>(POOL, &key)?;
    addresses.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(Seen { claims, addresses, cloud: state(object, view, clouds).await })
}

async fn state(
    object: &OpenStackFloatingIPPool,
    view: &View,
    clouds: &Clouds,
) -> Result<PoolState, CloudError> {
    let access = clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await?;
    let all = access.all::<FloatingIp>(SETTLED).await?;
    let network = match &object.status.floating_ip_network {
        Some(known) => Ok(known.clone()),
        None => network(object, &access).await,
    };
    Ok(PoolState { next_round: Some(access.next_round()), network, held: held(object, &all) })
}

/// The floating IPs of a pool among those of the project.
pub(super) fn held(object: &OpenStackFloatingIPPool, all: &[FloatingIp]) -> BTreeMap<String, Held> {
    let (mark, tag) = (mark::of(&object.metadata), names::floating_ip_pool_tag(&object.metadata.name));
    let given = &object.spec.pre_allocated_floating_ips;
    let of_pool = all.iter().filter_map(|it| {
        let is_given = given.contains(&it.floating_ip_address);
        let created = match mark::owner(&it.description, &mark) {
            Owner::Ours => true,
            Owner::Unmarked => it.tags.contains(&tag),
            Owner::Foreign => false,
        };
        let held = Held {
            id: it.id.to_string(),
            created: created && !is_given,
            is_used: it.port_id.is_some(),
            tags: it.tags.clone(),
        };
        (created || is_given).then(|| (it.floating_ip_address.clone(), held))
    });
    of_pool.collect()
}

/// The network of the spec, or the only external one.
async fn network(object: &OpenStackFloatingIPPool, access: &Access) -> Result<NetworkStatus, CloudError> {
    let field = "spec.floatingIPNetwork";
    let all = access.external_networks().await?;
    let found = match (&object.spec.floating_ip_network, all.as_slice()) {
        (Some(param), _) => {
            let id = lookup::network(access, param, true, field).await?;
            all.iter().find(|network| network.id.as_str() == id).ok_or_else(|| {
                let message =
                    format!("{field}: {id} is not an external network that is visible to the project");
                CloudError::new(code::NOT_FOUND, "OpenStackError", message)
            })?
        }
        (None, [only]) => only,
        (None, []) => {
            let message = format!("the project sees no external network: set {field}, or have one shared");
            return Err(CloudError::new(code::NOT_FOUND, "OpenStackError", message));
        }
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|network| network.name.as_str()).take(5).collect();
            let message = format!("there are several external networks ({}): set {field}", names.join(", "));
            return Err(CloudError::new(code::AMBIGUOUS, "OpenStackError", message));
        }
    };
    Ok(NetworkStatus { name: found.name.clone(), id: found.id.to_string(), tags: found.tags.clone() })
}
