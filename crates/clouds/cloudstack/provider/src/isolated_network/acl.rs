//! Access lists of tiers that were there before. Their rules are somebody else's: none is added, changed or deleted here.
//! Traffic that a cluster needs and a list blocks is reported before machines are made.

use capstan_cloudstack_client::commands::ListNetworkAcls;
use capstan_cloudstack_client::model::{Network, NetworkAclRule};

use super::ObservedNetwork;
use super::routed::is_routed;
use crate::clouds::Access;
use crate::code;
use crate::error::CloudError;

/// The access list of tiers that are made here. By default CloudStack lets nothing in or out of a tier.
pub(super) const ALLOW: &str = "default_allow";

/// What every cluster needs to reach: registries, and names.
const OUT: [(&str, u16); 2] = [("tcp", 443), ("udp", 53)];

/// The network is a tier with a list that may forbid something.
pub(crate) fn has_acl(network: &Network) -> bool {
    network.aclid.is_some() && network.aclname.as_deref() != Some(ALLOW)
}

/// The rules of a tier's list. The one that lets everything pass is not asked for.
pub(super) async fn observe(
    network: &Network,
    observed: &mut ObservedNetwork,
    access: &Access,
) -> Result<(), CloudError> {
    let Some(id) = network.aclid.clone().filter(|_| has_acl(network)) else {
        return Ok(());
    };
    let question = ListNetworkAcls { aclid: Some(id), scope: access.scope() };
    let rules = access.client.list(&question).await.map_err(|error| access.explain(&error))?;
    observed.acl = Some(rules);
    Ok(())
}

/// What passes in a direction: by the first rule that is about it, else by the default. Lists let nothing in that they do
/// not name, and everything out unless they say what may go out. A rule that denies some is not about all.
fn passes(rules: &[NetworkAclRule], direction: &str, protocol: &str, port: u16) -> bool {
    let is =
        |held: &Option<String>, word: &str| held.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(word));
    let mut named: Vec<&NetworkAclRule> =
        rules.iter().filter(|rule| is(&rule.traffictype, direction)).collect();
    named.sort_by_key(|rule| rule.number);
    let by_default = direction == "Egress" && named.is_empty();
    let about = named.into_iter().find(|rule| {
        let number = if protocol == "tcp" { "6" } else { "17" };
        let protocol =
            is(&rule.protocol, protocol) || is(&rule.protocol, "all") || is(&rule.protocol, number);
        let first = rule.startport.unwrap_or(0);
        let last = rule.endport.or(rule.startport).unwrap_or(u16::MAX);
        let everybody = rule
            .cidrlist
            .as_deref()
            .is_none_or(|list| list.is_empty() || list.split(',').any(|cidr| cidr.trim().ends_with("/0")));
        protocol && (first..=last).contains(&port) && (everybody || is(&rule.action, "Allow"))
    });
    about.map_or(by_default, |rule| is(&rule.action, "Allow"))
}

/// Why a tier is of no use to a cluster whose API server has this port.
pub(super) fn lacking(network: &Network, rules: &[NetworkAclRule], port: u16) -> Option<CloudError> {
    let mut missing = Vec::new();
    // The load balancer of a tier is in front of its list; machines of a routed tier are behind it.
    if is_routed(network) && !passes(rules, "Ingress", "tcp", port) {
        missing.push(format!("tcp {port} in"));
    }
    let out = OUT.into_iter().filter(|(protocol, port)| !passes(rules, "Egress", protocol, *port));
    missing.extend(out.map(|(protocol, port)| format!("{protocol} {port} out")));
    if missing.is_empty() {
        return None;
    }
    let message = format!(
        "access list {} of tier {} blocks {}: add rules that allow it, or replace the list; lists that were not \
         made here are not changed",
        network.aclname.as_deref().unwrap_or_default(),
        network.name.as_deref().unwrap_or_default(),
        missing.join(", ")
    );
    Some(CloudError::new(code::ACL, "AccessListLacking", message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn missing(routed: bool, rules: &[Value]) -> String {
        let mut network = json!({"id": "n", "name": "t", "aclname": "l"});
        if routed {
            network["ip4routing"] = "Static".into();
        }
        let network: Network = serde_json::from_value(network).expect("a network");
        let rules: Vec<NetworkAclRule> = serde_json::from_value(json!(rules)).expect("rules");
        let cause = lacking(&network, &rules, 6443).map(|cause| cause.message).unwrap_or_default();
        cause
            .strip_prefix("access list l of tier t blocks ")
            .unwrap_or_default()
            .split(": ")
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    #[test]
    fn what_a_list_does_not_let_pass_is_named() {
        let rule = |number: i64, direction: &str, action: &str, protocol: &str, port: &str, cidr: &str| {
            let mut rule = json!({
                "id": "r", "number": number, "traffictype": direction, "action": action, "protocol": protocol,
                "cidrlist": cidr,
            });
            if !port.is_empty() {
                (rule["startport"], rule["endport"]) = (port.into(), port.into());
            }
            rule
        };
        let all = "0.0.0.0/0";
        assert_eq!(missing(false, &[]), "", "a list without rules lets everything out");
        assert_eq!(missing(true, &[]), "tcp 6443 in");
        let deny = [rule(1, "Ingress", "Deny", "all", "", all), rule(2, "Egress", "Deny", "all", "", all)];
        assert_eq!(missing(false, &deny), "tcp 443 out, udp 53 out");
        assert_eq!(missing(true, &deny), "tcp 6443 in, tcp 443 out, udp 53 out");
        let web = [rule(1, "Egress", "Allow", "tcp", "443", all)];
        assert_eq!(missing(false, &web), "udp 53 out");
        let some = [
            rule(1, "Egress", "Deny", "all", "", "198.51.100.0/24"),
            rule(9, "Egress", "Allow", "all", "", all),
        ];
        assert_eq!(missing(false, &some), "", "what is denied to some is not denied to all");
        let late = [rule(9, "Egress", "Allow", "all", "", all), rule(3, "Egress", "Deny", "tcp", "443", all)];
        assert_eq!(missing(false, &late), "tcp 443 out", "the lowest number counts");
        let api = [rule(1, "Ingress", "Allow", "6", "6443", "192.0.2.0/24")];
        assert_eq!(missing(true, &api), "", "whom it lets in is up to the list");
    }
}
