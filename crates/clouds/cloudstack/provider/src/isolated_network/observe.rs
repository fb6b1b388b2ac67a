//! What the cloud has of a network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::condition;
use capstan_cloudstack_client::commands::{
    ListEgressFirewallRules, ListFirewallRules, ListLoadBalancerRuleInstances, ListLoadBalancerRules,
    ListNetworkAclLists, ListNetworkOfferings, ListPublicIpAddresses, Owner,
};
use capstan_cloudstack_client::model::{
    FirewallRule, LoadBalancerRule, Network, NetworkAclList, NetworkAclRule, NetworkOffering,
    PublicIpAddress, Tag, Vpc, VpcOffering,
};
use capstan_cloudstack_client::{Error, NetworkId, ZoneId};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, Vpc as VpcSpec,
};
use capstan_object::{Conditions, Key, Object};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Made;
use super::acl::{self, ALLOW, has_acl};
use super::allowed::{allowed, api_port, is_asked};
use super::claim::{Identity, holder, is_known, owns};
use super::free_address::free;
use super::hints::Hints;
use super::mark::{is_ours, mark};
use super::order::offering_name;
use super::rules::going;
use super::{routed, vpc};
use crate::account_cache::JUST_NOW;
use crate::clouds::Access;
use crate::code;
use crate::drift::{NetworkInventory, Unlogged};
use crate::error::CloudError;
use crate::leaving;
use crate::named::named;

/// How long what our own calls said is believed without asking.
const FRESH: Duration = Duration::from_secs(60);

/// Observed state of the network in CloudStack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedNetwork {
    pub network: Option<Network>,
    pub addresses: Vec<PublicIpAddress>,
    /// Rules on them.
    pub rules: Vec<LoadBalancerRule>,
    /// Rules that lead to machines; read where a rule may have another owner.
    pub serving: BTreeSet<String>,
    /// Ingress firewall rules.
    pub openings: Vec<FirewallRule>,
    /// Egress firewall rules.
    pub exits: Vec<FirewallRule>,
    /// A free address, where one has to be chosen.
    pub free: Option<IpAddr>,
    /// Offerings by the name that the network asks for, where the network has to be made.
    pub offerings: Arc<Vec<NetworkOffering>>,
    /// The VPC that the network is or becomes a tier of.
    pub vpc: Option<Vpc>,
    /// Offerings by the name that the VPC asks for, where it has to be made.
    pub vpc_offerings: Arc<Vec<VpcOffering>>,
    /// Rules of the tier's access list; `None` if it lets everything pass.
    pub acl: Option<Vec<NetworkAclRule>>,
    /// The access lists that every cloud has, where a tier has to be made.
    pub acls: Arc<Vec<NetworkAclList>>,
    /// A machine that was destroyed and holds the network until CloudStack expunges it; asked where the network is to go.
    pub held_by: Option<String>,
    /// It was asked for an object that is being deleted.
    pub for_deletion: bool,
    /// For whom things are made.
    pub owner: Owner,
}

/// The resources that a call changed.
#[derive(Debug)]
pub(super) enum Change {
    Network(Option<Box<Network>>),
    Vpc(Option<Box<Vpc>>),
    Tags(Vec<String>),
    AddressTags(String, Vec<String>),
    Address(Box<PublicIpAddress>),
    NoAddress(String),
    Rule(Box<LoadBalancerRule>),
    NoRule(String),
    Opening(Box<FirewallRule>),
    NoOpening(String),
    Exit(Box<FirewallRule>),
    NoExit(String),
    /// A change of nothing that is observed here.
    Other,
}

/// A tag as our own call has just put it.
fn tag(key: String) -> Tag {
    Tag {
        key,
        value: "1".to_owned(),
        resourceid: None,
        resourcetype: None,
        account: None,
        domainid: None,
        projectid: None,
    }
}

/// What is on record about a network, and what its cluster asks for.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub object: &'a CloudStackIsolatedNetwork,
    pub cluster: &'a CloudStackCluster,
    /// The endpoint of the cluster is an address of another network of its.
    pub elsewhere: bool,
}

impl Record<'_> {
    /// What an administrator may change without an entry in the log of the account. Who may reach a tier is said by its load
    /// balancer rule, and the rules of routed networks are logged for their owner.
    fn unlogged(&self) -> Unlogged {
        let (acls, routed) =
            (vpc::wanted(self.object).is_some(), !self.object.status.routing_mode.is_empty());
        Unlogged { ingress: is_asked(self.cluster) && !acls && !routed, acls }
    }
}

/// What is known of networks because our own calls said so: it need not be asked again at every step.
#[derive(Default)]
pub(super) struct Ledger {
    observed: Mutex<BTreeMap<Key, (Instant, ObservedNetwork)>>,
    /// When each network was last compared with the cloud.
    compared: Mutex<BTreeMap<Key, Instant>>,
    /// Networks that differ from their record, until they do not.
    drifted: Mutex<BTreeSet<Key>>,
}

impl Ledger {
    /// Drops what is known of a network.
    pub(super) fn forget(&self, key: &Key) {
        self.observed.lock().remove(key);
        self.compared.lock().remove(key);
    }

    /// The object is gone.
    pub(super) fn drop_object(&self, key: &Key) {
        self.forget(key);
        self.drifted.lock().remove(key);
    }

    /// The network differed from its record when it was last compared.
    pub(super) fn has_drifted(&self, key: &Key) -> bool {
        self.drifted.lock().contains(key)
    }

    /// Takes over what a call changed.
    pub(super) fn record(&self, key: &Key, change: Change) {
        let mut all = self.observed.lock();
        let Some((_, observed)) = all.get_mut(key) else { return };
        match change {
            // Its VPC lists the tiers that it has, so it is asked for again.
            Change::Network(None) if observed.vpc.is_some() => drop(all.remove(key)),
            Change::Network(network) => {
                let (network, owner) = (network.map(|it| *it), std::mem::take(&mut observed.owner));
                let vpc = observed.vpc.take();
                *observed = ObservedNetwork { network, vpc, owner, ..ObservedNetwork::default() };
            }
            Change::Vpc(vpc) => observed.vpc = vpc.map(|it| *it),
            Change::Tags(keys) => {
                if let Some(network) = &mut observed.network {
                    network.tags.extend(keys.into_iter().map(tag));
                }
            }
            Change::AddressTags(id, keys) => {
                if let Some(address) = observed.addresses.iter_mut().find(|it| it.id.as_str() == id) {
                    address.tags.extend(keys.into_iter().map(tag));
                }
            }
            Change::Address(address) => observed.addresses.push(*address),
            Change::NoAddress(id) => observed.addresses.retain(|address| address.id.as_str() != id),
            Change::Rule(rule) => observed.rules.push(*rule),
            Change::NoRule(id) => observed.rules.retain(|rule| rule.id.as_str() != id),
            Change::Opening(rule) => observed.openings.push(*rule),
            Change::NoOpening(id) => observed.openings.retain(|rule| rule.id.as_str() != id),
            Change::Exit(rule) => observed.exits.push(*rule),
            Change::NoExit(id) => observed.exits.retain(|rule| rule.id.as_str() != id),
            Change::Other => drop(all.remove(key)),
        }
    }

    /// What the cloud has, from memory if our own calls have just said so.
    pub(super) async fn observe(
        &self,
        record: Record<'_>,
        domain: &CloudStackFailureDomain,
        access: &Access,
    ) -> Result<ObservedNetwork, CloudError> {
        let observed = self.recall(record.object, domain, record.cluster, access).await?;
        if observed.is_as_recorded(record) {
            self.drifted.lock().remove(&record.object.key());
        }
        Ok(observed)
    }

    async fn recall(
        &self,
        object: &CloudStackIsolatedNetwork,
        domain: &CloudStackFailureDomain,
        cluster: &CloudStackCluster,
        access: &Access,
    ) -> Result<ObservedNetwork, CloudError> {
        let key = object.key();
        // What holds a network is asked only when it is to go.
        let usable = |observed: &ObservedNetwork| {
            !object.metadata.is_deleting() || observed.for_deletion || observed.network.is_none()
        };
        let known = self.observed.lock().get(&key).cloned();
        if let Some((_, observed)) = known.filter(|(at, known)| at.elapsed() <= FRESH && usable(known)) {
            return Ok(observed);
        }
        let asked = Instant::now();
        let observed = ask(object, domain, cluster, access).await?;
        self.compared.lock().insert(key.clone(), asked);
        // An offering that is missing may be there at the next look.
        if observed.network.is_none() && observed.offerings.is_empty() {
            self.forget(&key);
            return Ok(observed);
        }
        self.observed.lock().insert(key, (Instant::now(), observed.clone()));
        Ok(observed)
    }

    /// What the cloud has of a network that was set up, if it differs from the record. Costs nothing but the poll of the
    /// account unless somebody changed something there.
    pub(super) async fn drift(
        &self,
        record: Record<'_>,
        domain: &CloudStackFailureDomain,
        access: &Access,
    ) -> Result<(Option<ObservedNetwork>, Duration), CloudError> {
        let explain = |error: Error| access.explain(&error);
        let (key, scope) = (record.object.key(), access.scope());
        let polled = access.cache.alterations(&access.client, &scope, record.unlogged()).await;
        let polled = polled.map_err(explain)?;
        let compared = self.compared.lock().get(&key).copied();
        // Where nobody is named everybody may come in, and what is opened is no news.
        let opened = polled.opened.filter(|_| is_asked(record.cluster));
        let after = match (compared, polled.altered.max(opened)) {
            (Some(_), None) => return Ok((None, polled.next)),
            (Some(compared), Some(altered)) if compared >= altered => return Ok((None, polled.next)),
            (_, Some(altered)) => altered,
            // Nobody has compared it since this process began.
            (None, None) => Instant::now(),
        };
        let listed = access.cache.inventory(&access.client, &scope, after).await;
        let (at, inventory) = listed.map_err(explain)?;
        if ObservedNetwork::of(&inventory, &record.object.spec.id)
            .is_some_and(|observed| observed.is_as_recorded(record))
        {
            self.compared.lock().insert(key, at);
            return Ok((None, polled.next));
        }
        // What is missing in a list of the account may be somebody else's: the network itself is asked before anything is
        // made.
        self.forget(&key);
        self.drifted.lock().insert(key);
        access.cache.networks_changed().await;
        let observed = self.observe(record, domain, access).await?;
        Ok((Some(observed), polled.next))
    }
}

impl ObservedNetwork {
    /// A rule leads to machines, as far as anybody asked.
    pub(super) fn serves(&self, rule: &str) -> bool {
        self.serving.contains(rule)
    }

    /// What an inventory has of a network, if it has the network.
    fn of(inventory: &NetworkInventory, id: &str) -> Option<Self> {
        let network = inventory.networks.iter().find(|network| network.id.as_str() == id)?;
        let on = |network: &Option<NetworkId>| network.as_ref().is_some_and(|network| network.as_str() == id);
        let firewall = |rules: &[FirewallRule]| -> Vec<FirewallRule> {
            let here = rules.iter().filter(|rule| on(&rule.networkid) && !going(rule.state.as_ref()));
            here.cloned().collect()
        };
        let rules = inventory.rules.iter().filter(|rule| on(&rule.networkid) && !going(rule.state.as_ref()));
        let addresses = inventory.addresses.iter().filter(|address| on(&address.associatednetworkid));
        let listed = |rule: &&NetworkAclRule| rule.aclid == network.aclid;
        let acl = inventory.acls.as_ref().filter(|_| has_acl(network));
        Some(Self {
            acl: acl.map(|rules| rules.iter().filter(listed).cloned().collect()),
            network: Some(network.clone()),
            addresses: addresses.cloned().collect(),
            rules: rules.cloned().collect(),
            openings: firewall(&inventory.ingress),
            exits: firewall(&inventory.egress),
            ..Self::default()
        })
    }

    /// Everything that the object records, or that its cluster asks for, is there, and what others decided is reported.
    fn is_as_recorded(&self, record: Record<'_>) -> bool {
        let Record { object, cluster, elsewhere } = record;
        let made = Made::of(&object.metadata);
        let Some(network) = &self.network else { return false };
        let hints = Hints { observed: self, network, object, cluster, made: &made, elsewhere };
        let ready = object.status.conditions.condition(condition::READY);
        let reported = ready.is_some_and(|ready| ready.message == hints.message());
        // Egress that somebody else decided on is left as it is.
        let egress = reported && (self.lets_out() || self.is_kept_in(&made));
        if routed::is_routed(network) {
            return egress && routed::is_as_recorded(network, self, object, cluster);
        }
        let status = &object.status;
        let address = status.public_ip_id.as_str();
        let Ok(port) = u16::try_from(object.spec.control_plane_endpoint.port) else { return false };
        let is_open = |cidr: &String| self.openings_on(address, port).any(|(_, who)| who == cidr);
        let opens = made.opened.unwrap_or(made.rule.is_some()) || !made.openings.is_empty();
        let in_vpc = network.vpcid.is_some();
        let opened = match is_asked(cluster) {
            _ if in_vpc => true,
            true => allowed(cluster).iter().all(is_open),
            // Where others decide who comes in, nothing is missing.
            false => !opens || self.leading_to(address, port).next().is_some(),
        };
        opened
            && egress
            && self.addresses.iter().any(|known| known.id.as_str() == address)
            && self.rules.iter().any(|rule| rule.id.as_str() == status.load_balancer_rule_id)
    }
}

async fn ask(
    object: &CloudStackIsolatedNetwork,
    domain: &CloudStackFailureDomain,
    cluster: &CloudStackCluster,
    access: &Access,
) -> Result<ObservedNetwork, CloudError> {
    let zone: ZoneId = domain.spec.zone.id.as_str().into();
    let explain = |error: Error| access.explain(&error);
    let mut observed = ObservedNetwork {
        owner: access.owner.clone(),
        for_deletion: object.metadata.is_deleting(),
        ..ObservedNetwork::default()
    };
    let found = network(object, cluster, &zone, access).await?;
    // Of a tier that is set up, the VPC matters no more until it is deleted.
    if found.is_none() || !object.status.ready || object.metadata.is_deleting() {
        (observed.vpc, observed.vpc_offerings) = vpc::observe(object, cluster, &zone, access).await?;
    }
    let Some(network) = found else {
        if object.spec.id.is_empty() && !object.metadata.is_deleting() {
            if vpc::wanted(object).is_some() {
                let acls = ListNetworkAclLists { name: Some(ALLOW.to_owned()), ..Default::default() };
                observed.acls = access.client.cached(&acls).await.map_err(explain)?;
            }
            let name = Some(offering_name(object).to_owned());
            let offerings = ListNetworkOfferings { name, ..ListNetworkOfferings::default() };
            observed.offerings = access.client.cached(&offerings).await.map_err(explain)?;
        }
        return Ok(observed);
    };
    match routed::is_routed(&network) {
        true => routed::observe(&network, &mut observed, access).await?,
        false => natted(object, cluster, &network, &mut observed, access).await?,
    }
    if !object.metadata.is_deleting() {
        acl::observe(&network, &mut observed, access).await?;
    }
    if object.metadata.is_deleting() && is_ours(&network) {
        observed.held_by = leaving::held_by(&object.metadata, access).await.map_err(explain)?;
    }
    observed.network = Some(network);
    Ok(observed)
}

/// What leads in to a network whose addresses are translated, and what lets out of it.
async fn natted(
    object: &CloudStackIsolatedNetwork,
    cluster: &CloudStackCluster,
    network: &Network,
    observed: &mut ObservedNetwork,
    access: &Access,
) -> Result<(), CloudError> {
    let explain = |error: Error| access.explain(&error);
    let (client, scope, id) = (&access.client, access.scope(), network.id.clone());
    // Addresses of a VPC belong to a tier only while a rule of the tier is on them.
    let addresses = ListPublicIpAddresses {
        associatednetworkid: network.vpcid.is_none().then(|| id.clone()),
        vpcid: network.vpcid.clone(),
        scope: scope.clone(),
        ..ListPublicIpAddresses::default()
    };
    observed.addresses = client.list(&addresses).await.map_err(explain)?;
    observed.addresses.retain(|address| match network.vpcid {
        // Of a network that is gone by now CloudStack lists all addresses of the account.
        None => address.associatednetworkid.as_ref() == Some(&id),
        Some(_) => {
            address.associatednetworkid.as_ref().is_none_or(|network| *network == id) && !address.issourcenat
        }
    });
    if !observed.addresses.is_empty() {
        let rules =
            ListLoadBalancerRules { networkid: Some(id.clone()), scope: scope.clone(), ..Default::default() };
        observed.rules = client.list(&rules).await.map_err(explain)?;
        observed.rules.retain(|rule| !going(rule.state.as_ref()));
        if let Some(rule) = doubtful(object, cluster, network, observed) {
            let members = ListLoadBalancerRuleInstances { id: rule.as_str().into(), applied: None };
            if !client.list(&members).await.map_err(explain)?.is_empty() {
                observed.serving.insert(rule);
            }
        }
        // Tiers have access lists in place of firewalls.
        if network.vpcid.is_none() {
            let openings =
                ListFirewallRules { networkid: Some(id.clone()), scope: scope.clone(), ..Default::default() };
            observed.openings = client.list(&openings).await.map_err(explain)?;
            observed.openings.retain(|rule| !going(rule.state.as_ref()));
        }
    }
    if network.egressdefaultpolicy != Some(true) && network.vpcid.is_none() {
        let exits =
            ListEgressFirewallRules { networkid: Some(id), scope: scope.clone(), ..Default::default() };
        observed.exits = client.list(&exits).await.map_err(explain)?;
        observed.exits.retain(|rule| !going(rule.state.as_ref()));
    }
    if object.status.public_ip_id.is_empty()
        && !object.metadata.is_deleting()
        && must_choose(object, cluster, network, observed)
    {
        let zone = network.zoneid.clone();
        observed.free = free(&object.metadata.uid, zone, access).await?;
    }
    Ok(())
}

/// The rule for the API server on the address that the manifest names, if it may be another cluster's: neither the object
/// nor CloudStack records that it is ours.
fn doubtful(
    object: &CloudStackIsolatedNetwork,
    cluster: &CloudStackCluster,
    network: &Network,
    observed: &ObservedNetwork,
) -> Option<String> {
    let host = cluster.spec.control_plane_endpoint.host.parse::<IpAddr>().ok()?;
    let address = observed.addresses.iter().find(|address| address.ipaddress == host)?;
    let made = Made::of(&object.metadata);
    let identity = Identity::of(object, cluster, Some(network), &observed.addresses, &[]);
    if object.metadata.is_deleting() || is_known(network, address, &made, &identity) {
        return None;
    }
    let rule = observed.rule_on(address.id.as_str(), api_port(cluster)).map(|rule| rule.id.to_string());
    let recorded = |id: &String| made.rule.as_ref() == Some(id) || object.status.load_balancer_rule_id == *id;
    rule.filter(|id| !recorded(id))
}

/// An address may have to be chosen: the network is not the cluster's own, or has none that is left to it.
fn must_choose(
    object: &CloudStackIsolatedNetwork,
    cluster: &CloudStackCluster,
    network: &Network,
    observed: &ObservedNetwork,
) -> bool {
    let identity = Identity::of(object, cluster, Some(network), &observed.addresses, &[]);
    let own = network.vpcid.is_none() && owns(network, &Made::of(&object.metadata), &identity);
    let left = |address: &PublicIpAddress| holder(address, network, object, &identity, &[]).is_none();
    !own || !observed.addresses.is_empty() && !observed.addresses.iter().any(left)
}

/// The network by its id, else the one with our mark, else the only one of its name.
async fn network(
    object: &CloudStackIsolatedNetwork,
    cluster: &CloudStackCluster,
    zone: &ZoneId,
    access: &Access,
) -> Result<Option<Network>, CloudError> {
    let spec = &object.spec;
    let by_id = !spec.id.is_empty();
    let wanted = (spec.id.as_str(), spec.name.as_str());
    // The failure domain asks the same shortly before.
    let found = access.cache.networks(&access.client, &access.scope(), zone, wanted, JUST_NOW).await;
    let mut found = match found {
        Ok(found) => found,
        // An id that is not known any more is refused as a wrong parameter.
        Err(error) if by_id && error.code() == Some(capstan_cloudstack_client::Code::Parameter) => Vec::new(),
        Err(error) => return Err(access.explain(&error)),
    };
    if by_id {
        return Ok(found.pop());
    }
    found = networks_named(found, &spec.name, vpc::wanted(object));
    let ours = mark(cluster);
    if let Some(at) = found.iter().position(|network| network.displaytext.as_deref() == Some(&ours)) {
        return Ok(Some(found.swap_remove(at)));
    }
    match found.len() {
        0 | 1 => Ok(found.pop()),
        several => {
            let message = format!(
                "{several} networks are called {:?}: give the id in network of failure domain {}",
                spec.name, spec.failure_domain_name
            );
            Err(CloudError::new(code::AMBIGUOUS, "Ambiguous", message))
        }
    }
}

/// The networks of a name, in any VPC or none, or tiers of one that is named by id or name.
pub(crate) fn networks_named(mut found: Vec<Network>, name: &str, vpc: Option<&VpcSpec>) -> Vec<Network> {
    if let Some(vpc) = vpc {
        let id = |network: &Network| network.vpcid.as_ref().map(|id| id.to_string());
        found.retain(|network| vpc.id.is_empty() || id(network).as_ref() == Some(&vpc.id));
        if !vpc.name.is_empty() {
            found = named(&found, &vpc.name, |it| it.vpcname.as_deref()).into_iter().cloned().collect();
        }
    }
    named(&found, name, |it| it.name.as_deref()).into_iter().cloned().collect()
}
