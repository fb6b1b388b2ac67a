//! Allowed address pairs of live ports: the only part of a machine's spec that may change. They follow the template that the
//! machine was made from, or else its own spec.
//!
//! Others add pairs to our ports too, such as the cloud controller manager for the Pods of a node. So what was applied last
//! is recorded, and only that is ever taken away.

use std::net::IpAddr;
use std::sync::Arc;

use capstan_capi_types::core::annotation;
use capstan_controller::{Change, ObserveError, View};
use capstan_object::{Key, Object as _, ObjectMeta};
use capstan_openstack_client::network::{self as neutron, Port};
use capstan_openstack_types::names::ADDRESS_PAIRS_ANNOTATION;
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta1::AddressPair;
use capstan_openstack_types::v1beta2::{OpenStackMachine, OpenStackMachineTemplate, PortOpts};

use crate::mark::{self, Owner};

/// The pairs of each port, in the order of the spec.
pub(super) type Pairs = Vec<Vec<AddressPair>>;

/// What the ports are to have, and what they were given last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairsState {
    pub(super) wanted: Pairs,
    pub(super) applied: Pairs,
}

fn pairs_of(ports: &[PortOpts]) -> Pairs {
    let pair = |it: &capstan_openstack_types::v1beta2::AddressPair| AddressPair {
        ip_address: it.ip_address.clone(),
        mac_address: it.mac_address.clone(),
    };
    ports.iter().map(|port| port.allowed_address_pairs.iter().map(pair).collect()).collect()
}

/// What the annotation records. CAPO writes `null` for a port without pairs.
fn recorded(meta: &ObjectMeta) -> Option<Pairs> {
    let text = meta.annotations.get(ADDRESS_PAIRS_ANNOTATION)?;
    let ports: Vec<Option<Vec<AddressPair>>> = serde_json::from_str(text).ok()?;
    Some(ports.into_iter().map(Option::unwrap_or_default).collect())
}

/// The name of the template that a machine was made from.
fn template_of(meta: &ObjectMeta) -> Option<&str> {
    let kind = OpenStackMachineTemplate::KIND;
    let made_from = meta.annotations.get(annotation::CLONED_FROM_GROUP_KIND)?;
    (*made_from == format!("{}.{}", kind.kind, kind.group))
        .then_some(meta.annotations.get(annotation::CLONED_FROM_NAME)?)
        .map(String::as_str)
}

/// `None` for servers of no machine, such as bastions, and of machines without ports in their spec.
pub(super) fn observe(object: &OpenStackServer, view: &View) -> Result<Option<PairsState>, ObserveError> {
    let meta = &object.metadata;
    let key = |name: &str| Key::new(meta.namespace.as_str(), name);
    let machine = view.get::<OpenStackMachine>(&key(&meta.name))?;
    let ours = |it: &OpenStackMachine| meta.owner_references.iter().any(|owner| owner.uid == it.metadata.uid);
    let Some(machine) = machine.filter(|it| ours(it)) else { return Ok(None) };
    let template = match template_of(&machine.metadata) {
        Some(name) => view.get::<OpenStackMachineTemplate>(&key(name))?,
        None => None,
    };
    let wanted = match &template {
        Some(template) => pairs_of(&template.spec.template.spec.ports),
        None => pairs_of(&machine.spec.ports),
    };
    if wanted.is_empty() {
        return Ok(None);
    }
    // CAPO recorded on the machine what it applied.
    let applied = recorded(meta).or_else(|| recorded(&machine.metadata));
    let created = || object.spec.ports.iter().map(|port| port.allowed_address_pairs.clone()).collect();
    Ok(Some(PairsState { wanted, applied: applied.unwrap_or_else(created) }))
}

/// The machines whose pairs a changed template decides.
pub(super) fn machines_of(
    change: &Change<OpenStackMachineTemplate>,
    machines: impl FnOnce(&str) -> Vec<Arc<OpenStackMachine>>,
) -> Vec<Key> {
    let pairs = |it: &Arc<OpenStackMachineTemplate>| pairs_of(&it.spec.template.spec.ports);
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return Vec::new() };
    if pairs(old) == pairs(new) {
        return Vec::new();
    }
    let name = Some(new.metadata.name.as_str());
    let mine = machines(&new.metadata.namespace);
    mine.iter().filter(|machine| template_of(&machine.metadata) == name).map(|it| it.key()).collect()
}

/// Whether the pairs in a machine's own spec changed.
pub(super) fn has_changed(change: &Change<OpenStackMachine>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => pairs_of(&old.spec.ports) != pairs_of(&new.spec.ports),
        _ => false,
    }
}

/// An address or range, and the hardware address, so that two spellings of a pair are equal.
type Canonical = (Option<(IpAddr, u8)>, String, String);

/// Neutron gives a pair without a hardware address that of the port.
fn canonical(address: &str, mac: &str, port: &Port) -> Canonical {
    let (ip, length) = address.split_once('/').map_or((address, None), |(ip, length)| (ip, Some(length)));
    let parsed = ip.parse::<IpAddr>().ok().and_then(|ip| {
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        Some((ip, length.map_or(Some(longest), |text| text.parse().ok())?))
    });
    let mac = if mac.is_empty() { &port.mac_address } else { mac };
    let text = if parsed.is_some() { String::new() } else { address.to_owned() };
    (parsed, text, mac.to_ascii_lowercase())
}

/// Ports that are not as they should be, with the pairs they are to have. Only ports that were created for the server, and
/// not those without port security, which need no pairs and cannot have any.
pub(super) fn outdated(
    state: &PairsState,
    ports: &[Option<Port>],
    mark: &str,
) -> Vec<(String, Vec<AddressPair>)> {
    let mut all = Vec::new();
    for (index, wanted) in state.wanted.iter().enumerate() {
        let Some(port) = ports.get(index).and_then(Option::as_ref) else { continue };
        if mark::owner(&port.description, mark) == Owner::Foreign || port.port_security_enabled == Some(false)
        {
            continue;
        }
        let applied = state.applied.get(index).map(Vec::as_slice).unwrap_or_default();
        let seen = |it: &neutron::AddressPair| canonical(&it.ip_address, &it.mac_address, port);
        let given =
            |it: &AddressPair| canonical(&it.ip_address, it.mac_address.as_deref().unwrap_or_default(), port);
        let held: Vec<Canonical> = port.allowed_address_pairs.iter().map(seen).collect();
        let wants = |pair: &Canonical| wanted.iter().any(|it| given(it) == *pair);
        let was_ours = |pair: &Canonical| applied.iter().any(|it| given(it) == *pair);
        let lacking = wanted.iter().filter(|it| !held.contains(&given(it)));
        let stale = held.iter().any(|pair| was_ours(pair) && !wants(pair));
        if !stale && lacking.clone().next().is_none() {
            continue;
        }
        let kept = port.allowed_address_pairs.iter().zip(&held);
        let kept = kept.filter(|(_, pair)| wants(pair) || !was_ours(pair)).map(|(it, _)| AddressPair {
            ip_address: it.ip_address.clone(),
            mac_address: Some(it.mac_address.clone()).filter(|mac| !mac.is_empty()),
        });
        all.push((port.id.to_string(), kept.chain(lacking.cloned()).collect()));
    }
    all
}

/// Records what the ports have been given, if that differs from what they were created with.
pub(super) fn record(object: &mut OpenStackServer, state: &PairsState) {
    let known = object.metadata.annotations.contains_key(ADDRESS_PAIRS_ANNOTATION);
    if state.wanted == state.applied && !known {
        return;
    }
    let ports: Vec<Option<&Vec<AddressPair>>> =
        state.wanted.iter().map(|pairs| Some(pairs).filter(|pairs| !pairs.is_empty())).collect();
    if let Ok(text) = serde_json::to_string(&ports) {
        object.metadata.annotations.insert(ADDRESS_PAIRS_ANNOTATION.to_owned(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(address: &str) -> AddressPair {
        AddressPair { ip_address: address.to_owned(), mac_address: None }
    }

    fn pairs(addresses: &[&str]) -> Pairs {
        vec![addresses.iter().map(|address| pair(address)).collect()]
    }

    fn port(addresses: &[&str]) -> Option<Port> {
        let mac_address = "fa:16:3e:00:00:01".to_owned();
        let held = addresses.iter().map(|address| neutron::AddressPair {
            ip_address: (*address).to_owned(),
            mac_address: mac_address.clone(),
        });
        let allowed_address_pairs = held.collect();
        Some(Port { id: "p".into(), mac_address, allowed_address_pairs, ..Port::default() })
    }

    #[test]
    fn only_pairs_that_were_applied_are_taken_away_and_what_is_wanted_is_added_once() {
        // Wanted, applied last, on the port; then what the port is to have, if that is something else.
        type Row<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], Option<&'a [&'a str]>);
        let rows: [Row<'_>; 8] = [
            (&["10.0.0.1"], &["10.0.0.1"], &["10.0.0.1"], None),
            (&["10.0.0.1"], &[], &[], Some(&["10.0.0.1"])),
            (&["10.0.0.1"], &["10.0.0.1"], &[], Some(&["10.0.0.1"])),
            (&["10.0.0.2"], &["10.0.0.1"], &["10.0.0.1"], Some(&["10.0.0.2"])),
            (&[], &["10.0.0.1"], &["10.0.0.1", "10.244.1.0/24"], Some(&["10.244.1.0/24"])),
            (&["10.0.0.1"], &["10.0.0.1"], &["10.0.0.1", "10.244.1.0/24"], None),
            (&["10.0.0.1/32", "FD00::1"], &[], &["10.0.0.1", "fd00::1/128"], None),
            (&[], &[], &["10.244.1.0/24"], None),
        ];
        for (wanted, applied, held, expected) in rows {
            let state = PairsState { wanted: pairs(wanted), applied: pairs(applied) };
            let found = outdated(&state, &[port(held)], "m");
            let found = found.first().map(|(_, pairs)| -> Vec<&str> {
                pairs.iter().map(|pair| pair.ip_address.as_str()).collect()
            });
            assert_eq!(found.as_deref(), expected, "{wanted:?} {applied:?} {held:?}");
        }
    }

    #[test]
    fn ports_of_others_and_ports_that_are_gone_are_left_alone() {
        let state = PairsState { wanted: pairs(&["10.0.0.1"]), applied: Vec::new() };
        let mut foreign = port(&[]);
        foreign.as_mut().expect("a port").description = mark::with("a port", "another");
        assert_eq!(outdated(&state, &[foreign], "m"), []);
        assert_eq!(outdated(&state, &[None], "m"), []);
    }

    #[test]
    fn what_was_applied_is_recorded_as_capo_records_it() {
        let mut object = OpenStackServer::default();
        let same = PairsState { wanted: pairs(&["10.0.0.1"]), applied: pairs(&["10.0.0.1"]) };
        record(&mut object, &same);
        assert!(object.metadata.annotations.is_empty(), "as it was created");
        let wanted = vec![vec![pair("10.0.0.1")], Vec::new()];
        record(&mut object, &PairsState { wanted: wanted.clone(), applied: Vec::new() });
        let text = &object.metadata.annotations[ADDRESS_PAIRS_ANNOTATION];
        assert_eq!(text, r#"[[{"ipAddress":"10.0.0.1"}],null]"#);
        assert_eq!(recorded(&object.metadata), Some(wanted));
    }
}
