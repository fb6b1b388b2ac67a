//! Addresses that machines hold themselves, as kube-vip has them do: none was given to them by the cloud, and each leads to
//! those machines that run it.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use capstan_user_data::{Metadata, UserData, files, read};
use ipnet::Ipv4Net;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::model::compute::{Vm, VmState};
use crate::model::network::Network;
use crate::model::table::Key;

/// Where kubelets look for Pods that belong to their machine.
const MANIFESTS: &str = "/etc/kubernetes/manifests/";
/// Default port of kube-vip.
const PORT: u16 = 6443;

/// The address that kube-vip on a machine holds, as its user data says.
pub(crate) fn address_in(user_data: &[u8]) -> Option<SocketAddrV4> {
    let nothing = Metadata::new(&json!({}), &json!({}));
    let UserData::CloudConfig(config) = read(user_data, &nothing).ok()?.data else { return None };
    let mut found = None;
    // An unreadable manifest is an error of the guest, not of the cloud.
    let _ = files(&config, false, |file| {
        if let Ok(file) = file
            && file.path.starts_with(MANIFESTS)
        {
            found = found.or_else(|| held(&file.content));
        }
        Ok(())
    });
    found
}

/// The address in a manifest of kube-vip.
fn held(manifest: &[u8]) -> Option<SocketAddrV4> {
    let pod: Value = serde_saphyr::from_str(std::str::from_utf8(manifest).ok()?).ok()?;
    let containers = pod["spec"]["containers"].as_array()?;
    let vip = containers.iter().find(|container| container["name"] == "kube-vip")?;
    let environment = vip["env"].as_array()?;
    let value = |names: &[&str]| {
        let named = |variable: &&Value| variable["name"].as_str().is_some_and(|name| names.contains(&name));
        environment.iter().find(named)?["value"].as_str()
    };
    let address = value(&["address", "vip_address"])?.parse().ok()?;
    Some(SocketAddrV4::new(address, value(&["port"]).and_then(|port| port.parse().ok()).unwrap_or(PORT)))
}

impl Cloud {
    /// Lets an address lead to the machines that hold it, unless it is one of the cloud's own.
    pub(crate) fn float(&self, endpoint: SocketAddrV4) {
        let Some(hypervisor) = &self.hypervisor else { return };
        if self.ips.iter().any(|ip| ip.address == *endpoint.ip()) {
            return;
        }
        let is_let_in = |vm: &Vm| vm.nics.first().is_none_or(|nic| self.lets_in(nic.network, endpoint));
        let members: BTreeSet<_> = self
            .vms
            .iter()
            .filter(|vm| vm.state == VmState::Running && vm.floating == Some(endpoint) && is_let_in(vm))
            .filter_map(|vm| vm.nics.first().and_then(|nic| nic.address))
            .collect();
        if members.is_empty() {
            hypervisor.release(endpoint);
        } else {
            hypervisor.keep_endpoint(&format!("kube-vip/{endpoint}"), endpoint);
            hypervisor.balance(endpoint, members);
        }
    }

    /// Whether somebody outside a network reaches an address in it. A routed network lets nobody in without a rule. Who
    /// dials is not known here, so any source will do.
    fn lets_in(&self, network: Key<Network>, endpoint: SocketAddrV4) -> bool {
        if !self.offering_of(network).is_router_gateway() || self.networks[network].vpc.is_some() {
            return true;
        }
        self.firewall_rules.iter().any(|rule| {
            let to = |text: &String| text.parse::<Ipv4Net>().is_ok_and(|cidr| cidr.contains(endpoint.ip()));
            rule.network == network
                && !rule.egress
                && rule.protocol == "tcp"
                && rule.ports.is_none_or(|ports| (ports.start..=ports.end).contains(&endpoint.port()))
                && (rule.destinations.is_empty() || rule.destinations.iter().any(to))
        })
    }

    /// Who is let in to a network changed.
    pub(crate) fn refloat_network(&self, network: Key<Network>) {
        let there = self.vms.iter().filter(|vm| vm.nics.first().is_some_and(|nic| nic.network == network));
        for endpoint in there.filter_map(|vm| vm.floating).collect::<BTreeSet<_>>() {
            self.float(endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(manifest: &str) -> Option<SocketAddrV4> {
        let indented: String = manifest.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!(
            "## template: jinja\n#cloud-config\nwrite_files:\n- path: /etc/kubernetes/manifests/kube-vip.yaml\n  content: |\n{indented}"
        );
        address_in(text.as_bytes())
    }

    #[test]
    fn an_address_is_read_from_the_manifest_of_kube_vip() {
        let pod = |name: &str, env: &str| {
            format!("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: {name}\n    env: {env}\n")
        };
        for (name, env, held) in [
            ("kube-vip", "[{name: address, value: 10.0.0.9}]", Some("10.0.0.9:6443")),
            (
                "kube-vip",
                "[{name: port, value: \"8443\"}, {name: vip_address, value: 10.0.0.9}]",
                Some("10.0.0.9:8443"),
            ),
            ("kube-vip", "[{name: address, value: api.example}]", None),
            ("etcd", "[{name: address, value: 10.0.0.9}]", None),
        ] {
            assert_eq!(with(&pod(name, env)).map(|it| it.to_string()).as_deref(), held, "{name} {env}");
        }
        assert_eq!(with("{"), None);
        assert_eq!(address_in(b"#!/bin/sh\n"), None);
    }
}
