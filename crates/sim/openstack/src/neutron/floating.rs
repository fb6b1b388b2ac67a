//! Floating IPs.

use serde_json::{Value, json};

use super::{Fail, kind_of, ports, routers, store};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::Call;
use crate::work::Task;

pub(super) fn create(cloud: &mut Cloud, call: &Call, mut row: Object) -> Result<String, Fail> {
    let network = row.text("floating_network_id").to_owned();
    let external = kind_of("network").visible(cloud, call, &network)?;
    if !external.flag("router:external") {
        let text = format!("Bad floatingip request: Network {network} is not a valid external network.");
        return Err(Fail::new(400, "BadRequest", text));
    }
    let mut ask = json!({});
    if let Some(address) = row.get("floating_ip_address").filter(|it| !it.is_null()) {
        ask["ip_address"] = address.clone();
    }
    if let Some(subnet) = row.get("subnet_id").filter(|it| !it.is_null()) {
        ask["subnet_id"] = subnet.clone();
    }
    let ips = if ask.as_object().is_some_and(|it| it.is_empty()) { Value::Null } else { json!([ask]) };
    let target = row.insert("port_id".to_owned(), Value::Null).unwrap_or_default();
    let fixed = row.insert("fixed_ip_address".to_owned(), Value::Null).unwrap_or_default();
    let mut association = None;
    if let Some(port) = target.as_str() {
        association = Some(associable(cloud, call, &row, port, fixed.as_str(), "")?);
    }
    let port = ports::service_port(
        cloud,
        json!({
            "network_id": network, "project_id": "", "tenant_id": "", "device_owner": "network:floatingip",
            "security_groups": [], "fixed_ips": ips,
        }),
    )?;
    let address = cloud
        .get("ports", &port)
        .and_then(|it| it.list("fixed_ips").first())
        .map(|ip| ip["ip_address"].clone());
    row.insert("floating_ip_address".to_owned(), address.unwrap_or_default());
    row.insert("router_id".to_owned(), Value::Null);
    row.insert("status".to_owned(), json!("DOWN"));
    row.insert("_port".to_owned(), json!(port));
    let id = store(cloud, "floatingip", row);
    cloud.set("ports", &port, "device_id", id.clone());
    if let Some((port, fixed, router)) = association {
        attach(cloud, &id, port, fixed, router);
    }
    Ok(id)
}

/// Port, fixed address and router of an association, if it is possible.
fn associable(
    cloud: &Cloud,
    call: &Call,
    floating: &Object,
    port: &str,
    fixed: Option<&str>,
    own: &str,
) -> Result<(String, String, String), Fail> {
    let held = kind_of("port").visible(cloud, call, port)?;
    let ips = held.list("fixed_ips");
    let ip = match fixed {
        Some(fixed) => ips.iter().find(|ip| ip["ip_address"] == fixed),
        None => ips.iter().find(|ip| ip["ip_address"].as_str().is_some_and(|it| !it.contains(':'))),
    };
    let Some(ip) = ip else {
        let text = match fixed {
            Some(fixed) => format!("Bad floatingip request: Port {port} does not have fixed ip {fixed}."),
            None => format!(
                "Bad floatingip request: Cannot add floating IP to port {port} that has no fixed IPv4 addresses."
            ),
        };
        return Err(Fail::new(400, "BadRequest", text));
    };
    let address = ip["ip_address"].as_str().unwrap_or_default();
    let network = floating.text("floating_network_id");
    let taken = cloud.all("floatingips").any(|it| {
        it.text("port_id") == port && it.text("fixed_ip_address") == address && it.text("id") != own
    });
    if taken {
        let text = format!(
            "Cannot associate floating IP {} ({own}) with port {port} using fixed IP {address}, as that fixed IP already has a floating IP on external network {network}.",
            floating.text("floating_ip_address")
        );
        return Err(Fail::new(409, "FloatingIPPortAlreadyAssociated", text));
    }
    let subnet = ip["subnet_id"].as_str().unwrap_or_default();
    let Some(router) = routers::reaching(cloud, subnet, network) else {
        let text = format!(
            "External network {network} is not reachable from subnet {subnet}.  Therefore, cannot associate Port {port} with a Floating IP."
        );
        return Err(Fail::new(404, "ExternalGatewayForFloatingIPNotFound", text));
    };
    Ok((port.to_owned(), address.to_owned(), router))
}

fn attach(cloud: &mut Cloud, id: &str, port: String, fixed: String, router: String) {
    cloud.set("floatingips", id, "port_id", port);
    cloud.set("floatingips", id, "fixed_ip_address", fixed);
    cloud.set("floatingips", id, "router_id", router);
    let after = std::time::Duration::from_millis(300);
    cloud.later(after, Task::FloatingActive { id: id.to_owned() });
    crate::guests::rebalance(cloud);
}

/// Takes a floating IP off its port.
pub(super) fn detach(cloud: &mut Cloud, id: &str, at_once: bool) {
    for field in ["port_id", "fixed_ip_address", "router_id"] {
        cloud.set("floatingips", id, field, Value::Null);
    }
    match at_once {
        true => cloud.set("floatingips", id, "status", "DOWN"),
        // As its agent reports it, a moment later.
        false => {
            cloud.later(std::time::Duration::from_millis(300), Task::FloatingActive { id: id.to_owned() })
        }
    }
    super::touch(cloud, "floatingips", id);
    crate::guests::rebalance(cloud);
}

pub(super) fn update(cloud: &mut Cloud, call: &Call, held: &Object, changes: &Object) -> Result<(), Fail> {
    let id = held.text("id").to_owned();
    match changes.get("port_id") {
        Some(Value::Null) => detach(cloud, &id, false),
        Some(Value::String(port)) => {
            let fixed = changes.get("fixed_ip_address").and_then(Value::as_str);
            let (port, fixed, router) = associable(cloud, call, held, port, fixed, &id)?;
            attach(cloud, &id, port, fixed, router);
        }
        // Neutron takes an update without any attribute for a disassociation. CAPO sends one.
        None if changes.is_empty() => detach(cloud, &id, false),
        _ => {}
    }
    Ok(())
}

/// The port that holds the address goes with the floating IP.
pub(super) fn release(cloud: &mut Cloud, held: &Object) {
    cloud.remove("ports", held.text("_port"));
}

pub(super) fn port_details(cloud: &Cloud, row: &Object) -> Value {
    let Some(port) = cloud.get("ports", row.text("port_id")) else { return Value::Null };
    let mut details = json!({});
    for name in ["name", "network_id", "mac_address", "admin_state_up", "status", "device_id", "device_owner"]
    {
        details[name] = port.get(name).cloned().unwrap_or_default();
    }
    details
}

/// Fixed addresses of a port with the floating addresses on them.
pub(crate) fn addresses_of(cloud: &Cloud, port: &Object) -> Vec<(String, Vec<String>)> {
    port.list("fixed_ips")
        .iter()
        .filter_map(|ip| ip["ip_address"].as_str())
        .map(|fixed| {
            let floating = cloud
                .all("floatingips")
                .filter(|it| it.text("port_id") == port.text("id") && it.text("fixed_ip_address") == fixed)
                .map(|it| it.text("floating_ip_address").to_owned())
                .collect();
            (fixed.to_owned(), floating)
        })
        .collect()
}
