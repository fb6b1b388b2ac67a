//! Routers, their gateways, interfaces and extra routes.

use std::net::IpAddr;
use std::str::FromStr as _;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{Fail, kind_of, ports, render, store, touch};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Handled, Reply, repr};

fn bad_router(text: impl std::fmt::Display) -> Fail {
    Fail::new(400, "BadRequest", format!("Bad router request: {text}."))
}

pub(super) fn create(cloud: &mut Cloud, call: &Call, mut row: Object) -> Result<String, Fail> {
    let gateway = row.insert("external_gateway_info".to_owned(), Value::Null).unwrap_or_default();
    row.insert("status".to_owned(), json!("ACTIVE"));
    row.insert("availability_zones".to_owned(), json!([]));
    row.insert("routes".to_owned(), json!([]));
    let id = store(cloud, "router", row);
    if gateway.as_object().is_some_and(|it| !it.is_empty()) {
        set_gateway(cloud, call, &id, &gateway)?;
        touch(cloud, "routers", &id);
    }
    Ok(id)
}

pub(super) fn update(cloud: &mut Cloud, call: &Call, held: &Object, changes: &Object) -> Result<(), Fail> {
    if let Some(gateway) = changes.get("external_gateway_info") {
        set_gateway(cloud, call, held.text("id"), gateway)?;
    }
    Ok(())
}

/// Gives a router a gateway, or takes it away with an empty one.
fn set_gateway(cloud: &mut Cloud, call: &Call, router: &str, gateway: &Value) -> Result<(), Fail> {
    let network_id = gateway["network_id"].as_str().unwrap_or_default();
    let held = cloud
        .get("routers", router)
        .and_then(|it| it.get("_gateway_port"))
        .and_then(Value::as_str)
        .map(str::to_owned);
    let same = cloud
        .get("routers", router)
        .and_then(|it| it.object("external_gateway_info"))
        .is_some_and(|it| it.text("network_id") == network_id);
    if same && gateway.get("external_fixed_ips").is_none() {
        return Ok(());
    }
    if !network_id.is_empty() {
        let network = kind_of("network").visible(cloud, call, network_id)?;
        if !network.flag("router:external") {
            return Err(bad_router(format!("Network {network_id} is not an external network")));
        }
    } else if let Some(fip) = cloud.find("floatingips", "router_id", router) {
        let text = format!(
            "Gateway cannot be updated for router {router}, since a gateway to external network {} is required by one or more floating IPs.",
            fip.text("floating_network_id")
        );
        return Err(Fail::new(409, "RouterExternalGatewayInUseByFloatingIp", text));
    }
    if let Some(port) = held {
        ports::free(cloud, &port);
    }
    if network_id.is_empty() {
        cloud.set("routers", router, "external_gateway_info", Value::Null);
        cloud.set("routers", router, "_gateway_port", Value::Null);
        return Ok(());
    }
    let port = ports::service_port(
        cloud,
        json!({
            "network_id": network_id, "project_id": "", "tenant_id": "", "device_id": router,
            "device_owner": "network:router_gateway", "security_groups": [],
            "fixed_ips": gateway.get("external_fixed_ips").cloned().unwrap_or_default(),
        }),
    )?;
    cloud.set("ports", &port, "status", "ACTIVE");
    let ips = cloud.get("ports", &port).map(|it| it["fixed_ips"].clone()).unwrap_or_default();
    let snat = gateway.get("enable_snat").and_then(Value::as_bool).unwrap_or(true);
    let info = json!({"network_id": network_id, "external_fixed_ips": ips, "enable_snat": snat});
    cloud.set("routers", router, "external_gateway_info", info);
    cloud.set("routers", router, "_gateway_port", port);
    Ok(())
}

fn interfaces<'a>(cloud: &'a Cloud, router: &'a str) -> impl Iterator<Item = &'a Object> {
    cloud.all("ports").filter(move |it| {
        it.text("device_id") == router && it.text("device_owner") == "network:router_interface"
    })
}

pub(super) fn delete(cloud: &mut Cloud, id: &str) -> Result<(), Fail> {
    let ports: Vec<String> = interfaces(cloud, id).map(|it| it.text("id").to_owned()).collect();
    if !ports.is_empty() {
        let text = format!("Router {id} has ports still attached: {}", ports.join(", "));
        return Err(Fail::new(409, "RouterInUse", text));
    }
    let gateway = cloud.get("routers", id).map(|it| it.text("_gateway_port").to_owned()).unwrap_or_default();
    if !gateway.is_empty() {
        ports::free(cloud, &gateway);
    }
    Ok(())
}

/// The router that connects a subnet with an external network.
pub(super) fn reaching(cloud: &Cloud, subnet: &str, external: &str) -> Option<String> {
    cloud
        .all("ports")
        .filter(|it| it.text("device_owner") == "network:router_interface")
        .filter(|it| it.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == subnet))
        .map(|it| it.text("device_id").to_owned())
        .find(|router| {
            cloud
                .get("routers", router)
                .and_then(|it| it.object("external_gateway_info"))
                .is_some_and(|it| it.text("network_id") == external)
        })
}

pub(super) fn act(cloud: &mut Cloud, call: &Call, id: &str, action: &str) -> Handled {
    let router = kind_of("router").own(cloud, call, id, action)?;
    let body = super::attributes::read(call)?;
    match action {
        "add_router_interface" => add_interface(cloud, call, &router, &body),
        "remove_router_interface" => remove_interface(cloud, call, &router, &body),
        "add_extraroutes" | "remove_extraroutes" => {
            let given = body.object("router").map(|it| it.list("routes").to_vec()).unwrap_or_default();
            let mut routes = router.list("routes").to_vec();
            if action == "add_extraroutes" {
                routes.extend(given.into_iter().filter(|it| !router.list("routes").contains(it)));
                check_routes(cloud, id, &routes)?;
            } else {
                routes.retain(|it| !given.contains(it));
            }
            cloud.set("routers", id, "routes", routes);
            touch(cloud, "routers", id);
            let row = cloud.get("routers", id).cloned().unwrap_or_default();
            let mut shown = render(cloud, call, "router", &row);
            // This reply is not filtered by policy.
            let gateway = row.get("_gateway_port").cloned().unwrap_or_default();
            let more = json!({
                "distributed": false, "ha": false, "ha_vr_id": 0, "gw_port_id": gateway, "enable_snat": true,
                "enable_default_route_ecmp": false, "enable_default_route_bfd": false,
            });
            shown.extend(crate::table::object(more));
            Ok(Reply::ok(json!({"router": shown})))
        }
        _ => Err(super::not_found()),
    }
}

fn check_routes(cloud: &Cloud, router: &str, routes: &[Value]) -> Result<(), Fail> {
    let connected: Vec<IpNet> = cloud
        .all("ports")
        .filter(|it| it.text("device_id") == router)
        .flat_map(|it| it.list("fixed_ips"))
        .filter_map(|ip| cloud.get("subnets", ip["subnet_id"].as_str()?))
        .filter_map(|it| IpNet::from_str(it.text("cidr")).ok())
        .collect();
    let reachable = |hop: &Value| {
        hop.as_str()
            .and_then(|it| IpAddr::from_str(it).ok())
            .is_some_and(|it| connected.iter().any(|net| net.contains(&it)))
    };
    if routes.iter().all(|route| reachable(&route["nexthop"])) {
        return Ok(());
    }
    let shown = repr(&Value::Array(routes.to_vec()));
    let text = format!("Invalid format for routes: {shown}, the nexthop is not connected with router");
    Err(Fail::new(400, "InvalidRoutes", text))
}

fn interface_body(router: &Object, port: &Object) -> Value {
    let subnets: Vec<Value> = port.list("fixed_ips").iter().map(|ip| ip["subnet_id"].clone()).collect();
    json!({
        "id": router["id"], "project_id": router["project_id"], "tenant_id": router["project_id"], "port_id": port["id"],
        "network_id": port["network_id"], "subnet_id": subnets.first(), "subnet_ids": subnets,
    })
}

fn add_interface(cloud: &mut Cloud, call: &Call, router: &Object, body: &Object) -> Handled {
    let (subnet, port) = (body.text("subnet_id"), body.text("port_id"));
    match (subnet.is_empty(), port.is_empty()) {
        (true, true) => return Err(bad_router("Either subnet_id or port_id must be specified")),
        (false, false) => return Err(bad_router("Cannot specify both subnet-id and port-id")),
        _ => {}
    }
    let id = router.text("id").to_owned();
    let mut subnets = vec![subnet.to_owned()];
    if !port.is_empty() {
        let held = kind_of("port").visible(cloud, call, port)?;
        if held.has("device_id") && !held.text("device_id").is_empty() {
            let text = format!(
                "Unable to complete operation on port {port} for network {}. Port already has an attached device {}.",
                held.text("network_id"),
                held.text("device_id")
            );
            return Err(Fail::new(409, "PortInUse", text));
        }
        subnets = held
            .list("fixed_ips")
            .iter()
            .filter_map(|ip| Some(ip["subnet_id"].as_str()?.to_owned()))
            .collect();
    }
    let mut rows = Vec::new();
    for subnet in &subnets {
        rows.push(kind_of("subnet").visible(cloud, call, subnet)?);
    }
    for row in &rows {
        let subnet = row.text("id");
        let net = IpNet::from_str(row.text("cidr")).ok();
        for interface in interfaces(cloud, &id) {
            for ip in interface.list("fixed_ips") {
                if ip["subnet_id"] == subnet {
                    return Err(bad_router(format!("Router already has a port on subnet {subnet}")));
                }
                let other = ip["subnet_id"].as_str().and_then(|it| cloud.get("subnets", it));
                let held = other.and_then(|it| IpNet::from_str(it.text("cidr")).ok());
                if let (Some(net), Some(held), Some(other)) = (net, held, other)
                    && (net.contains(&held) || held.contains(&net))
                {
                    return Err(bad_router(format!(
                        "Cidr {net} of subnet {subnet} overlaps with cidr {held} of subnet {}",
                        other.text("id")
                    )));
                }
            }
        }
    }
    let port = if port.is_empty() {
        let row = &rows[0];
        if !row.has("gateway_ip") {
            return Err(bad_router("Subnet for router interface must have a gateway IP"));
        }
        let gateway = row.text("gateway_ip");
        ports::service_port(
            cloud,
            json!({
                "network_id": row["network_id"], "project_id": router["project_id"], "device_id": id,
                "device_owner": "network:router_interface", "security_groups": [],
                "fixed_ips": [{"subnet_id": row["id"], "ip_address": gateway}],
            }),
        )?
    } else {
        cloud.set("ports", port, "device_id", id.clone());
        cloud.set("ports", port, "device_owner", "network:router_interface");
        port.to_owned()
    };
    cloud.set("ports", &port, "status", "ACTIVE");
    touch(cloud, "ports", &port);
    touch(cloud, "routers", &id);
    let port = cloud.get("ports", &port).cloned().unwrap_or_default();
    Ok(Reply::ok(without_tenant(interface_body(router, &port))))
}

/// Interface replies name the project once.
fn without_tenant(mut body: Value) -> Value {
    if let Some(body) = body.as_object_mut() {
        body.remove("tenant_id");
    }
    body
}

fn remove_interface(cloud: &mut Cloud, call: &Call, router: &Object, body: &Object) -> Handled {
    let id = router.text("id").to_owned();
    let (subnet, port) = (body.text("subnet_id"), body.text("port_id"));
    if subnet.is_empty() && port.is_empty() {
        return Err(bad_router("Either subnet_id or port_id must be specified"));
    }
    if !subnet.is_empty() {
        kind_of("subnet").visible(cloud, call, subnet)?;
    }
    let on_subnet = |it: &&Object| it.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == subnet);
    let found = interfaces(cloud, &id)
        .find(|it| (port.is_empty() || it.text("id") == port) && (subnet.is_empty() || on_subnet(it)))
        .cloned();
    let Some(found) = found else {
        return Err(match port.is_empty() {
            true => Fail::new(
                404,
                "RouterInterfaceNotFoundForSubnet",
                format!("Router {id} has no interface on subnet {subnet}"),
            ),
            false => Fail::new(
                404,
                "RouterInterfaceNotFound",
                format!("Router {id} does not have an interface with id {port}"),
            ),
        });
    };
    for ip in found.list("fixed_ips") {
        let subnet = ip["subnet_id"].as_str().unwrap_or_default();
        let net = cloud.get("subnets", subnet).and_then(|it| IpNet::from_str(it.text("cidr")).ok());
        let within = |text: Option<&str>| {
            text.and_then(|it| IpAddr::from_str(it).ok())
                .is_some_and(|it| net.is_some_and(|net| net.contains(&it)))
        };
        if router.list("routes").iter().any(|route| within(route["nexthop"].as_str())) {
            let text = format!(
                "Router interface for subnet {subnet} on router {id} cannot be deleted, as it is required by one or more routes."
            );
            return Err(Fail::new(409, "RouterInterfaceInUseByRoute", text));
        }
        let used = cloud.all("floatingips").any(|it| {
            it.text("router_id") == id && within(it.get("fixed_ip_address").and_then(Value::as_str))
        });
        if used {
            let text = format!(
                "Router interface for subnet {subnet} on router {id} cannot be deleted, as it is required by one or more floating IPs."
            );
            return Err(Fail::new(409, "RouterInterfaceInUseByFloatingIP", text));
        }
    }
    cloud.remove("ports", found.text("id"));
    touch(cloud, "routers", &id);
    Ok(Reply::ok(without_tenant(interface_body(router, &found))))
}
