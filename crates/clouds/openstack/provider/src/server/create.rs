//! Creation of a server: ports, trunks and volumes first. What the cloud refuses is tried again after pauses.

use std::collections::BTreeMap;

use capstan_controller::{Code, Look, Wait};
use capstan_object::ConditionStatus::False;
use capstan_openstack_client::block_storage::VolumeStatus;
use capstan_openstack_types::v1alpha1::ResolvedServerSpec;
use capstan_provider_kit::retry::{FailedTry, ORDERS};

use super::call::ServerCall;
use super::decide::{Decision, set, unusable};
use super::observed::ServerState;
use super::order::{self, PortOrder, ServerOrder};
use super::{OpenStackServers, floating_ip};
use crate::condition::reason;
use crate::error::CloudError;
use crate::project::POLL;
use crate::{code, mark};

/// On OpenStackServers without a server: what the cloud refused to create last.
pub(super) const REFUSED: &str = "capstan.dev/openstack-create-refused";

/// Errors that no second try within seconds passes.
const LASTING: [Code; 7] = [
    code::QUOTA,
    code::CAPACITY,
    code::REFUSED,
    code::PERMISSION,
    code::NOT_FOUND,
    code::AMBIGUOUS,
    code::UNSUPPORTED,
];

fn refused(look: &Look<OpenStackServers>) -> Option<FailedTry> {
    FailedTry::of(&look.object.metadata, REFUSED)
}

/// Waits while what the cloud refused is not to be tried yet.
fn paused(look: &Look<OpenStackServers>, decision: &mut Decision) -> bool {
    let before = refused(look);
    let failure = look.failures.iter().find(|failure| LASTING.contains(&failure.error.code));
    let last = match (failure, before) {
        (Some(failure), before) => FailedTry::after(before.as_ref(), look.now, &failure.error.to_string()),
        (None, Some(before)) => before,
        (None, None) => return false,
    };
    let next = last.next(ORDERS);
    if look.now >= next {
        return false;
    }
    last.put(&mut decision.object.metadata, REFUSED);
    let code = LASTING.iter().find(|code| last.message.starts_with(&format!("{}: ", code.id())));
    let mut wait = Wait::on(reason::CREATE_FAILED, last.message.as_str());
    wait.code = code.copied();
    wait.next = Some(next);
    decision.wait(wait);
    decision.again_at(look.now, next);
    set(look, decision, False, reason::CREATE_FAILED, format!("{}; next try at {next:.0}", last.message));
    true
}

/// Creates what is missing, and the server at the end.
pub(super) fn create(
    look: &Look<OpenStackServers>,
    decision: &mut Decision,
    state: &ServerState,
    resolved: &ResolvedServerSpec,
) {
    decision.object.status.resolved = Some(resolved.clone());
    let (name, spec) = (&look.object.metadata.name, &look.object.spec);
    let mark = mark::of(&look.object.metadata);
    if paused(look, decision) {
        return;
    }
    let failure = look.failures.first().map(|failure| failure.error.to_string());
    let failure = failure.or_else(|| refused(look).map(|refused| refused.message));
    let why = if failure.is_some() { reason::CREATE_FAILED } else { reason::NOT_READY };
    set(look, decision, False, why, failure.unwrap_or_else(|| "the server is being created".to_owned()));
    if let Some(floating_ip) = &state.floating_ip
        && let Some(waiting) = floating_ip::claim(look, decision, floating_ip)
    {
        return set(look, decision, False, reason::NOT_READY, waiting);
    }
    for (port, wanted) in state.ports.iter().zip(&resolved.ports) {
        let Some(port) = port else {
            let order = PortOrder { spec: wanted.clone(), mark: mark.clone() };
            decision.call(ServerCall::CreatePort { name: wanted.name.clone(), order: Some(Box::new(order)) });
            continue;
        };
        if wanted.tags.iter().any(|tag| !port.tags.contains(tag)) {
            let (port, tags) = (port.id.to_string(), wanted.tags.clone());
            decision.call(ServerCall::SetPortTags { port, tags });
        }
        if wanted.trunk != Some(true) {
            continue;
        }
        match state.trunks.iter().find(|trunk| trunk.port_id == port.id) {
            None => {
                decision.call(ServerCall::CreateTrunk {
                    name: wanted.name.clone(),
                    port: port.id.to_string(),
                    description: Some(mark::with("Created by cluster-api-provider-openstack", &mark)),
                });
            }
            // Neutron takes tags of a trunk only once it is there.
            Some(trunk) if wanted.tags.iter().any(|tag| !trunk.tags.contains(tag)) => {
                let (trunk, tags) = (trunk.id.to_string(), wanted.tags.clone());
                decision.call(ServerCall::SetTrunkTags { trunk, tags });
            }
            Some(_) => {}
        }
    }
    let mut volumes = BTreeMap::new();
    let mut waiting = false;
    for order in order::volumes(name, spec, &resolved.image_id, &mark) {
        match state.volumes.iter().find(|volume| volume.name == order.name) {
            None => {
                let name = order.name.clone();
                decision.call(ServerCall::CreateVolume { name, order: Some(Box::new(order)) });
            }
            Some(volume) if matches!(volume.status, VolumeStatus::Available | VolumeStatus::InUse) => {
                volumes.insert(volume.name.clone(), volume.id.to_string());
            }
            Some(volume) if volume.status == VolumeStatus::Error => {
                let message = format!(
                    "volume {} ({}) is in state error: delete it in Cinder and it is created again",
                    volume.name, volume.id
                );
                unusable(look, decision, &CloudError::new(code::FAILED, reason::CREATE_FAILED, message));
                return;
            }
            Some(volume) => {
                waiting = true;
                decision.wait(Wait::on("WaitingForVolume", format!("volume {}", volume.name)));
            }
        }
    }
    if waiting {
        decision.again_in(POLL);
    }
    if !decision.effects.is_empty() || waiting {
        return;
    }
    let boot_data = match &look.seen.boot_data {
        None => None,
        Some(Ok(boot_data)) => Some(boot_data.reference.clone()),
        Some(Err(error)) => {
            let error = CloudError::new(code::BOOT_DATA, reason::WAITING_FOR_BOOT_DATA, error.to_string());
            return unusable(look, decision, &error);
        }
    };
    let ports = state.ports.iter().flatten().map(|port| port.id.to_string()).collect();
    let order = ServerOrder::of(name, spec, resolved, ports, &volumes, boot_data, &mark);
    decision.call(ServerCall::CreateServer { name: name.clone(), order: Some(Box::new(order)) });
}
