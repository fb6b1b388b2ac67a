//! What parameters of lists select, and what they refuse.

use serde_json::{Value, json};

use crate::world::{Answer, World};

pub type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], (u16, u64));

/// Each call is refused with a status and a code.
pub async fn are_refused(world: &World, rows: &[Row<'_>]) {
    for (account, command, parameters, (status, code)) in rows {
        let answer = world.get(account, command, parameters).await;
        assert_eq!(answer.code(), (*status, Some(*code)), "{account} {command} {parameters:?}: {answer:?}");
    }
}

/// A field of every entry of a list, or of some.
pub fn values(answer: &Answer, field: &str) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let list = answer.body.as_object().unwrap().values().find_map(Value::as_array);
    list.into_iter().flatten().map(|one| one[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn service_offerings_are_chosen_by_size_and_machine_and_system_ones_are_roots() {
    let world = World::new();
    let vm = world.machine("alice", &world.network("alice", "net1").await, "vm1").await;
    are_refused(
        &world,
        &[
            ("alice", "listServiceOfferings", &[("issystem", "true")], (431, 4350)),
            ("dadmin", "listServiceOfferings", &[("issystem", "true")], (431, 4350)),
            ("alice", "listServiceOfferings", &[("isrecursive", "true")], (431, 4350)),
            ("bob", "listServiceOfferings", &[("virtualmachineid", &vm)], (531, 4365)),
        ],
    )
    .await;
    assert_eq!(world.get("dadmin", "listServiceOfferings", &[("isrecursive", "true")]).await.status, 200);
    let list = async |parameters: &[(&str, &str)]| {
        values(&world.get("alice", "listServiceOfferings", parameters).await, "name")
    };
    let has = |names: &[String], name: &str| names.iter().any(|held| held == name);
    let large = list(&[("cpunumber", "4")]).await;
    assert!(has(&large, "Huge") && !has(&large, "Small Instance"), "{large:?}");
    let fast = list(&[("cpuspeed", "1000")]).await;
    assert!(!has(&fast, "Huge"), "{fast:?}");
    let roomy = list(&[("memory", "1048576")]).await;
    assert!(has(&roomy, "Huge") && !has(&roomy, "Medium Instance"), "{roomy:?}");
    let others = list(&[("virtualmachineid", &vm)]).await;
    assert!(has(&others, "Medium Instance") && !has(&others, "Small Instance"), "{others:?}");
}

#[tokio::test]
async fn network_offerings_are_chosen_by_whole_names_and_those_of_vpcs_by_parts() {
    let world = World::new();
    let names = async |command: &str, name: &str| {
        values(&world.get("alice", command, &[("name", name)]).await, "name")
    };
    // Others have longer names that begin so.
    let whole = "DefaultIsolatedNetworkOfferingForVpcNetworks";
    assert_eq!(names("listNetworkOfferings", &whole.to_lowercase()).await, [whole]);
    assert!(names("listNetworkOfferings", "DefaultIsolated").await.is_empty());
    let offerings = names("listVPCOfferings", "VPC offering").await;
    assert!(offerings.contains(&"Default VPC offering".to_owned()), "{offerings:?}");
}

#[tokio::test]
async fn templates_are_chosen_by_filters_that_mind_their_case_or_by_id() {
    let world = World::new();
    let image = world.id("listTemplates", "template", "ubuntu-2404-kube-v1.36.0").await;
    let registered = |hypervisor: &'static str| {
        [
            ("name", "mine"),
            ("displaytext", "of particular interest"),
            ("url", "http://images.example/mine.qcow2"),
            ("format", "QCOW2"),
            ("hypervisor", hypervisor),
            ("zoneid", "-1"),
        ]
    };
    are_refused(
        &world,
        &[
            ("alice", "listTemplates", &[("templatefilter", "bogus")], (431, 9999)),
            ("alice", "listTemplates", &[("templatefilter", "Featured")], (431, 9999)),
            ("alice", "listTemplates", &[("templatefilter", "all")], (431, 4350)),
            ("alice", "registerTemplate", &registered("Bogus"), (431, 4350)),
        ],
    )
    .await;
    let by_id = [("templatefilter", "self"), ("id", image.as_str())];
    assert_eq!(values(&world.get("alice", "listTemplates", &by_id).await, "id"), [image]);
    assert_eq!(world.get("alice", "registerTemplate", &registered("kvm")).await.status, 200);
    let by_text = [("templatefilter", "self"), ("keyword", "PARTICULAR")];
    assert_eq!(values(&world.get("alice", "listTemplates", &by_text).await, "name"), ["mine"]);
}

#[tokio::test]
async fn rules_of_an_address_are_listed_for_its_owner_while_it_has_one() {
    let world = World::new();
    let network = world.network("bob", "net1").await;
    let mut addresses = Vec::new();
    for _ in 0..2 {
        let made = world.done("bob", "associateIpAddress", &[("networkid", &network)]).await;
        addresses.push(made["ipaddress"]["id"].as_str().unwrap().to_owned());
    }
    let [kept, released] = addresses.try_into().unwrap();
    world.done("bob", "disassociateIpAddress", &[("id", &released)]).await;
    for command in ["listFirewallRules", "listPortForwardingRules"] {
        are_refused(
            &world,
            &[
                ("alice", command, &[("ipaddressid", &kept)], (531, 4365)),
                ("bob", command, &[("ipaddressid", &released)], (431, 4350)),
            ],
        )
        .await;
        assert_eq!(world.get("bob", command, &[("ipaddressid", &kept)]).await.body, json!({}));
    }
    let vm = world.machine("bob", &network, "vm1").await;
    let rule = [
        ("ipaddressid", kept.as_str()),
        ("protocol", "tcp"),
        ("publicport", "2222"),
        ("privateport", "22"),
        ("virtualmachineid", &vm),
    ];
    let made = world.done("bob", "createPortForwardingRule", &rule).await;
    let id = made["portforwardingrule"]["id"].as_str().unwrap().to_owned();
    let tagged = [("tags[0].key", "k1"), ("tags[0].value", "v1")];
    assert_eq!(world.get("bob", "listPortForwardingRules", &tagged).await.body, json!({}));
    let mut tag = vec![("resourceids", id.as_str()), ("resourcetype", "PortForwardingRule")];
    tag.extend(tagged);
    world.done("bob", "createTags", &tag).await;
    assert_eq!(values(&world.get("bob", "listPortForwardingRules", &tagged).await, "id"), [id]);
}

#[tokio::test]
async fn members_of_a_balancer_are_all_applied_and_shown_as_users_see_them() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    let ip = world.done("alice", "associateIpAddress", &[("networkid", &network)]).await;
    let rule = [
        ("publicipid", ip["ipaddress"]["id"].as_str().unwrap()),
        ("name", "api"),
        ("description", "the way in"),
        ("algorithm", "roundrobin"),
        ("publicport", "6443"),
        ("privateport", "6443"),
    ];
    let made = world.done("alice", "createLoadBalancerRule", &rule).await;
    assert_eq!(made["loadbalancer"]["description"], "the way in");
    let id = made["loadbalancer"]["id"].as_str().unwrap().to_owned();
    for (word, count) in [("WAY", 1), ("AP", 1), ("out", 0)] {
        let listed = world.get("alice", "listLoadBalancerRules", &[("keyword", word)]).await;
        assert_eq!(values(&listed, "id").len(), count, "{word}");
    }
    world.done("alice", "assignToLoadBalancerRule", &[("id", &id), ("virtualmachineids", &vm)]).await;
    let command = "listLoadBalancerRuleInstances";
    assert_eq!(world.get("alice", command, &[("id", &id), ("applied", "false")]).await.body, json!({}));
    let shown = world.get("admin", command, &[("id", &id)]).await.body["loadbalancerruleinstance"][0].clone();
    assert_eq!(
        (&shown["id"], shown.get("instancename"), shown.get("hostid")),
        (&json!(vm), None, None),
        "{shown}"
    );
    let whole = world.get("admin", command, &[("id", &id), ("lbvmips", "true")]).await.body;
    assert!(whole["lbrulevmidip"][0]["loadbalancerruleinstance"]["instancename"].is_string(), "{whole}");
}

#[tokio::test]
async fn records_of_kubernetes_clusters_refuse_strangers_as_internal_errors() {
    let world = World::new();
    let zone = world.zone().await;
    let vm = world.machine("alice", &world.network("alice", "net1").await, "vm1").await;
    let foreign = world.machine("bob", &world.network("bob", "net1").await, "vm1").await;
    let record = |kind: &'static str, balancer: &'static str| {
        let (zone, kind) = (zone.clone(), kind.to_owned());
        vec![
            ("name", "k1".to_owned()),
            ("zoneid", zone),
            ("clustertype", kind),
            ("externalloadbalanceripaddress", balancer.to_owned()),
        ]
    };
    let refused =
        [("CloudManaged", "192.0.2.9", (530, 9999)), ("ExternalManaged", "no address", (530, 9999))];
    for (kind, balancer, (status, code)) in refused.into_iter().chain([("Bogus", "", (431, 4350))]) {
        let record = record(kind, balancer);
        let record: Vec<_> = record.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = world.get("alice", "createKubernetesCluster", &record).await;
        assert_eq!(answer.code(), (status, Some(code)), "{answer:?}");
    }
    let right = record("ExternalManaged", "192.0.2.9");
    let right: Vec<_> = right.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let made = world.done("alice", "createKubernetesCluster", &right).await;
    let id = made["kubernetescluster"]["id"].as_str().unwrap().to_owned();
    let (add, remove) =
        ("addVirtualMachinesToKubernetesCluster", "removeVirtualMachinesFromKubernetesCluster");
    are_refused(
        &world,
        &[
            ("alice", "listKubernetesClusters", &[("clustertype", "Bogus")], (431, 4350)),
            ("bob", add, &[("id", &id), ("virtualmachineids", &foreign)], (530, 9999)),
            ("bob", remove, &[("id", &id), ("virtualmachineids", &foreign)], (530, 9999)),
            ("alice", add, &[("id", &id), ("virtualmachineids", &foreign)], (530, 9999)),
        ],
    )
    .await;
    for (state, count) in [("Running", 1), ("Stopped", 0)] {
        let listed = world.get("alice", "listKubernetesClusters", &[("state", state)]).await;
        assert_eq!(values(&listed, "id").len(), count, "{state}");
    }
    assert_eq!(world.get("alice", add, &[("id", &id), ("virtualmachineids", &vm)]).await.status, 200);
    let both = format!("{foreign},{vm}");
    let removed = world.get("alice", remove, &[("id", &id), ("virtualmachineids", &both)]).await;
    assert_eq!(values(&removed, "id"), [vm, foreign], "members come first");
}

#[tokio::test]
async fn jobs_are_chosen_by_their_command_and_resource() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let submitted = world.deploy("alice", &network, "vm1", &[]).await;
    let vm = submitted.body["id"].as_str().unwrap();
    are_refused(&world, &[("alice", "listAsyncJobs", &[("resourceid", vm)], (431, 4350))]).await;
    let rows: [(&[(&str, &str)], usize); 5] = [
        (&[("keyword", "deployvm")], 1),
        (&[("keyword", "CreateNetwork")], 0),
        (&[("resourcetype", "VirtualMachine")], 1),
        (&[("resourcetype", "VirtualMachine"), ("resourceid", vm)], 1),
        (&[("resourcetype", "VirtualMachine"), ("resourceid", &network)], 0),
    ];
    for (parameters, count) in rows {
        let listed = world.get("alice", "listAsyncJobs", parameters).await;
        assert_eq!(values(&listed, "jobid").len(), count, "{parameters:?}");
    }
}

#[tokio::test]
async fn a_volume_that_is_destroyed_stays_until_it_is_expunged_or_recovered() {
    let world = World::new();
    let vm = world.machine("alice", &world.network("alice", "net1").await, "vm1").await;
    let zone = world.zone().await;
    let small = world.id("listDiskOfferings", "diskoffering", "Small").await;
    let volume = [("name", "data"), ("zoneid", zone.as_str()), ("diskofferingid", &small)];
    let made = world.done("alice", "createVolume", &volume).await;
    let id = made["volume"]["id"].as_str().unwrap().to_owned();
    let by_id = [("id", id.as_str())];
    let fails = async |command: &str, parameters: &[(&str, &str)]| {
        let submitted = world.get("alice", command, parameters).await;
        world.wait("alice", &submitted).await["jobresultcode"].as_u64().unwrap()
    };
    assert_eq!(fails("destroyVolume", &by_id).await, 431, "it was never on a storage");
    let to = [("id", id.as_str()), ("virtualmachineid", &vm)];
    world.done("alice", "attachVolume", &to).await;
    world.done("alice", "detachVolume", &by_id).await;
    are_refused(&world, &[("alice", "recoverVolume", &by_id, (431, 4350))]).await;
    let destroyed = world.done("alice", "destroyVolume", &by_id).await;
    assert_eq!(
        (&destroyed["volume"]["state"], &destroyed["volume"]["destroyed"]),
        (&json!("Destroy"), &json!(true))
    );
    assert_eq!(values(&world.get("alice", "listVolumes", &by_id).await, "state"), ["Destroy"]);
    assert_eq!(fails("attachVolume", &to).await, 431);
    assert_eq!(world.get("alice", "recoverVolume", &by_id).await.body["volume"]["state"], "Ready");
    world.done("alice", "destroyVolume", &by_id).await;
    world.done("alice", "destroyVolume", &[("id", &id), ("expunge", "true")]).await;
    assert_eq!(world.get("alice", "listVolumes", &by_id).await.body, json!({}));
}

#[tokio::test]
async fn volumes_are_chosen_by_offering_and_by_where_they_are_stored() {
    let world = World::new();
    let vm = world.machine("alice", &world.network("alice", "net1").await, "vm1").await;
    let zone = world.zone().await;
    let disk = world.id("listDiskOfferings", "diskoffering", "Small").await;
    world
        .done("alice", "createVolume", &[("name", "data"), ("zoneid", &zone), ("diskofferingid", &disk)])
        .await;
    let offering = world.id("listServiceOfferings", "serviceoffering", "Small Instance").await;
    let other = world.id("listServiceOfferings", "serviceoffering", "Huge").await;
    let host = world.get("admin", "listHosts", &[]).await.body["host"][0].clone();
    let of_host = |field: &str| host[field].as_str().unwrap().to_owned();
    let root = world.get("admin", "listVolumes", &[("listall", "true"), ("virtualmachineid", &vm)]).await;
    let (pool, root) = (values(&root, "storageid").remove(0), values(&root, "name"));
    are_refused(&world, &[("alice", "listVolumes", &[("storageid", &zone)], (431, 4350))]).await;
    for (name, value, found) in [
        ("serviceofferingid", offering, true),
        ("serviceofferingid", other, false),
        ("storageid", pool, true),
        ("clusterid", of_host("clusterid"), true),
        ("podid", of_host("podid"), true),
    ] {
        let listed = world.get("alice", "listVolumes", &[(name, &value)]).await;
        assert_eq!(values(&listed, "name"), if found { root.clone() } else { Vec::new() }, "{name}");
    }
}
