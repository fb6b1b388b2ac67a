//! Machines: jobs, states, names, placement, the background removal.

use std::time::Duration;

use capstan_sim_cloudstack::Settings;
use http::Method;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_machine_is_stopped_then_starting_then_running() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let submitted = world.deploy("alice", &network, "vm1", &[("userdata", "I2Nsb3VkLWNvbmZpZwo=")]).await;
    let id = submitted.body["id"].as_str().unwrap().to_owned();
    let mut states = Vec::new();
    for _ in 0..40 {
        let listed = world.get("alice", "listVirtualMachines", &[("id", &id)]).await.body;
        let state = listed["virtualmachine"][0]["state"].as_str().unwrap().to_owned();
        if states.last() != Some(&state) {
            states.push(state);
        }
        world.pass(Duration::from_millis(250));
    }
    assert_eq!(states, ["Stopped", "Starting", "Running"]);
    let networks = world.get("alice", "listNetworks", &[("id", &network)]).await.body;
    assert_eq!(networks["network"][0]["state"], "Implemented");
    let data = world.get("alice", "getVirtualMachineUserData", &[("virtualmachineid", &id)]).await.body;
    assert_eq!(data["virtualmachineuserdata"]["userdata"], "I2Nsb3VkLWNvbmZpZwo=");
}

#[tokio::test]
async fn a_pending_job_has_no_result_and_a_failed_one_is_http_200() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let huge = world.id("listServiceOfferings", "serviceoffering", "Huge").await;
    // The limit on memory is in the way of what the hosts lack.
    let domain =
        world.get("dadmin", "listDomains", &[]).await.body["domain"][0]["id"].as_str().unwrap().to_owned();
    let limit = [("resourcetype", "9"), ("max", "-1"), ("account", "alice"), ("domainid", domain.as_str())];
    assert_eq!(world.get("admin", "updateResourceLimit", &limit).await.status, 200);
    let submitted = world.deploy("alice", &network, "vm1", &[("serviceofferingid", &huge)]).await;
    let job = submitted.body["jobid"].as_str().unwrap().to_owned();
    let pending = world.get("alice", "queryAsyncJobResult", &[("jobid", &job)]).await.body;
    assert_eq!((&pending["jobstatus"], pending.get("jobresult")), (&json!(0), None));
    let end = world.wait("alice", &submitted).await;
    assert_eq!((&end["jobstatus"], &end["jobresultcode"]), (&json!(2), &json!(533)));
    assert!(end["jobresult"].get("cserrorcode").is_none());
    let id = submitted.body["id"].as_str().unwrap();
    let listed = world.get("alice", "listVirtualMachines", &[("id", id)]).await.body;
    assert_eq!(listed["virtualmachine"][0]["state"], "Error");
    assert_eq!(world.get("bob", "queryAsyncJobResult", &[("jobid", &job)]).await.code(), (531, Some(4365)));
}

#[tokio::test]
async fn anti_affine_machines_need_a_host_each() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let made =
        world.get("alice", "createAffinityGroup", &[("name", "apart"), ("type", "host anti-affinity")]).await;
    let group = made.body["id"].as_str().unwrap().to_owned();
    world.wait("alice", &made).await;
    let mut ends = Vec::new();
    for name in ["a", "b", "c"] {
        let submitted = world.deploy("alice", &network, name, &[("affinitygroupids", &group)]).await;
        ends.push(world.wait("alice", &submitted).await["jobresultcode"].as_u64().unwrap());
    }
    assert_eq!(ends, [0, 0, 533]);
}

#[tokio::test]
async fn names_are_held_until_a_machine_is_expunged() {
    let settings = Settings {
        expunge_delay: Duration::from_secs(60),
        expunge_interval: Duration::from_secs(30),
        ..Settings::default()
    };
    let world = World::with(settings);
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    assert_eq!(world.deploy("alice", &network, "vm1", &[]).await.code(), (431, Some(4350)));
    world.done("alice", "destroyVirtualMachine", &[("id", &vm)]).await;
    assert_eq!(world.deploy("alice", &network, "vm1", &[]).await.code(), (431, Some(4350)));
    // Gone for its owner at once, for others only when it is expunged.
    assert_eq!(world.get("alice", "listVirtualMachines", &[("id", &vm)]).await.body, json!({}));
    let seen = world.get("dadmin", "listVirtualMachines", &[("id", &vm)]).await.body;
    assert_eq!(seen["virtualmachine"][0]["state"], "Destroyed");
    world.pass(Duration::from_secs(120));
    assert_eq!(world.get("dadmin", "listVirtualMachines", &[("id", &vm)]).await.body, json!({}));
    assert_eq!(world.deploy("alice", &network, "vm1", &[]).await.status, 200);
}

#[tokio::test]
async fn a_name_is_taken_in_all_tiers_of_a_vpc_and_free_elsewhere() {
    let world = World::new();
    let zone = world.zone().await;
    let offering = world.id("listVPCOfferings", "vpcoffering", "Default VPC offering").await;
    let place = [("zoneid", zone.as_str()), ("vpcofferingid", &offering), ("cidr", "10.9.0.0/16")];
    let vpc = world.get("alice", "createVPC", &[&[("name", "v")], &place[..]].concat()).await;
    world.wait("alice", &vpc).await;
    let vpc = vpc.body["id"].as_str().unwrap().to_owned();
    let offering = world
        .id("listNetworkOfferings", "networkoffering", "DefaultIsolatedNetworkOfferingForVpcNetworks")
        .await;
    let tier = async |name: &str, gateway: &str| {
        let place = [("zoneid", zone.as_str()), ("networkofferingid", &offering), ("vpcid", &vpc)];
        let range = [("name", name), ("gateway", gateway), ("netmask", "255.255.255.0")];
        let made = world.get("alice", "createNetwork", &[&place[..], &range[..]].concat()).await;
        made.body["network"]["id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    };
    let (first, second) = (tier("t1", "10.9.1.1").await, tier("t2", "10.9.2.1").await);
    world.machine("alice", &first, "vm1").await;
    let refused = world.deploy("alice", &second, "vm1", &[]).await;
    assert_eq!(refused.code(), (431, Some(4350)));
    assert!(refused.text().ends_with("network=t1"), "{refused:?}");
    let elsewhere = world.network("alice", "net1").await;
    assert_eq!(world.deploy("alice", &elsewhere, "vm1", &[]).await.status, 200);
}

#[tokio::test]
async fn a_network_cannot_go_before_its_machines_are_expunged() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    world.done("alice", "destroyVirtualMachine", &[("id", &vm)]).await;
    let submitted = world.get("alice", "deleteNetwork", &[("id", &network)]).await;
    let end = world.wait("alice", &submitted).await;
    assert_eq!((&end["jobstatus"], &end["jobresultcode"]), (&json!(2), &json!(530)));
    // A day and a night in production.
    world.pass(Duration::from_secs(2 * 86_400));
    world.done("alice", "deleteNetwork", &[("id", &network)]).await;
    assert_eq!(world.simulator.leaks(Some("alice")), []);
}

#[tokio::test]
async fn an_ordinary_user_may_not_expunge_and_the_machine_runs_on() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    let submitted = world.get("alice", "destroyVirtualMachine", &[("id", &vm), ("expunge", "true")]).await;
    assert_eq!(world.wait("alice", &submitted).await["jobresultcode"], 530);
    let listed = world.get("alice", "listVirtualMachines", &[("id", &vm)]).await.body;
    assert_eq!(listed["virtualmachine"][0]["state"], "Running");
    let gone = world.done("admin", "destroyVirtualMachine", &[("id", &vm), ("expunge", "true")]).await;
    assert!(gone["virtualmachine"].get("id").is_none(), "{gone}");
    assert_eq!(world.get("alice", "destroyVirtualMachine", &[("id", &vm)]).await.code(), (431, Some(4350)));
}

#[tokio::test]
async fn whoever_expunges_needs_the_permission_beside_the_setting() {
    let settings = Settings { allow_user_expunge_recover_vm: true, ..Settings::default() };
    let world = World::with(settings);
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    let role = ["listVirtualMachines", "destroyVirtualMachine", "queryAsyncJobResult", "listCapabilities"];
    world.simulator.set_role("alice", role).unwrap();
    // The capability shows the setting alone.
    let capability = world.get("alice", "listCapabilities", &[]).await.body["capability"].clone();
    assert_eq!(capability["allowuserexpungerecovervm"], true);
    assert_eq!(world.get("alice", "expungeVirtualMachine", &[("id", &vm)]).await.code(), (432, Some(9999)));
    let expunge = [("id", vm.as_str()), ("expunge", "true")];
    let submitted = world.get("alice", "destroyVirtualMachine", &expunge).await;
    let end = world.wait("alice", &submitted).await;
    assert_eq!(end["jobresultcode"], 530, "{end}");
    assert_eq!(end["jobresult"]["errortext"], "Account does not have permission for expunging.");
    let listed = world.get("alice", "listVirtualMachines", &[("id", &vm)]).await.body;
    assert_eq!(listed["virtualmachine"][0]["state"], "Running");
    world.simulator.set_role("alice", role.into_iter().chain(["expungeVirtualMachine"])).unwrap();
    world.done("alice", "destroyVirtualMachine", &expunge).await;
}

#[tokio::test]
async fn what_is_protected_is_not_destroyed() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let disk = world.id("listDiskOfferings", "diskoffering", "Small").await;
    let submitted = world.deploy("alice", &network, "vm1", &[("diskofferingid", &disk)]).await;
    world.wait("alice", &submitted).await;
    let vm = submitted.body["id"].as_str().unwrap().to_owned();
    let disks = [("virtualmachineid", vm.as_str()), ("type", "DATADISK")];
    let listed = world.get("alice", "listVolumes", &disks).await.body;
    let volume = listed["volume"][0]["id"].as_str().unwrap().to_owned();
    let protected = async |command: &str, id: &str, on: &str| {
        world.get("alice", command, &[("id", id), ("deleteprotection", on)]).await
    };

    let shown = protected("updateVirtualMachine", &vm, "true").await.body;
    assert_eq!(shown["virtualmachine"]["deleteprotection"], true);
    let submitted = world.get("alice", "destroyVirtualMachine", &[("id", &vm)]).await;
    let end = world.wait("alice", &submitted).await;
    assert_eq!(end["jobresultcode"], 431, "{end}");
    let said = end["jobresult"]["errortext"].as_str().unwrap();
    let expected =
        format!("Instance [id = {vm}, name = vm1] has delete protection enabled and cannot be deleted.");
    assert_eq!(said, expected);
    protected("updateVirtualMachine", &vm, "false").await;

    // A disk that goes along keeps its machine.
    let submitted = protected("updateVolume", &volume, "true").await;
    world.wait("alice", &submitted).await;
    let along = [("id", vm.as_str()), ("volumeids", &volume)];
    let submitted = world.get("alice", "destroyVirtualMachine", &along).await;
    assert_eq!(world.wait("alice", &submitted).await["jobresultcode"], 431);
    world.done("alice", "destroyVirtualMachine", &[("id", &vm)]).await;
    let refused = world.get("alice", "deleteVolume", &[("id", &volume)]).await;
    assert_eq!(refused.code(), (431, Some(4350)), "{refused:?}");
    assert!(refused.text().contains("has delete protection enabled"), "{refused:?}");
    let submitted = protected("updateVolume", &volume, "false").await;
    world.wait("alice", &submitted).await;
    assert_eq!(world.get("alice", "deleteVolume", &[("id", &volume)]).await.status, 200);
}

#[tokio::test]
async fn commands_of_a_plug_in_that_is_off_are_unknown() {
    let world = World::with(Settings { kubernetes_service_enabled: false, ..Settings::default() });
    assert_eq!(world.get("alice", "listKubernetesClusters", &[]).await.status, 401);
    let capability = world.get("alice", "listCapabilities", &[]).await.body["capability"].clone();
    assert_eq!(capability["kubernetesserviceenabled"], false);
    let named = [("name", "createKubernetesCluster")];
    assert_eq!(world.get("alice", "listApis", &named).await.status, 530);
}

#[tokio::test]
async fn a_stop_waits_for_a_start_but_a_start_does_not_wait_for_a_stop() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let submitted = world.deploy("alice", &network, "vm1", &[]).await;
    let vm = submitted.body["id"].as_str().unwrap().to_owned();
    world.pass(Duration::from_millis(500));
    let stop = world.get("alice", "stopVirtualMachine", &[("id", &vm)]).await;
    assert_eq!(world.wait("alice", &submitted).await["jobstatus"], 1);
    assert_eq!(world.wait("alice", &stop).await["jobresult"]["virtualmachine"]["state"], "Stopped");
    world.done("alice", "startVirtualMachine", &[("id", &vm)]).await;
    let stop = world.get("alice", "stopVirtualMachine", &[("id", &vm)]).await;
    let start = world.get("alice", "startVirtualMachine", &[("id", &vm)]).await;
    assert_eq!(world.wait("alice", &start).await["jobresultcode"], 431);
    assert_eq!(world.wait("alice", &stop).await["jobstatus"], 1);
}

#[tokio::test]
async fn user_data_is_measured_in_base64() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let zone = world.zone().await;
    let template = world.id("listTemplates", "template", "ubuntu-2404-kube-v1.36.0").await;
    let offering = world.id("listServiceOfferings", "serviceoffering", "Small Instance").await;
    let by = |name: &'static str, data: String| {
        let (world, network, zone, template, offering) = (&world, &network, &zone, &template, &offering);
        async move {
            let parameters = [
                ("zoneid", zone.as_str()),
                ("templateid", template),
                ("serviceofferingid", offering),
                ("networkids", network),
                ("startvm", "false"),
                ("name", name),
                ("userdata", &data),
            ];
            let query = world.query("alice", "deployVirtualMachine", &parameters);
            let by_get = world.send(Method::GET, &query, "").await.unwrap().status().as_u16();
            let by_post = world.send(Method::POST, "", &query).await.unwrap().status().as_u16();
            (by_get, by_post)
        }
    };
    assert_eq!(by("fits-get", "eHh4".repeat(1024)).await.0, 200);
    assert_eq!(by("fits-post", "eHh4".repeat(1025)).await, (431, 200));
    assert_eq!(by("fits-just", "eHh4".repeat(8192)).await.1, 200);
    assert_eq!(by("too-long", "eHh4".repeat(8193)).await.1, 431);
    assert_eq!(by("not-base64", "!!!".to_owned()).await, (431, 431));
}
