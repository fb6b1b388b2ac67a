//! `SimMachineTemplate`: reports what its machines will offer, so that an autoscaler can scale from zero.
//!
//! Owns: the status of SimMachineTemplates. Reads nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};

use crate::machine::{CPUS, MEMORY_MIB};
use crate::types::{SimMachineSpec, SimMachineTemplate, SimMachineTemplateStatus, SimNodeInfo};

#[derive(Debug, Clone, Copy, Default)]
pub struct SimMachineTemplates;

impl Controller for SimMachineTemplates {
    const NAME: &'static str = "simmachinetemplate";
    type Kind = SimMachineTemplate;
    type Seen = ();
    type Call = NoCall;

    fn watches(&self, _: &mut Watches<SimMachineTemplate>) {}

    fn conditions(&self) -> &[&'static str] {
        &[]
    }

    async fn observe(&self, _: &Arc<SimMachineTemplate>, _: &View) -> Result<(), ObserveError> {
        Ok(())
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = Decision::rest(look);
        decision.object.status = offered(&look.object.spec.template.spec);
        decision
    }
}

/// With the defaults that the machines get.
pub(crate) fn offered(spec: &SimMachineSpec) -> SimMachineTemplateStatus {
    let cpus = spec.cpus.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(CPUS);
    let memory = spec.memory_mib.and_then(|memory| u64::try_from(memory).ok()).unwrap_or(MEMORY_MIB);
    let capacity = [("cpu", cpus.to_string()), ("memory", format!("{memory}Mi"))];
    SimMachineTemplateStatus {
        capacity: capacity
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        node_info: SimNodeInfo { architecture: "amd64".to_owned(), operating_system: "linux".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_reports_the_size_of_its_machines() {
        for (cpus, memory, expected) in
            [(None, None, ["2", "4096Mi"]), (Some(8), Some(16384), ["8", "16384Mi"])]
        {
            let spec = SimMachineSpec { cpus, memory_mib: memory, ..SimMachineSpec::default() };
            let capacity = offered(&spec).capacity;
            assert_eq!([capacity["cpu"].as_str(), capacity["memory"].as_str()], expected);
        }
    }
}
