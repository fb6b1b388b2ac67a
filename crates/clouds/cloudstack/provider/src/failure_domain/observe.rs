//! What a decision about a CloudStackFailureDomain depends on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, MachineSet, label};
use capstan_cloudstack_client::commands::ListZones;
use capstan_cloudstack_client::model::{Network, Zone};
use capstan_cloudstack_types::names::{self, FAILURE_DOMAIN_LABEL};
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackCluster, CloudStackFailureDomain, CloudStackFailureDomainSpec,
    CloudStackIsolatedNetwork, CloudStackMachine,
};
use capstan_controller::{ObserveError, View};
use capstan_object::{Key, ObjectMeta};

use super::endpoint::has_endpoint;
use super::evacuate::Occupant;
use crate::clouds::{Access, Clouds};
use crate::code;
use crate::error::CloudError;
use crate::isolated_network::networks_named;

/// Zone and network of a failure domain, as CloudStack reports them.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneAndNetwork {
    pub zone: Zone,
    /// The network, if it exists.
    pub network: Option<Network>,
}

/// A network of another failure domain of the cluster, by the name that this one's network would have.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkNamesake {
    pub network: Arc<CloudStackIsolatedNetwork>,
    /// Id of its zone; empty while that is not known.
    pub zone: String,
}

/// What was seen beside the CloudStackFailureDomain.
#[derive(Debug, Default)]
pub struct Seen {
    /// The CloudStackCluster that owns it.
    pub owner: Option<Arc<CloudStackCluster>>,
    /// Zone and network; `None` if nobody had to ask.
    pub place: Option<Result<ZoneAndNetwork, CloudError>>,
    /// Networks of its own.
    pub networks: Vec<Arc<CloudStackIsolatedNetwork>>,
    /// A network of another failure domain that has the name of its own.
    pub namesake: Option<NetworkNamesake>,
    /// Affinity groups of its own.
    pub groups: Vec<Arc<CloudStackAffinityGroup>>,
    /// Names of machines placed there.
    pub machines: Vec<String>,
    /// The same with their Machines, where the cluster names the failure domain no longer.
    pub occupants: Vec<Occupant>,
    /// All Machines of the cluster, for the same case.
    pub members: Vec<Arc<Machine>>,
    /// Its network alone has the endpoint of the cluster, for the same case.
    pub has_endpoint: bool,
    /// Another failure domain of the cluster that is on a network of its own, by the uid of the network, for the same case.
    pub heirs: BTreeMap<String, Arc<CloudStackFailureDomain>>,
}

/// The cluster of something that carries its label.
pub(crate) fn cluster_of(meta: &ObjectMeta, view: &View) -> Result<Option<Arc<Cluster>>, ObserveError> {
    match meta.labels.get(label::CLUSTER_NAME) {
        Some(name) => view.get(&Key::new(meta.namespace.as_str(), name.as_str())),
        None => Ok(None),
    }
}

pub(super) async fn observe(
    object: &CloudStackFailureDomain,
    view: &View,
    clouds: &Clouds,
) -> Result<Seen, ObserveError> {
    let meta = &object.metadata;
    let machines = view.labelled::<CloudStackMachine>(&meta.namespace, FAILURE_DOMAIN_LABEL, &meta.name)?;
    let networks = view.owned_by::<CloudStackIsolatedNetwork>(&meta.uid)?;
    let zone = &object.spec.zone;
    // A network of its own is looked after elsewhere, and what was found once stays where it is.
    let known =
        !zone.id.is_empty() && (!networks.is_empty() || object.status.ready && !zone.network.id.is_empty());
    let place = match meta.is_deleting() || known {
        true => None,
        false => Some(look_up(&object.spec, view, clouds).await),
    };
    let owner = owners::of::<CloudStackCluster>(meta, view)?;
    let left = meta.is_deleting() && owner.as_ref().is_some_and(|owner| !owner.metadata.is_deleting());
    let mut seen = Seen::default();
    if let Some((owner, cluster)) = owner.as_ref().filter(|_| left).zip(meta.labels.get(label::CLUSTER_NAME))
    {
        let occupants = machines.iter().map(|machine| occupant(object, machine, view));
        seen.occupants = occupants.collect::<Result<_, _>>()?;
        seen.members = view.labelled::<Machine>(&meta.namespace, label::CLUSTER_NAME, cluster)?;
        let all =
            view.labelled::<CloudStackIsolatedNetwork>(&meta.namespace, label::CLUSTER_NAME, cluster)?;
        let mut serving = all.iter().filter(|network| has_endpoint(network, owner)).peekable();
        let is_own = |network: &Arc<CloudStackIsolatedNetwork>| {
            networks.iter().any(|own| own.metadata.uid == network.metadata.uid)
        };
        seen.has_endpoint = serving.peek().is_some() && serving.all(is_own);
        for network in &networks {
            if let Some(heir) = heir(object, network, cluster, view)? {
                seen.heirs.insert(network.metadata.uid.clone(), heir);
            }
        }
    }
    Ok(Seen {
        owner,
        place,
        namesake: if networks.is_empty() { namesake(object, view)? } else { None },
        networks,
        groups: view.owned_by::<CloudStackAffinityGroup>(&meta.uid)?,
        machines: machines.iter().map(|machine| machine.metadata.name.clone()).collect(),
        ..seen
    })
}

/// The failure domain that a network of this one passes to: one that stays and has its machines on that network.
fn heir(
    object: &CloudStackFailureDomain,
    network: &CloudStackIsolatedNetwork,
    cluster: &str,
    view: &View,
) -> Result<Option<Arc<CloudStackFailureDomain>>, ObserveError> {
    let namespace = &object.metadata.namespace;
    let domains = view.labelled::<CloudStackFailureDomain>(namespace, label::CLUSTER_NAME, cluster)?;
    let is_heir = |other: &Arc<CloudStackFailureDomain>| {
        let (zone, wanted) = (&other.spec.zone, &other.spec.zone.network);
        let same = match wanted.id.is_empty() {
            true => wanted.name == network.spec.name,
            false => wanted.id == network.spec.id,
        };
        other.metadata.uid != object.metadata.uid
            && !other.metadata.is_deleting()
            && zone.id == object.spec.zone.id
            && same
    };
    let mut heirs: Vec<_> = domains.into_iter().filter(is_heir).collect();
    heirs.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    for heir in heirs {
        // One with an object of its own for the network needs no other.
        let own = view.owned_by::<CloudStackIsolatedNetwork>(&heir.metadata.uid)?;
        if own.iter().all(|own| own.spec.id != network.spec.id) {
            return Ok(Some(heir));
        }
    }
    Ok(None)
}

/// A machine in the failure domain, with its Machine and the MachineSet that would put its replacement there again.
fn occupant(
    domain: &CloudStackFailureDomain,
    machine: &CloudStackMachine,
    view: &View,
) -> Result<Occupant, ObserveError> {
    let name = machine.metadata.name.clone();
    let Some(machine) = owners::of::<Machine>(&machine.metadata, view)? else {
        return Ok(Occupant { name, ..Occupant::default() });
    };
    let set = owners::of::<MachineSet>(&machine.metadata, view)?;
    let pins = |set: &Arc<MachineSet>| set.spec.template.spec.failure_domain == domain.spec.name;
    let pinned_by = set.filter(pins).map(|set| set.metadata.name.clone());
    Ok(Occupant { name, machine: Some(machine), pinned_by })
}

/// The network of another failure domain that has the name of this one's.
fn namesake(object: &CloudStackFailureDomain, view: &View) -> Result<Option<NetworkNamesake>, ObserveError> {
    let meta = &object.metadata;
    let Some(cluster) = meta.labels.get(label::CLUSTER_NAME) else { return Ok(None) };
    let name = names::isolated_network_object(cluster, &object.spec.zone.network.name);
    let found = view.get::<CloudStackIsolatedNetwork>(&Key::new(meta.namespace.as_str(), name))?;
    let Some(network) = found else { return Ok(None) };
    let owner = owners::of::<CloudStackFailureDomain>(&network.metadata, view)?;
    let zone = owner.map(|owner| owner.spec.zone.id.clone()).unwrap_or_default();
    Ok(Some(NetworkNamesake { network, zone }))
}

async fn look_up(
    spec: &CloudStackFailureDomainSpec,
    view: &View,
    clouds: &Clouds,
) -> Result<ZoneAndNetwork, CloudError> {
    let access = clouds.access(spec, view).await?;
    let zone = zone(spec, &access).await?;
    let network = network(spec, &zone, &access).await?;
    Ok(ZoneAndNetwork { zone, network })
}

pub(crate) async fn zone(spec: &CloudStackFailureDomainSpec, access: &Access) -> Result<Zone, CloudError> {
    let wanted = &spec.zone;
    let question = match wanted.id.as_str() {
        "" => ListZones { name: Some(wanted.name.clone()), ..ListZones::default() },
        id => ListZones { id: Some(id.into()), ..ListZones::default() },
    };
    let found = access.client.cached(&question).await;
    let found = found.map_err(|error| not_found_or(&error, access, || missing_zone(spec)))?;
    found.first().cloned().ok_or_else(|| missing_zone(spec))
}

fn missing_zone(spec: &CloudStackFailureDomainSpec) -> CloudError {
    let zone = &spec.zone;
    let shown =
        if zone.id.is_empty() { format!("named {:?}", zone.name) } else { format!("with id {:?}", zone.id) };
    let message = format!(
        "there is no zone {shown} that the account can use: correct zone of failure domain {}",
        spec.name
    );
    CloudError::new(code::NOT_FOUND, "ZoneNotFound", message)
}

/// An unknown id is refused as a wrong parameter.
fn not_found_or(
    error: &capstan_cloudstack_client::Error,
    access: &Access,
    missing: impl FnOnce() -> CloudError,
) -> CloudError {
    match error.code() {
        Some(capstan_cloudstack_client::Code::Parameter) => missing(),
        _ => access.explain(error),
    }
}

/// The network, by id or by name in its zone. Names are not unique in CloudStack.
async fn network(
    spec: &CloudStackFailureDomainSpec,
    zone: &Zone,
    access: &Access,
) -> Result<Option<Network>, CloudError> {
    let wanted = &spec.zone.network;
    let missing = || {
        let message = format!(
            "there is no network with id {:?} in zone {}: correct network of failure domain {}",
            wanted.id, zone.name, spec.name
        );
        CloudError::new(code::NOT_FOUND, "NetworkNotFound", message)
    };
    let (named, now) = ((wanted.id.as_str(), wanted.name.as_str()), Duration::ZERO);
    let found = access.cache.networks(&access.client, &access.scope(), &zone.id, named, now).await;
    let mut found = found.map_err(|error| not_found_or(&error, access, missing))?;
    if !wanted.id.is_empty() {
        return found.pop().map(Some).ok_or_else(missing);
    }
    found = networks_named(found, &wanted.name, wanted.vpc.as_ref());
    match found.len() {
        0 | 1 => Ok(found.pop()),
        several => {
            let message = format!(
                "{several} networks are called {:?} in zone {}: give the id in network of failure domain {}",
                wanted.name, zone.name, spec.name
            );
            Err(CloudError::new(code::AMBIGUOUS, "Ambiguous", message))
        }
    }
}
