//! Faults to order.

use std::time::Duration;

use capstan_sim_cloudstack::{ConnectionLost, Fault, HostCommand};
use serde_json::json;

use crate::world::World;

fn always(command: &str) -> (String, Option<u32>) {
    (command.to_owned(), None)
}

#[tokio::test]
async fn a_lost_reply_leaves_what_was_asked_for_and_a_lost_request_does_not() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let command = "associateIpAddress".to_owned();
    world.simulator.inject(Fault::LostRequest { command: command.clone(), times: Some(1) }).unwrap();
    let parameters = [("networkid", network.as_str())];
    assert_eq!(world.try_get("alice", &command, &parameters).await, Err(ConnectionLost));
    assert_eq!(world.get("alice", "listPublicIpAddresses", &[]).await.body, json!({}));
    world.simulator.inject(Fault::LostReply { command: command.clone(), times: Some(1) }).unwrap();
    assert_eq!(world.try_get("alice", &command, &parameters).await, Err(ConnectionLost));
    assert_eq!(world.get("alice", "listPublicIpAddresses", &[]).await.body["count"], 1);
    assert_eq!(world.simulator.faults(), []);
}

#[tokio::test]
async fn a_command_is_refused_as_often_as_ordered() {
    let world = World::new();
    let (command, _) = always("listZones");
    let fault = Fault::Error { command, code: 530, text: "the database is away".to_owned(), times: Some(2) };
    world.simulator.inject(fault).unwrap();
    for status in [530, 530, 200] {
        let answer = world.get("alice", "listZones", &[]).await;
        assert_eq!((answer.status, answer.wrapper.as_str()), (status, "listzonesresponse"));
    }
}

#[tokio::test]
async fn calls_are_counted_by_command_whatever_becomes_of_them() {
    let world = World::new();
    let (command, _) = always("listZones");
    world.simulator.inject(Fault::LostRequest { command, times: Some(1) }).unwrap();
    assert_eq!(world.try_get("alice", "listZones", &[]).await, Err(ConnectionLost));
    for command in ["listZones", "listNetworks", "makeCoffee", "makeTea"] {
        world.get("alice", command, &[]).await;
    }
    let counted: Vec<_> = world.simulator.calls().into_iter().collect();
    assert_eq!(counted, [("listNetworks", 1), ("listZones", 2), ("unknown", 2)]);
}

#[tokio::test]
async fn a_stuck_job_stays_pending() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let (command, times) = always("deployVirtualMachine");
    world.simulator.inject(Fault::StuckJob { command, times }).unwrap();
    let submitted = world.deploy("alice", &network, "vm1", &[]).await;
    world.pass(Duration::from_secs(3600));
    let job = submitted.body["jobid"].as_str().unwrap();
    assert_eq!(world.get("alice", "queryAsyncJobResult", &[("jobid", job)]).await.body["jobstatus"], 0);
}

#[tokio::test]
async fn a_full_cloud_takes_no_machine_until_it_is_healed() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    world.simulator.inject(Fault::NoCapacity).unwrap();
    let submitted = world.deploy("alice", &network, "vm1", &[]).await;
    assert_eq!(world.wait("alice", &submitted).await["jobresultcode"], 533);
    world.simulator.heal();
    world.machine("alice", &network, "vm2").await;
}

#[tokio::test]
async fn hosts_that_fail_once_are_passed_over() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    world.simulator.inject(Fault::HostsFail { command: HostCommand::Start, times: Some(1) }).unwrap();
    world.machine("alice", &network, "vm1").await;
    world.simulator.inject(Fault::HostsFail { command: HostCommand::Start, times: None }).unwrap();
    let submitted = world.deploy("alice", &network, "vm2", &[]).await;
    assert_eq!(world.wait("alice", &submitted).await["jobresultcode"], 530);
}

#[tokio::test]
async fn expired_keys_are_refused_until_they_are_healed() {
    let world = World::new();
    world.simulator.inject(Fault::ExpiredKeys { account: "alice".to_owned() }).unwrap();
    assert_eq!(world.get("alice", "listZones", &[]).await.status, 401);
    assert_eq!(world.get("bob", "listZones", &[]).await.status, 200);
    world.simulator.heal();
    assert_eq!(world.get("alice", "listZones", &[]).await.status, 200);
}

#[tokio::test]
async fn faults_and_leaks_are_to_be_had_over_http() {
    let world = World::new();
    let call = |method: &str, path: &str, body: &str| {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.body(bytes::Bytes::copy_from_slice(body.as_bytes())).unwrap();
        let simulator = world.simulator.clone();
        async move {
            let response = simulator.call(request).await.unwrap();
            (response.status().as_u16(), String::from_utf8(response.body().to_vec()).unwrap())
        }
    };
    let fault = r#"{"fault":"error","command":"listZones","code":533,"text":"full","times":1}"#;
    assert_eq!(call("POST", "/sim/faults", fault).await.0, 201);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&call("GET", "/sim/faults", "").await.1).unwrap()[0]["code"],
        533
    );
    assert_eq!(world.get("alice", "listZones", &[]).await.status, 533);
    assert_eq!(call("POST", "/sim/faults", r#"{"fault":"none"}"#).await.0, 400);
    world.network("alice", "net1").await;
    let (status, leaks) = call("GET", "/sim/leaks?account=alice", "").await;
    assert_eq!(status, 200);
    assert!(leaks.contains("net1"), "{leaks}");
    assert_eq!(call("GET", "/sim/leaks?account=bob", "").await.1, "[]");
}

#[tokio::test]
async fn a_machine_that_goes_off_by_itself_is_noticed_later() {
    let world = World::new();
    let network = world.network("alice", "net1").await;
    let vm = world.machine("alice", &network, "vm1").await;
    world.simulator.inject(Fault::PowerOff { vm: vm.clone() }).unwrap();
    let state = || async {
        world.get("alice", "listVirtualMachines", &[("id", &vm)]).await.body["virtualmachine"][0]["state"]
            .clone()
    };
    assert_eq!(state().await, "Running");
    world.pass(Duration::from_secs(60));
    assert_eq!(state().await, "Stopped");
}
