//! Ports.

use serde_json::{Value, json};

use super::{Fail, ipam, kind_of, store, touch};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};

/// A port with the attributes that the API sets, made by a service or for a client.
pub(crate) fn create(cloud: &mut Cloud, mut row: Object) -> Result<String, Fail> {
    let network = cloud.get("networks", row.text("network_id")).cloned();
    let network = network.ok_or_else(|| kind_of("network").absent(row.text("network_id")))?;
    let network_id = network.text("id").to_owned();
    let mac = match row.get("mac_address").and_then(Value::as_str) {
        Some(mac) => mac.to_lowercase(),
        None => fresh_mac(cloud),
    };
    if cloud.all("ports").any(|it| it.text("network_id") == network_id && it.text("mac_address") == mac) {
        let text = format!(
            "Unable to complete operation for network {network_id}. The mac address {mac} is in use."
        );
        return Err(Fail::new(409, "MacAddressInUse", text));
    }
    row.insert("mac_address".to_owned(), json!(mac));
    let router = row.text("device_owner").starts_with("network:router");
    let secured = match row.get("port_security_enabled").and_then(super::attributes::as_bool) {
        Some(flag) => flag,
        None => network.flag("port_security_enabled") && !row.text("device_owner").starts_with("network:"),
    };
    row.insert("port_security_enabled".to_owned(), json!(secured));
    let asked_groups = row.get("security_groups").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    if !secured && asked_groups {
        return Err(needs_security());
    }
    if !secured && !row.list("allowed_address_pairs").is_empty() {
        let text = "Port Security must be enabled in order to have allowed address pairs on a port.";
        return Err(Fail::new(409, "AddressPairAndPortSecurityRequired", text));
    }
    let wanted = row.get("fixed_ips").and_then(Value::as_array).cloned();
    let ips = ipam::allocate(cloud, &network_id, &mac, wanted.as_ref(), &[], router)?;
    row.insert("fixed_ips".to_owned(), Value::Array(ips));
    let groups = match row.get("security_groups") {
        Some(Value::Array(groups)) => {
            known_groups(cloud, groups)?;
            groups.clone()
        }
        _ if secured && !router => {
            super::ensure_default(cloud, row.text("project_id"));
            default_group(cloud, row.text("project_id")).into_iter().map(Value::String).collect()
        }
        _ => Vec::new(),
    };
    row.insert("security_groups".to_owned(), Value::Array(groups));
    pairs(&mut row, &mac);
    let bound = row.text("binding:host_id").to_owned();
    row.extend(object(json!({
        "status": "DOWN", "qos_network_policy_id": null, "resource_request": null,
        "binding:vif_type": if bound.is_empty() { "unbound" } else { "ovs" }, "binding:vif_details": {},
    })));
    Ok(store(cloud, "port", row))
}

/// A port that a service makes for itself or a user.
pub(crate) fn service_port(cloud: &mut Cloud, given: Value) -> Result<String, Fail> {
    let mut row = object(json!({
        "name": "", "admin_state_up": true, "mac_address": null, "fixed_ips": null, "device_id": "", "device_owner": "",
        "security_groups": null, "allowed_address_pairs": [], "extra_dhcp_opts": [], "port_security_enabled": null,
        "description": "", "binding:vnic_type": "normal", "binding:host_id": "", "binding:profile": {},
        "qos_policy_id": null, "tenant_id": given["project_id"],
    }));
    row.extend(object(given));
    create(cloud, row)
}

fn needs_security() -> Fail {
    let text =
        "Port security must be enabled and port must have an IP address in order to use security groups.";
    Fail::new(400, "PortSecurityAndIPRequiredForSecurityGroups", text)
}

fn known_groups(cloud: &Cloud, groups: &[Value]) -> Result<(), Fail> {
    for group in groups {
        let id = group.as_str().unwrap_or_default();
        cloud.get("security_groups", id).ok_or_else(|| kind_of("security_group").absent(id))?;
    }
    Ok(())
}

pub(crate) fn default_group(cloud: &Cloud, project: &str) -> Option<String> {
    let found = cloud
        .all("security_groups")
        .find(|it| it.text("project_id") == project && it.text("name") == "default");
    found.map(|it| it.text("id").to_owned())
}

fn fresh_mac(cloud: &Cloud) -> String {
    let hex = cloud.hex();
    format!("fa:16:3e:{}:{}:{}", &hex[0..2], &hex[2..4], &hex[4..6])
}

/// Address pairs without a MAC address get the port's.
fn pairs(row: &mut Object, mac: &str) {
    if let Some(Value::Array(pairs)) = row.get_mut("allowed_address_pairs") {
        for pair in pairs.iter_mut().filter(|pair| pair.get("mac_address").is_none()) {
            pair["mac_address"] = json!(mac);
        }
    }
}

pub(super) fn update(cloud: &mut Cloud, held: &Object, mut changes: Object) -> Result<(), Fail> {
    let id = held.text("id").to_owned();
    let mac = held.text("mac_address").to_owned();
    let network = held.text("network_id").to_owned();
    let secured = changes
        .get("port_security_enabled")
        .and_then(super::attributes::as_bool)
        .unwrap_or_else(|| held.flag("port_security_enabled"));
    let groups = changes.get("security_groups").or(held.get("security_groups"));
    if !secured && groups.and_then(Value::as_array).is_some_and(|it| !it.is_empty()) {
        if changes.contains_key("security_groups") {
            return Err(needs_security());
        }
        let text = "Unable to disable port security: port has security groups associated. Remove them first.";
        return Err(Fail::new(409, "PortSecurityPortHasSecurityGroup", text));
    }
    if let Some(Value::Array(groups)) = changes.get("security_groups") {
        known_groups(cloud, groups)?;
    }
    let pairs_wanted = changes.get("allowed_address_pairs").or(held.get("allowed_address_pairs"));
    if !secured && pairs_wanted.and_then(Value::as_array).is_some_and(|it| !it.is_empty()) {
        let text = "Port Security must be enabled in order to have allowed address pairs on a port.";
        return Err(Fail::new(409, "AddressPairAndPortSecurityRequired", text));
    }
    if let Some(Value::Array(wanted)) = changes.get("fixed_ips") {
        let router = held.text("device_owner").starts_with("network:router");
        let ips = ipam::allocate(cloud, &network, &mac, Some(wanted), held.list("fixed_ips"), router)?;
        cloud.set("ports", &id, "fixed_ips", ips);
    }
    pairs(&mut changes, &mac);
    for name in ["security_groups", "allowed_address_pairs"] {
        match changes.get(name) {
            Some(Value::Null) => cloud.set("ports", &id, name, json!([])),
            Some(value) => cloud.set("ports", &id, name, value.clone()),
            None => {}
        }
    }
    Ok(())
}

pub(super) fn delete(cloud: &mut Cloud, id: &str) -> Result<(), Fail> {
    let port = cloud.get("ports", id).cloned().unwrap_or_default();
    let owner = port.text("device_owner");
    if owner.starts_with("network:router") || owner == "network:floatingip" {
        let text =
            format!("Port {id} cannot be deleted directly via the port API: has device owner {owner}.");
        return Err(Fail::new(409, "ServicePortInUse", text));
    }
    if let Some(trunk) = cloud.find("trunks", "port_id", id) {
        let text = format!("Port {id} is currently a parent port for trunk {}.", trunk.text("id"));
        return Err(Fail::new(409, "PortInUseAsTrunkParent", text));
    }
    let trunk = cloud.all("trunks").find(|it| it.list("sub_ports").iter().any(|sub| sub["port_id"] == id));
    if let Some(trunk) = trunk {
        let text = format!("Port {id} is currently a subport for trunk {}.", trunk.text("id"));
        return Err(Fail::new(409, "PortInUseAsSubPort", text));
    }
    free(cloud, id);
    Ok(())
}

/// Removes a port whatever holds it; a floating IP on it becomes free.
pub(crate) fn free(cloud: &mut Cloud, id: &str) {
    let held: Vec<String> = cloud
        .all("floatingips")
        .filter(|it| it.text("port_id") == id)
        .map(|it| it.text("id").to_owned())
        .collect();
    for floating in held {
        super::floating::detach(cloud, &floating, true);
    }
    cloud.remove("ports", id);
}

/// Binds a port to a device on a host.
pub(crate) fn bind(cloud: &mut Cloud, id: &str, device: &str, owner: &str, host: &str) {
    if let Some(port) = cloud.get_mut("ports", id) {
        port.extend(object(json!({
            "device_id": device, "device_owner": owner, "binding:host_id": host, "status": "ACTIVE",
            "binding:vif_type": "ovs", "binding:vif_details": {"port_filter": true, "bound_drivers": {"0": "ovn"}},
        })));
    }
    touch(cloud, "ports", id);
}

/// Takes a port off its device.
pub(crate) fn unbind(cloud: &mut Cloud, id: &str) {
    if let Some(port) = cloud.get_mut("ports", id) {
        port.extend(object(json!({
            "device_id": "", "device_owner": "", "binding:host_id": "", "status": "DOWN",
            "binding:vif_type": "unbound", "binding:vif_details": {},
        })));
    }
    touch(cloud, "ports", id);
}
