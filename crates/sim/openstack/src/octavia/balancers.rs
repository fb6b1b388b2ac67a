//! Load balancers: their ports in Neutron, and the work that makes changes take effect.

use serde_json::{Value, json};

use super::{attributes, children, denied, kind, ovn, quotas, show};
use crate::cloud::Cloud;
use crate::guests;
use crate::neutron::ports;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};
use crate::work::Task;

/// What belongs to a load balancer.
pub(super) const CHILDREN: &[&str] = &["listeners", "pools", "members", "healthmonitors", "l7policies"];

pub(super) fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    let mut row = attributes::read(call, "loadbalancer", true)?;
    let project = row.get("project_id").or(row.get("tenant_id")).and_then(Value::as_str).map(str::to_owned);
    let project = project.unwrap_or_else(|| call.caller.project().to_owned());
    if project != call.caller.project() && !call.caller.is_admin() {
        return Err(denied());
    }
    quotas::check(cloud, &project, "load_balancer", 1)?;
    let (subnet, network) = vip(cloud, call, &row)?;
    let provider = row.text("provider").to_owned();
    if !matches!(provider.as_str(), "amphora" | "octavia" | ovn::NAME) {
        return Err(Fail::bad(format!("Provider '{provider}' is not enabled.")));
    }
    if row.has("flavor_id") {
        return Err(Fail::bad("Validation failure: Invalid flavor_id."));
    }
    if row.has("availability_zone") {
        return Err(Fail::bad("Validation failure: Invalid availability zone."));
    }
    if provider == ovn::NAME {
        ovn::tree(&row)?;
    }
    let id = cloud.uuid();
    let listeners = row.insert("listeners".to_owned(), json!([])).unwrap_or_default();
    let pools = row.insert("pools".to_owned(), json!([])).unwrap_or_default();
    let port = vip_port(cloud, &row, &id, &project, &network, subnet.as_deref())?;
    let address =
        cloud.get("ports", &port).and_then(|it| it.list("fixed_ips").first().cloned()).unwrap_or_default();
    let more = json!({
        "id": id, "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE", "project_id": project,
        "tenant_id": project, "created_at": cloud.naive(), "updated_at": null, "vip_address": address["ip_address"],
        "vip_subnet_id": address["subnet_id"], "vip_port_id": port, "vip_network_id": network, "provider": "amphora",
        "vip_vnic_type": "normal", "_balancer": id,
    });
    row.extend(crate::table::object(more));
    row.insert("provider".to_owned(), json!(provider));
    cloud.put("loadbalancers", row);
    for pool in pools.as_array().into_iter().flatten() {
        children::plant(cloud, "pool", pool, &id, None)?;
    }
    for listener in listeners.as_array().into_iter().flatten() {
        children::plant(cloud, "listener", listener, &id, None)?;
    }
    if provider != ovn::NAME {
        amphora_port(cloud, &id, &network);
    }
    let after = cloud.settings.timings.balancer_create;
    cloud.later(after, Task::BalancerReady { id: id.clone() });
    let row = cloud.get("loadbalancers", &id).cloned().unwrap_or_default();
    Ok(Reply::json(201, json!({"loadbalancer": show::whole(cloud, &row)})))
}

/// Subnet and network of the VIP.
fn vip(cloud: &Cloud, call: &Call, row: &Object) -> Result<(Option<String>, String), Fail> {
    let sees = |network: &str| {
        cloud.get("networks", network).is_some_and(|it| {
            call.caller.is_admin()
                || it.text("project_id") == call.caller.project()
                || it.flag("shared")
                || it.flag("router:external")
        })
    };
    if let Some(port) = row.get("vip_port_id").and_then(Value::as_str) {
        let held = cloud
            .get("ports", port)
            .filter(|it| call.caller.is_admin() || it.text("project_id") == call.caller.project());
        let held = held.ok_or_else(|| Fail::bad(format!("Port {port} not found.")))?;
        return Ok((None, held.text("network_id").to_owned()));
    }
    if let Some(subnet) = row.get("vip_subnet_id").and_then(Value::as_str) {
        let held = cloud.get("subnets", subnet).filter(|it| sees(it.text("network_id")));
        let held = held.ok_or_else(|| Fail::bad(format!("Subnet {subnet} not found.")))?;
        return Ok((Some(subnet.to_owned()), held.text("network_id").to_owned()));
    }
    if let Some(network) = row.get("vip_network_id").and_then(Value::as_str) {
        if !sees(network) {
            return Err(Fail::bad(format!("Network {network} not found.")));
        }
        let subnet = cloud.all("subnets").find(|it| it.text("network_id") == network);
        let subnet = subnet
            .ok_or_else(|| Fail::bad("Validation failure: Supplied network does not contain a subnet."))?;
        return Ok((Some(subnet.text("id").to_owned()), network.to_owned()));
    }
    Err(Fail::bad("Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id."))
}

fn vip_port(
    cloud: &mut Cloud,
    row: &Object,
    id: &str,
    project: &str,
    network: &str,
    subnet: Option<&str>,
) -> Result<String, Fail> {
    if let Some(port) = row.get("vip_port_id").and_then(Value::as_str) {
        cloud.set("ports", port, "device_id", format!("lb-{id}"));
        cloud.set("ports", port, "_given", true);
        return Ok(port.to_owned());
    }
    let mut ask = json!({"subnet_id": subnet});
    if let Some(address) = row.get("vip_address").filter(|it| !it.is_null()) {
        ask["ip_address"] = address.clone();
    }
    let port = ports::service_port(
        cloud,
        json!({
            "name": format!("octavia-lb-{id}"), "network_id": network, "project_id": project, "device_id": format!("lb-{id}"),
            "device_owner": "Octavia", "admin_state_up": false, "fixed_ips": [ask],
        }),
    );
    port.map_err(|fail| match fail.kind {
        "IpAddressAlreadyAllocated" => {
            Fail::conflict(format!("The VIP IP address is already in use: {}", fail.message))
        }
        _ => Fail::new(500, "", "Provider 'amphora' reports error: BadRequestException: 400"),
    })
}

/// The port of the amphora, which belongs to the service and keeps the network in use.
fn amphora_port(cloud: &mut Cloud, balancer: &str, network: &str) {
    let service =
        cloud.find("projects", "name", "service").map(|it| it.text("id").to_owned()).unwrap_or_default();
    let amphora = cloud.uuid();
    let made = ports::service_port(
        cloud,
        json!({
            "name": format!("octavia-lb-vrrp-{amphora}"), "network_id": network, "project_id": service,
            "device_id": cloud.uuid(), "device_owner": "compute:nova",
        }),
    );
    match made {
        Ok(port) => cloud.set("loadbalancers", balancer, "_amphora", port),
        Err(fail) => tracing::debug!(balancer, error = fail.message, "the amphora has no port"),
    }
}

fn pending(row: &Object) -> Fail {
    let text = format!(
        "Invalid state {} of loadbalancer resource {}",
        row.text("provisioning_status"),
        row.text("id")
    );
    Fail::conflict(text)
}

pub(super) fn update(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let changes = attributes::read(call, "loadbalancer", false)?;
    let row = kind("loadbalancer").find(cloud, call, id)?;
    if row.text("provisioning_status") != "ACTIVE" {
        return Err(pending(&row));
    }
    for (name, value) in changes {
        cloud.set("loadbalancers", id, &name, value);
    }
    begin(cloud, id);
    let row = cloud.get("loadbalancers", id).cloned().unwrap_or_default();
    Ok(Reply::ok(json!({"loadbalancer": show::detail(cloud, kind("loadbalancer"), &row)})))
}

/// A change of a load balancer begins.
pub(super) fn begin(cloud: &mut Cloud, id: &str) {
    cloud.set("loadbalancers", id, "provisioning_status", "PENDING_UPDATE");
    let after = cloud.settings.timings.balancer_update;
    cloud.later(after, Task::BalancerReady { id: id.to_owned() });
}

pub(super) fn delete(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let row = kind("loadbalancer").find(cloud, call, id)?;
    if !matches!(row.text("provisioning_status"), "ACTIVE" | "ERROR") {
        return Err(pending(&row));
    }
    let cascade = call.param("cascade").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    let has = |table: &str| cloud.all(table).any(|it| it.text("_balancer") == id);
    if !cascade && (has("listeners") || has("pools")) {
        let text = format!("Validation failure: Cannot delete Load Balancer {id} - it has children");
        return Err(Fail::bad(text));
    }
    cloud.set("loadbalancers", id, "provisioning_status", "PENDING_DELETE");
    let after = cloud.settings.timings.balancer_delete;
    cloud.later(after, Task::BalancerGone { id: id.to_owned() });
    Ok(Reply::empty(204))
}

/// A change takes effect, or fails.
pub(crate) fn ready(cloud: &mut Cloud, id: &str) {
    let Some(row) = cloud.get("loadbalancers", id).cloned() else { return };
    if !matches!(row.text("provisioning_status"), "PENDING_CREATE" | "PENDING_UPDATE") {
        return;
    }
    let broken = cloud.get("ports", row.text("vip_port_id")).is_none();
    let failed = broken || cloud.faults.failing_balancers > 0;
    if !broken && failed {
        cloud.faults.failing_balancers -= 1;
    }
    let status = if failed { "ERROR" } else { "ACTIVE" };
    let now = cloud.naive();
    let online = cloud.settings.health_manager && !failed;
    for table in CHILDREN.iter().chain(&["loadbalancers"]) {
        let mut removed = Vec::new();
        for child in cloud.table_mut(table).iter_mut().filter(|it| it.text("_balancer") == id) {
            match child.text("provisioning_status") {
                "PENDING_DELETE" if !failed => removed.push(child.text("id").to_owned()),
                held if held.starts_with("PENDING") => {
                    child.insert("provisioning_status".to_owned(), json!(status));
                    child.insert("updated_at".to_owned(), json!(now));
                    if *table == "healthmonitors" || (online && *table != "members") {
                        child.insert("operating_status".to_owned(), json!("ONLINE"));
                    }
                }
                _ => {}
            }
        }
        for child in removed {
            cloud.remove(table, &child);
        }
    }
    guests::rebalance(cloud);
}

/// A load balancer is gone with all that belongs to it.
pub(crate) fn gone(cloud: &mut Cloud, id: &str) {
    let Some(row) = cloud.remove("loadbalancers", id) else { return };
    for table in CHILDREN {
        cloud.table_mut(table).retain(|it| it.text("_balancer") != id);
    }
    ports::free(cloud, row.text("_amphora"));
    let port = row.text("vip_port_id");
    if cloud.get("ports", port).is_some_and(|it| it.flag("_given")) {
        cloud.set("ports", port, "device_id", "");
    } else {
        ports::free(cloud, port);
    }
    guests::rebalance(cloud);
}
