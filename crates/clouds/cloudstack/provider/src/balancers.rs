//! Load balancers that the cloud controller inside a cluster made for Services, on a network that stays.
//!
//! CloudStack's cloud controller names a rule after its Service's uid and says nowhere which cluster it is for. So a
//! rule is a cluster's if it led to one of the cluster's machines when the cluster was deleted: each machine writes that
//! on the network's object before it goes, one annotation per rule, and the network removes them when its turn comes.

use std::collections::BTreeMap;

use capstan_cloudstack_client::model::LoadBalancerRule;
use capstan_object::ObjectMeta;
use serde_json::{Value, json};

/// Begins the names of annotations on CloudStackIsolatedNetworks, one per rule; the value is the address.
const PREFIX: &str = "balancer.capstan.dev/";

/// Characters of the part of a name that stands for a Service.
const SERVICE: usize = 32;

/// A rule, and the address it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balancer {
    /// Id of the rule.
    pub rule: String,
    /// Id of the address.
    pub address: String,
}

impl Balancer {
    /// A rule that a cloud controller made, by its name: `a`, the Service's uid, protocol and port.
    pub(crate) fn of(rule: &LoadBalancerRule) -> Option<Self> {
        let (service, rest) = rule.name.as_deref()?.split_at_checked(SERVICE)?;
        let hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let (protocol, port) = rest.strip_prefix('-')?.rsplit_once('-')?;
        let named = service.strip_prefix('a').is_some_and(hex)
            && matches!(protocol, "tcp" | "udp" | "tcp-proxy")
            && port.parse::<u16>().is_ok();
        let address = rule.publicipid.as_ref()?.to_string();
        named.then(|| Self { rule: rule.id.to_string(), address })
    }

    /// Whether a network's object knows it.
    pub(crate) fn is_known(&self, network: &ObjectMeta) -> bool {
        network.annotations.contains_key(&format!("{PREFIX}{}", self.rule))
    }
}

/// The change that has a network's object remember rules.
pub(crate) fn remembered<'a>(rules: impl Iterator<Item = &'a Balancer>) -> Value {
    let annotations: serde_json::Map<_, _> =
        rules.map(|one| (format!("{PREFIX}{}", one.rule), one.address.as_str().into())).collect();
    json!({"metadata": {"annotations": annotations}})
}

/// What a network's object remembers: addresses by rule.
pub(crate) fn known(network: &ObjectMeta) -> BTreeMap<&str, &str> {
    let named = network.annotations.iter();
    named.filter_map(|(name, address)| Some((name.strip_prefix(PREFIX)?, address.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> LoadBalancerRule {
        serde_json::from_value(json!({"id": "r", "name": name, "publicipid": "ip"})).expect("a rule")
    }

    #[test]
    fn rules_of_a_cloud_controller_are_known_by_their_names() {
        let service = "a4f1c0de00000000000000000000000a";
        for (name, is) in [
            (format!("{service}-tcp-80"), true),
            (format!("{service}-udp-53"), true),
            (format!("{service}-tcp-proxy-443"), true),
            (format!("{service}-tcp-http"), false),
            (format!("{service}-80"), false),
            (format!("b{}-tcp-80", &service[1..]), false),
            ("api-tcp-80".to_owned(), false),
            ("Kubernetes_API_Server".to_owned(), false),
            ("a4f1c0de0000000000000000000000ü-tcp-80".to_owned(), false),
        ] {
            assert_eq!(Balancer::of(&rule(&name)).is_some(), is, "{name}");
        }
    }

    #[test]
    fn what_machines_write_down_the_network_reads() {
        let balancer = Balancer { rule: "r".to_owned(), address: "ip".to_owned() };
        let change = remembered([&balancer].into_iter());
        let network: ObjectMeta = serde_json::from_value(change["metadata"].clone()).expect("metadata");
        assert!(balancer.is_known(&network));
        assert_eq!(known(&network), BTreeMap::from([("r", "ip")]));
    }
}
