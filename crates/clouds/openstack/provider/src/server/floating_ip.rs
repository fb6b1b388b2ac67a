//! The floating IP that a server claims from a pool: claimed before the server is created, led to one of its ports, and
//! released after the server and its ports are gone.

use std::sync::Arc;

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_types::core::label;
use capstan_capi_types::ipam::{IPAddress, IPAddressClaim, IPAddressClaimSpec, IPPoolReference};
use capstan_capi_types::kubernetes::TypedLocalObjectReference;
use capstan_controller::{Effect, Look, Note, ObjectRef, ObserveError, View, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Conditions as _, Key, Object as _, ObjectMeta, OwnerReference};
use capstan_openstack_client::network::{FloatingIp, Port, Router};
use capstan_openstack_types::names::{self, finalizer};
use capstan_openstack_types::v1alpha1::{OpenStackFloatingIPPool, OpenStackServer};
use serde_json::json;

use super::OpenStackServers;
use super::call::ServerCall;
use crate::condition::{self, reason};
use crate::error::CloudError;
use crate::project::{Access, CATALOG, LOOK_AGAIN, SETTLED};

type Decision = capstan_controller::Decision<OpenStackServers>;

/// The claim of a server, and what became of it.
#[derive(Debug, Default)]
pub struct FloatingIpState {
    pub claim: Option<Arc<IPAddressClaim>>,
    /// The address that the pool gave.
    pub address: Option<Arc<IPAddress>>,
    /// Why the pool gives none, if it says so.
    pub pool: Option<String>,
    pub association: Association,
}

/// Where the address leads.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Association {
    /// There is no address yet.
    #[default]
    Unknown,
    /// The project has no such floating IP.
    Missing,
    /// The server has no port yet that it can lead to.
    NoPort,
    /// It leads to the server.
    Right,
    /// It is to lead to this port.
    Wrong { floating_ip: String, port: String },
}

/// What there is of a server's claim; `None` if it needs no floating IP.
pub(super) async fn observe(
    object: &OpenStackServer,
    ports: &[Option<Port>],
    view: &View,
    access: &Access,
) -> Result<Option<FloatingIpState>, CloudError> {
    let Some(reference) = &object.spec.floating_ip_pool_ref else { return Ok(None) };
    let mut state = claimed(object, reference, view)?;
    if let Some(address) = &state.address
        && !object.metadata.is_deleting()
    {
        state.association = association(&address.spec.address, ports, access).await?;
    }
    Ok(Some(state))
}

fn claimed(
    object: &OpenStackServer,
    reference: &TypedLocalObjectReference,
    view: &View,
) -> Result<FloatingIpState, ObserveError> {
    let meta = &object.metadata;
    let key = |name: &str| Key::new(meta.namespace.as_str(), name);
    let claim = view.get::<IPAddressClaim>(&key(&names::floating_ip_claim(&meta.name)))?;
    let given = claim.as_ref().map(|claim| claim.status.address_ref.name.as_str());
    let address = match given.filter(|name| !name.is_empty()) {
        Some(name) => view.get::<IPAddress>(&key(name))?,
        None => None,
    };
    let address = address.filter(|address| !address.metadata.is_deleting());
    let mut pool = None;
    if address.is_none() && reference.kind == OpenStackFloatingIPPool::KIND.kind {
        pool = match view.get::<OpenStackFloatingIPPool>(&key(&reference.name))? {
            None => Some(format!("there is no OpenStackFloatingIPPool {}: create it", reference.name)),
            Some(pool) => {
                let ready = pool.status.conditions.condition(condition::POOL_READY);
                ready.filter(|ready| !ready.is_true()).map(|ready| ready.message.clone())
            }
        };
    }
    Ok(FloatingIpState { claim, address, pool, association: Association::Unknown })
}

async fn association(
    address: &str,
    ports: &[Option<Port>],
    access: &Access,
) -> Result<Association, CloudError> {
    let all = access.all::<FloatingIp>(SETTLED).await?;
    let Some(found) = all.iter().find(|it| it.floating_ip_address == address) else {
        return Ok(Association::Missing);
    };
    let ports: Vec<&Port> = ports.iter().flatten().collect();
    if ports.iter().any(|port| found.port_id.as_ref() == Some(&port.id)) {
        return Ok(Association::Right);
    }
    let port = routed_port(found.floating_network_id.as_str(), &ports, access).await?;
    Ok(match port {
        None => Association::NoPort,
        Some(port) => Association::Wrong { floating_ip: found.id.to_string(), port: port.id.to_string() },
    })
}

/// The first port in a network with a router to the external network; the first of all if the project sees no such router.
async fn routed_port<'a>(
    external: &str,
    ports: &[&'a Port],
    access: &Access,
) -> Result<Option<&'a Port>, CloudError> {
    let first = ports.first().copied();
    if ports.len() < 2 {
        return Ok(first);
    }
    let routers = access.all::<Router>(CATALOG).await?;
    let leads_out = |router: &&Router| {
        router.external_gateway_info.as_ref().is_some_and(|gateway| gateway.network_id.as_str() == external)
    };
    let routers: Vec<&str> = routers.iter().filter(leads_out).map(|router| router.id.as_str()).collect();
    let all = access.all::<Port>(SETTLED).await?;
    let is_routed = |port: &&&Port| {
        let interface =
            |it: &Port| it.network_id == port.network_id && routers.contains(&it.device_id.as_str());
        all.iter().any(interface)
    };
    Ok(ports.iter().find(is_routed).copied().or(first))
}

fn set(look: &Look<OpenStackServers>, decision: &mut Decision, state: ConditionState) {
    set_state(look, &mut decision.object.status.conditions, condition::FLOATING_IP_READY, state, None);
}

/// Claims an address. Returns what is waited for while there is none.
pub(super) fn claim(
    look: &Look<OpenStackServers>,
    decision: &mut Decision,
    state: &FloatingIpState,
) -> Option<String> {
    let reference = look.object.spec.floating_ip_pool_ref.as_ref()?;
    if state.address.is_some() {
        return None;
    }
    let why = state.pool.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let what = format!("a floating IP from {} {}{why}", reference.kind, reference.name);
    match &state.claim {
        None => {
            let claim = claim_of(&look.object, reference);
            let name = &claim.metadata.name;
            let note =
                Note::normal("CreatingIPAddressClaim", "Create", format!("Created IPAddressClaim {name}"));
            decision.then_noting(Effect::create(&claim), note);
        }
        Some(claim) if !is_of(claim, &look.object) => {
            let name = &claim.metadata.name;
            let message = format!("IPAddressClaim {name} belongs to another object: delete it");
            set(look, decision, ConditionState::new(False, reason::FLOATING_IP_ERROR, message.as_str()));
            return Some(message);
        }
        Some(_) => {}
    }
    decision.wait(Wait::on(reason::WAITING_FOR_IPAM, what.as_str()));
    decision.again_in(LOOK_AGAIN);
    let message = format!("Waiting for {what}");
    set(look, decision, ConditionState::new(False, reason::WAITING_FOR_IPAM, message.as_str()));
    Some(message)
}

fn is_of(claim: &IPAddressClaim, object: &OpenStackServer) -> bool {
    claim.metadata.owner_references.iter().any(|owner| owner.uid == object.metadata.uid)
}

fn claim_of(object: &OpenStackServer, reference: &TypedLocalObjectReference) -> IPAddressClaim {
    let meta = &object.metadata;
    let name = names::floating_ip_claim(&meta.name);
    let mut metadata = ObjectMeta::named(meta.namespace.as_str(), name);
    metadata.finalizers.push(finalizer::MACHINE_IP_CLAIM.to_owned());
    metadata.owner_references.push(OwnerReference::controlled_by(object));
    if let Some(cluster) = meta.labels.get(label::CLUSTER_NAME) {
        metadata.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.clone());
    }
    let group = Some(reference.api_group.clone()).filter(|group| !group.is_empty());
    IPAddressClaim {
        metadata,
        spec: IPAddressClaimSpec {
            pool_ref: IPPoolReference {
                name: reference.name.clone(),
                kind: reference.kind.clone(),
                api_group: group.unwrap_or_else(|| OpenStackFloatingIPPool::KIND.group.to_owned()),
            },
            ..IPAddressClaimSpec::default()
        },
        ..IPAddressClaim::default()
    }
}

/// Lets the address lead to a server that exists.
pub(super) fn keep(look: &Look<OpenStackServers>, decision: &mut Decision, state: &FloatingIpState) {
    if claim(look, decision, state).is_some() {
        return;
    }
    let address = state.address.as_ref().map(|it| it.spec.address.clone()).unwrap_or_default();
    let not_ready = |message: String| ConditionState::new(False, reason::FLOATING_IP_ERROR, message);
    let condition = match &state.association {
        Association::Right => ConditionState::new(True, reason::READY, ""),
        Association::Missing => not_ready(format!(
            "the project has no floating IP {address} any more: delete the Machine, or restore the floating IP"
        )),
        Association::NoPort | Association::Unknown => {
            not_ready(format!("the server has no port that floating IP {address} can be associated with"))
        }
        Association::Wrong { floating_ip, port } => {
            let call = ServerCall::AssociateAddress { address: floating_ip.clone(), port: port.clone() };
            let failure = look.failure_of(&call).map(|failure| failure.error.to_string());
            decision.best_effort(Effect::Call(call));
            not_ready(failure.unwrap_or_else(|| format!("floating IP {address} is being associated")))
        }
    };
    set(look, decision, condition);
}

/// Gives the claim back; whether it is still being given back.
pub(super) fn release(
    look: &Look<OpenStackServers>,
    decision: &mut Decision,
    state: &FloatingIpState,
) -> bool {
    let Some(claim) = state.claim.as_ref().filter(|claim| is_of(claim, &look.object)) else { return false };
    let meta = &claim.metadata;
    if !meta.is_deleting() {
        decision.then(Effect::delete(&**claim));
        return true;
    }
    let held = |name: &&String| *name == finalizer::MACHINE_IP_CLAIM;
    if !meta.finalizers.iter().any(|name| held(&name)) {
        return false;
    }
    let left: Vec<&String> = meta.finalizers.iter().filter(|name| !held(name)).collect();
    let change = json!({"metadata": {"finalizers": left}});
    decision.then(Effect::merge_guarded(ObjectRef::to(&**claim), meta, change));
    true
}
