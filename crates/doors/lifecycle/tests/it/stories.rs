//! Whole lifecycles of clusters.

use capstan_controller::KindName;
use capstan_harness::{Fault, Violation, World, run};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::types::{CloudStackMachineConfig, Cluster};
use capstan_object::Key;
use serde_json::json;

use crate::cloud::Cloud;
use crate::lifecycles::{self, machines, nothing_is_left, ready_with};
use crate::manifests::{NAME, SYSTEM};
use crate::story::{self, Play, Played, Script, cluster};

/// A group of two has a third machine in a rollout.
const MOST: usize = 3;

fn goes_well(play: Play) {
    let report = run(&Script { play, most: MOST, settings: Settings::default }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn one_file_becomes_a_cluster_and_goes_without_a_trace() {
    goes_well(lifecycles::brief);
}

/// The number of the first effect of the cluster controller on a kind.
fn first(trace: &str, verb: &str, kind: &str) -> usize {
    let effect = format!("lifecycle-cluster: {verb} {kind}.");
    let line = trace.lines().find(|line| line.contains(&effect)).expect("an effect");
    let number = line.split_whitespace().find_map(|word| word.strip_prefix('#')).expect("a number");
    number.parse().expect("a number")
}

#[test]
fn a_crash_or_a_lost_answer_leaves_neither_two_of_anything_nor_a_trace() {
    let script = Script { play: lifecycles::brief, most: 2, settings: Settings::default };
    let reference = run(&script, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let number = |verb, kind| first(&reference.trace.text(), verb, kind);
    for fault in [
        Fault::CrashAfter(number("apply", "clusters")),
        Fault::LoseReply(number("apply", "cloudstackmachinetemplates")),
        Fault::CrashAfter(number("apply", "kubeadmcontrolplanes")),
        Fault::LoseReply(number("apply", "machinedeployments")),
        Fault::CrashAfter(number("delete", "clusters")),
    ] {
        let report = run(&script, 1, &[fault]);
        assert!(report.violation.is_none(), "{}", report.transcript());
    }
}

#[test]
fn a_fault_during_the_check_of_a_cni_leaves_nothing_of_the_check() {
    let script = Script { play: lifecycles::network, most: 2, settings: crate::chart::settings };
    let reference = run(&script, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let trace = reference.trace.text();
    let calls: Vec<usize> = trace
        .lines()
        .filter(|line| line.contains("preflight check of the CNI"))
        .filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix('#')?.parse().ok()))
        .collect();
    let [begins, ends] = calls[..] else { panic!("{calls:?}") };
    for fault in [Fault::CrashAfter(begins), Fault::LoseReply(begins), Fault::CrashAfter(ends)] {
        let report = run(&script, 1, &[fault]);
        assert!(report.violation.is_none(), "{}", report.transcript());
    }
}

#[test]
fn a_group_that_comes_and_goes_touches_no_other_machine() {
    goes_well(lifecycles::group);
}

#[test]
fn a_change_rolls_out_exactly_what_it_concerns() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |_| ()).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            let before = machines(world)?;

            // A count scales and replaces nothing.
            let group = |count: i32, labels: serde_json::Value| {
                json!({"spec": {"workerNodeGroupConfigurations": [{
                    "name": "md-0", "count": count, "labels": labels,
                    "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "anywhere-md"},
                }]}})
            };
            story::patch::<Cluster>(world, NAME, group(2, json!({"tier": "general"}))).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 2)?;
            let scaled = machines(world)?;
            if !before.iter().all(|name| scaled.contains(name)) {
                return Err(Violation::new("L1", format!("{before:?} became {scaled:?}")));
            }

            // Labels of nodes replace the workers and not the control plane.
            story::patch::<Cluster>(world, NAME, group(2, json!({"tier": "other"}))).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 2)?;
            kept(&scaled, &machines(world)?, 1)?;
            let labelled = machines(world)?;

            // An offering replaces the machines of its config.
            let offering = json!({"spec": {"computeOffering": {"name": "Medium Instance"}}});
            story::patch::<CloudStackMachineConfig>(world, "anywhere-cp", offering).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 2)?;
            kept(&labelled, &machines(world)?, 2)?;
            let key = Key::new(SYSTEM, format!("{NAME}-control-plane-2"));
            let kind = KindName::of::<capstan_cloudstack_types::v1beta3::CloudStackMachineTemplate>();
            if world.objects()?.get(&kind, &key).is_none() {
                return Err(Violation::new("L1", "there is no second template"));
            }

            // Another group comes and goes.
            let groups = json!({"spec": {"workerNodeGroupConfigurations": [
                {"name": "md-0", "count": 1, "labels": {"tier": "other"},
                    "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "anywhere-md"}},
                {"name": "md-1", "count": 1,
                    "machineGroupRef": {"kind": "CloudStackMachineConfig", "name": "anywhere-md"}},
            ]}});
            story::patch::<Cluster>(world, NAME, groups).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 2)?;
            story::patch::<Cluster>(world, NAME, group(1, json!({"tier": "other"}))).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}

/// So many machines of before are still there.
fn kept(before: &[String], after: &[String], wanted: usize) -> Result<(), Violation> {
    let kept = before.iter().filter(|name| after.contains(name)).count();
    match kept == wanted {
        true => Ok(()),
        false => Err(Violation::new("L1", format!("{kept} instead of {wanted} kept: {before:?}, {after:?}"))),
    }
}

#[test]
fn an_upgrade_replaces_every_machine_once() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |_| ()).await?;
            world.run_until_idle().await?;
            let before = machines(world)?;
            // The version alone is refused by the names of the templates, and nothing is touched.
            story::patch::<Cluster>(world, NAME, json!({"spec": {"kubernetesVersion": "1.36"}})).await?;
            world.run_until_idle().await?;
            let blocked = cluster(world)?;
            let reason = &blocked["status"]["failureReason"];
            if *reason != "MachineConfigInvalid" || machines(world)? != before {
                return Err(Violation::new("L1", format!("not blocked: {}", blocked["status"])));
            }
            for config in ["anywhere-cp", "anywhere-md"] {
                let template = json!({"spec": {"template": {"name": "ubuntu-2404-kube-v1.36.0"}}});
                story::patch::<CloudStackMachineConfig>(world, config, template).await?;
            }
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            kept(&before, &machines(world)?, 0)?;
            let status = cluster(world)?["status"].clone();
            if status.get("failureMessage").is_some() || status["reconciledGeneration"] != 2 {
                return Err(Violation::new("L1", format!("not cleaned up: {status}")));
            }
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}

#[test]
fn a_datacenter_that_is_wrong_blocks_its_cluster_until_it_is_mended() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |body| {
                if body["kind"] == "CloudStackDatacenterConfig" {
                    body["spec"]["availabilityZones"][0]["credentialsRef"] = "other".into();
                }
            })
            .await?;
            world.pass(std::time::Duration::from_secs(60)).await?;
            let status = cluster(world)?["status"].clone();
            let message = status["failureMessage"].as_str().unwrap_or_default().to_owned();
            if status["failureReason"] != "DatacenterConfigInvalid"
                || !message.contains("there is no Secret eksa-system/other")
            {
                return Err(Violation::new("L1", format!("not blocked: {status}")));
            }
            // The Secret that was missing wakes the datacenter, and that its cluster.
            let keys = cloud.simulator.credentials("capstan").map_err(story::failed)?;
            let mut secret = crate::manifests::keys(&keys);
            secret["metadata"]["name"] = "other".into();
            let created = world.user()?.create(&crate::manifests::secrets(), SYSTEM, &secret).await;
            created.map_err(story::failed)?;
            world.run_until_idle().await?;
            ready_with(world, 1, 1)?;
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}

#[test]
fn a_paused_cluster_is_deleted_only_if_that_is_allowed() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            story::create(world, cloud, |_| ()).await?;
            world.run_until_idle().await?;
            let annotated = |name: &str| json!({"metadata": {"annotations": {name: "true"}}});
            let paused = annotated("anywhere.eks.amazonaws.com/paused");
            story::patch::<Cluster>(world, NAME, paused).await?;
            story::ask_to_delete::<Cluster>(world, NAME).await?;
            world.run_until_idle().await?;
            if machines(world)?.len() != 2 || cluster(world)?.is_null() {
                return Err(Violation::new("L1", "deleted while it was paused"));
            }
            let allowed = annotated("anywhere.eks.amazonaws.com/allow-delete-when-paused");
            story::patch::<Cluster>(world, NAME, allowed).await?;
            story::wait_until_gone(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}
