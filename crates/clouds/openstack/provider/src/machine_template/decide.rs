//! The status of an OpenStackMachineTemplate.

use std::collections::BTreeMap;
use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_types::core::condition as capi;
use capstan_controller::Look;
use capstan_object::ConditionStatus::{self, False, True};
use capstan_openstack_client::compute::Flavor;
use capstan_openstack_types::Quantity;
use capstan_openstack_types::v1beta2::OpenStackMachineSpec;
use capstan_provider_kit::decisions;

use super::OpenStackMachineTemplates;
use crate::code;
use crate::error::CloudError;

type Decision = capstan_controller::Decision<OpenStackMachineTemplates>;

/// A flavor of a name may be replaced by a larger one.
const AGAIN: Duration = Duration::from_secs(3600);

pub(super) fn decide(look: &Look<OpenStackMachineTemplates>) -> Decision {
    let mut decision = Decision::rest(look);
    if look.paused.is_some() {
        return decision;
    }
    let offered = match &look.seen.offered {
        None => return decision,
        Some(Err(error)) => {
            failed(look, &mut decision, error);
            return decision;
        }
        Some(Ok(offered)) => offered,
    };
    let status = &mut decision.object.status;
    match &offered.flavor {
        Ok(flavor) => status.capacity = capacity(flavor, &look.object.spec.template.spec),
        Err(error) if is_wrong(error) => status.capacity.clear(),
        Err(_) => {}
    }
    match &offered.operating_system {
        Ok(system) => status.node_info.operating_system.clone_from(system),
        Err(error) if is_wrong(error) => status.node_info.operating_system.clear(),
        Err(_) => {}
    }
    match offered.flavor.as_ref().err().or(offered.operating_system.as_ref().err()) {
        Some(error) => failed(look, &mut decision, error),
        None => {
            decision.object.status.conditions.retain(|one| one.kind != decisions::CLOUD_REACHABLE);
            set(look, &mut decision, True, "Ready", String::new());
            decision.again_in(AGAIN);
        }
    }
    decision
}

/// The manifest is wrong: no machine can be made from it, and what was known before is not so any more.
fn is_wrong(error: &CloudError) -> bool {
    [code::NOT_FOUND, code::AMBIGUOUS, code::REFUSED, code::UNSUPPORTED].contains(&error.code)
}

fn failed(look: &Look<OpenStackMachineTemplates>, decision: &mut Decision, error: &CloudError) {
    error.wait(decision);
    if !is_wrong(error) && !look.object.status.capacity.is_empty() {
        let conditions = &mut decision.object.status.conditions;
        return decisions::cloud_is_silent(look, conditions, error.reason, &error.text());
    }
    set(look, decision, False, error.reason, error.text());
}

fn set(
    look: &Look<OpenStackMachineTemplates>,
    decision: &mut Decision,
    status: ConditionStatus,
    reason: &str,
    message: String,
) {
    let state = ConditionState::new(status, reason, message);
    set_state(look, &mut decision.object.status.conditions, capi::READY, state, None);
}

/// Processors, memory and disks of a machine, in CAPO's keys. What the flavor leaves open is absent.
fn capacity(flavor: &Flavor, spec: &OpenStackMachineSpec) -> BTreeMap<String, Quantity> {
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    let root = spec.root_volume.as_ref().and_then(|root| u64::try_from(root.size_gib).ok());
    let disk = root.filter(|size| *size > 0).unwrap_or(flavor.disk);
    let bytes = |amount: u64, unit: u64| (amount > 0).then(|| binary(amount.saturating_mul(unit)));
    [
        ("cpu", (flavor.vcpus > 0).then(|| flavor.vcpus.to_string())),
        ("memory", bytes(flavor.ram, MIB)),
        ("ephemeral-storage", bytes(flavor.ephemeral, GIB)),
        ("storage", bytes(disk, GIB)),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key.to_owned(), Quantity(value?))))
    .collect()
}

/// Bytes as Kubernetes writes them: with the largest unit that leaves a whole number.
fn binary(bytes: u64) -> String {
    let units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let (mut amount, mut at) = (bytes, 0);
    while at + 1 < units.len() && amount > 0 && amount % 1024 == 0 {
        amount /= 1024;
        at += 1;
    }
    format!("{amount}{}", units[at])
}
