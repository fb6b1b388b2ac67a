//! Offerings of networks and VPCs that an operator adds to those of every server.

use serde_json::json;

use super::{job, root_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::Submission;
use crate::model::place::{GuestType, NetworkOffering, VpcOffering};

pub(super) const COMMANDS: &[Command] = &[
    root_admin(sync(
        "createNetworkOffering",
        "name! displaytext guestiptype! traffictype! supportedservices:long serviceproviderlist:map \
         specifyvlan:flag specifyipranges:flag conservemode:flag forvpc:flag egressdefaultpolicy:flag \
         networkmode routingmode enable:flag",
        create,
    )),
    root_admin(sync("updateNetworkOffering", "id:networkoffering name displaytext state", update)),
    root_admin(job(
        "createVPCOffering",
        "name! displaytext supportedservices:long serviceproviderlist:map networkmode routingmode enable:flag",
        "admin.vpc.CreateVPCOfferingCmd",
        create_vpc_offering,
    )),
    root_admin(job(
        "updateVPCOffering",
        "id:vpcoffering! name displaytext state",
        "admin.vpc.UpdateVPCOfferingCmd",
        update_vpc_offering,
    )),
];

const SERVICES: [&str; 12] = [
    "Dhcp",
    "Dns",
    "UserData",
    "SourceNat",
    "StaticNat",
    "PortForwarding",
    "Lb",
    "Vpn",
    "Firewall",
    "NetworkACL",
    "SecurityGroup",
    "Connectivity",
];
const PROVIDERS: [&str; 7] = [
    "VirtualRouter",
    "VpcVirtualRouter",
    "InternalLbVm",
    "ConfigDrive",
    "SecurityGroupProvider",
    "Nsx",
    "Netris",
];

/// The service of a name, with who provides it: whom the caller names, else the router.
fn services(call: &Call, router: &'static str) -> Result<Vec<(&'static str, &'static str)>> {
    let known = |all: &[&'static str], name: &str| {
        all.iter().copied().find(|known| known.eq_ignore_ascii_case(name.trim()))
    };
    let named = call.params.maps("serviceproviderlist");
    let field = |entry: &[(String, String)], name: &str| {
        entry.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    };
    let mut found = Vec::new();
    for name in call.filled("supportedservices").into_iter().flat_map(|list| list.split(',')) {
        let service = known(&SERVICES, name)
            .ok_or_else(|| ApiError::invalid(format!("Invalid service name specified {name}")))?;
        let entry = named.iter().find(|entry| field(entry, "service").is_some_and(|it| it == service));
        let by = match entry.and_then(|entry| field(entry, "provider")) {
            None => router,
            Some(name) => known(&PROVIDERS, &name)
                .ok_or_else(|| ApiError::invalid(format!("Invalid service provider: {name}")))?,
        };
        found.push((service, by));
    }
    Ok(found)
}

fn mode(call: &Call) -> Result<Option<&'static str>> {
    match call.filled("networkmode") {
        None => Ok(None),
        Some("NATTED") => Ok(Some("NATTED")),
        Some("ROUTED") => Ok(Some("ROUTED")),
        Some(_) => Err(ApiError::invalid("Invalid mode passed. Valid values: [NATTED, ROUTED]")),
    }
}

fn routing_mode(call: &Call) -> Option<&'static str> {
    ["Static", "Dynamic"].into_iter().find(|mode| call.filled("routingmode") == Some(mode))
}

/// What a routed network cannot have.
fn fits(services: &[(&str, &str)], mode: Option<&str>) -> Result<()> {
    let nat = |(service, _): &(&str, &str)| {
        ["SourceNat", "StaticNat", "Lb", "PortForwarding", "Vpn"].contains(service)
    };
    match mode == Some("ROUTED") && services.iter().any(nat) {
        true => Err(ApiError::invalid(
            "SourceNat/StaticNat/Lb/PortForwarding/Vpn service are not supported in ROUTED mode",
        )),
        false => Ok(()),
    }
}

fn create(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let guest_type = match call.text("guestiptype") {
        Some("Isolated") => GuestType::Isolated,
        Some("Shared") => GuestType::Shared,
        Some("L2") => GuestType::L2,
        other => {
            let text = format!(
                "Invalid \"type\" parameter is given; can have Shared and Isolated values: {other:?}"
            );
            return Err(ApiError::invalid(text));
        }
    };
    let name = call.text("name").unwrap_or_default().to_owned();
    if cloud.network_offerings.iter().any(|offering| offering.name == name) {
        return Err(ApiError::invalid(format!("Network offering with name {name} already exists")));
    }
    let for_vpc = call.is("forvpc");
    let services = services(call, if for_vpc { "VpcVirtualRouter" } else { "VirtualRouter" })?;
    let network_mode = mode(call)?;
    if network_mode.is_some() && guest_type != GuestType::Isolated {
        return Err(ApiError::invalid("networkMode should be set only for Isolated network offerings"));
    }
    fits(&services, network_mode)?;
    let it = NetworkOffering {
        display_text: call.filled("displaytext").unwrap_or(&name).to_owned(),
        name,
        guest_type,
        for_vpc,
        specify_vlan: call.is("specifyvlan"),
        specify_ip_ranges: call.is("specifyipranges"),
        conserve_mode: call.flag("conservemode") != Some(false),
        required: false,
        egress_default_allow: call.flag("egressdefaultpolicy") != Some(false),
        internal_lb: false,
        network_mode,
        routing_mode: routing_mode(call),
        stock: false,
        enabled: call.is("enable"),
        services,
    };
    let uuid = cloud.fresh_uuid();
    let key = cloud.network_offerings.insert(uuid, cloud.now, it);
    Ok(Answer::Object("networkoffering", cloud.show_network_offering(key)))
}

/// Whether an offering is to be enabled.
fn enabled(call: &Call) -> Result<Option<bool>> {
    match call.filled("state") {
        None => Ok(None),
        Some(state) if state.eq_ignore_ascii_case("Enabled") => Ok(Some(true)),
        Some(state) if state.eq_ignore_ascii_case("Disabled") => Ok(Some(false)),
        Some(other) => Err(ApiError::invalid(format!("Invalid state value: {other}"))),
    }
}

fn update(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.network_offerings, "id")?;
    let enabled = enabled(call)?;
    let row = &mut cloud.network_offerings[key];
    row.enabled = enabled.unwrap_or(row.enabled);
    row.name = call.filled("name").unwrap_or(&row.name).to_owned();
    row.display_text = call.filled("displaytext").unwrap_or(&row.display_text).to_owned();
    Ok(Answer::Object("networkoffering", cloud.show_network_offering(key)))
}

fn create_vpc_offering(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let name = call.text("name").unwrap_or_default().to_owned();
    let services = services(call, "VpcVirtualRouter")?;
    let network_mode = mode(call)?;
    fits(&services, network_mode)?;
    let it = VpcOffering {
        name,
        default: false,
        enabled: call.is("enable"),
        network_mode,
        nsx: services.iter().any(|(_, by)| *by == "Nsx"),
        services: services.into_iter().map(|(service, by)| (service, vec![by])).collect(),
    };
    let uuid = cloud.fresh_uuid();
    let key = cloud.vpc_offerings.insert(uuid.clone(), cloud.now, it);
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        Ok(json!({"vpcoffering": cloud.show_vpc_offering(key)}))
    });
    Ok(Answer::Job(Submission { id: Some(uuid), ..submission }))
}

fn update_vpc_offering(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let key = call.the(&cloud.vpc_offerings, "id")?;
    let (enabled, name) = (enabled(call)?, call.filled("name").map(str::to_owned));
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let row = &mut cloud.vpc_offerings[key];
        row.enabled = enabled.unwrap_or(row.enabled);
        row.name = name.unwrap_or_else(|| row.name.clone());
        Ok(json!({"vpcoffering": cloud.show_vpc_offering(key)}))
    });
    Ok(Answer::Job(submission))
}
