//! Machines of a site as their cloud sees them.

use std::time::Duration;

use super::kubeadm::{CLUSTER, runs};
use super::*;
use crate::vm::Phase;
use crate::{Site, SiteOptions};

/// A cluster without load balancer: clients reach its first machine.
fn alone() -> String {
    runs("init", &CLUSTER.replace("controlPlaneEndpoint: api.blue.example:6443\n", ""))
}

/// A machine of a new site some time after power-on.
async fn created(vm: VmSpec, after: Duration) -> (Site, Phase, String) {
    let site = Site::new(env(), SiteOptions::default());
    let (phase, console) = created_in(&site, vm, after).await;
    (site, phase, console)
}

async fn created_in(site: &Site, vm: VmSpec, after: Duration) -> (Phase, String) {
    let id = vm.id.clone();
    site.create(vm).expect("a machine");
    tokio::time::sleep(after).await;
    (site.vm(&id).expect("a machine").phase, site.console(&id).expect("a console"))
}

#[tokio::test(start_paused = true)]
async fn user_data_is_executed_once_however_often_a_machine_starts() {
    let data = "#cloud-config\nruncmd: [echo executed]\n";
    let (site, phase, _) = created(vm(data), Duration::from_secs(60)).await;
    assert_eq!(phase, Phase::Booted);
    site.reboot("i-1").expect("rebooted");
    assert_eq!(site.vm("i-1").map(|vm| vm.phase), Some(Phase::Booting));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(site.vm("i-1").map(|vm| vm.phase), Some(Phase::Booted));
    let console = site.console("i-1").expect("a console");
    assert_eq!(console.matches(": executed\n").count(), 1, "{console}");
    assert!(
        console.contains("[   20.000000] cloud-init[612]: executed"),
        "after the time that a boot takes\n{console}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_boot_reports_why_and_stays_failed() {
    let (site, phase, console) = created(vm("#cloud-config\nwrite_files: ["), Duration::from_secs(60)).await;
    let Phase::Failed(why) = &phase else { panic!("{phase:?}\n{console}") };
    assert!(why.contains("Failed loading yaml blob") && console.contains(why.as_str()), "{why}\n{console}");
    site.reboot("i-1").expect("rebooted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(site.vm("i-1").map(|vm| vm.phase), Some(phase));
}

#[tokio::test(start_paused = true)]
async fn the_first_machine_initializes_a_cluster() {
    let (site, phase, console) = created(vm(alone()), Duration::from_secs(600)).await;
    assert_eq!(phase, Phase::Booted, "{console}");
    assert_eq!(site.vm("i-1").and_then(|vm| vm.node), Some("node-1".to_owned()));
    let cluster = site.cluster_of("i-1").expect("a cluster");
    assert_eq!(cluster.etcd_members().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_load_balancer_fails_kubeadm() {
    let site = Site::new(env(), SiteOptions::default());
    let endpoint = site.endpoint("blue").to_string();
    let data = runs("init", &CLUSTER.replace("api.blue.example:6443", &endpoint));
    let (phase, console) = created_in(&site, vm(data), Duration::from_secs(600)).await;
    let Phase::Failed(why) = phase else { panic!("{phase:?}\n{console}") };
    assert!(why.starts_with("error: error execution phase wait-control-plane: "), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_loses_power_initializes_no_second_cluster() {
    let data = alone().replace("- mkdir -p", "- sleep 3600\n- mkdir -p");
    let (site, phase, _) = created(vm(data), Duration::from_secs(600)).await;
    assert_eq!(phase, Phase::Booting, "its scripts still run");
    let cluster = site.cluster_of("i-1").expect("a cluster");
    site.crash("i-1").expect("crashed");
    site.start("i-1").expect("started");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(site.vm("i-1").map(|vm| vm.phase), Some(Phase::Booted));
    let now = site.cluster_of("i-1").expect("a cluster");
    assert!(std::sync::Arc::ptr_eq(&cluster, &now));
}
