//! Networks that become tiers of one VPC are ordered one after another. The first orders the VPC, the others find it, and
//! each sees the ranges that the tiers before it took.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomain, CloudStackIsolatedNetwork};
use capstan_controller::{Caches, Change, ObserveError, View, has_open_intents};
use capstan_object::{Key, Object};
use parking_lot::Mutex;

use super::{BY_VPC, vpc};
use crate::failure_domain::cluster_of;

/// Zone id, and name or id of the VPC. Accounts are not distinguished: networks of two accounts only wait a little longer.
type VpcKey = (String, String);

/// Who may order. Held by the process: it takes part in no race with writes to objects, and after a restart the journal
/// says whose order is under way.
#[derive(Default)]
pub(super) struct Turns(Mutex<BTreeMap<VpcKey, Key>>);

#[derive(Debug, PartialEq)]
pub(super) enum Turn {
    /// The network may order. What was observed before it got the turn is stale.
    Own { fresh: bool },
    /// This one is first.
    Of(Key),
}

/// The name, or else the id, by which a network refers to its VPC.
pub(super) fn reference(object: &CloudStackIsolatedNetwork) -> Option<&str> {
    let wanted = vpc::wanted(object)?;
    Some(if wanted.name.is_empty() { &wanted.id } else { &wanted.name })
}

/// Name and id of the VPC, for the index.
pub(super) fn references(object: &CloudStackIsolatedNetwork) -> Vec<String> {
    let vpc = object.spec.vpc.iter().flat_map(|vpc| [vpc.name.clone(), vpc.id.clone()]);
    vpc.filter(|text| !text.is_empty()).collect()
}

/// The networks that may have waited for one that is there now, or goes.
pub(super) fn waiting_for(change: &Change<CloudStackIsolatedNetwork>, caches: &Caches) -> Vec<Key> {
    let state = |network: &Arc<CloudStackIsolatedNetwork>| {
        (network.spec.id.is_empty(), network.metadata.is_deleting())
    };
    let same = change.new.is_some() && change.old.as_ref().map(state) == change.new.as_ref().map(state);
    let Some(vpc) = change.latest().filter(|_| !same).and_then(|network| reference(network)) else {
        return Vec::new();
    };
    let networks =
        caches.of::<CloudStackIsolatedNetwork>().and_then(|networks| networks.indexed(BY_VPC, vpc));
    let networks = networks.unwrap_or_default();
    let waiting = networks.iter().filter(|network| is_waiting(network)).map(|network| network.key());
    waiting.filter(|key| *key != change.key).collect()
}

/// The network is not there yet, and is to be a tier.
fn is_waiting(object: &CloudStackIsolatedNetwork) -> bool {
    object.spec.id.is_empty() && vpc::wanted(object).is_some()
}

impl Turns {
    /// Takes the turn for a network unless another has it; `None` if it needs none.
    pub(super) fn take(
        &self,
        object: &CloudStackIsolatedNetwork,
        zone: &str,
        view: &View,
    ) -> Result<Option<Turn>, ObserveError> {
        let key = object.key();
        let needed = is_waiting(object) && !object.metadata.is_deleting();
        let Some(vpc) = reference(object).filter(|_| needed) else {
            self.release(&key);
            return Ok(None);
        };
        let mut rivals = Vec::new();
        for other in view.indexed::<CloudStackIsolatedNetwork>(BY_VPC, vpc)? {
            if other.metadata.uid != object.metadata.uid && may_order(&other, zone, view)? {
                rivals.push(other);
            }
        }
        if let Some(first) = rivals.iter().find(|other| has_open_intents(&other.metadata)) {
            self.release(&key);
            return Ok(Some(Turn::Of(first.key())));
        }
        let mut held = self.0.lock();
        let holder = held.get(&(zone.to_owned(), vpc.to_owned()));
        if let Some(first) = holder.filter(|holder| rivals.iter().any(|other| other.key() == **holder)) {
            return Ok(Some(Turn::Of(first.clone())));
        }
        let fresh = holder != Some(&key);
        held.insert((zone.to_owned(), vpc.to_owned()), key);
        Ok(Some(Turn::Own { fresh }))
    }

    /// The network cannot order now, or has no need to.
    pub(super) fn release(&self, key: &Key) {
        self.0.lock().retain(|_, holder| holder != key);
    }
}

/// Another network of the zone is not there yet and will be ordered, or its order is under way.
fn may_order(other: &CloudStackIsolatedNetwork, zone: &str, view: &View) -> Result<bool, ObserveError> {
    let domain = owners::of::<CloudStackFailureDomain>(&other.metadata, view)?;
    if !is_waiting(other) || domain.is_none_or(|domain| domain.spec.zone.id != zone) {
        return Ok(false);
    }
    if has_open_intents(&other.metadata) {
        return Ok(true);
    }
    let cluster = cluster_of(&other.metadata, view)?;
    let kind = CloudStackIsolatedNetwork::KIND.kind;
    Ok(!other.metadata.is_deleting() && paused::why(cluster.as_deref(), &other.metadata, kind).is_none())
}

/// Another object names the VPC of this one by its id.
pub(super) fn is_vpc_shared(object: &CloudStackIsolatedNetwork, view: &View) -> Result<bool, ObserveError> {
    let Some(vpc) = object.spec.vpc.as_ref().filter(|vpc| !vpc.id.is_empty()) else { return Ok(false) };
    let others = view.indexed::<CloudStackIsolatedNetwork>(BY_VPC, &vpc.id)?;
    Ok(others.iter().any(|other| other.metadata.uid != object.metadata.uid && !other.metadata.is_deleting()))
}
