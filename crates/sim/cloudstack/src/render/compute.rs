//! Virtual machines and what belongs to them.

use serde_json::{Value, json};

use super::{Fields, time};
use crate::call::Caller;
use crate::cloud::Cloud;
use crate::model::compute::{
    AffinityGroup, HIDDEN_DETAILS, KubernetesCluster, SshKey, Vm, VmState, Volume, VolumeKind,
};
use crate::model::network::NetworkState;
use crate::model::table::Key;

/// How much of a machine is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VmView {
    pub(crate) caller: Caller,
    /// Groups of fields that are shown.
    pub(crate) details: Details,
    /// User data too.
    pub(crate) user_data: bool,
}

/// A set of groups of fields, as the parameter `details` names them. Fields of no group are always shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Details(u16);

impl Details {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const GROUP: Self = Self(1);
    pub(crate) const NICS: Self = Self(1 << 1);
    pub(crate) const STATS: Self = Self(1 << 2);
    pub(crate) const TEMPLATE: Self = Self(1 << 3);
    pub(crate) const SERVICE_OFFERING: Self = Self(1 << 4);
    pub(crate) const DISK_OFFERING: Self = Self(1 << 5);
    pub(crate) const VOLUME: Self = Self(1 << 6);
    pub(crate) const AFFINITY_GROUP: Self = Self(1 << 7);
    pub(crate) const ALL: Self = Self(u16::MAX);

    /// The group of a word of the parameter. `None` for a word that the server does not know.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "all" => Self::ALL,
            "group" => Self::GROUP,
            "nics" => Self::NICS,
            "stats" => Self::STATS,
            "tmpl" => Self::TEMPLATE,
            "servoff" => Self::SERVICE_OFFERING,
            "diskoff" => Self::DISK_OFFERING,
            "volume" => Self::VOLUME,
            "affgrp" => Self::AFFINITY_GROUP,
            "min" | "secgrp" | "backoff" | "iso" | "vnfnics" => Self::NONE,
            _ => return None,
        })
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one of these groups is in the set.
    pub(crate) fn has(self, groups: Self) -> bool {
        self.0 & groups.0 != 0
    }
}

impl VmView {
    /// Everything that a caller sees.
    pub(crate) fn full(caller: Caller) -> Self {
        Self { caller, details: Details::ALL, user_data: false }
    }
}

impl Cloud {
    pub(crate) fn show_vm(&self, key: Key<Vm>, view: VmView) -> Fields {
        let row = &self.vms[key];
        let zone = &self.zones[row.zone];
        let template = &self.templates[row.template];
        let os = &self.os_types[template.os_type];
        let user = &self.users[row.user];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "displayname": row.display_name,
            "userid": user.uuid,
            "username": user.name,
            "created": time(row.created),
            "state": row.state.name(),
            "haenable": false,
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "guestosid": os.uuid,
            "securitygroup": [],
            "nic": [],
            "hypervisor": template.hypervisor,
            "affinitygroup": [],
            "isdynamicallyscalable": false,
            "deleteprotection": row.protected,
            "ostypeid": os.uuid,
            "osdisplayname": os.name,
            "receivedbytes": 0,
            "sentbytes": 0,
            "tags": self.long_tags(&row.uuid),
            "hasannotations": false,
        }));
        fields.owner(self, row.account).maybe("lastupdated", row.updated.map(time)).job(self, &row.uuid);
        if row.on_storage {
            fields.put("pooltype", "NetworkFilesystem");
        }
        if row.state.occupies() {
            fields.put("hostcontrolstate", "Enabled");
        }
        let mut details = row.all_details();
        // The server takes a machine without any details for one with a BIOS.
        if details.is_empty() {
            fields.put("bootmode", "legacy").put("boottype", "Bios");
        }
        if !view.caller.is_root() {
            details.retain(|name, _| !HIDDEN_DETAILS.contains(&name.as_str()));
        }
        fields.put("details", json!(details));
        if view.caller.is_root() {
            fields.put("instancename", self.instance_name(key)).put("displayvm", true).put("arch", "x86_64");
            if let Some(host) = row.host.filter(|_| row.state.occupies()) {
                let host = &self.hosts[host];
                fields.put("hostid", host.uuid.as_str()).put("hostname", host.name.as_str());
            }
        } else {
            fields.put("readonlydetails", "dataDiskController, rootDiskController");
        }
        if !row.key_pairs.is_empty() {
            fields.put("keypairs", row.key_pairs.join(","));
        }
        let public =
            self.ips.iter().find(|ip| ip.held.as_ref().is_some_and(|held| held.static_nat == Some(key)));
        if let Some(ip) = public {
            fields.put("publicipid", ip.uuid.as_str()).put("publicip", ip.address.to_string());
        }
        if !row.affinity.is_empty() && view.details.has(Details::AFFINITY_GROUP) {
            let groups: Vec<Value> =
                row.affinity.iter().map(|group| self.show_member_group(*group)).collect();
            fields.put("affinitygroup", groups);
        }
        if view.details.has(Details::NICS) {
            let nics: Vec<Value> = (0..row.nics.len()).map(|at| self.show_nic(key, at).done()).collect();
            let address = row.nics.first().and_then(|nic| nic.address).map(|address| address.to_string());
            fields.put("nic", nics).maybe("ipaddress", address);
        }
        self.put_vm_details(&mut fields, key, view.details);
        if view.user_data {
            fields.maybe("userdata", row.user_data.as_deref());
        }
        fields
    }

    fn put_vm_details(&self, fields: &mut Fields, key: Key<Vm>, details: Details) {
        let row = &self.vms[key];
        let template = &self.templates[row.template];
        let offering = &self.service_offerings[row.offering];
        if details.has(Details::TEMPLATE) {
            fields
                .put("templateid", template.uuid.as_str())
                .put("templatename", template.name.as_str())
                .put("templatetype", template.kind.name())
                .put("templateformat", template.format.as_str())
                .put("templatedisplaytext", template.display_text.as_str())
                .put("passwordenabled", false);
        }
        if details.has(Details::SERVICE_OFFERING) {
            fields
                .put("serviceofferingid", offering.uuid.as_str())
                .put("serviceofferingname", offering.name.as_str());
        }
        if details.has(Details::SERVICE_OFFERING.with(Details::STATS)) {
            fields
                .put("cpunumber", row.size.cores)
                .put("cpuspeed", row.size.mhz)
                .put("memory", row.size.memory_mib);
        }
        if details.has(Details::VOLUME) {
            fields.put("rootdeviceid", 0).put("rootdevicetype", "ROOT");
        }
        if let Some(disk) = row.data_disk.filter(|_| details.has(Details::DISK_OFFERING)) {
            let disk = &self.disk_offerings[disk];
            fields.put("diskofferingid", disk.uuid.as_str()).put("diskofferingname", disk.name.as_str());
        }
        if let Some((id, name)) = row.group.as_ref().filter(|_| details.has(Details::GROUP)) {
            fields.put("groupid", id.as_str()).put("group", name.as_str());
        }
        if details.has(Details::STATS) && self.has_statistics(row) {
            fields.put("cpuused", "10%").put("networkkbsread", 32768).put("networkkbswrite", 16384);
            for name in [
                "diskkbsread",
                "diskkbswrite",
                "memorykbs",
                "memoryintfreekbs",
                "memorytargetkbs",
                "diskioread",
                "diskiowrite",
            ] {
                fields.put(name, 0);
            }
        }
    }

    /// Statistics are collected once a minute from machines that run, and stay until the next start.
    fn has_statistics(&self, vm: &Vm) -> bool {
        let minute = jiff::SignedDuration::from_secs(60);
        match (vm.running_since, vm.stopped_at) {
            (Some(since), None) => self.now.duration_since(since) >= minute,
            (Some(since), Some(until)) => {
                vm.state != VmState::Destroyed && until.duration_since(since) >= minute
            }
            (None, _) => false,
        }
    }

    /// `i-<account>-<vm>-VM`.
    pub(crate) fn instance_name(&self, key: Key<Vm>) -> String {
        format!("i-{}-{}-VM", self.vms[key].account.number(), key.number())
    }

    pub(crate) fn show_nic(&self, vm: Key<Vm>, at: usize) -> Fields {
        let nic = &self.vms[vm].nics[at];
        let network = &self.networks[nic.network];
        let offering = &self.network_offerings[network.offering];
        let mut fields = Fields::of(json!({
            "id": nic.uuid,
            "networkid": network.uuid,
            "networkname": network.name,
            "traffictype": "Guest",
            "type": offering.guest_type.name(),
            "isdefault": at == 0,
            "macaddress": nic.mac,
            "secondaryip": [],
            "extradhcpoption": [],
            "deviceid": at.to_string(),
        }));
        if let (Some(cidr), Some(gateway)) = (network.cidr, network.gateway) {
            fields.put("netmask", cidr.netmask().to_string()).put("gateway", gateway.to_string());
        }
        fields.maybe("ipaddress", nic.address.map(|address| address.to_string()));
        if let Some(vpc) = network.vpc {
            let vpc = &self.vpcs[vpc];
            fields.put("vpcid", vpc.uuid.as_str()).put("vpcname", vpc.name.as_str());
        }
        let public = self.ips.iter().find(|ip| {
            ip.held
                .as_ref()
                .is_some_and(|held| held.static_nat == Some(vm) && held.network == Some(nic.network))
        });
        if let Some(ip) = public {
            fields.put("publicipid", ip.uuid.as_str()).put("publicip", ip.address.to_string());
        }
        if nic.reserved && network.state == NetworkState::Implemented {
            let uri = network.vlan.map(|vlan| format!("vlan://{vlan}"));
            fields.maybe("isolationuri", uri.clone()).maybe("broadcasturi", uri);
        }
        fields
    }

    fn show_member_group(&self, key: Key<AffinityGroup>) -> Value {
        let row = &self.affinity_groups[key];
        let mut fields =
            Fields::of(json!({"id": row.uuid, "name": row.name, "account": self.accounts[row.account].name}));
        fields.maybe("description", row.description.as_deref());
        fields.done()
    }

    /// `full`: with the fields that only root sees.
    pub(crate) fn show_volume(&self, key: Key<Volume>, full: bool) -> Value {
        let row = &self.volumes[key];
        let zone = &self.zones[row.zone];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "provisioningtype": "thin",
            "size": row.bytes,
            "created": time(row.created),
            "state": row.state_name(),
            "destroyed": row.destroyed,
            "quiescevm": false,
            "supportsstoragesnapshot": false,
            "deleteprotection": row.protected,
            "tags": self.long_tags(&row.uuid),
            "hasannotations": false,
        }));
        fields.owner(self, row.account).maybe("attached", row.attached.map(time)).job(self, &row.uuid);
        match row.kind {
            VolumeKind::Root(template, offering) => {
                let (template, size) = (&self.templates[template], &self.service_offerings[offering]);
                fields
                    .put("type", "ROOT")
                    .put("isextractable", false)
                    .put("templateid", template.uuid.as_str())
                    .put("templatename", template.name.as_str())
                    .put("templatedisplaytext", template.display_text.as_str())
                    .put("serviceofferingid", offering.number().to_string())
                    .put("serviceofferingname", size.name.as_str())
                    .maybe("serviceofferingdisplaytext", size.display_text.as_deref());
            }
            VolumeKind::Data(offering) => {
                let offering = &self.disk_offerings[offering];
                fields
                    .put("type", "DATADISK")
                    .put("isextractable", true)
                    .put("diskofferingid", offering.uuid.as_str())
                    .put("diskofferingname", offering.name.as_str())
                    .put("diskofferingdisplaytext", offering.display_text.as_str());
            }
        }
        if full {
            fields.put("storagetype", "shared").put("hypervisor", "Simulator").put("displayvolume", true);
            if row.ready {
                fields
                    .put("path", row.uuid.as_str())
                    .put("storage", format!("{}-primary", zone.name))
                    .put("storageid", zone.primary_storage.as_str());
            } else {
                fields.put("storage", "none");
            }
        }
        if let Some(vm) = row.vm.filter(|_| !row.destroyed) {
            let vm = &self.vms[vm];
            fields
                .put("deviceid", row.device)
                .put("virtualmachineid", vm.uuid.as_str())
                .put("vmname", vm.name.as_str())
                .put("vmdisplayname", vm.display_name.as_str())
                .put("vmstate", vm.state.name())
                .put("vmtype", "User");
            if vm.on_storage {
                for name in ["diskkbsread", "diskkbswrite", "diskioread", "diskiowrite"] {
                    fields.put(name, 0);
                }
            }
        }
        fields.done()
    }

    pub(crate) fn show_affinity_group(&self, key: Key<AffinityGroup>) -> Value {
        let row = &self.affinity_groups[key];
        let mut fields = Fields::of(json!({"id": row.uuid, "name": row.name, "type": row.kind.name()}));
        fields.owner(self, row.account).maybe("description", row.description.as_deref());
        let members: Vec<Value> = self
            .vms
            .iter()
            .filter(|vm| vm.affinity.contains(&key))
            .map(|vm| Value::from(vm.uuid.as_str()))
            .collect();
        if !members.is_empty() {
            fields.put("virtualmachineIds", members);
        }
        fields.done()
    }

    pub(crate) fn show_ssh_key(&self, key: Key<SshKey>) -> Fields {
        let row = &self.ssh_keys[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "fingerprint": row.fingerprint,
            "hasannotations": false,
        }));
        fields.owner(self, row.account);
        fields.0.remove("domainpath");
        fields
    }

    pub(crate) fn show_kubernetes_cluster(&self, key: Key<KubernetesCluster>, caller: Caller) -> Value {
        let row = &self.kubernetes_clusters[key];
        let zone = &self.zones[row.zone];
        let members: Vec<Value> = row
            .members
            .iter()
            .map(|vm| {
                let view = VmView { details: Details::NICS, ..VmView::full(caller) };
                let mut fields = self.show_vm(*vm, view);
                fields.put("isexternalnode", false).put("isetcdnode", false);
                // The view behind this list shows the first tag only.
                if let Some(Value::Array(tags)) = fields.0.get_mut("tags") {
                    tags.truncate(1);
                }
                for absent in ["domainpath", "hasannotations", "ipaddress"] {
                    fields.0.remove(absent);
                }
                fields.done()
            })
            .collect();
        let offering = row.offering.map(|offering| &self.service_offerings[offering]);
        let size = offering.and_then(|offering| match offering.size {
            crate::model::place::OfferedSize::Fixed(size) => Some(size),
            _ => None,
        });
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "description": row.description,
            "zoneid": zone.uuid,
            "zonename": zone.name,
            "etcdnodes": 0,
            "masternodes": 1,
            "controlnodes": 1,
            "size": 0,
            "state": "Running",
            "cpunumber": size.map_or(0, |size| size.cores).to_string(),
            "memory": size.map_or(0, |size| size.memory_mib).to_string(),
            "endpoint": "",
            "autoscalingenabled": false,
            "csienabled": false,
            "clustertype": "ExternalManaged",
            "created": time(row.created),
            "hasannotations": false,
        }));
        if !members.is_empty() {
            fields.put("etcdips", json!({}));
        }
        fields.put("virtualmachines", members);
        fields.owner(self, row.account);
        if let Some(offering) = offering {
            fields
                .put("serviceofferingid", offering.uuid.as_str())
                .put("serviceofferingname", offering.name.as_str());
        }
        if let Some(network) = row.network {
            let row = &self.networks[network];
            fields.put("networkid", row.uuid.as_str()).put("associatednetworkname", row.name.as_str());
            if let Some(ip) = self.source_nat(network) {
                let ip = &self.ips[ip];
                fields.put("ipaddress", ip.address.to_string()).put("ipaddressid", ip.uuid.as_str());
            }
        }
        fields.done()
    }
}
