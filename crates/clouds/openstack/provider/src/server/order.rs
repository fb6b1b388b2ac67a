//! Orders of ports, volumes and servers: complete when they are decided, and journaled with their call.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_openstack_client::Secret;
use capstan_openstack_client::block_storage::NewVolume;
use capstan_openstack_client::compute::{
    BlockDevice, DestinationType, NewServer, PortAttachment, SchedulerHints, SourceType,
};
use capstan_openstack_client::network::{AddressPair, FixedIp, NewPort, PortSecurityGroups};
use capstan_openstack_types::names;
use capstan_openstack_types::v1alpha1::{OpenStackServerSpec, ResolvedServerSpec};
use capstan_openstack_types::v1beta1::ResolvedPortSpec;
use capstan_openstack_types::v1beta2::{SchedulerHintAdditionalProperty, VolumeAvailabilityZone};
use capstan_provider_kit::BootDataRef;
use capstan_provider_kit::order::Order;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mark;

/// A port, as `status.resolved` has it, with our mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortOrder {
    pub spec: ResolvedPortSpec,
    pub mark: String,
}

impl Order for PortOrder {
    const VERSION: u32 = 1;
}

impl PortOrder {
    pub(super) fn request(&self) -> NewPort {
        let spec = &self.spec;
        let fixed = spec.fixed_ips.iter().map(|ip| FixedIp {
            subnet_id: ip.subnet.clone().unwrap_or_default().into(),
            ip_address: ip.ip_address.clone().unwrap_or_default(),
        });
        let unguarded = spec.disable_port_security == Some(true);
        // A port that is not guarded may use any address, and Neutron refuses pairs of it.
        let pairs = spec.allowed_address_pairs.iter().filter(|_| !unguarded).map(|pair| AddressPair {
            ip_address: pair.ip_address.clone(),
            mac_address: pair.mac_address.clone().unwrap_or_default(),
        });
        let groups = match spec.security_groups.is_empty() && !unguarded {
            true => PortSecurityGroups::Default,
            false => PortSecurityGroups::These(
                spec.security_groups.iter().map(|group| group.as_str().into()).collect(),
            ),
        };
        let profile = spec.profile.clone().unwrap_or_default();
        let mut binding = BTreeMap::new();
        if profile.ovs_hw_offload == Some(true) {
            binding.insert("capabilities".to_owned(), serde_json::json!(["switchdev"]));
        }
        let values = spec.value_specs.iter().map(|it| (it.key.clone(), Value::from(it.value.as_str())));
        NewPort {
            network_id: spec.network_id.as_str().into(),
            name: spec.name.clone(),
            description: Some(mark::with(&spec.description, &self.mark)),
            admin_state_up: spec.admin_state_up,
            mac_address: spec.mac_address.clone(),
            fixed_ips: fixed.collect(),
            security_groups: groups,
            allowed_address_pairs: pairs.collect(),
            port_security_enabled: spec.disable_port_security.map(|disabled| !disabled),
            propagate_uplink_status: spec.propagate_uplink_status,
            host_id: spec.host_id.clone(),
            vnic_type: spec.vnic_type.clone(),
            profile: binding,
            trusted: profile.trusted_vf.filter(|trusted| *trusted),
            value_specs: values.collect(),
        }
    }
}

/// A volume. Orders of version 1 had the mark in place of the description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeOrder {
    pub name: String,
    pub size: u64,
    pub image: Option<String>,
    pub kind: Option<String>,
    pub zone: Option<String>,
    pub description: String,
}

impl Order for VolumeOrder {
    const VERSION: u32 = 2;
}

impl VolumeOrder {
    pub(super) fn request(&self) -> NewVolume {
        NewVolume {
            size: self.size,
            name: self.name.clone(),
            description: Some(self.description.clone()),
            image: self.image.as_deref().map(Into::into),
            volume_type: self.kind.clone(),
            availability_zone: self.zone.clone(),
            metadata: BTreeMap::new(),
        }
    }
}

fn zone(spec: &OpenStackServerSpec, wanted: Option<&VolumeAvailabilityZone>) -> Option<String> {
    let wanted = wanted?;
    if wanted.from == "Machine" { spec.availability_zone.clone() } else { wanted.name.clone() }
}

fn gib(size: i32) -> u64 {
    u64::try_from(size).unwrap_or(1)
}

/// The volumes of a server, the root volume first.
pub(super) fn volumes(server: &str, spec: &OpenStackServerSpec, image: &str, mark: &str) -> Vec<VolumeOrder> {
    let kind = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let description = mark::with(&format!("Volume of server {server}"), mark);
    let root = spec.root_volume.as_ref().map(|root| VolumeOrder {
        name: names::volume(server, "root"),
        size: gib(root.size_gib),
        image: Some(image.to_owned()),
        kind: kind(&root.kind),
        zone: zone(spec, root.availability_zone.as_ref()),
        description: description.clone(),
    });
    let more = spec.additional_block_devices.iter().filter(|device| device.storage.kind == "Volume");
    let more = more.map(|device| {
        let settings = device.storage.volume.clone().unwrap_or_default();
        VolumeOrder {
            name: names::volume(server, &device.name),
            size: gib(device.size_gib),
            image: None,
            kind: kind(&settings.kind),
            zone: zone(spec, settings.availability_zone.as_ref()),
            description: description.clone(),
        }
    });
    root.into_iter().chain(more).collect()
}

/// A disk of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// `image`, `volume` or `blank`.
    pub source: String,
    /// Id of the image or volume.
    pub id: Option<String>,
    pub size: Option<u64>,
    pub tag: Option<String>,
    pub root: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerOrder {
    /// None if it boots from a volume.
    pub image: Option<String>,
    pub flavor: String,
    pub zone: Option<String>,
    pub ports: Vec<String>,
    /// User data by reference: it holds join tokens.
    pub boot_data: Option<BootDataRef>,
    pub tags: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    pub config_drive: Option<bool>,
    pub key: Option<String>,
    pub disks: Vec<Disk>,
    pub group: Option<String>,
    pub hints: Map<String, Value>,
}

impl Order for ServerOrder {
    const VERSION: u32 = 1;
}

fn hint(property: &SchedulerHintAdditionalProperty) -> (String, Value) {
    let value = &property.value;
    let value = match value.kind.as_str() {
        "Bool" => value.bool.into(),
        "Number" => value.number.into(),
        _ => value.string.clone().into(),
    };
    (property.name.clone(), value)
}

impl ServerOrder {
    /// The order of a server whose ports and volumes exist. Volumes are by name.
    pub(super) fn of(
        server: &str,
        spec: &OpenStackServerSpec,
        resolved: &ResolvedServerSpec,
        ports: Vec<String>,
        volumes: &BTreeMap<String, String>,
        boot_data: Option<BootDataRef>,
        mark: &str,
    ) -> Self {
        let volume = |device: &str| volumes.get(&names::volume(server, device)).cloned();
        let mut disks = Vec::new();
        let from_volume = spec.root_volume.is_some();
        if from_volume {
            let id = volume("root");
            disks.push(Disk { source: "volume".to_owned(), id, size: None, tag: None, root: true });
        } else if !spec.additional_block_devices.is_empty() {
            let id = Some(resolved.image_id.clone());
            disks.push(Disk { source: "image".to_owned(), id, size: None, tag: None, root: true });
        }
        disks.extend(spec.additional_block_devices.iter().map(|device| {
            let local = device.storage.kind != "Volume";
            Disk {
                source: if local { "blank" } else { "volume" }.to_owned(),
                id: volume(&device.name).filter(|_| !local),
                size: local.then(|| gib(device.size_gib)),
                tag: Some(device.name.clone()),
                root: false,
            }
        }));
        let mut metadata: BTreeMap<String, String> =
            spec.server_metadata.iter().map(|pair| (pair.key.clone(), pair.value.clone())).collect();
        metadata.insert(mark::METADATA.to_owned(), mark.to_owned());
        Self {
            image: (!from_volume).then(|| resolved.image_id.clone()),
            flavor: resolved.flavor_id.clone(),
            zone: spec.availability_zone.clone().filter(|zone| !zone.is_empty()),
            ports,
            boot_data,
            tags: spec.tags.clone(),
            metadata,
            config_drive: spec.config_drive,
            key: Some(spec.ssh_key_name.clone()).filter(|key| !key.is_empty()),
            disks,
            group: Some(resolved.server_group_id.clone()).filter(|group| !group.is_empty()),
            hints: spec.scheduler_hint_additional_properties.iter().map(hint).collect(),
        }
    }

    pub(super) fn request(&self, name: &str, user_data: Option<&[u8]>) -> NewServer {
        let disk = |disk: &Disk| {
            let (source, destination) = match disk.source.as_str() {
                "image" => (SourceType::Image, DestinationType::Local),
                "volume" => (SourceType::Volume, DestinationType::Volume),
                _ => (SourceType::Blank, DestinationType::Local),
            };
            BlockDevice {
                boot_index: if disk.root { 0 } else { -1 },
                uuid: disk.id.clone(),
                source_type: source,
                destination_type: destination,
                volume_size: disk.size,
                volume_type: None,
                delete_on_termination: true,
                tag: disk.tag.clone(),
            }
        };
        NewServer {
            name: name.to_owned(),
            flavor: self.flavor.as_str().into(),
            image: self.image.as_deref().map(Into::into),
            availability_zone: self.zone.clone(),
            networks: self
                .ports
                .iter()
                .map(|port| PortAttachment { port: port.as_str().into(), tag: None })
                .collect(),
            user_data: user_data.map(|data| Secret::new(STANDARD.encode(data))),
            tags: self.tags.clone(),
            metadata: self.metadata.clone(),
            config_drive: self.config_drive,
            key_name: self.key.clone(),
            block_device_mapping_v2: self.disks.iter().map(disk).collect(),
            scheduler_hints: SchedulerHints {
                group: self.group.as_deref().map(Into::into),
                additional: self.hints.clone(),
            },
        }
    }
}
