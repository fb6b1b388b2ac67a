//! The status of a CloudStackMachineTemplate.

use std::collections::BTreeMap;

use capstan_cloudstack_client::model::ServiceOffering;
use capstan_controller::Look;

use super::MachineTemplates;

type Decision = capstan_controller::Decision<MachineTemplates>;

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<MachineTemplates>) -> Decision {
    let mut decision = Decision::rest(look);
    let offered = match &look.seen.offered {
        None => return decision,
        Some(Err(cause)) => {
            cause.wait(&mut decision);
            return decision;
        }
        Some(Ok(offered)) => offered,
    };
    let Some(offering) = &offered.offering else { return decision };
    let details = &look.object.spec.template.spec.details;
    let status = &mut decision.object.status;
    status.capacity = capacity(offering, details);
    if let Some(template) = &offered.template {
        let architecture = match template.arch.as_deref() {
            Some("aarch64") => "arm64",
            _ => "amd64",
        };
        status.node_info.architecture = architecture.to_owned();
        status.node_info.operating_system = "linux".to_owned();
    }
    decision
}

/// Processors and memory, from the offering or, where that leaves it open, from the machine's details.
fn capacity(offering: &ServiceOffering, details: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let detail = |key: &str| details.get(key).and_then(|text| text.parse::<u64>().ok());
    let processors = offering.cpunumber.map(u64::from).or_else(|| detail("cpuNumber"));
    let memory = offering.memory.or_else(|| detail("memory"));
    let processors = processors.map(|number| ("cpu".to_owned(), number.to_string()));
    let memory = memory.map(|megabytes| ("memory".to_owned(), format!("{megabytes}Mi")));
    processors.into_iter().chain(memory).collect()
}
