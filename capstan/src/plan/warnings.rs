//! Warnings: how the simulation ended, version skew, and PodDisruptionBudgets of the real clusters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use capstan_capi_core::secret::Secret;
use capstan_capi_types::core::Machine;
use capstan_capi_types::version::tolerant;
use capstan_controller::{Access, Client, Env, KindName, Remote, TcpDial};
use capstan_object::Key;
use capstan_provider_kit::MachineNetwork;
use capstan_rehearsal::{MachineEvent, MachineEventKind, Preview, Records};
use capstan_view::{Part, Topology, Tree, one_line, why};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use super::networks;
use crate::kinds::list;
use crate::plugins::Plugins;
use crate::versions::{JoinedVersions, check_skew, is_initialized, untested};

/// For each workload cluster.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What the rules for versions depend on, before the change.
#[derive(Debug, Default)]
pub struct Before {
    machines: Vec<Machine>,
    /// Control planes of any kind.
    control_planes: Vec<Value>,
}

impl Before {
    pub fn of(records: &Records) -> Self {
        let mut before = Self::default();
        for (kind, object) in &records.0 {
            if *kind == KindName::of::<Machine>() {
                before.machines.extend(Machine::deserialize(object));
            } else if kind.group.starts_with("controlplane.") && object["spec"]["version"].is_string() {
                before.control_planes.push(object.clone());
            }
        }
        before
    }
}

pub async fn of(plugins: &Plugins, client: &Client, before: &Before, course: &Preview) -> Vec<String> {
    let mut warnings = not_ready(course);
    warnings.extend(version_changes(before, course));
    warnings.extend(version_skew(course));
    warnings.extend(
        clusters_of(course)
            .flat_map(|cluster| networks::overlaps(cluster, &machine_networks(plugins, course, cluster))),
    );
    warnings.extend(course.without_network.iter().map(|cluster| {
        format!(
            "cluster {}: no resource set installs a CNI: the plan assumes that one is installed otherwise; until then its nodes are \
             NotReady",
            cluster.name
        )
    }));
    for cluster in drained(course) {
        match tokio::time::timeout(TIMEOUT, budgets(client, &cluster)).await {
            Ok(Ok(budgets)) => {
                warnings.extend(budgets.iter().filter_map(|budget| blocked_drain(&cluster, budget)))
            }
            Ok(Err(_)) | Err(_) => warnings.push(format!(
                "cluster {}: cannot read its PodDisruptionBudgets; one may block a drain",
                cluster.name
            )),
        }
    }
    warnings
}

/// Clusters whose machines are drained. Machines of a cluster that is deleted as a whole are not.
fn drained(course: &Preview) -> BTreeSet<Key> {
    let deleting =
        course.steps.iter().filter(|step| step.what == MachineEventKind::Deleting && step.machine.existed);
    deleting.map(cluster_of).filter(|cluster| is_kept(course, cluster)).collect()
}

/// Clusters of machines of the plan that do not exist at its end.
pub fn deleted_clusters(course: &Preview) -> BTreeSet<Key> {
    let steps = course.steps.iter().chain(&course.before);
    steps.map(cluster_of).filter(|cluster| !is_kept(course, cluster)).collect()
}

fn cluster_of(step: &MachineEvent) -> Key {
    Key::new(step.machine.namespace.as_str(), step.machine.cluster.as_str())
}

fn is_kept(course: &Preview, cluster: &Key) -> bool {
    clusters_of(course).any(|object| {
        let meta = &object["metadata"];
        meta["namespace"] == cluster.namespace.as_str()
            && meta["name"] == cluster.name.as_str()
            && meta["deletionTimestamp"].is_null()
    })
}

fn clusters_of(course: &Preview) -> impl Iterator<Item = &Value> {
    of_kind(course, "Cluster", "cluster.x-k8s.io/")
}

fn of_kind<'a>(course: &'a Preview, kind: &'a str, group: &'a str) -> impl Iterator<Item = &'a Value> {
    course.objects.iter().filter(move |object| {
        object["kind"] == kind && object["apiVersion"].as_str().is_some_and(|api| api.starts_with(group))
    })
}

/// The control plane of a cluster at the end of the plan.
fn control_plane_of<'a>(course: &'a Preview, cluster: &Value) -> Option<&'a Value> {
    referenced(course, cluster, "controlPlaneRef")
}

/// What its infrastructure sets about the addresses of its machines.
fn machine_networks(plugins: &Plugins, course: &Preview, cluster: &Value) -> Vec<MachineNetwork> {
    let infrastructure = referenced(course, cluster, "infrastructureRef");
    let of = |object| plugins.providers().flat_map(move |provider| provider.machine_networks(object));
    infrastructure.into_iter().flat_map(of).collect()
}

fn referenced<'a>(course: &'a Preview, cluster: &Value, field: &str) -> Option<&'a Value> {
    let reference = &cluster["spec"][field];
    course.objects.iter().find(|object| {
        object["kind"] == reference["kind"]
            && object["metadata"]["name"] == reference["name"]
            && object["metadata"]["namespace"] == cluster["metadata"]["namespace"]
    })
}

/// Versions of control planes that `capstan upgrade` refuses, and versions that are not known.
fn version_changes(before: &Before, course: &Preview) -> Vec<String> {
    let mut warnings = Vec::new();
    for cluster in clusters_of(course) {
        let Some(after) = control_plane_of(course, cluster) else { continue };
        let Some(to) = after["spec"]["version"].as_str().and_then(tolerant) else { continue };
        let title = crate::apply::title(after);
        warnings.extend(untested(&to).map(|warning| format!("{title}: {warning}")));
        let meta = &after["metadata"];
        let same = |object: &&Value| {
            object["kind"] == after["kind"]
                && object["metadata"]["name"] == meta["name"]
                && object["metadata"]["namespace"] == meta["namespace"]
        };
        let old = before.control_planes.iter().find(same);
        let Some(from) = old.and_then(|old| tolerant(old["spec"]["version"].as_str()?)) else { continue };
        let own = before.machines.iter().filter(|machine| {
            cluster["metadata"]["namespace"] == machine.metadata.namespace.as_str()
                && cluster["metadata"]["name"] == machine.spec.cluster_name.as_str()
        });
        // A topology passes through the versions in between, or is not reconciled.
        if from != to
            && Topology::of(cluster).is_none()
            && let Err(error) =
                JoinedVersions::of(own).check_control_plane(old.is_some_and(is_initialized), &from, &to)
        {
            warnings.push(format!("{title} cannot go from v{from} to v{to}: {error}"));
        }
    }
    warnings
}

/// Workers whose final version is outside the supported skew to their control plane.
fn version_skew(course: &Preview) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    for cluster in clusters_of(course) {
        let meta = &cluster["metadata"];
        let control_plane = control_plane_of(course, cluster);
        let Some(target) = control_plane.and_then(|it| tolerant(it["spec"]["version"].as_str()?)) else {
            continue;
        };
        let mine = |machine: &&Value| {
            machine["metadata"]["namespace"] == meta["namespace"]
                && machine["spec"]["clusterName"] == meta["name"]
        };
        let workers = ["MachineDeployment", "MachinePool"]
            .into_iter()
            .flat_map(|kind| of_kind(course, kind, "cluster.x-k8s.io/"));
        for group in workers.filter(mine) {
            let version = group["spec"]["template"]["spec"]["version"].as_str();
            let Some(Err(error)) = version.and_then(tolerant).map(|own| check_skew(&own, &target)) else {
                continue;
            };
            warnings.insert(format!(
                "{} is at {} and its control plane at v{target}: {error}",
                crate::apply::title(group),
                version.unwrap_or_default()
            ));
        }
    }
    warnings.into_iter().collect()
}

/// Clusters that are not ready when the simulation ends.
fn not_ready(course: &Preview) -> Vec<String> {
    let mut warnings = Vec::new();
    for cluster in clusters_of(course) {
        let parts: Vec<Part> = course.objects.iter().filter_map(Part::of).collect();
        let tree = cluster["metadata"]["uid"].as_str().and_then(|uid| Tree::below(uid, parts));
        // Nothing comes later that a short wait would show.
        let Some(why) = tree.as_ref().and_then(|tree| why(tree, Timestamp::MAX)) else { continue };
        let message = why.first.chain.last().map(|link| {
            let text = if link.message.is_empty() { &link.reason } else { &link.message };
            one_line(text)
        });
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        warnings.push(format!(
            "the simulation ends with cluster {name} not ready: {}: {}",
            why.first.cause.part,
            message.unwrap_or_default()
        ));
    }
    if !course.idle && warnings.is_empty() {
        warnings.push("the simulation does not settle: some operation is retried without end".to_owned());
    }
    warnings
}

/// PodDisruptionBudgets of a workload cluster; none if it has no kubeconfig yet.
async fn budgets(client: &Client, cluster: &Key) -> Result<Vec<Value>> {
    let key = Key::new(&cluster.namespace, format!("{}-kubeconfig", cluster.name));
    let Some(secret) = client.get::<Secret>(&key).await? else { return Ok(Vec::new()) };
    let access = Access::from_kubeconfig(secret.text("value")?.as_bytes())?;
    let remote = Remote::new(access, Arc::new(TcpDial), &Env::system())?;
    let kind = KindName::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    Ok(list(&Client::new(Arc::new(remote), "capstan-cli"), &kind, "").await?)
}

/// A warning, if the budget allows no eviction now.
fn blocked_drain(cluster: &Key, budget: &Value) -> Option<String> {
    let status = &budget["status"];
    let guards = status["expectedPods"].as_i64().unwrap_or(0) > 0;
    let blocks = guards && status["disruptionsAllowed"].as_i64().unwrap_or(0) == 0;
    let text = |field: &str| budget["metadata"][field].as_str().unwrap_or_default();
    blocks.then(|| {
        format!(
            "cluster {}: PodDisruptionBudget {}/{} allows no eviction now: a drain waits for it",
            cluster.name,
            text("namespace"),
            text("name")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn version_skew_is_reported() {
        let course = |kind: &str, control_plane: &str, workers: &str| {
            let meta = |name: &str| json!({"name": name, "namespace": "n"});
            let objects = vec![
                json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta("c"),
                    "spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "c"}}}),
                json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
                    "metadata": meta("c"), "spec": {"version": control_plane}}),
                json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": meta("w"),
                    "spec": {"clusterName": "c", "template": {"spec": {"version": workers}}}}),
            ];
            Preview { objects, ..Preview::default() }
        };
        for (control_plane, workers, expected) in [
            ("v1.36.0", "v1.36.0", None),
            ("v1.36.0", "v1.33.9", None),
            ("v1.36.0", "v1.32.0", Some("at least v1.33 first")),
            ("v1.35.0", "v1.36.0", Some("must not be newer than their control plane")),
        ] {
            for kind in ["MachineDeployment", "MachinePool"] {
                let warnings = version_skew(&course(kind, control_plane, workers));
                assert_eq!(
                    warnings.len(),
                    usize::from(expected.is_some()),
                    "{control_plane} {workers}: {warnings:?}"
                );
                let is_expected = |it: &String| {
                    it.starts_with(kind) && expected.is_some_and(|expected| it.contains(expected))
                };
                assert!(warnings.iter().all(is_expected), "{warnings:?}");
            }
        }
    }

    #[test]
    fn a_plan_warns_of_versions_that_upgrade_refuses() {
        let meta = |name: &str| json!({"name": name, "namespace": "n"});
        let control_plane = |version: &str| {
            json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
                "metadata": meta("c"), "spec": {"version": version}})
        };
        let kind = |kind: &'static str| {
            KindName::namespaced("controlplane.cluster.x-k8s.io", "v1beta2", kind, "kubeadmcontrolplanes")
        };
        let machine = json!({"metadata": {"name": "m", "namespace": "n", "labels": {"cluster.x-k8s.io/control-plane": ""}},
            "spec": {"clusterName": "c", "version": "v1.35.0"}, "status": {"nodeRef": {"name": "node"}}});
        for (from, to, expected) in [
            ("v1.35.0", "v1.36.0", None),
            ("v1.36.0", "v1.35.0", None),
            (
                "v1.35.0",
                "v1.34.0",
                Some(
                    "KubeadmControlPlane/c cannot go from v1.35.0 to v1.34.0: Kubernetes cannot be downgraded",
                ),
            ),
            ("v1.36.0", "v1.37.0", Some("cannot skip minor versions")),
            ("v1.36.0", "v1.37.0", Some("KubeadmControlPlane/c: v1.37.0 is not known to this release")),
        ] {
            let records = Records(vec![
                (kind("KubeadmControlPlane"), control_plane(from)),
                (KindName::of::<Machine>(), machine.clone()),
            ]);
            let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta("c"),
                "spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "c"}}});
            let course = Preview { objects: vec![cluster, control_plane(to)], ..Preview::default() };
            let warnings = version_changes(&Before::of(&records), &course);
            match expected {
                None => assert_eq!(warnings, [""; 0], "{from} {to}"),
                Some(words) => {
                    assert!(warnings.iter().any(|it| it.contains(words)), "{from} {to}: {warnings:?}")
                }
            }
        }
    }

    #[test]
    fn only_a_budget_with_pods_and_no_allowed_disruption_blocks() {
        let cluster = Key::new("default", "c");
        for (expected, allowed, blocks) in [(3, 0, true), (3, 1, false), (0, 0, false)] {
            let budget = json!({"metadata": {"name": "b", "namespace": "n"},
                "status": {"expectedPods": expected, "disruptionsAllowed": allowed}});
            assert_eq!(blocked_drain(&cluster, &budget).is_some(), blocks, "{expected} {allowed}");
        }
    }
}
