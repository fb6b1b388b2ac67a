//! New machines.

use std::net::Ipv4Addr;

use serde_json::json;

use super::request::Request;
use crate::call::{Answer, Call};
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Next, Submission};
use crate::model::compute::{Nic, Vm, VmState, Volume, VolumeKind};
use crate::model::network::{Network, NetworkState};
use crate::model::table::Key;
use crate::render::VmView;

pub(super) fn deploy(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let request = Request::read(cloud, call)?;
    let start = request.start;
    let vm = make(cloud, call, request)?;
    let uuid = cloud.vms[vm].uuid.clone();
    let view = VmView::full(call.caller);
    let submission = Submission::new(cloud.settings.timings.submit, move |cloud, job| {
        if !start {
            return Next::Done(Ok(json!({"virtualmachine": cloud.show_vm(vm, view).done()})));
        }
        cloud.begin_start(job, vm, view, true)
    });
    Ok(Answer::Job(submission.making_the("VirtualMachine", &uuid)))
}

fn make(cloud: &mut Cloud, call: &Call, request: Request) -> Result<Key<Vm>> {
    let uuid = cloud.fresh_uuid();
    let name = request.name.unwrap_or_else(|| format!("VM-{uuid}"));
    let mut details = request.details;
    details.insert("deployvm".to_owned(), "true".to_owned());
    if !request.key_pairs.is_empty() {
        let keys: Vec<&str> = cloud
            .ssh_keys
            .iter()
            .filter(|key| key.account == request.owner && request.key_pairs.contains(&key.name))
            .map(|key| key.public_key.as_str())
            .collect();
        details.insert("SSH.PublicKey".to_owned(), keys.join("\n"));
    }
    if !request.key_pairs.is_empty() {
        details.insert("SSH.KeyPairNames".to_owned(), request.key_pairs.join(","));
    }
    let theirs = cloud.users.iter().find(|user| user.account == request.owner).map(|user| user.key);
    let user = theirs.filter(|_| request.owner != call.caller.account).unwrap_or(call.caller.user);
    let group = request.group.map(|name| (cloud.fresh_uuid(), name));
    let it = Vm {
        display_name: request.display_name.unwrap_or_else(|| name.clone()),
        name,
        account: request.owner,
        user,
        zone: request.zone,
        template: request.template,
        offering: request.offering,
        size: request.size,
        state: VmState::Stopped,
        updated: None,
        host: None,
        nics: Vec::new(),
        user_data: request.user_data,
        details,
        affinity: request.affinity,
        group,
        key_pairs: request.key_pairs,
        data_disk: request.data_disk.map(|(offering, _)| offering),
        on_storage: false,
        swept_from: None,
        busy: None,
        booted: false,
        floating: None,
        capacity_freed: false,
        protected: false,
        running_since: None,
        stopped_at: None,
    };
    let vm = cloud.vms.insert(uuid, cloud.now, it);
    for (network, wanted) in request.networks {
        if let Err(error) = cloud.add_nic(vm, network, wanted) {
            // The server leaves the half-made machine behind.
            cloud.fail(vm);
            return Err(error);
        }
    }
    let number = vm.number();
    let root = VolumeKind::Root(request.template, request.offering);
    let mut disks = vec![(format!("ROOT-{number}"), root, request.root_bytes)];
    disks.extend(
        request
            .data_disk
            .map(|(offering, bytes)| (format!("DATA-{number}"), VolumeKind::Data(offering), bytes)),
    );
    for (device, (name, kind, bytes)) in (0..).zip(disks) {
        let it = Volume {
            name,
            account: request.owner,
            zone: request.zone,
            kind,
            bytes,
            vm: Some(vm),
            device,
            attached: None,
            ready: false,
            protected: false,
            destroyed: false,
        };
        let uuid = cloud.fresh_uuid();
        cloud.volumes.insert(uuid, cloud.now, it);
    }
    Ok(vm)
}

impl Cloud {
    fn add_nic(&mut self, vm: Key<Vm>, network: Key<Network>, wanted: Option<Ipv4Addr>) -> Result<()> {
        let address = self.guest_address(network, wanted)?;
        let row = &mut self.networks[network];
        row.nics += 1;
        let [_, _, high, low] = u32::try_from(network.number()).unwrap_or(0).to_be_bytes();
        let mac = format!("02:01:{high:02x}:{low:02x}:{:02x}:{:02x}", row.nics >> 8 & 0xff, row.nics & 0xff);
        let reserved = row.state == NetworkState::Implemented;
        let nic = Nic { uuid: self.fresh_uuid(), network, address, mac, reserved };
        self.vms[vm].nics.push(nic);
        Ok(())
    }

    /// An address of a network: the one that is wanted, or the first that is free. Layer 2 has none.
    fn guest_address(&self, network: Key<Network>, wanted: Option<Ipv4Addr>) -> Result<Option<Ipv4Addr>> {
        let row = &self.networks[network];
        let Some(cidr) = row.cidr else { return Ok(None) };
        // Machines of one hypervisor share one address space.
        let one_space = self.hypervisor.is_some();
        let taken = |address: Ipv4Addr| {
            row.gateway == Some(address)
                || self.vms.iter().any(|vm| {
                    vm.nics
                        .iter()
                        .any(|nic| (one_space || nic.network == network) && nic.address == Some(address))
                })
        };
        match wanted {
            Some(address) if !cidr.contains(&address) || taken(address) => Err(ApiError::internal(0)),
            Some(address) => Ok(Some(address)),
            None => match cidr.hosts().find(|address| !taken(*address)) {
                Some(address) => Ok(Some(address)),
                None => Err(ApiError::internal(0)),
            },
        }
    }

    /// Leaves a machine in `Error`; the background task removes it as it removes destroyed ones.
    pub(crate) fn fail(&mut self, vm: Key<Vm>) {
        self.vms[vm].host = None;
        self.set_state(vm, VmState::Error);
        self.sweep_later(vm);
    }

    pub(crate) fn set_state(&mut self, vm: Key<Vm>, state: VmState) {
        let now = self.now;
        let row = &mut self.vms[vm];
        row.state = state;
        row.updated = Some(now);
        match state {
            VmState::Running => (row.running_since, row.stopped_at) = (Some(now), None),
            VmState::Stopped => row.stopped_at = Some(now),
            _ => {}
        }
    }

    /// Gives a network its router and its source NAT address, if it has none yet.
    pub(crate) fn implement(&mut self, network: Key<Network>) -> Result<bool> {
        let row = &self.networks[network];
        if row.state == NetworkState::Implemented {
            return Ok(false);
        }
        let (account, zone, in_vpc) = (row.account, row.zone, row.vpc.is_some());
        let offering = &self.network_offerings[row.offering];
        // The router of a routed network has a public address too, and it is listed as one of source NAT.
        let nat = (offering.offers("SourceNat") || offering.is_router_gateway()) && !in_vpc;
        if nat && self.source_nat(network).is_none() {
            let ip = self.take_address(account, zone, None, Some(network), None)?;
            if let Some(held) = &mut self.ips[ip].held {
                held.state = "Allocated";
            }
        }
        let taken: Vec<u32> = self.networks.iter().filter_map(|other| other.vlan).collect();
        let vlan = (100..4096).find(|vlan| !taken.contains(vlan));
        let row = &mut self.networks[network];
        row.vlan = row.vlan.or(vlan);
        row.state = NetworkState::Implemented;
        Ok(true)
    }
}
