//! A public address of the zone that nobody has.

use std::net::IpAddr;

use capstan_cloudstack_client::ZoneId;
use capstan_cloudstack_client::commands::ListPublicIpAddresses;
use capstan_cloudstack_client::model::AddressState;

use crate::clouds::Access;
use crate::error::CloudError;

/// A free address of the zone. Which one is the object's own choice, so that many who look at the same time rarely
/// want the same.
pub(super) async fn free(
    uid: &str,
    zone: Option<ZoneId>,
    access: &Access,
) -> Result<Option<IpAddr>, CloudError> {
    let question = ListPublicIpAddresses {
        zoneid: zone,
        state: Some(AddressState::Free),
        allocatedonly: Some(false),
        scope: access.scope(),
        ..ListPublicIpAddresses::default()
    };
    let found = access.client.list(&question).await.map_err(|error| access.explain(&error))?;
    let mut free: Vec<IpAddr> =
        found.iter().filter(|address| address.allocated.is_none()).map(|address| address.ipaddress).collect();
    free.sort_unstable();
    let number = uid.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Ok(free.get(number.checked_rem(free.len()).unwrap_or(0)).copied())
}
