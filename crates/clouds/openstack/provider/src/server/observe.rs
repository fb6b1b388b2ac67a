//! Reads what a decision about an OpenStackServer is based on.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::{Cluster, label};
use capstan_controller::{ObserveError, View};
use capstan_object::Key;
use capstan_openstack_client::block_storage::{Volume, VolumeStatus};
use capstan_openstack_client::compute::{Server, ServerStatus};
use capstan_openstack_client::network::{Port, Subnet, Trunk};
use capstan_openstack_types::names;
use capstan_openstack_types::v1alpha1::{OpenStackServer, ResolvedServerSpec};
use capstan_openstack_types::v1beta1::{PortOpts, ResolvedPortSpec};
use capstan_openstack_types::v1beta2::{ResolvedFixedIP, SubnetParam};
use capstan_provider_kit::BootData;

use super::address_pairs::PairsState;
use super::observed::{Seen, ServerState, is_pending};
use super::{SUB_PORTS, address_pairs, floating_ip, known_id, order};
use crate::clouds::Clouds;
use crate::error::CloudError;
use crate::mark::{self, Owner};
use crate::project::{Access, PENDING, SETTLED};
use crate::{code, lookup};

/// The Cluster that it belongs to, by its label.
pub(super) fn cluster_of(
    object: &OpenStackServer,
    view: &View,
) -> Result<Option<Arc<Cluster>>, ObserveError> {
    let meta = &object.metadata;
    let Some(name) = meta.labels.get(label::CLUSTER_NAME) else { return Ok(None) };
    view.get(&Key::new(meta.namespace.as_str(), name.as_str()))
}

pub(super) async fn observe(
    object: &OpenStackServer,
    view: &View,
    clouds: &Clouds,
) -> Result<Seen, ObserveError> {
    let pairs = address_pairs::observe(object, view)?;
    let cloud = state(object, pairs.as_ref(), view, clouds).await;
    let mut boot_data = None;
    let unmade = cloud.as_ref().is_ok_and(|state| state.server.is_none()) && known_id(object).is_none();
    if let Some(reference) = object.spec.user_data_ref.as_ref().filter(|_| unmade)
        && !object.metadata.is_deleting()
    {
        let secret = Key::new(object.metadata.namespace.as_str(), reference.name.as_str());
        boot_data = Some(BootData::observe(&secret, view).await);
    }
    Ok(Seen { cloud, pairs, boot_data })
}

async fn state(
    object: &OpenStackServer,
    pairs: Option<&PairsState>,
    view: &View,
    clouds: &Clouds,
) -> Result<ServerState, CloudError> {
    let meta = &object.metadata;
    let access = clouds.access(&object.spec.identity_ref, &meta.namespace, view).await?;
    let mark = mark::of(meta);
    // Who has nothing yet needs no lists of what there is, except after a loss of status.
    let mut state =
        ServerState { ports: ports(object, &mark, SETTLED, &access).await?, ..ServerState::default() };
    if pairs.is_some_and(|pairs| !address_pairs::outdated(pairs, &state.ports, &mark).is_empty()) {
        // Pairs are replaced as a whole: what others added since the list was made must not be lost.
        state.ports = ports(object, &mark, PENDING, &access).await?;
    }
    state.server = server(object, &mark, &state.ports, &access).await?;
    let known = object.status.resolved.clone().filter(|resolved| !resolved.image_id.is_empty());
    if state.server.is_none() && known_id(object).is_none() && !meta.is_deleting() {
        state.resolved = Some(match known {
            Some(known) => Ok(known),
            None => resolve(object, &access).await,
        });
    }
    let has_volumes = !order::volumes(&meta.name, &object.spec, "", &mark).is_empty();
    if has_volumes && state.server.is_none() {
        state.volumes = volumes(object, &mark, &access).await?;
    }
    if object.spec.trunk == Some(true) || object.spec.ports.iter().any(|port| port.trunk == Some(true)) {
        let all = access.all::<Trunk>(SETTLED).await?;
        let ours = |trunk: &&Trunk| state.ports.iter().flatten().any(|port| port.id == trunk.port_id);
        state.trunks = all.iter().filter(ours).cloned().collect();
        if meta.is_deleting() && state.server.is_none() {
            state.trunks = with_sub_ports(state.trunks, &access).await?;
            state.sub_ports = freed_sub_ports(object, &access).await?;
        }
    }
    state.floating_ip = floating_ip::observe(object, &state.ports, view, &access).await?;
    state.next_round = Some(access.next_round());
    Ok(state)
}

/// The trunks that are there, with the sub-ports that they carry now: others add and take them as they like.
async fn with_sub_ports(trunks: Vec<Trunk>, access: &Access) -> Result<Vec<Trunk>, CloudError> {
    let mut found = Vec::with_capacity(trunks.len());
    for trunk in trunks {
        match access.client.sub_ports(&trunk.id).await {
            Ok(sub_ports) => found.push(Trunk { sub_ports, ..trunk }),
            Err(error) if error.is_not_found() => access.remove::<Trunk>(trunk.id.as_str()).await,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Ports that were taken from a trunk to be deleted, as far as they are there.
async fn freed_sub_ports(object: &OpenStackServer, access: &Access) -> Result<Vec<String>, CloudError> {
    let Some(recorded) = object.metadata.annotations.get(SUB_PORTS) else { return Ok(Vec::new()) };
    let all = access.all::<Port>(SETTLED).await?;
    let is_there = |id: &&str| all.iter().any(|port| port.id.as_str() == *id);
    Ok(recorded.split(',').filter(is_there).map(str::to_owned).collect())
}

/// The ports of the spec: those of the status, else those of their name that no other object marked.
async fn ports(
    object: &OpenStackServer,
    mark: &str,
    age: Duration,
    access: &Access,
) -> Result<Vec<Option<Port>>, CloudError> {
    let all = access.all::<Port>(age).await?;
    let known =
        object.status.resources.as_ref().map(|resources| resources.ports.as_slice()).unwrap_or_default();
    let find = |(index, spec): (usize, &PortOpts)| {
        if let Some(known) = known.get(index)
            && let Some(port) = all.iter().find(|port| port.id.as_str() == known.id)
        {
            return Some(port.clone());
        }
        let name = names::port(&object.metadata.name, spec.name_suffix.as_deref(), index);
        let of = |wanted: Owner| {
            all.iter().find(|port| port.name == name && mark::owner(&port.description, mark) == wanted)
        };
        of(Owner::Ours)
            .or_else(|| of(Owner::Unmarked).filter(|port| is_of_network(object, index, port)))
            .cloned()
    };
    Ok(object.spec.ports.iter().enumerate().map(find).collect())
}

/// An unmarked port counts if it is in the network that the port is to be in: names of machines repeat across namespaces.
fn is_of_network(object: &OpenStackServer, index: usize, port: &Port) -> bool {
    let resolved = object.status.resolved.as_ref().and_then(|resolved| resolved.ports.get(index));
    let given = object.spec.ports.get(index).and_then(|spec| spec.network.as_ref()?.id.clone());
    let network = resolved.map(|port| port.network_id.clone()).or(given);
    network.is_some_and(|network| port.network_id.as_str() == network)
}

/// The server: by its id, else by its mark, else the unmarked one of its name that has one of the ports.
async fn server(
    object: &OpenStackServer,
    mark: &str,
    ports: &[Option<Port>],
    access: &Access,
) -> Result<Option<Server>, CloudError> {
    let known = known_id(object);
    let find = |all: &[Server]| {
        let by_id = all.iter().find(|server| known.as_deref() == Some(server.id.as_str()));
        let found =
            by_id.or_else(|| all.iter().find(|server| mark::is_on_server(server, mark))).or_else(|| {
                all.iter().filter(|server| server.name == object.metadata.name).find(|server| {
                    !server.metadata.contains_key(mark::METADATA)
                        && ports.iter().flatten().any(|port| port.device_id == server.id.as_str())
                })
            });
        let gone =
            |server: &&Server| !matches!(server.status, ServerStatus::Deleted | ServerStatus::SoftDeleted);
        found.filter(gone).cloned()
    };
    let found = find(&access.all::<Server>(SETTLED).await?);
    match &found {
        Some(server) if is_pending(server) => Ok(find(&access.all::<Server>(PENDING).await?)),
        // Its deletion was ordered, or it is to be found and is not: a list from before does not prove anything.
        _ => Ok(found),
    }
}

async fn volumes(object: &OpenStackServer, mark: &str, access: &Access) -> Result<Vec<Volume>, CloudError> {
    let wanted = order::volumes(&object.metadata.name, &object.spec, "", mark);
    let find = |all: &[Volume]| -> Vec<Volume> {
        let is_ours = |volume: &&Volume| {
            wanted.iter().any(|order| order.name == volume.name)
                && match mark::owner(&volume.description, mark) {
                    Owner::Ours => true,
                    // CAPO's: attached to our server, or to nothing while we are the only ones of this name.
                    Owner::Unmarked => {
                        let id = known_id(object);
                        volume.attachments.iter().any(|it| Some(it.server_id.as_str()) == id.as_deref())
                    }
                    Owner::Foreign => false,
                }
        };
        all.iter().filter(is_ours).cloned().collect()
    };
    let found = find(&access.all::<Volume>(SETTLED).await?);
    match volumes_age(&found, object.metadata.is_deleting()) {
        None => Ok(found),
        Some(age) => Ok(find(&access.all::<Volume>(age).await?)),
    }
}

/// How old the list may be that replaces one with these volumes; `None` if that is good enough.
pub(super) fn volumes_age(found: &[Volume], is_deleting: bool) -> Option<Duration> {
    use VolumeStatus as Status;
    // Nova deletes the volumes of a server before the server is gone: a list from before still has them.
    if is_deleting && found.iter().any(|volume| volume.status != Status::Deleting) {
        return Some(Duration::ZERO);
    }
    let settled =
        |volume: &Volume| matches!(volume.status, Status::Available | Status::InUse | Status::Error);
    (!found.iter().all(settled)).then_some(PENDING)
}

/// Ids for everything that the spec refers to.
async fn resolve(object: &OpenStackServer, access: &Access) -> Result<ResolvedServerSpec, CloudError> {
    let spec = &object.spec;
    let mut resolved = ResolvedServerSpec {
        image_id: lookup::image(access, &spec.image, "spec.image").await?,
        flavor_id: lookup::flavor(access, spec.flavor_id.as_deref(), spec.flavor.as_deref(), "spec.flavor")
            .await?,
        ..ResolvedServerSpec::default()
    };
    if let Some(group) = &spec.server_group {
        resolved.server_group_id = lookup::server_group(access, group, "spec.serverGroup").await?;
    }
    for (index, port) in spec.ports.iter().enumerate() {
        resolved.ports.push(resolve_port(object, index, port, access).await?);
    }
    Ok(resolved)
}

/// v1beta1 and v1beta2 write parameters of subnets alike.
fn subnet_param(param: &capstan_openstack_types::v1beta1::SubnetParam) -> SubnetParam {
    serde_json::to_value(param).and_then(serde_json::from_value).unwrap_or_default()
}

async fn resolve_port(
    object: &OpenStackServer,
    index: usize,
    port: &PortOpts,
    access: &Access,
) -> Result<ResolvedPortSpec, CloudError> {
    let field = format!("spec.ports[{index}]");
    let mut network = match &port.network {
        Some(param) => Some(lookup::network(access, param, false, &format!("{field}.network")).await?),
        None => None,
    };
    let mut fixed_ips = Vec::new();
    for (number, ip) in port.fixed_ips.iter().enumerate() {
        let mut subnet = None;
        if let Some(param) = &ip.subnet {
            let field = format!("{field}.fixedIPs[{number}].subnet");
            let id = lookup::subnet(access, &subnet_param(param), network.as_deref(), &field).await?;
            if network.is_none() {
                let held: Subnet = access.client.get(&id.as_str().into()).await?;
                network = Some(held.network_id.to_string());
            }
            subnet = Some(id);
        }
        fixed_ips.push(ResolvedFixedIP { subnet, ip_address: ip.ip_address.clone() });
    }
    let Some(network_id) = network else {
        let message = format!("{field} has neither a network nor a subnet: set one");
        return Err(CloudError::new(code::REFUSED, "InvalidMachineSpec", message));
    };
    let mut groups = Vec::new();
    for (number, param) in port.security_groups.iter().enumerate() {
        let field = format!("{field}.securityGroups[{number}]");
        groups.extend(lookup::security_groups(access, param, &field).await?);
    }
    let meta = &object.metadata;
    let cluster = meta.labels.get(label::CLUSTER_NAME).unwrap_or(&meta.name);
    let words = mark::words(&meta.namespace, cluster);
    let mut tags = object.spec.tags.clone();
    tags.extend(port.tags.iter().filter(|tag| !object.spec.tags.contains(tag)).cloned());
    Ok(ResolvedPortSpec {
        name: names::port(&meta.name, port.name_suffix.as_deref(), index),
        network_id,
        description: port.description.clone().unwrap_or(words),
        tags,
        trunk: port.trunk.or(object.spec.trunk),
        fixed_ips,
        security_groups: groups,
        admin_state_up: port.admin_state_up,
        mac_address: port.mac_address.clone(),
        allowed_address_pairs: port.allowed_address_pairs.clone(),
        host_id: port.host_id.clone(),
        vnic_type: port.vnic_type.clone(),
        profile: port.profile.clone(),
        disable_port_security: port.disable_port_security,
        propagate_uplink_status: port.propagate_uplink_status,
        value_specs: port.value_specs.clone(),
    })
}
