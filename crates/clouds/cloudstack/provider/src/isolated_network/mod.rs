//! `CloudStackIsolatedNetwork`: a network of one's own, with a public address and a load balancer.
//!
//! Owns: CloudStackIsolatedNetworks, their finalizer, endpoint and status; in the cloud the network if it had to be made,
//! an address, the rule for the API server, and what lets packets in and out. Reads: the failure domain, the
//! CloudStackCluster, the cloud until everything is there once, again while the cluster is unavailable, and each minute
//! what was changed in its account.
//!
//! ```text
//! network (by id, by our mark, by name) ─▶ address ─▶ rule on its port ─▶ who may come in ─▶ what may go out
//! ```
//!
//! Names of networks are not unique, so a network that was made here carries a mark in its text from its first moment
//! on, and minutes later tags, for CAPC and for whoever looks for what was left behind. What was made in somebody else's network is recorded on the object. Only
//! that is ever deleted. Routed networks have neither addresses nor load balancers; `routed` says what they have instead. Clusters that share a network tag it: it, and the rule that lets packets out, go with the last
//! of them. Each has an address and a rule of its own; those of another are refused.

mod acl;
mod allowed;
mod call;
mod claim;
mod decide;
mod delete;
mod endpoint;
mod free_address;
mod hints;
mod limits;
mod made;
mod make;
mod mark;
mod observe;
mod order;
mod refused;
mod routed;
mod rules;
mod settled;
mod tagging;
#[cfg(test)]
mod tests;
mod vpc;
mod vpc_turn;

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, condition, label};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
};
use capstan_controller::{
    Caches, Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Conditions, Key, Object};

use crate::annotation;
use crate::clouds::Clouds;
use crate::error::CloudError;
use crate::failure_domain::cluster_of;
use crate::quota::Headroom;

pub(crate) use acl::has_acl;
pub(crate) use allowed::{EVERYBODY, allowed};
pub use call::NetworkCall;
pub use claim::Neighbour;
pub(crate) use claim::is_claimed;
pub use made::Made;
pub(crate) use mark::{is_ours, is_tagged};
pub use observe::ObservedNetwork;
pub(crate) use observe::networks_named;
use observe::{Ledger, Record};
pub use order::NetworkOrder;
pub use vpc::VpcOrder;
pub(crate) use vpc::is_ours as is_our_vpc;
use vpc_turn::{Turn, Turns};

/// Name of the rule for the API server.
pub(crate) const RULE: &str = "Kubernetes_API_Server";

/// CloudStackIsolatedNetworks by the id of the network.
const BY_NETWORK: &str = "network";
/// CloudStackIsolatedNetworks by the name and the id of their VPC.
const BY_VPC: &str = "vpc";

/// The controller of CloudStackIsolatedNetworks.
pub struct IsolatedNetworks {
    clouds: Clouds,
    ledger: Ledger,
    turns: Turns,
}

/// What was seen beside the CloudStackIsolatedNetwork.
#[derive(Debug, Default)]
pub struct Seen {
    /// The failure domain that owns it.
    pub domain: Option<Arc<CloudStackFailureDomain>>,
    pub cluster: Option<Arc<CloudStackCluster>>,
    /// The endpoint of the cluster is an address of another network of its.
    pub elsewhere: bool,
    /// Other objects about the same network in CloudStack; read with what is observed.
    pub neighbours: Vec<Neighbour>,
    /// The network that is ordered before this one, as both become tiers of one VPC.
    pub ordered_first: Option<Key>,
    /// Another network is or becomes a tier of the same VPC. Read where this one is deleted.
    pub vpc_shared: bool,
    /// The cluster became unavailable after the network was ready.
    pub cluster_unavailable: bool,
    /// Time until the account is polled again for changes.
    pub next_poll: Option<Duration>,
    /// What the limits of the account leave for what is to be ordered next; `None` if nothing is.
    pub headroom: Option<Headroom>,
    /// The zone has no free address. Asked only if an order was refused for that.
    pub no_address: bool,
    /// What the cloud has; `None` if nobody had to ask.
    pub observed: Option<Result<ObservedNetwork, CloudError>>,
}

impl IsolatedNetworks {
    /// A controller of networks in these clouds.
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds, ledger: Ledger::default(), turns: Turns::default() }
    }
}

impl Controller for IsolatedNetworks {
    const NAME: &'static str = "cloudstackisolatednetwork";
    type Kind = CloudStackIsolatedNetwork;
    type Seen = Seen;
    type Call = NetworkCall;

    fn watches(&self, watches: &mut Watches<CloudStackIsolatedNetwork>) {
        watches.read::<capstan_provider_kit::SecretOutline>();
        watches.index::<CloudStackIsolatedNetwork>(BY_NETWORK, |network| {
            Some(network.spec.id.clone()).filter(|id| !id.is_empty()).into_iter().collect()
        });
        watches.index::<CloudStackIsolatedNetwork>(BY_VPC, vpc_turn::references);
        watches.related::<CloudStackIsolatedNetwork>(vpc_turn::waiting_for);
        watches.related::<CloudStackFailureDomain>(|change, caches| {
            let zone = |domain: &Arc<CloudStackFailureDomain>| domain.spec.zone.id.clone();
            if change.old.as_ref().map(zone) == change.new.as_ref().map(zone) {
                return Vec::new();
            }
            let Some(domain) = change.latest() else { return Vec::new() };
            let networks = caches
                .of::<CloudStackIsolatedNetwork>()
                .and_then(|networks| networks.owned_by(&domain.metadata.uid));
            networks.unwrap_or_default().iter().map(|network| network.key()).collect()
        });
        // Who may reach the API server can change at any time.
        watches.related::<CloudStackCluster>(|change, caches| {
            let allowed = |cluster: &Arc<CloudStackCluster>| {
                cluster.metadata.annotations.get(annotation::ALLOWED_CIDRS).cloned()
            };
            if change.old.as_ref().map(allowed) == change.new.as_ref().map(allowed) {
                return Vec::new();
            }
            let Some(cluster) = change.latest() else { return Vec::new() };
            let name = cluster.metadata.labels.get(label::CLUSTER_NAME).unwrap_or(&cluster.metadata.name);
            networks_of(&cluster.metadata.namespace, name, caches)
        });
        // What leads to an API server can be taken away at any time; that its cluster becomes unavailable is all there is to notice.
        watches.related::<Cluster>(|change, caches| {
            let available =
                |cluster: &Arc<Cluster>| cluster.status.conditions.is_condition_true(condition::AVAILABLE);
            match (&change.old, &change.new) {
                (Some(old), Some(new)) if old.spec.paused != new.spec.paused => {
                    networks_of(&new.metadata.namespace, &new.metadata.name, caches)
                }
                (Some(old), Some(new)) if available(old) && !available(new) => {
                    networks_of(&new.metadata.namespace, &new.metadata.name, caches)
                }
                _ => Vec::new(),
            }
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED]
    }

    fn paused(
        &self,
        object: &CloudStackIsolatedNetwork,
        view: &View,
    ) -> Result<Option<String>, ObserveError> {
        let cluster = cluster_of(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, CloudStackIsolatedNetwork::KIND.kind))
    }

    async fn observe(
        &self,
        object: &Arc<CloudStackIsolatedNetwork>,
        view: &View,
    ) -> Result<Seen, ObserveError> {
        let (domain, cluster) = context(object, view)?;
        let cluster_unavailable =
            cluster_of(&object.metadata, view)?.is_some_and(|it| settled::became_unavailable(object, &it));
        let mut seen = Seen { domain, cluster, cluster_unavailable, ..Seen::default() };
        let (Some(domain), Some(cluster)) = (&seen.domain, &seen.cluster) else { return Ok(seen) };
        if domain.spec.zone.id.is_empty() {
            return Ok(seen);
        }
        seen.elsewhere = is_elsewhere(object, cluster, view)?;
        let turn = self.turns.take(object, &domain.spec.zone.id, view)?;
        if let Some(Turn::Own { fresh: true }) = turn {
            self.ledger.forget(&object.key());
        }
        let record = Record { object, cluster, elsewhere: seen.elsewhere };
        let unsettled = cluster_unavailable
            || settled::must_ask(object, cluster)
            || self.ledger.has_drifted(&object.key());
        let access = self.clouds.access(&domain.spec, view).await;
        let observed = match &access {
            Ok(access) if unsettled => self.ledger.observe(record, domain, access).await,
            Ok(access) => match self.ledger.drift(record, domain, access).await {
                Ok((None, next)) => {
                    seen.next_poll = Some(next);
                    return Ok(seen);
                }
                Ok((Some(observed), _)) => Ok(observed),
                Err(cause) => Err(cause),
            },
            Err(cause) => Err(cause.clone()),
        };
        let mut able = false;
        if let Some(Turn::Of(first)) = turn {
            // What it orders makes this stale.
            self.ledger.forget(&object.key());
            seen.ordered_first = Some(first);
        } else if let (Ok(access), Ok(observed)) = (&access, &observed)
            && let Some(next) = limits::next(object, domain, cluster, observed)
        {
            let (needed, taken) = next.amounts();
            let headroom = access.headroom(&next.key(object), &needed, &taken).await;
            able = headroom.refuses(&needed).is_none() && !limits::is_paused(object, view.now());
            seen.headroom = Some(headroom);
            seen.no_address = limits::no_address(object, domain, access).await?;
        }
        // Who cannot order holds nobody up.
        if !able || seen.no_address {
            self.turns.release(&object.key());
        }
        if let Ok(ObservedNetwork { network: Some(network), .. }) = &observed {
            seen.neighbours = neighbours(object, network.id.as_str(), view)?;
        }
        seen.vpc_shared = object.metadata.is_deleting() && vpc_turn::is_vpc_shared(object, view)?;
        seen.observed = Some(observed);
        Ok(seen)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(
        &self,
        call: &NetworkCall,
        object: &Arc<CloudStackIsolatedNetwork>,
        view: &View,
    ) -> Outcome {
        let domain = match owners::of::<CloudStackFailureDomain>(&object.metadata, view) {
            Ok(Some(domain)) => domain,
            Ok(None) => return Outcome::failed(crate::code::FAILED, "its failure domain is gone"),
            Err(error) => return CloudError::from(error).outcome(),
        };
        let access = match self.clouds.access(&domain.spec, view).await {
            Ok(access) => access,
            Err(cause) => return cause.outcome(),
        };
        let made = make::make(call, &access).await;
        access.cache.networks_changed().await;
        match made {
            Ok(done) => {
                self.ledger.record(&object.key(), done);
                if let Some(order) = limits::Next::of(call) {
                    access.cache.quota().await.sent(&order.key(object));
                }
                Outcome::done()
            }
            Err(outcome) => {
                self.ledger.forget(&object.key());
                let mut quota = access.cache.quota().await;
                quota.forget();
                if limits::is_short(call, &outcome) {
                    quota.short_of_addresses(&domain.spec.zone.id.as_str().into(), true);
                }
                outcome
            }
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<NetworkCall>,
        object: &Arc<CloudStackIsolatedNetwork>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        let outside = |cause: CloudError| ObserveError::outside(cause.code, cause.message);
        let (Some(domain), Some(cluster)) = context(object, view)? else {
            return Ok(Resolution::DidNotHappen);
        };
        let access = self.clouds.access(&domain.spec, view).await.map_err(outside)?;
        self.ledger.forget(&object.key());
        access.cache.networks_changed().await;
        let elsewhere = is_elsewhere(object, &cluster, view)?;
        let record = Record { object, cluster: &cluster, elsewhere };
        let observed = self.ledger.observe(record, &domain, &access).await.map_err(outside)?;
        Ok(call::resolve(intent, &observed, view.now()))
    }

    fn gone(&self, key: &Key) {
        self.turns.release(key);
        self.ledger.drop_object(key);
    }
}

/// The object of a failure domain's network: its own, or one that it shares with another failure domain of its zone.
pub(crate) fn of_domain(
    domain: &CloudStackFailureDomain,
    cluster: &str,
    view: &View,
) -> Result<Option<Arc<CloudStackIsolatedNetwork>>, ObserveError> {
    let (name, network) = (&domain.spec.name, &domain.spec.zone.network);
    let own = names::isolated_network_object_of(cluster, &network.name, name);
    for object in [own, names::isolated_network_object(cluster, &network.name)] {
        let found =
            view.get::<CloudStackIsolatedNetwork>(&Key::new(domain.metadata.namespace.as_str(), object))?;
        let Some(found) = found else { continue };
        let theirs = !found.spec.failure_domain_name.is_empty()
            && found.spec.failure_domain_name != *name
            && found.spec.id != network.id;
        if !theirs {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The networks of a cluster, by the cluster's name.
fn networks_of(namespace: &str, cluster: &str, caches: &Caches) -> Vec<Key> {
    let networks = caches
        .of::<CloudStackIsolatedNetwork>()
        .and_then(|networks| networks.labelled(namespace, label::CLUSTER_NAME, cluster));
    networks.unwrap_or_default().iter().map(|network| network.key()).collect()
}

/// Other objects about the same network in CloudStack. Ids are those of one management server, so another cloud's network
/// is never met.
fn neighbours(
    object: &CloudStackIsolatedNetwork,
    network: &str,
    view: &View,
) -> Result<Vec<Neighbour>, ObserveError> {
    let mut found = Vec::new();
    for other in view.indexed::<CloudStackIsolatedNetwork>(BY_NETWORK, network)? {
        if other.metadata.uid != object.metadata.uid {
            let (_, cluster) = context(&other, view)?;
            found.push(Neighbour::of(&other, cluster.as_deref()));
        }
    }
    Ok(found)
}

/// Another network of the cluster has the address that is the cluster's endpoint, or becomes it.
fn is_elsewhere(
    object: &CloudStackIsolatedNetwork,
    cluster: &CloudStackCluster,
    view: &View,
) -> Result<bool, ObserveError> {
    let Some(name) = object.metadata.labels.get(label::CLUSTER_NAME) else { return Ok(false) };
    let all =
        view.labelled::<CloudStackIsolatedNetwork>(&object.metadata.namespace, label::CLUSTER_NAME, name)?;
    let host = &cluster.spec.control_plane_endpoint.host;
    Ok(all.iter().any(|other| {
        other.metadata.uid != object.metadata.uid
            && !other.status.public_ip_id.is_empty()
            && (host.is_empty() || other.spec.control_plane_endpoint.host == *host)
    }))
}

type Context = (Option<Arc<CloudStackFailureDomain>>, Option<Arc<CloudStackCluster>>);

/// The failure domain and the CloudStackCluster that it belongs to.
fn context(object: &CloudStackIsolatedNetwork, view: &View) -> Result<Context, ObserveError> {
    let domain = owners::of::<CloudStackFailureDomain>(&object.metadata, view)?;
    let cluster = match &domain {
        Some(domain) => owners::of::<CloudStackCluster>(&domain.metadata, view)?,
        None => None,
    };
    Ok((domain, cluster))
}
