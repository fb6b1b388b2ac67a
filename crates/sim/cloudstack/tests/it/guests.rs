//! Machines as guests of a site.

use capstan_guest::vm::Phase;
use capstan_guest::{Site, SiteOptions};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn machines_boot_as_guests_and_load_balancers_lead_to_them() {
    let site = Site::new(World::env(), SiteOptions::default());
    let world = World::on(&site);
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    let guest = site.vm(&vm).unwrap();
    let listed =
        world.get("alice", "listVirtualMachines", &[("id", &vm)]).await.body["virtualmachine"][0].clone();
    assert_eq!(
        (guest.name.as_str(), listed["ipaddress"].as_str()),
        ("vm1", Some(guest.address.to_string().as_str()))
    );

    let ip = world.get("alice", "associateIpAddress", &[("networkid", &network)]).await;
    let address =
        world.wait("alice", &ip).await["jobresult"]["ipaddress"]["ipaddress"].as_str().unwrap().to_owned();
    assert!(address.starts_with("127."), "{address}");
    let rule = [
        ("publicipid", ip.body["id"].as_str().unwrap()),
        ("name", "api"),
        ("algorithm", "roundrobin"),
        ("publicport", "6443"),
        ("privateport", "6443"),
    ];
    let made = world.get("alice", "createLoadBalancerRule", &rule).await;
    world.wait("alice", &made).await;
    let rule = made.body["id"].as_str().unwrap().to_owned();
    let members = || {
        let all = (0..6).filter_map(|at| site.balancer(&format!("cloudstack/zone-1/{at}")));
        all.filter(|balancer| balancer.endpoint.ip().to_string() == address)
            .flat_map(|it| it.members)
            .collect::<Vec<_>>()
    };
    assert!(members().is_empty());
    world.done("alice", "assignToLoadBalancerRule", &[("id", &rule), ("virtualmachineids", &vm)]).await;
    assert_eq!(members(), [guest.address]);

    world.done("alice", "stopVirtualMachine", &[("id", &vm)]).await;
    assert_eq!(site.vm(&vm).unwrap().phase, Phase::Off);
    world.done("alice", "startVirtualMachine", &[("id", &vm)]).await;
    assert_ne!(site.vm(&vm).unwrap().phase, Phase::Off);
    world.done("admin", "destroyVirtualMachine", &[("id", &vm), ("expunge", "true")]).await;
    assert!(site.vm(&vm).is_none());
    assert!(members().is_empty());
}

#[tokio::test(start_paused = true)]
async fn networks_of_one_site_do_not_share_addresses() {
    let site = Site::new(World::env(), SiteOptions::default());
    let world = World::on(&site);
    let mut ranges = Vec::new();
    for name in ["one", "two"] {
        let network = world.network("alice", name).await;
        let shown = world.get("alice", "listNetworks", &[("id", &network)]).await.body["network"][0].clone();
        ranges.push(shown["cidr"].as_str().unwrap().to_owned());
        world.machine("alice", &network, "same-name").await;
    }
    assert_ne!(ranges[0], ranges[1]);
    assert_eq!(site.vms().len(), 2);
}
