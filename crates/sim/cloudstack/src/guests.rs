//! Machines on a hypervisor: they execute their user data, and load balancers lead to them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;

use base64::Engine as _;
use capstan_hypervisor::vm::{Image, VmSpec};
use capstan_hypervisor::{Hypervisor, HypervisorError};

use crate::cloud::Cloud;
use crate::commands::LENIENT;
use crate::floating;
use crate::model::compute::Vm;
use crate::model::network::PublicIp;
use crate::model::table::Key;

/// Where API servers of guests listen.
const API_PORT: u16 = 6443;

impl Cloud {
    pub(crate) fn start_guest(&mut self, vm: Key<Vm>) {
        let Some(hypervisor) = self.hypervisor.clone() else { return };
        let row = &self.vms[vm];
        if row.booted {
            report(&row.uuid, hypervisor.start(&row.uuid));
            return self.refloat(vm);
        }
        let user_data = row.user_data.as_ref().and_then(|text| LENIENT.decode(text).ok()).unwrap_or_default();
        let floating = floating::address_in(&user_data);
        let tags: BTreeMap<_, _> = self
            .tags
            .iter()
            .filter(|tag| tag.resource == row.uuid)
            .map(|tag| (tag.key.clone(), tag.value.clone()))
            .collect();
        let spec = VmSpec {
            id: row.uuid.clone(),
            name: row.name.clone(),
            user_data,
            image: Image { kubernetes: self.templates[row.template].kubernetes.clone() },
            address: row.nics.first().and_then(|nic| nic.address),
            provider_id: Some(format!("cloudstack:///{}", row.uuid)),
            cpus: u32::try_from(row.size.cores).unwrap_or(u32::MAX),
            memory_mib: row.size.memory_mib,
            tags,
            faults: Vec::new(),
        };
        report(&row.uuid, hypervisor.create(spec));
        self.vms[vm].booted = true;
        self.vms[vm].floating = floating;
        self.refloat(vm);
    }

    fn refloat(&self, vm: Key<Vm>) {
        if let Some(endpoint) = self.vms[vm].floating {
            self.float(endpoint);
        }
    }

    pub(crate) fn stop_guest(&self, vm: Key<Vm>) {
        self.with_guest(vm, |hypervisor, id| hypervisor.stop(id));
        self.refloat(vm);
    }

    pub(crate) fn reboot_guest(&self, vm: Key<Vm>) {
        self.with_guest(vm, |hypervisor, id| hypervisor.reboot(id));
    }

    pub(crate) fn destroy_guest(&self, vm: Key<Vm>) {
        self.with_guest(vm, |hypervisor, id| hypervisor.destroy(id));
        self.refloat(vm);
    }

    fn with_guest(&self, vm: Key<Vm>, act: impl Fn(&dyn Hypervisor, &str) -> Result<(), HypervisorError>) {
        let row = &self.vms[vm];
        if let Some(hypervisor) = self.hypervisor.as_deref().filter(|_| row.booted) {
            report(&row.uuid, act(hypervisor, &row.uuid));
        }
    }

    /// Reports to the hypervisor which machines serve an address: members of the rule on the port of its load balancers.
    pub(crate) fn balance(&self, ip: Key<PublicIp>) {
        let Some(hypervisor) = &self.hypervisor else { return };
        let endpoint = SocketAddrV4::new(self.ips[ip].address, self.endpoint_port);
        let members: BTreeSet<_> = self
            .lb_rules
            .iter()
            .filter(|rule| {
                rule.ip == ip && rule.public_port == endpoint.port() && rule.private_port == API_PORT
            })
            .flat_map(|rule| rule.members.iter().map(move |vm| (rule.network, *vm)))
            .filter_map(|(network, vm)| {
                self.vms[vm].nics.iter().find(|nic| nic.network == network).and_then(|nic| nic.address)
            })
            .collect();
        hypervisor.balance(endpoint, members);
    }
}

/// A hypervisor refuses only what the simulator should not have asked for.
fn report(vm: &str, outcome: Result<(), HypervisorError>) {
    if let Err(error) = outcome {
        tracing::warn!(vm, %error, "the guest does not follow its machine");
    }
}
