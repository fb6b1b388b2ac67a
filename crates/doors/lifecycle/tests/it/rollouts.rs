//! Changes of manifests, and exactly the machines that each of them replaces.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_types::core::{Machine, MachineDeployment, label};
use capstan_controller::{KindName, Patch};
use capstan_harness::{Violation, World, run};
use capstan_lifecycle::cluster::Settings;
use capstan_lifecycle::types::{CloudStackMachineConfig, Cluster};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::lifecycles::{nothing_is_left, ready_with};
use crate::manifests::{NAME, NAMESPACE, SYSTEM};
use crate::story::{self, Play, Played, Script, failed};

/// Two groups of one machine each, and the control plane: each may have one more in a rollout.
const MOST: usize = 4;
const EVERY: &[&str] = &["cp", "md-0", "md-1"];

/// The object that is changed, where in its spec, what is there then, and the roles whose machines are replaced.
type Row = (&'static str, &'static str, Value, &'static [&'static str]);

fn of_control_plane() -> Vec<Row> {
    let cp: &[&str] = &["cp"];
    let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    vec![
        (
            NAME,
            "/controlPlaneConfiguration/taints",
            json!([taint("node-role.kubernetes.io/control-plane"), taint("x")]),
            cp,
        ),
        (NAME, "/controlPlaneConfiguration/labels", json!({"rack": "1"}), cp),
        (NAME, "/controlPlaneConfiguration/certSans", json!(["api.example.org"]), cp),
        (NAME, "/controlPlaneConfiguration/apiServerExtraArgs", json!({"v": "3"}), cp),
        (NAME, "/controlPlaneConfiguration/kubeletConfiguration", json!({"maxPods": 50}), cp),
        (
            NAME,
            "/controlPlaneConfiguration/auditPolicyContent",
            json!("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: Metadata}]\n"),
            cp,
        ),
        (
            NAME,
            "/controlPlaneConfiguration/upgradeRolloutStrategy",
            json!({"rollingUpdate": {"maxSurge": 1}}),
            &[],
        ),
        (NAME, "/machineHealthCheck", json!({"nodeStartupTimeout": "20m0s"}), &[]),
        ("anywhere-cp", "/symlinks", json!({"/var/log/containers": "/data/containers"}), cp),
        ("anywhere-cp", "/computeOffering", json!({"name": "Medium Instance"}), cp),
        (NAME, "/registryMirrorConfiguration", json!({"endpoint": "mirror.example.org"}), EVERY),
        (NAME, "/registryMirrorConfiguration/insecureSkipVerify", json!(true), EVERY),
    ]
}

fn of_workers() -> Vec<Row> {
    let (first, second, workers) = (&["md-0"][..], &["md-1"][..], &["md-0", "md-1"][..]);
    let groups = "/workerNodeGroupConfigurations";
    let at = |rest: &str| &*format!("{groups}{rest}").leak();
    vec![
        (NAME, at("/0/taints"), json!([{"key": "only", "value": "db", "effect": "NoSchedule"}]), first),
        (NAME, at("/0/labels"), json!({"tier": "db"}), first),
        (NAME, at("/1/labels"), json!({"tier": "web"}), second),
        (NAME, at("/1/kubeletConfiguration"), json!({"maxPods": 20}), second),
        (NAME, at("/0/machineHealthCheck"), json!({"maxUnhealthy": "40%"}), &[]),
        (
            NAME,
            at("/0/upgradeRolloutStrategy"),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
            &[],
        ),
        (NAME, at("/0/autoscalingConfiguration"), json!({"minCount": 1, "maxCount": 2}), &[]),
        (
            "anywhere-md",
            "/users/0/sshAuthorizedKeys/0",
            json!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExample1"),
            workers,
        ),
        ("anywhere-md", "/userCustomDetails", json!({"team": "a"}), workers),
        (
            "anywhere-md",
            "/diskOffering",
            json!({"name": "Small", "mountPath": "/data", "device": "/dev/vdb", "filesystem": "ext4", "label": "data"}),
            workers,
        ),
    ]
}

/// Machines by role.
fn machines(world: &World<'_>) -> Result<BTreeMap<String, BTreeSet<String>>, Violation> {
    let mut roles: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for machine in world.objects()?.list(&KindName::of::<Machine>()) {
        let labels = &machine["metadata"]["labels"];
        let group = labels[label::DEPLOYMENT_NAME].as_str().map(|name| name.replace(&format!("{NAME}-"), ""));
        let name = machine["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        roles.entry(group.unwrap_or_else(|| "cp".to_owned())).or_default().insert(name);
    }
    Ok(roles)
}

/// Sets a field of the spec of an object of the example, as `kubectl edit` does.
async fn set(world: &World<'_>, name: &str, path: &str, value: &Value) -> Result<(), Violation> {
    let kind = match name == NAME {
        true => KindName::of::<Cluster>(),
        false => KindName::of::<CloudStackMachineConfig>(),
    };
    let key = Key::new(NAMESPACE, name);
    let mut object = world.objects()?.get(&kind, &key).unwrap_or_default();
    let (parent, field) = path.rsplit_once('/').unwrap_or_default();
    let parent = object["spec"].pointer_mut(parent).ok_or_else(|| failed(format!("no {parent}")))?;
    match parent {
        Value::Array(items) => items[field.parse::<usize>().map_err(failed)?] = value.clone(),
        parent => parent[field] = value.clone(),
    }
    let change = Patch::Merge(json!({"spec": object["spec"]}));
    world.user()?.patch(&kind, &key, None, &change).await.map(drop).map_err(failed)
}

async fn created(world: &mut World<'_>, cloud: &Cloud) -> Result<(), Violation> {
    story::create(world, cloud, |body| {
        if body["kind"] == "Cluster" {
            let groups = &mut body["spec"]["workerNodeGroupConfigurations"];
            let mut second = groups[0].clone();
            second["name"] = "md-1".into();
            *groups = json!([groups[0], second]);
        }
    })
    .await?;
    world.run_until_idle().await?;
    ready_with(world, 1, 2)
}

async fn replaces(world: &mut World<'_>, rows: Vec<Row>) -> Result<(), Violation> {
    for (name, path, value, replaced) in rows {
        let before = machines(world)?;
        set(world, name, path, &value).await?;
        world.run_until_idle().await?;
        ready_with(world, 1, 2)?;
        let after = machines(world)?;
        for role in EVERY {
            let (before, after) = (&before[*role], &after[*role]);
            let is_as_expected = match replaced.contains(role) {
                true => before.is_disjoint(after),
                false => before == after,
            };
            if !is_as_expected {
                let what = format!("{path} of {name}: machines of {role} were {before:?} and are {after:?}");
                return Err(Violation::new("L1", what));
            }
        }
    }
    Ok(())
}

fn goes_well(play: Play) {
    let report = run(&Script { play, most: MOST, settings: Settings::default }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn a_change_of_the_control_plane_or_of_all_machines_replaces_these() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            created(world, cloud).await?;
            replaces(world, of_control_plane()).await?;
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}

#[test]
fn a_change_of_a_worker_group_replaces_its_machines() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            created(world, cloud).await?;
            replaces(world, of_workers()).await?;
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}

#[test]
fn what_an_autoscaler_sets_stays() {
    fn play<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> Played<'a> {
        Box::pin(async move {
            created(world, cloud).await?;
            let bounds = json!({"minCount": 1, "maxCount": 3});
            set(world, NAME, "/workerNodeGroupConfigurations/1/autoscalingConfiguration", &bounds).await?;
            world.run_until_idle().await?;
            let key = Key::new(SYSTEM, format!("{NAME}-md-1"));
            let change = Patch::Merge(json!({"spec": {"replicas": 2}}));
            let kind = KindName::of::<MachineDeployment>();
            world.user()?.patch(&kind, &key, None, &change).await.map_err(failed)?;
            world.run_until_idle().await?;
            ready_with(world, 1, 3)?;
            // Another change of the same object does not reset it.
            set(world, NAME, "/workerNodeGroupConfigurations/1/labels", &json!({"tier": "web"})).await?;
            world.run_until_idle().await?;
            ready_with(world, 1, 3)?;
            story::delete(world, cloud).await?;
            nothing_is_left(world, cloud)
        })
    }
    goes_well(play);
}
