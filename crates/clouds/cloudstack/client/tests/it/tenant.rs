//! What a tenant with the stock role does with it.

use std::time::Duration;

use capstan_cloudstack_client::commands::*;
use capstan_cloudstack_client::model::{AddressState, MachineState, NetworkState, ResourceType, RuleState};
use capstan_cloudstack_client::{Class, Code, ErrorKind, Policy, UserData};
use capstan_sim_cloudstack::Settings;

use super::World;

fn load_balancer(
    network: &capstan_cloudstack_client::model::Network,
    address: &str,
) -> CreateLoadBalancerRule {
    CreateLoadBalancerRule {
        algorithm: "roundrobin".to_owned(),
        name: "api".to_owned(),
        description: None,
        publicport: 6443,
        privateport: 6443,
        publicipid: Some(address.into()),
        networkid: Some(network.id.clone()),
        protocol: Some("tcp".to_owned()),
        cidrlist: Vec::new(),
        openfirewall: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_network_an_address_and_a_load_balancer_before_machines() {
    let world = World::new(Settings::default()).await;
    let client = &world.client;
    let network = world.network("net").await;
    assert_eq!(network.state, Some(NetworkState::Allocated));

    let associate = AssociateIpAddress { networkid: Some(network.id.clone()), ..Default::default() };
    let submitted = client.start(&associate).await.unwrap();
    let address = client.wait::<AssociateIpAddress>(&submitted.job).await.unwrap();
    assert_eq!(submitted.id.as_ref(), Some(&address.id));
    let look = ListPublicIpAddresses { id: Some(address.id.clone()), ..Default::default() };
    let listed = client.find(&look).await.unwrap().unwrap();
    assert_eq!(listed.state, Some(AddressState::Allocated), "the job's own result may be a step behind");
    assert!(address.issourcenat, "a fresh network hides behind its first address");

    let rule = client.run(&load_balancer(&network, address.id.as_str())).await.unwrap();
    assert_eq!(
        (rule.publicport, rule.privateport, rule.state),
        (Some(6443), Some(6443), Some(RuleState::Add))
    );
    let error = client.run(&load_balancer(&network, address.id.as_str())).await.unwrap_err();
    assert_eq!(error.class(), Class::Conflict);
    let opened = ListFirewallRules { ipaddressid: Some(address.id.clone()), ..Default::default() };
    let opened = client.find(&opened).await.unwrap().unwrap();
    assert_eq!((opened.startport, opened.endport), (Some(6443), Some(6443)));

    let (one, two) = (world.machine("cp-1", &network).await, world.machine("cp-2", &network).await);
    assert_eq!(one.state, Some(MachineState::Running));
    let assign = AssignToLoadBalancerRule {
        id: rule.id.clone(),
        virtualmachineids: vec![one.id.clone(), two.id.clone()],
    };
    client.run(&assign).await.unwrap();
    let members = client.list(&ListLoadBalancerMembers::new(rule.id.clone())).await.unwrap();
    assert_eq!(members.len(), 2);
    assert_eq!(members[0].lbvmipaddresses, [members[0].loadbalancerruleinstance.nic[0].ipaddress.unwrap()]);
    let error = client.run(&assign).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Internal), "members already");
    let network =
        client.find(&ListNetworks { id: Some(network.id), ..Default::default() }).await.unwrap().unwrap();
    assert_eq!(network.state, Some(NetworkState::Implemented));
}

#[tokio::test(start_paused = true)]
async fn boot_data_that_fits_no_query_arrives_whole() {
    let world = World::new(Settings::default()).await;
    let network = world.network("net").await;
    let mut order = world.order("vm", &network).await;
    let noise: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let data = UserData::plain(&noise).unwrap();
    assert!(data.encoded_len() > 8192 && data.encoded_len() < UserData::DEFAULT_LIMIT);
    order.userdata = Some(data.clone());
    let machine = world.client.run(&order).await.unwrap();
    let kept = GetVirtualMachineUserData { virtualmachineid: machine.id };
    let kept = world.client.call(&kept).await.unwrap().userdata.unwrap();
    assert_eq!(serde_json::json!(kept.expose()), serde_json::to_value(&data).unwrap());

    let mut order = world.order("too-much", &network).await;
    order.userdata = Some(UserData::plain(&[b'x'; 40_000]).unwrap());
    let error = world.client.start(&order).await.unwrap_err();
    assert_eq!(error.class(), Class::Parameter);
    assert!(!error.is_ambiguous());
}

#[tokio::test(start_paused = true)]
async fn a_tenant_may_not_expunge_and_the_machine_runs_on() {
    let world = World::new(Settings::default()).await;
    let network = world.network("net").await;
    let machine = world.machine("vm", &network).await;
    let capability = world.client.call(&ListCapabilities {}).await.unwrap();
    assert!(!capability.allowuserexpungerecovervm);
    let destroy = |expunge| DestroyVirtualMachine { id: machine.id.clone(), expunge, volumeids: Vec::new() };
    let error = world.client.run(&destroy(Some(true))).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::JobFailed(_)), "{error}");
    let look = ListVirtualMachines { id: Some(machine.id.clone()), ..Default::default() };
    assert_eq!(world.client.find(&look).await.unwrap().unwrap().state, Some(MachineState::Running));

    let destroyed = world.client.run(&destroy(None)).await.unwrap();
    assert_eq!(destroyed.state, Some(MachineState::Destroyed));
    assert_eq!(world.client.find(&look).await.unwrap(), None, "ordinary users do not see it any more");
    let boss = world.client_of("boss");
    let seen = boss.find(&look).await.unwrap().unwrap();
    assert_eq!(seen.state, Some(MachineState::Destroyed));

    let delete = DeleteNetwork { id: network.id.clone(), forced: None };
    let error = world.client.run(&delete).await.unwrap_err();
    assert_eq!(error.class(), Class::Internal, "a machine of it is not expunged");
    boss.run(&ExpungeVirtualMachine { id: machine.id.clone() }).await.unwrap();
    assert_eq!(boss.find(&look).await.unwrap(), None);
    world.client.run(&delete).await.unwrap();
    let gone = world.client.start(&delete).await.unwrap_err();
    assert_eq!(gone.class(), Class::Parameter);
}

#[tokio::test(start_paused = true)]
async fn tags_groups_and_rules_come_and_go() {
    let world = World::new(Settings::default()).await;
    let client = &world.client;
    let network = world.network("net").await;
    let tags = vec![TagPair::new("owner", "a b~c*"), TagPair::new("cluster", "uid")];
    let resourceids = vec![network.id.to_string()];
    let create = CreateTags { resourceids: resourceids.clone(), resourcetype: ResourceType::Network, tags };
    client.run(&create).await.unwrap();
    let error = client.run(&create).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::JobFailed(_)), "there already: {error}");
    let on = ListTags { resourceid: Some(network.id.to_string()), ..Default::default() };
    let mut found: Vec<String> =
        client.list(&on).await.unwrap().into_iter().map(|tag| format!("{}={}", tag.key, tag.value)).collect();
    found.sort();
    assert_eq!(found, ["cluster=uid", "owner=a b~c*"]);
    let tags = vec![TagPair::new("owner", "a b~c*")];
    client.run(&DeleteTags { resourceids, resourcetype: ResourceType::Network, tags }).await.unwrap();
    assert_eq!(client.list(&on).await.unwrap().len(), 1);

    let egress = CreateEgressFirewallRule {
        networkid: network.id.clone(),
        protocol: "icmp".to_owned(),
        startport: None,
        endport: None,
        cidrlist: Vec::new(),
        destcidrlist: Vec::new(),
        icmptype: Some(-1),
        icmpcode: Some(-1),
    };
    let rule = client.run(&egress).await.unwrap();
    assert_eq!((rule.icmptype, rule.icmpcode), (Some(-1), Some(-1)));
    let rules = ListEgressFirewallRules { networkid: Some(network.id.clone()), ..Default::default() };
    assert_eq!(client.list(&rules).await.unwrap().len(), 1);
    client.run(&DeleteEgressFirewallRule { id: rule.id }).await.unwrap();
    assert_eq!(client.list(&rules).await.unwrap(), []);

    let group = CreateAffinityGroup {
        name: "apart".to_owned(),
        r#type: "host anti-affinity".to_owned(),
        description: None,
        owner: Owner::default(),
    };
    let group = client.run(&group).await.unwrap();
    let mut order = world.order("vm", &network).await;
    order.affinitygroupids = vec![group.id.clone()];
    let machine = client.run(&order).await.unwrap();
    assert_eq!(machine.affinitygroup[0].id, group.id);
    client.run(&DeleteAffinityGroup { id: group.id, owner: Owner::default() }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn everything_works_on_a_server_that_insists_on_post_and_times() {
    let settings = Settings { enforce_post_and_timestamps: true, ..Settings::default() };
    let world = World::new(settings).await;
    let network = world.network("net").await;
    // Hours later signatures are still fresh.
    tokio::time::sleep(Duration::from_secs(7200)).await;
    assert_eq!(world.machine("vm", &network).await.state, Some(MachineState::Running));
}

#[tokio::test(start_paused = true)]
async fn machines_are_listed_over_pages() {
    let policy = Policy { page_size: 2, ..Policy::default() };
    let world = World::with_policy(Settings::default(), policy).await;
    let network = world.network("net").await;
    for n in 0..5 {
        world.machine(&format!("vm-{n}"), &network).await;
    }
    let machines = world.client.list(&ListVirtualMachines::default()).await.unwrap();
    let mut names: Vec<_> = machines.into_iter().filter_map(|machine| machine.name).collect();
    names.sort();
    assert_eq!(names, ["vm-0", "vm-1", "vm-2", "vm-3", "vm-4"]);
}
