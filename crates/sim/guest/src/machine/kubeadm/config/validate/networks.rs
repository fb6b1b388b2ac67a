//! Validation of networks: too small, too large, or not enough for the nodes.

use capstan_schema::meta::dns1123_subdomain;

use super::super::addresses::Subnet;
use super::super::{Arguments, Cluster};
use super::Errors;

/// Minimum number of addresses for Services and for Pods.
const SERVICES: u64 = 10;
const PODS: u64 = 14;
/// Maximum host bits of the service network.
const SERVICE_BITS: u32 = 20;
/// Maximum bits between the Pod network and a node's network.
const NODE_BITS: i64 = 16;

impl Errors {
    pub(super) fn networking(&mut self, cluster: &Cluster) {
        let domain = cluster.text("/networking/dnsDomain");
        for why in dns1123_subdomain(domain) {
            self.invalid("networking.dnsDomain", domain, &why);
        }
        let path = "networking.serviceSubnet";
        for subnet in self.subnets(path, cluster.text("/networking/serviceSubnet"), SERVICES) {
            let width = subnet.width();
            if width - subnet.mask() > SERVICE_BITS {
                let least = width - SERVICE_BITS;
                let why = format!(
                    "specified service subnet is too large; for {width}-bit addresses, the mask must be >= {least}"
                );
                self.invalid(path, &subnet.to_string(), &why);
            }
        }
        let path = "networking.podSubnet";
        let pods = self.subnets(path, cluster.text("/networking/podSubnet"), PODS);
        let arguments = cluster.arguments("controllerManager");
        let argument = |name: &str| arguments.as_ref().and_then(|it| it.last(name)).unwrap_or_default();
        if argument("allocate-node-cidrs") == "false" {
            return;
        }
        for subnet in pods {
            let (flag, default) = match subnet.is_ipv6() {
                true => ("node-cidr-mask-size-ipv6", "64"),
                false => ("node-cidr-mask-size-ipv4", "24"),
            };
            let given = match argument(flag) {
                "" => default,
                given => given,
            };
            let mask = i64::from(subnet.mask());
            let why = match given.parse::<i64>() {
                Err(_) => format!(
                    "could not parse the value of the kube-controller-manager flag {flag} as an integer: strconv.Atoi: \
                     parsing {given:?}: invalid syntax"
                ),
                Ok(node) if mask > node => format!(
                    "the size of pod subnet with mask {mask} is smaller than the size of node subnet with mask {node}"
                ),
                Ok(node) if node - mask > NODE_BITS => format!(
                    "pod subnet mask ({mask}) and node-mask ({node}) difference is greater than {NODE_BITS}"
                ),
                Ok(_) => continue,
            };
            self.invalid(path, &subnet.to_string(), &why);
        }
    }

    /// One network, or one of each family. Empty if any is invalid.
    fn subnets(&mut self, path: &str, text: &str, least: u64) -> Vec<Subnet> {
        if text.is_empty() {
            return Vec::new();
        }
        let Some(subnets) = text.split(',').map(Subnet::parse).collect::<Option<Vec<_>>>() else {
            self.invalid(path, text, "couldn't parse subnet");
            return Vec::new();
        };
        let is_one_or_dual = match subnets.as_slice() {
            [_] => true,
            [one, other] => one.is_ipv6() != other.is_ipv6(),
            _ => false,
        };
        if !is_one_or_dual {
            let why =
                "expected one (IPv4 or IPv6) CIDR or two CIDRs from each family for dual-stack networking";
            self.invalid(path, text, why);
        }
        for subnet in subnets.iter().filter(|subnet| subnet.size() < least) {
            let why =
                format!("subnet with {} address(es) is too small, the minimum is {least}", subnet.size());
            self.invalid(path, &subnet.to_string(), &why);
        }
        subnets
    }
}

impl Arguments {
    /// The effective value of an argument that may be repeated.
    fn last(&self, name: &str) -> Option<&str> {
        self.pairs().into_iter().rfind(|(held, _)| *held == name).map(|(_, value)| value)
    }
}
