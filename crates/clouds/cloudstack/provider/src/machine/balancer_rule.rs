//! The load balancer of the API servers that a machine belongs to.

use capstan_capi_types::core::label;
use capstan_cloudstack_types::v1beta3::CloudStackMachine;

use super::Seen;

/// The rule of the load balancer that a machine of the control plane belongs to.
pub(super) fn of<'a>(object: &CloudStackMachine, seen: &'a Seen) -> Option<&'a str> {
    let own = object.metadata.labels.contains_key(label::CONTROL_PLANE);
    let machine = seen.machine.as_ref();
    let control_plane =
        own || machine.is_some_and(|it| it.metadata.labels.contains_key(label::CONTROL_PLANE));
    let network = seen.network.as_ref().filter(|_| control_plane)?;
    Some(network.status.load_balancer_rule_id.as_str()).filter(|rule| !rule.is_empty())
}
