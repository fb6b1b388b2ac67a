//! Addresses, rules, tags.

use serde_json::{Value, json};

use crate::world::{Answer, World};

#[tokio::test]
async fn the_first_address_of_a_network_is_its_source_nat_and_stays() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let first = world.get("alice", "associateIpAddress", &[("networkid", &network)]).await;
    let end = world.wait("alice", &first).await;
    assert_eq!(end["jobresult"]["ipaddress"]["issourcenat"], true);
    let id = first.body["id"].as_str().unwrap();
    let release = world.get("alice", "disassociateIpAddress", &[("id", id)]).await;
    assert_eq!(world.wait("alice", &release).await["jobresultcode"], 530);
    let second = world.done("alice", "associateIpAddress", &[("networkid", &network)]).await;
    assert_eq!(second["ipaddress"]["issourcenat"], false);
}

#[tokio::test]
async fn addresses_run_out() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    // Two of six belong to system machines.
    for _ in 0..4 {
        world.done("alice", "associateIpAddress", &[("networkid", &network)]).await;
    }
    assert_eq!(
        world.get("alice", "associateIpAddress", &[("networkid", &network)]).await.code(),
        (533, Some(9999))
    );
}

#[tokio::test]
async fn a_load_balancer_opens_the_firewall_and_forgets_destroyed_members() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    let ip = world.get("alice", "associateIpAddress", &[("networkid", &network)]).await;
    world.wait("alice", &ip).await;
    let ip = ip.body["id"].as_str().unwrap().to_owned();
    let rule = [
        ("publicipid", ip.as_str()),
        ("name", "api"),
        ("algorithm", "roundrobin"),
        ("publicport", "6443"),
        ("privateport", "6443"),
    ];
    let made = world.get("alice", "createLoadBalancerRule", &rule).await;
    let shown = world.wait("alice", &made).await["jobresult"]["loadbalancer"].clone();
    assert_eq!((&shown["publicport"], &shown["state"]), (&json!("6443"), &json!("Add")));
    assert_eq!(world.get("alice", "createLoadBalancerRule", &rule).await.code(), (537, Some(9999)));
    let opened = world.get("alice", "listFirewallRules", &[("ipaddressid", &ip)]).await.body;
    assert_eq!((&opened["count"], &opened["firewallrule"][0]["startport"]), (&json!(1), &json!(6443)));

    let id = made.body["id"].as_str().unwrap().to_owned();
    let member = [("id", id.as_str()), ("virtualmachineids", vm.as_str())];
    world.done("alice", "assignToLoadBalancerRule", &member).await;
    let again = world.get("alice", "assignToLoadBalancerRule", &member).await;
    assert_eq!(world.wait("alice", &again).await["jobresultcode"], 530);
    world.done("alice", "destroyVirtualMachine", &[("id", &vm)]).await;
    assert_eq!(world.get("alice", "listLoadBalancerRuleInstances", &[("id", &id)]).await.body, json!({}));
    let listed = world.get("alice", "listLoadBalancerRules", &[("id", &id)]).await.body;
    assert_eq!(listed["loadbalancerrule"][0]["state"], "Active");
    world.done("alice", "deleteLoadBalancerRule", &[("id", &id)]).await;
    assert_eq!(world.get("alice", "listFirewallRules", &[("ipaddressid", &ip)]).await.body, json!({}));
    assert_eq!(world.get("alice", "deleteLoadBalancerRule", &[("id", &id)]).await.code(), (431, Some(9999)));
}

#[tokio::test]
async fn a_tag_is_not_an_upsert() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let tag = |value: &'static str| {
        let (world, network) = (&world, &network);
        async move {
            let parameters = [
                ("resourceids", network.as_str()),
                ("resourcetype", "network"),
                ("tags[0].key", "k1"),
                ("tags[0].value", value),
            ];
            let submitted = world.get("alice", "createTags", &parameters).await;
            world.wait("alice", &submitted).await["jobresultcode"].as_u64().unwrap()
        }
    };
    assert_eq!((tag("v1").await, tag("v2").await), (0, 530));
    let found = [("tags[0].key", "k1"), ("tags[0].value", "v1")];
    assert_eq!(world.get("alice", "listNetworks", &found).await.body["count"], 1);
    let other = [("tags[0].key", "k1"), ("tags[0].value", "v2")];
    assert_eq!(world.get("alice", "listNetworks", &other).await.body, json!({}));
}

#[tokio::test]
async fn names_are_found_in_any_case_and_lists_of_networks_begin_with_the_newest() {
    let world = World::new();
    world.network("alice", "First").await;
    world.network("alice", "second").await;
    let listed = world.get("alice", "listNetworks", &[]).await.body;
    assert_eq!(
        (&listed["network"][0]["name"], &listed["network"][1]["name"]),
        (&json!("second"), &json!("First"))
    );
    assert_eq!(world.get("alice", "listNetworks", &[("name", "FIRST")]).await.body["count"], 1);
    assert_eq!(world.get("alice", "listNetworks", &[("name", "Fir")]).await.body, json!({}));
    assert_eq!(world.get("alice", "listNetworks", &[("keyword", "IRS")]).await.body["count"], 1);
}

/// The newest entries of a log: type and state.
async fn newest(world: &World, account: &str) -> Vec<(String, String)> {
    let page = [("page", "1"), ("pagesize", "3")];
    let listed = world.get(account, "listEvents", &page).await.body;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = listed["event"].as_array().into_iter().flatten();
    shown.map(|it| (text(&it["type"]), text(&it["state"]))).collect()
}

#[tokio::test]
async fn what_an_administrator_deletes_is_scheduled_in_the_log_of_the_owner_and_done_in_their_own() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let made =
        world.get("alice", "createEgressFirewallRule", &[("networkid", &network), ("protocol", "all")]).await;
    world.wait("alice", &made).await;
    let id = made.body["id"].as_str().unwrap().to_owned();
    world.done("admin", "deleteEgressFirewallRule", &[("id", &id)]).await;
    // The first page holds the newest events, and inside it the oldest comes first.
    let of = |kind: &str, state: &str| (format!("FIREWALL.EGRESS.{kind}"), state.to_owned());
    let own = [of("OPEN", "Started"), of("OPEN", "Completed"), of("CLOSE", "Scheduled")];
    assert_eq!(newest(&world, "alice").await, own);
    assert_eq!(newest(&world, "admin").await, [of("CLOSE", "Started"), of("CLOSE", "Completed")]);
    assert!(newest(&world, "bob").await.is_empty());
}

#[tokio::test]
async fn what_happens_to_an_access_list_shows_in_the_event_log_and_a_changed_rule_keeps_what_is_not_named() {
    let world = World::new();
    let zone = world.zone().await;
    let offering = world.id("listVPCOfferings", "vpcoffering", "Default VPC offering").await;
    let made = async |command: &str, parameters: &[(&str, &str)]| {
        let answer = world.get("alice", command, parameters).await;
        world.wait("alice", &answer).await;
        answer.body["id"].as_str().unwrap().to_owned()
    };
    let place = [("zoneid", zone.as_str()), ("vpcofferingid", &offering), ("cidr", "10.9.0.0/16")];
    let vpc = made("createVPC", &[&[("name", "v"), ("displaytext", "v")], &place[..]].concat()).await;
    let list = made("createNetworkACLList", &[("name", "l"), ("vpcid", &vpc)]).await;
    let what =
        [("aclid", list.as_str()), ("protocol", "tcp"), ("startport", "443"), ("traffictype", "egress")];
    let rule = made("createNetworkACL", &what).await;
    let of = |kind: &str| {
        ["Scheduled", "Started", "Completed"].map(|state| (format!("NETWORK.ACL.{kind}"), state.to_owned()))
    };
    assert_eq!(newest(&world, "alice").await, of("ITEM.CREATE"));
    world.done("alice", "updateNetworkACLItem", &[("id", &rule), ("action", "deny")]).await;
    assert_eq!(newest(&world, "alice").await, of("ITEM.UPDATE"));
    let shown =
        world.get("alice", "listNetworkACLs", &[("aclid", &list)]).await.body["networkacl"][0].clone();
    assert_eq!((&shown["action"], &shown["startport"]), (&json!("Deny"), &json!("443")));
    assert_eq!((&shown["traffictype"], &shown["protocol"]), (&json!("Egress"), &json!("tcp")));
    world.done("alice", "deleteNetworkACL", &[("id", &rule)]).await;
    assert_eq!(newest(&world, "alice").await, of("ITEM.DELETE"));
    world.done("alice", "deleteNetworkACLList", &[("id", &list)]).await;
    assert_eq!(newest(&world, "alice").await, of("DELETE"));
}

/// Type and state of every entry of the log, oldest first.
async fn logged(world: &World, account: &str, kinds: &[&str]) -> Vec<String> {
    let listed = world.get(account, "listEvents", &[]).await.body;
    let entries = listed["event"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let own = entries.iter().filter(|entry| kinds.contains(&text(entry, "type").as_str()));
    own.map(|entry| format!("{} {}", text(entry, "type"), text(entry, "state"))).collect()
}

#[tokio::test]
async fn the_log_shows_rules_lists_and_vpcs_from_their_creation_to_their_end() {
    let world = World::new();
    let all = |kind: &str, created: bool| -> Vec<String> {
        let states = ["Created", "Scheduled", "Started", "Completed"];
        states.iter().skip(usize::from(!created)).map(|state| format!("{kind} {state}")).collect()
    };
    let network = world.network("alice", "net1").await;
    let ip = world.get("alice", "associateIpAddress", &[("networkid", &network)]).await;
    world.wait("alice", &ip).await;
    let ip = ip.body["id"].as_str().unwrap().to_owned();
    let rule = [("ipaddressid", ip.as_str()), ("protocol", "tcp"), ("startport", "22")];
    let made = world.get("alice", "createFirewallRule", &rule).await;
    world.wait("alice", &made).await;
    world.done("alice", "deleteFirewallRule", &[("id", made.body["id"].as_str().unwrap())]).await;
    let expected = [all("FIREWALL.OPEN", true), all("FIREWALL.CLOSE", false)].concat();
    assert_eq!(logged(&world, "alice", &["FIREWALL.OPEN", "FIREWALL.CLOSE"]).await, expected);

    let (zone, offering) =
        (world.zone().await, world.id("listVPCOfferings", "vpcoffering", "Default VPC offering").await);
    let wanted = [
        ("name", "v"),
        ("cidr", "10.1.0.0/16"),
        ("zoneid", zone.as_str()),
        ("vpcofferingid", offering.as_str()),
    ];
    let vpc = world.get("alice", "createVPC", &wanted).await;
    world.wait("alice", &vpc).await;
    let vpc = vpc.body["id"].as_str().unwrap().to_owned();
    let list = world.get("alice", "createNetworkACLList", &[("name", "l"), ("vpcid", &vpc)]).await;
    world.wait("alice", &list).await;
    let list = list.body["id"].as_str().unwrap().to_owned();
    let item = world.get("alice", "createNetworkACL", &[("aclid", &list), ("protocol", "all")]).await;
    world.wait("alice", &item).await;
    world.done("alice", "deleteNetworkACL", &[("id", item.body["id"].as_str().unwrap())]).await;
    world.done("alice", "deleteNetworkACLList", &[("id", &list)]).await;
    world.done("alice", "deleteVPC", &[("id", &vpc)]).await;
    let kinds = [
        ("VPC.CREATE", true),
        ("NETWORK.ACL.CREATE", false),
        ("NETWORK.ACL.ITEM.CREATE", true),
        ("NETWORK.ACL.ITEM.DELETE", false),
        ("NETWORK.ACL.DELETE", false),
        ("VPC.DELETE", false),
    ];
    let expected: Vec<String> = kinds.iter().flat_map(|(kind, created)| all(kind, *created)).collect();
    let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(logged(&world, "alice", &names).await, expected);
}

/// A VPC of alice's, by its id.
async fn vpc(world: &World) -> String {
    let zone = world.zone().await;
    let offering = world.id("listVPCOfferings", "vpcoffering", "Default VPC offering").await;
    let place = [("zoneid", zone.as_str()), ("vpcofferingid", &offering), ("cidr", "10.9.0.0/16")];
    let made = world.get("alice", "createVPC", &[&[("name", "v")], &place[..]].concat()).await;
    world.wait("alice", &made).await;
    made.body["id"].as_str().unwrap().to_owned()
}

/// A tier of a VPC that lets everything pass, or the refusal.
async fn tier(world: &World, vpc: &str, offering: &str, gateway: &str) -> Answer {
    let (zone, offering) =
        (world.zone().await, world.id("listNetworkOfferings", "networkoffering", offering).await);
    let range = [("gateway", gateway), ("netmask", "255.255.255.0"), ("vpcid", vpc)];
    let place = [("name", gateway), ("zoneid", &zone), ("networkofferingid", &offering)];
    world.get("alice", "createNetwork", &[&place[..], &range].concat()).await
}

const TIERS: &str = "DefaultIsolatedNetworkOfferingForVpcNetworks";

#[tokio::test]
async fn what_an_administrator_opens_or_changes_in_a_list_shows_in_no_log_but_their_own() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let ip = world.get("alice", "associateIpAddress", &[("networkid", &network)]).await;
    world.wait("alice", &ip).await;
    let vpc = vpc(&world).await;
    let list = world.get("alice", "createNetworkACLList", &[("name", "l"), ("vpcid", &vpc)]).await;
    world.wait("alice", &list).await;
    let before = newest(&world, "alice").await;
    let ip = ip.body["id"].as_str().unwrap();
    let rule = [("ipaddressid", ip), ("protocol", "tcp"), ("startport", "6443")];
    let opened = world.get("admin", "createFirewallRule", &rule).await;
    world.wait("admin", &opened).await;
    let list = list.body["id"].as_str().unwrap();
    let item = world.get("admin", "createNetworkACL", &[("aclid", list), ("protocol", "all")]).await;
    world.wait("admin", &item).await;
    let item = item.body["id"].as_str().unwrap();
    world.done("admin", "updateNetworkACLItem", &[("id", item), ("action", "deny")]).await;
    world.done("admin", "deleteNetworkACL", &[("id", item)]).await;
    assert_eq!(newest(&world, "alice").await, before);
    world.done("admin", "deleteFirewallRule", &[("id", opened.body["id"].as_str().unwrap())]).await;
    let closed = newest(&world, "alice").await.pop();
    assert_eq!(closed, Some(("FIREWALL.CLOSE".to_owned(), "Scheduled".to_owned())));
}

#[tokio::test]
async fn rules_on_an_address_of_a_vpc_open_no_firewall_and_say_themselves_who_may_connect() {
    let world = World::new();
    let vpc = vpc(&world).await;
    let network =
        tier(&world, &vpc, TIERS, "10.9.1.1").await.body["network"]["id"].as_str().unwrap().to_owned();
    let vm = world.machine("alice", &network, "vm1").await;
    let ip = world.get("alice", "associateIpAddress", &[("vpcid", &vpc)]).await;
    world.wait("alice", &ip).await;
    let ip = ip.body["id"].as_str().unwrap();
    let forward = [
        ("ipaddressid", ip),
        ("networkid", &network),
        ("virtualmachineid", &vm),
        ("protocol", "tcp"),
        ("publicport", "2222"),
        ("privateport", "22"),
        ("cidrlist", "10.0.0.0/8,192.0.2.0/24"),
    ];
    let balance = [
        ("publicipid", ip),
        ("networkid", &network),
        ("name", "api"),
        ("algorithm", "roundrobin"),
        ("publicport", "6443"),
        ("privateport", "6443"),
    ];
    let open = [("openfirewall", "true")];
    for (command, rule, exception) in
        [("createPortForwardingRule", &forward[..], 4350), ("createLoadBalancerRule", &balance[..], 9999)]
    {
        let refused = world.get("alice", command, &[rule, &open].concat()).await;
        assert_eq!(refused.code(), (431, Some(exception)));
        assert_eq!(refused.text(), "Can't have openFirewall=true when IP address belongs to VPC");
    }
    let made = world.done("alice", "createPortForwardingRule", &forward).await;
    assert_eq!(made["portforwardingrule"]["cidrlist"], "10.0.0.0/8,192.0.2.0/24");
    assert_eq!(world.get("alice", "listFirewallRules", &[]).await.body, json!({}));
    let wrong =
        [&forward[..3], &[("protocol", "tcp"), ("publicport", "2223"), ("privateport", "22")]].concat();
    let refused =
        world.get("alice", "createPortForwardingRule", &[&wrong[..], &[("cidrlist", "no")]].concat()).await;
    assert_eq!(
        (refused.code(), refused.text()),
        ((431, Some(4350)), "The given source CIDR [no] is invalid.")
    );
}

#[tokio::test]
async fn a_vpc_takes_three_tiers_and_public_load_balancers_of_one_offering() {
    let world = World::new();
    let vpc = vpc(&world).await;
    let services = [
        ("name", "other"),
        ("displaytext", "other"),
        ("guestiptype", "Isolated"),
        ("traffictype", "GUEST"),
        ("forvpc", "true"),
        ("supportedservices", "Dhcp,SourceNat,Lb,NetworkACL"),
        ("enable", "true"),
    ];
    let other = world.get("admin", "createNetworkOffering", &services).await;
    assert_eq!(other.status, 200, "{}", other.text());
    assert_eq!(tier(&world, &vpc, TIERS, "10.9.1.1").await.status, 200);
    let refused = tier(&world, &vpc, "other", "10.9.2.1").await;
    let text = "Public LB service is already supported by network 10.9.1.1 in VPC v";
    assert_eq!((refused.code(), refused.text()), ((431, Some(4350)), text));
    for gateway in ["10.9.2.1", "10.9.3.1"] {
        assert_eq!(tier(&world, &vpc, TIERS, gateway).await.status, 200);
    }
    let fourth = tier(&world, &vpc, TIERS, "10.9.4.1").await;
    assert_eq!(fourth.code(), (530, Some(4250)));
    assert!(fourth.text().starts_with("Internal error"), "{}", fourth.text());
}

#[tokio::test]
async fn an_address_has_one_service_where_the_offering_does_not_conserve_addresses() {
    let world = World::new();
    let services = [
        ("name", "separate"),
        ("displaytext", "separate"),
        ("guestiptype", "Isolated"),
        ("traffictype", "GUEST"),
        ("supportedservices", "Dhcp,SourceNat,Lb,Firewall,PortForwarding"),
        ("conservemode", "false"),
        ("enable", "true"),
    ];
    assert_eq!(world.get("admin", "createNetworkOffering", &services).await.status, 200);
    let (zone, offering) =
        (world.zone().await, world.id("listNetworkOfferings", "networkoffering", "separate").await);
    let place = [("name", "n"), ("zoneid", zone.as_str()), ("networkofferingid", &offering)];
    let network = world.get("alice", "createNetwork", &place).await.body["network"]["id"].clone();
    let network = network.as_str().unwrap();
    let mut codes = Vec::new();
    for _ in 0..2 {
        let ip = world.get("alice", "associateIpAddress", &[("networkid", network)]).await;
        world.wait("alice", &ip).await;
        let on = [("publicipid", ip.body["id"].as_str().unwrap()), ("networkid", network), ("name", "api")];
        let ports = [("algorithm", "roundrobin"), ("publicport", "6443"), ("privateport", "6443")];
        codes.push(world.get("alice", "createLoadBalancerRule", &[&on[..], &ports].concat()).await);
    }
    assert_eq!(codes[0].code(), (431, Some(9999)));
    assert!(codes[0].text().ends_with("is already used as SourceNat rather than Lb"), "{}", codes[0].text());
    assert_eq!(codes[1].status, 200);
}
