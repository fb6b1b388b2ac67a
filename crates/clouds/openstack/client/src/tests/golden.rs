//! Every recorded answer of the calls that this client types is read.
//!
//! The recording is not part of the repository: `CAPSTAN_GOLDEN_OPENSTACK` names it, or it lies beside the repository.
//! Without it `samples` makes the same claims about answers of the same shapes.

use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::block_storage::{Snapshot, Volume, VolumeType};
use crate::compute::{ComputeQuota, Flavor, Interface, Keypair, Server, ServerGroup, VolumeAttachment};
use crate::identity::{ApplicationCredential, Project, Trust};
use crate::image::Image;
use crate::load_balancer::{HealthMonitor, Listener, LoadBalancer, LoadBalancerQuota, Member, Pool};
use crate::network::{
    FloatingIp, Network, NetworkQuota, Port, Router, RouterInterface, SecurityGroup, SecurityGroupRule,
    SubPort, Subnet, Trunk,
};
use crate::token::TokenBody;
use crate::{Class, Service, read_refusal};

fn recording() -> Option<String> {
    if let Ok(path) = std::env::var("CAPSTAN_GOLDEN_OPENSTACK") {
        return Some(std::fs::read_to_string(path).expect("CAPSTAN_GOLDEN_OPENSTACK names a recording"));
    }
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../..");
    std::fs::read_to_string(repository.join("../shared/golden/openstack/cases.jsonl")).ok()
}

/// Reads what is under a key, as the client does; the number of things read.
fn read<T: serde::de::DeserializeOwned>(
    body: &Value,
    one: Option<&str>,
    many: &str,
) -> Result<usize, String> {
    let parse = |value: &Value| {
        serde_json::from_value::<T>(value.clone()).map(|_| 1).map_err(|error| error.to_string())
    };
    if let Some(list) = body.get(many).and_then(Value::as_array) {
        return list.iter().try_fold(0, |count, value| Ok(count + parse(value)?));
    }
    match one {
        Some(one) => body.get(one).map_or(Ok(0), parse),
        None if body.get("id").is_some() => parse(body),
        None => Ok(0),
    }
}

/// Reads an answer by the path of its request.
fn read_answer(service: &str, path: &str, body: &Value) -> Result<usize, String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let below = |name: &str| parts.contains(&name);
    match service {
        "identity" if below("tokens") => read::<TokenBody>(&serde_json::json!({ "t": body }), Some("t"), "-"),
        "identity" if below("application_credentials") => {
            read::<ApplicationCredential>(body, Some("application_credential"), "application_credentials")
        }
        "identity" if below("trusts") => read::<Trust>(body, Some("trust"), "trusts"),
        "identity" if below("projects") && !below("users") => {
            read::<Project>(body, Some("project"), "projects")
        }
        "identity" if below("catalog") => read::<crate::CatalogService>(body, None, "catalog"),
        "compute" if below("os-interface") => {
            read::<Interface>(body, Some("interfaceAttachment"), "interfaceAttachments")
        }
        "compute" if below("os-volume_attachments") => {
            read::<VolumeAttachment>(body, Some("volumeAttachment"), "volumeAttachments")
        }
        "compute" if below("servers") => read::<Server>(body, Some("server"), "servers"),
        "compute" if below("flavors") => read::<Flavor>(body, Some("flavor"), "flavors"),
        "compute" if below("os-server-groups") => {
            read::<ServerGroup>(body, Some("server_group"), "server_groups")
        }
        "compute" if below("os-keypairs") => read::<Keypair>(body, Some("keypair"), "-"),
        "compute" if below("os-quota-sets") && below("detail") => {
            read::<ComputeQuota>(body, Some("quota_set"), "-")
        }
        "compute" if below("os-availability-zone") => {
            read::<crate::compute::AvailabilityZone>(body, None, "availabilityZoneInfo")
        }
        "network" if below("quotas") && below("details") => read::<NetworkQuota>(body, Some("quota"), "-"),
        "network" if path.ends_with("_router_interface") => {
            read::<RouterInterface>(&serde_json::json!({ "i": body }), Some("i"), "-")
        }
        "network" if below("get_subports") => read::<SubPort>(body, None, "sub_ports"),
        "network" if below("networks") => read::<Network>(body, Some("network"), "networks"),
        "network" if below("subnets") => read::<Subnet>(body, Some("subnet"), "subnets"),
        "network" if below("ports") => read::<Port>(body, Some("port"), "ports"),
        "network" if below("routers") => read::<Router>(body, Some("router"), "routers"),
        "network" if below("floatingips") => read::<FloatingIp>(body, Some("floatingip"), "floatingips"),
        "network" if below("security-groups") => {
            read::<SecurityGroup>(body, Some("security_group"), "security_groups")
        }
        "network" if below("security-group-rules") => {
            read::<SecurityGroupRule>(body, Some("security_group_rule"), "security_group_rules")
        }
        "network" if below("trunks") => read::<Trunk>(body, Some("trunk"), "trunks"),
        "image" if below("images") && !below("members") && !below("tasks") => {
            read::<Image>(body, None, "images")
        }
        "volume" if below("types") => read::<VolumeType>(body, Some("volume_type"), "volume_types"),
        "volume" if below("snapshots") => read::<Snapshot>(body, Some("snapshot"), "snapshots"),
        "volume" if below("volumes") => read::<Volume>(body, Some("volume"), "volumes"),
        "load-balancer" if below("quotas") => read::<LoadBalancerQuota>(body, Some("quota"), "quotas"),
        "load-balancer" if below("members") => read::<Member>(body, Some("member"), "members"),
        "load-balancer" if below("pools") => read::<Pool>(body, Some("pool"), "pools"),
        "load-balancer" if below("listeners") => read::<Listener>(body, Some("listener"), "listeners"),
        "load-balancer" if below("healthmonitors") => {
            read::<HealthMonitor>(body, Some("healthmonitor"), "healthmonitors")
        }
        "load-balancer" if below("loadbalancers") => {
            read::<LoadBalancer>(body, Some("loadbalancer"), "loadbalancers")
        }
        _ => Ok(0),
    }
}

fn service(name: &str) -> Option<Service> {
    Some(match name {
        "identity" => Service::Identity,
        "compute" => Service::Compute,
        "network" => Service::Network,
        "image" => Service::Image,
        "volume" => Service::BlockStorage,
        "load-balancer" => Service::LoadBalancer,
        "placement" => Service::Placement,
        _ => return None,
    })
}

#[test]
fn every_recorded_answer_of_typed_calls_is_read() {
    let Some(recording) = recording() else {
        return;
    };
    let (mut things, mut refusals, mut wrong) = (0, 0, Vec::new());
    for line in recording.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let Some(service) = service(case["service"].as_str().unwrap()) else {
            continue;
        };
        let name = case["case"].as_str().unwrap();
        let status = u16::try_from(case["http_status"].as_u64().unwrap()).unwrap();
        let response = &case["response"];
        if status >= 400 {
            let body = response.as_str().map_or_else(|| response.to_string(), str::to_owned);
            let refusal = read_refusal(service, status, &HeaderMap::new(), body.as_bytes());
            refusals += 1;
            let said = !refusal.text.is_empty() || refusal.class == Class::Protocol || body.len() < 3;
            let plain = !refusal.text.contains('<') || !refusal.text.contains("br />");
            if !said || !plain {
                wrong.push(format!("{name}: {refusal:?}"));
            }
            // Everything that is gone or somebody else's says so in the service's own shape; paths, versions and
            // extensions that are none do not, and an answer to HEAD has no body.
            let no_thing = ["unknown_path", "v2_unknown", "unknown_resource", "extensions.get", ".head."];
            let is_thing = !no_thing.iter().any(|part| name.contains(part));
            if status == 404 && refusal.class == Class::Protocol && is_thing {
                wrong.push(format!("{name}: not found, and taken for a wrong URL: {body}"));
            }
            continue;
        }
        if response.is_null() {
            continue;
        }
        let path = case["path"].as_str().unwrap().split('?').next().unwrap();
        match read_answer(case["service"].as_str().unwrap(), path, response) {
            Ok(count) => things += count,
            Err(error) => wrong.push(format!("{name} {path}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} of the recorded answers:\n{}", wrong.len(), wrong.join("\n"));
    assert!(things > 500 && refusals > 300, "{things} things and {refusals} refusals");
}
