//! Small answers in the shapes that real services have, and what is made of them.

use serde_json::json;

use super::*;
use crate::block_storage::{Volume, VolumeStatus};
use crate::compute::{Flavor, QuotaUse, Server, ServerGroup, ServerStatus};
use crate::identity::ApplicationCredential;
use crate::image::{Image, ImageStatus};
use crate::load_balancer::{Listener, LoadBalancer, ProvisioningStatus};
use crate::network::{FloatingIp, Port, Router, SecurityGroup};

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_server_is_read_at_every_microversion() {
    let building: Server = read(json!({
        "id": "s", "name": "m", "status": "BUILD", "OS-EXT-STS:task_state": "scheduling", "hostId": "",
        "OS-EXT-AZ:availability_zone": "", "image": { "id": "i", "links": [] }, "flavor": { "id": "f", "links": [] },
        "addresses": {}, "config_drive": "", "key_name": null, "OS-EXT-STS:power_state": 0,
    }));
    assert_eq!(building.status, ServerStatus::Build);
    assert_eq!(building.flavor.id.as_ref().unwrap().as_str(), "f");
    assert_eq!(building.image_id.0.as_ref().unwrap().as_str(), "i");
    assert!(!building.config_drive.0 && building.security_groups.is_empty());
    let active: Server = read(json!({
        "id": "s", "status": "ACTIVE", "image": "", "flavor": { "vcpus": 1, "ram": 512, "original_name": "tiny" },
        "addresses": { "net": [
            { "version": 4, "addr": "10.0.0.8", "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01" },
        ] },
        "config_drive": "True", "created": "2026-01-01T00:00:00Z", "tags": ["b", "a"], "server_groups": ["g"],
        "os-extended-volumes:volumes_attached": [{ "id": "v", "delete_on_termination": true }],
    }));
    assert_eq!(active.image_id.0, None);
    assert_eq!((active.flavor.id.clone(), active.flavor.vcpus), (None, Some(1)));
    assert_eq!(active.addresses["net"][0].addr, "10.0.0.8");
    assert!(active.config_drive.0 && active.volumes_attached[0].delete_on_termination);
    let failed: Server = read(json!({
        "id": "s", "status": "ERROR",
        "fault": { "code": 500, "created": "2026-01-01T00:00:00Z", "message": "No valid host was found. " },
    }));
    assert!(failed.fault.unwrap().is_no_valid_host());
    // A service grows new states.
    let other: Server = read(json!({ "id": "s", "status": "PONDERING" }));
    assert_eq!(other.status, ServerStatus::Other("PONDERING".to_owned()));
}

#[test]
fn things_of_compute_are_read_in_old_and_new_shapes() {
    let flavor: Flavor = read(json!({
        "id": "m1.tiny", "name": "m1.tiny", "ram": 512, "disk": 1, "vcpus": 1, "swap": "",
        "OS-FLV-EXT-DATA:ephemeral": 0, "rxtx_factor": 1.0,
    }));
    assert_eq!((flavor.vcpus, flavor.ram, flavor.swap.0), (1, 512, 0));
    let old: ServerGroup =
        read(json!({ "id": "g", "policies": ["anti-affinity"], "metadata": {}, "members": ["s"] }));
    let new: ServerGroup = read(json!({ "id": "g", "policy": "anti-affinity", "rules": {}, "members": [] }));
    assert_eq!((old.policy(), new.policy()), ("anti-affinity", "anti-affinity"));
    let left = |limit, in_use| QuotaUse { limit, in_use, reserved: 0 }.left();
    assert_eq!((left(10, 4), left(-1, 4), left(1, 4)), (Some(6), None, Some(0)));
}

#[test]
fn things_of_network_are_read() {
    let port: Port = read(json!({
        "id": "p", "fixed_ips": [{ "subnet_id": "s", "ip_address": "10.0.0.9" }], "device_owner": "compute:nova",
        "allowed_address_pairs": [{ "mac_address": "fa:16:3e:00:00:02", "ip_address": "10.0.0.0/24" }],
        "binding:vnic_type": "normal", "security_groups": ["g"], "created_at": "2026-01-01T00:00:00Z",
    }));
    assert_eq!(port.fixed_ips[0].ip_address, "10.0.0.9");
    assert_eq!(port.created_at.unwrap().0, start());
    let group: SecurityGroup = read(json!({ "id": "g", "description": null, "security_group_rules": [
        { "id": "r", "direction": "egress", "ethertype": "IPv6", "protocol": null, "port_range_min": null },
        { "id": "r2", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22 },
    ] }));
    assert_eq!(group.security_group_rules[1].port_range_max, Some(22));
    let router: Router = read(json!({ "id": "r", "external_gateway_info": {
        "network_id": "n", "enable_snat": true, "external_fixed_ips": [{ "subnet_id": "s", "ip_address": "203.0.113.9" }],
    } }));
    assert_eq!(router.external_gateway_info.unwrap().external_fixed_ips[0].ip_address, "203.0.113.9");
    assert_eq!(
        read::<Router>(json!({ "id": "r", "external_gateway_info": null })).external_gateway_info,
        None
    );
    let address: FloatingIp = read(json!({ "id": "f", "port_id": null, "status": "DOWN" }));
    assert_eq!(address.port_id, None);
}

#[test]
fn things_of_the_other_services_are_read() {
    let image: Image = read(json!({
        "id": "i", "name": "ubuntu", "status": "active", "size": null, "tags": ["k8s"], "min_disk": 10,
        "os_distro": "ubuntu", "kube_version": "v1.31.1", "self": "/v2/images/i",
    }));
    assert_eq!((&image.status, image.property("os_distro")), (&ImageStatus::Active, Some("ubuntu")));
    let volume: Volume = read(json!({
        "id": "v", "status": "in-use", "size": 5, "bootable": "true", "multiattach": false, "description": null,
        "created_at": "2026-01-01T00:00:00.000000", "attachments": [{ "server_id": "s", "device": "/dev/vdb" }],
    }));
    assert_eq!((&volume.status, volume.bootable.0), (&VolumeStatus::InUse, true));
    assert_eq!(volume.created_at.unwrap().0, start());
    let balancer: LoadBalancer = read(json!({
        "id": "l", "provisioning_status": "PENDING_UPDATE", "listeners": [{ "id": "li" }], "flavor_id": null,
        "created_at": "2026-01-01T00:00:00",
    }));
    assert!(balancer.provisioning_status.is_pending());
    assert_eq!(balancer.listeners[0].id.as_str(), "li");
    let listener: Listener =
        read(json!({ "id": "li", "provisioning_status": "ACTIVE", "allowed_cidrs": null }));
    assert_eq!((listener.provisioning_status, listener.allowed_cidrs), (ProvisioningStatus::Active, None));
    let credential: ApplicationCredential =
        read(json!({ "id": "a", "unrestricted": null, "expires_at": null }));
    assert!(!credential.unrestricted);
}
