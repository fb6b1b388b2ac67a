//! What the client makes of a cloud that fails.

use std::time::Duration;

use capstan_cloudstack_client::commands::{DeployVirtualMachine, ListVirtualMachines, ListZones};
use capstan_cloudstack_client::{Class, Code, Credentials, ErrorKind, JobState, Patience, Policy};
use capstan_sim_cloudstack::{Fault, Settings};
use futures::future::join_all;

use super::World;

fn named(name: &str) -> ListVirtualMachines {
    ListVirtualMachines { name: Some(name.to_owned()), ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_ambiguous_and_a_look_finds_the_machine() {
    let world = World::new(Settings::default()).await;
    let network = world.network("net").await;
    let order = world.order("vm", &network).await;
    let command = "deployVirtualMachine".to_owned();
    world.simulator.inject(Fault::LostReply { command: command.clone(), times: Some(1) }).unwrap();
    let error = world.client.start(&order).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.client.find(&named("vm")).await.unwrap().is_some(), "it happened");

    let order = world.order("other", &network).await;
    world.simulator.inject(Fault::LostRequest { command, times: Some(1) }).unwrap();
    let error = world.client.start(&order).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    assert!(world.client.find(&named("other")).await.unwrap().is_none(), "it did not");
    assert_eq!(world.client.endpoint().metrics().calls("deployVirtualMachine"), 2, "nothing was sent twice");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_for_a_moment_is_asked_again() {
    let world = World::new(Settings::default()).await;
    let network = world.network("net").await;
    for code in [429, 503] {
        let text = "not now".to_owned();
        let fault = Fault::Error { command: "deployVirtualMachine".to_owned(), code, text, times: Some(2) };
        world.simulator.inject(fault).unwrap();
        world.machine(&format!("vm-{code}"), &network).await;
    }
    world.simulator.inject(Fault::LostReply { command: "*".to_owned(), times: Some(3) }).unwrap();
    assert_eq!(world.client.list(&ListZones::default()).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_cloud_fails_the_job_and_leaves_a_machine_to_be_found_by_its_id() {
    let world = World::new(Settings::default()).await;
    let network = world.network("net").await;
    world.simulator.inject(Fault::NoCapacity).unwrap();
    let submitted = world.client.start(&world.order("vm", &network).await).await.unwrap();
    let error = world.client.wait::<DeployVirtualMachine>(&submitted.job).await.unwrap_err();
    assert_eq!((error.class(), error.job.as_ref()), (Class::Capacity, Some(&submitted.job)));
    let look = ListVirtualMachines { id: submitted.id, ..Default::default() };
    let state = world.client.find(&look).await.unwrap().unwrap().state.unwrap();
    assert_eq!(state.as_str(), "Error");
    // A failure can still be read much later, by whoever wrote the job down.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let state = world.client.poll::<DeployVirtualMachine>(&submitted.job).await.unwrap();
    assert!(matches!(state, JobState::Failed(refusal) if refusal.code == Code::InsufficientCapacity));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_never_ends_is_given_up_with_its_id() {
    let jobs = Patience { total: Duration::from_secs(120), ..Patience::default() };
    let world = World::with_policy(Settings::default(), Policy { jobs, ..Policy::default() }).await;
    let network = world.network("net").await;
    let command = "deployVirtualMachine".to_owned();
    world.simulator.inject(Fault::StuckJob { command, times: Some(1) }).unwrap();
    let error = world.client.run(&world.order("vm", &network).await).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::JobPending(_)), "{error}");
    assert!(error.is_ambiguous() && error.job.is_some());
}

#[tokio::test(start_paused = true)]
async fn refused_keys_are_distinguished_from_missing_rights_and_new_ones_are_used_at_once() {
    let world = World::new(Settings::default()).await;
    let lacking = world.client.list(&capstan_cloudstack_client::commands::ListDomains::default()).await;
    assert_eq!(lacking.unwrap_err().class(), Class::Permission, "the stock role has no listDomains");
    world.simulator.inject(Fault::ExpiredKeys { account: "capstan".to_owned() }).unwrap();
    for _ in 0..10 {
        let error = world.client.list(&ListZones::default()).await.unwrap_err();
        assert_eq!(error.class(), Class::Credentials);
    }
    assert_eq!(
        world.client.endpoint().metrics().calls("listZones"),
        1 + 3,
        "refused keys are not sent again and again"
    );
    let boss = world.simulator.credentials("boss").unwrap();
    world.keys.replace(Credentials::new(boss.api_key, boss.secret_key));
    world.client.list(&ListZones::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_machines_at_once_cost_few_questions() {
    let world = World::new(Settings::default()).await;
    let network = world.network("net").await;
    let mut orders = Vec::new();
    for n in 0..15 {
        orders.push(world.order(&format!("vm-{n}"), &network).await);
    }
    let results = join_all(orders.iter().map(|order| world.client.run(order))).await;
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
    let metrics = world.client.endpoint().metrics();
    let questions = metrics.calls("queryAsyncJobResult") + metrics.calls("listAsyncJobs");
    assert!(questions < 60, "{questions} for 15 machines");
    assert!(metrics.calls("listAsyncJobs") > 0);
}
