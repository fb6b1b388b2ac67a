//! Conditions of all machines merged into one condition of the control plane.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_core::conditions::{ConditionState, shortened};
use capstan_capi_types::controlplane::kubeadm_control_plane::reason;
use capstan_object::ConditionStatus;

use super::{Health, fails};
use crate::control_plane::observed::ControlPlaneState;

impl Health {
    /// Merges the conditions of all machines. Unknown conditions of a machine without providerID are not an issue.
    pub(super) fn summary(
        &self,
        plane: &ControlPlaneState,
        kinds: &[&str],
        unmatched: &[String],
        note: &str,
    ) -> ConditionState {
        let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let (mut issue, mut doubt, mut fine) = (!unmatched.is_empty(), false, false);
        for member in &plane.machines {
            let machine = &member.machine;
            let found = self.machines.get(&machine.metadata.name).map(Vec::as_slice).unwrap_or_default();
            let relevant: Vec<_> = found.iter().filter(|(kind, _)| kinds.contains(kind)).collect();
            let mut lines = Vec::new();
            for (kind, state) in &relevant {
                match state.status {
                    ConditionStatus::True => fine = true,
                    ConditionStatus::Unknown if machine.spec.provider_id.is_empty() => fine = true,
                    status => {
                        if status == ConditionStatus::False {
                            issue = true
                        } else {
                            doubt = true
                        }
                        let message = match state.message.as_str() {
                            "" => format!("condition is {status:?}"),
                            message => message.to_owned(),
                        };
                        lines.push(format!("  * {kind}: {message}"));
                    }
                }
            }
            if lines.is_empty() {
                continue;
            }
            let messages: BTreeSet<&str> = relevant.iter().map(|(_, state)| state.message.as_str()).collect();
            let text = match messages.first() {
                Some(message) if relevant.len() > 1 && messages.len() == 1 => {
                    format!("  * Control plane components: {message}")
                }
                _ => lines.join("\n"),
            };
            groups.entry(text).or_default().push(&machine.metadata.name);
        }
        let mut groups: Vec<(String, Vec<&str>)> = groups.into_iter().collect();
        groups.sort_by_key(|(_, names)| (std::cmp::Reverse(names.len()), names.join(",")));
        let lines = groups.iter().map(|(text, names)| {
            let plural = if names.len() == 1 { "" } else { "s" };
            format!("* Machine{plural} {}:\n{text}", shortened(names, 3))
        });
        let lines: Vec<String> = lines.chain(unmatched.iter().map(|text| format!("* {text}"))).collect();
        let message = lines.join("\n");
        if issue {
            fails(reason::NOT_HEALTHY, message)
        } else if doubt {
            ConditionState::new(ConditionStatus::Unknown, reason::HEALTH_UNKNOWN, message)
        } else if fine {
            ConditionState::new(ConditionStatus::True, reason::HEALTHY, "")
        } else {
            let message = format!("No Machines reporting {note} status");
            ConditionState::new(ConditionStatus::Unknown, reason::HEALTH_UNKNOWN, message)
        }
    }
}
