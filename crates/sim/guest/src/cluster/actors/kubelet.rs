//! Kubelets: they register Nodes, report their status and run the Pods bound to them.

use serde_json::{Value, json};

use super::conditions::{self, ConditionUpdate};
use super::decision::{Decision, Step};
use super::node;
use super::snapshot::{self, Machine, Snapshot, has_ended, is_deleting, node_name, time};

const ACTOR: &str = "kubelet";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for machine in snapshot.machines.iter().filter(|machine| machine.posts) {
        match snapshot.get("Node", &machine.node.name) {
            None if machine.registers => out.create(ACTOR, node::registered(machine)),
            // It was deleted. Only a starting kubelet registers.
            None => {}
            Some(node) => {
                if machine.registers {
                    adopt(machine, node, out);
                }
                renew_lease(snapshot, machine, node, out);
                report(snapshot, machine, node, out);
            }
        }
        for pod in snapshot.all("Pod").filter(|pod| node_name(pod) == Some(&machine.node.name)) {
            run(snapshot, machine, pod, out);
        }
    }
}

/// A kubelet adopts an existing Node of its name.
fn adopt(machine: &Machine, node: &Value, out: &mut Decision) {
    let wanted = node::registered(machine);
    let mut patch = json!({"metadata": {"labels": wanted["metadata"]["labels"]}});
    if node["spec"]["providerID"].is_null() {
        patch["spec"] = json!({"providerID": wanted["spec"]["providerID"]});
    }
    out.patch(ACTOR, "Node", node, patch);
    out.steps.push(Step::Registered { vm: machine.vm.clone() });
}

fn renew_lease(snapshot: &Snapshot, machine: &Machine, node: &Value, out: &mut Decision) {
    let name = &machine.node.name;
    let now = snapshot.now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let Some(lease) = snapshot.get("Lease", &format!("kube-node-lease/{name}")) else {
        let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": snapshot::uid(node)}]);
        out.create(
            ACTOR,
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": owner},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
            }),
        );
        return;
    };
    let Some(every) = snapshot.heartbeat else { return };
    let due = time(&lease["spec"]["renewTime"]).map(|renewed| renewed + every);
    match due.filter(|due| *due > snapshot.now) {
        Some(due) => out.requeue_at(due),
        None => {
            out.patch(ACTOR, "Lease", lease, json!({"spec": {"renewTime": now}}));
            out.requeue_at(snapshot.now + every);
        }
    }
}

fn report(snapshot: &Snapshot, machine: &Machine, node: &Value, out: &mut Decision) {
    let mut network = machine.network;
    if !network && installs_network(snapshot, &machine.node.name) {
        out.steps.push(Step::NetworkInstalled { vm: machine.vm.clone() });
        network = true;
    }
    let fine = |of, reason, message| ConditionUpdate { of, status: "False", reason, message };
    let ready = if network {
        ConditionUpdate {
            of: "Ready",
            status: "True",
            reason: "KubeletReady",
            message: "kubelet is posting ready status",
        }
    } else {
        ConditionUpdate { of: "Ready", status: "False", reason: "KubeletNotReady", message: node::NO_NETWORK }
    };
    let updates = [
        fine("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        fine("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        fine("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ready,
    ];
    let mut status = node::static_status(machine);
    status["addresses"] = node::current_addresses(machine, node);
    status["conditions"] = conditions::with(node, &updates, &snapshot.stamp());
    out.status(ACTOR, "Node", node, status);
}

/// A CNI runs on a Node and installs its configuration.
fn installs_network(snapshot: &Snapshot, node: &str) -> bool {
    snapshot.all("Pod").any(|pod| {
        node_name(pod) == Some(node) && is_network_plugin(pod) && conditions::is_true(pod, "Ready")
    })
}

/// Pods of a CNI: they write to its configuration directory, or have a well-known name.
fn is_network_plugin(pod: &Value) -> bool {
    snapshot::controller(pod).is_some_and(|owner| owner["kind"] == "DaemonSet") && would_install_network(pod)
}

/// Whether a DaemonSet with this template installs a CNI.
pub(in crate::cluster) fn would_install_network(pod: &Value) -> bool {
    let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let writes = volumes.any(|volume| {
        let path = volume["hostPath"]["path"].as_str().unwrap_or_default();
        path.starts_with("/etc/cni/net.d") || path.starts_with("/opt/cni/bin")
    });
    let known = ["k8s-app", "app", "app.kubernetes.io/name"].into_iter().any(|label| {
        let name = pod["metadata"]["labels"][label].as_str().unwrap_or_default();
        matches!(
            name,
            "calico-node" | "cilium" | "cilium-agent" | "canal" | "flannel" | "kindnet" | "kube-router"
        )
    });
    writes || known
}

/// Advances the status of one Pod.
fn run(snapshot: &Snapshot, machine: &Machine, pod: &Value, out: &mut Decision) {
    if is_deleting(pod) {
        return end(snapshot, pod, out);
    }
    if has_ended(pod) {
        return;
    }
    let on_host = pod["spec"]["hostNetwork"] == true;
    if !machine.network && !on_host {
        return wait_for_network(snapshot, machine, pod, out);
    }
    let bound =
        conditions::find(pod, "PodScheduled").and_then(|scheduled| time(&scheduled["lastTransitionTime"]));
    let bound = bound.or_else(|| time(&pod["metadata"]["creationTimestamp"])).unwrap_or(snapshot.now);
    let ready_at = bound + snapshot.pod_start;
    if snapshot.now < ready_at {
        return out.requeue_at(ready_at);
    }
    if snapshot::controller(pod).is_some_and(|owner| owner["kind"] == "Job") {
        // A Job's Pod runs as long as it takes to start.
        let ends = ready_at + snapshot.pod_start;
        if snapshot.now >= ends {
            return out.status(ACTOR, "Pod", pod, succeeded(snapshot, pod));
        }
        out.requeue_at(ends);
    }
    out.status(ACTOR, "Pod", pod, running(snapshot, machine, pod));
}

/// A Pod is removed when its containers have ended, which they do at once within the grace period.
fn end(snapshot: &Snapshot, pod: &Value, out: &mut Decision) {
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let grace = jiff::SignedDuration::from_secs(grace);
    let latest = time(&pod["metadata"]["deletionTimestamp"]).unwrap_or(snapshot.now);
    let ends = latest - grace + grace.min(snapshot.pod_start);
    if snapshot.now < ends {
        out.requeue_at(ends);
    } else {
        out.delete(ACTOR, "Pod", pod, Some(0));
    }
}

fn wait_for_network(snapshot: &Snapshot, machine: &Machine, pod: &Value, out: &mut Decision) {
    let names = container_names(pod);
    let message = format!("containers with unready status: [{}]", names.join(" "));
    let not = |of| ConditionUpdate { of, status: "False", reason: "ContainersNotReady", message: &message };
    let updates = [
        ConditionUpdate { of: "PodReadyToStartContainers", status: "False", reason: "", message: "" },
        ConditionUpdate { of: "Initialized", status: "True", reason: "", message: "" },
        not("Ready"),
        not("ContainersReady"),
    ];
    out.status(
        ACTOR,
        "Pod",
        pod,
        json!({
            "phase": "Pending", "hostIP": machine.node.address.to_string(),
            "conditions": conditions::with(pod, &updates, &snapshot.stamp()),
        }),
    );
}

fn container_names(pod: &Value) -> Vec<&str> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.filter_map(|container| container["name"].as_str()).collect()
}

fn running(snapshot: &Snapshot, machine: &Machine, pod: &Value) -> Value {
    let yes = |of| ConditionUpdate { of, status: "True", reason: "", message: "" };
    let updates = [
        yes("PodReadyToStartContainers"),
        yes("Initialized"),
        yes("Ready"),
        yes("ContainersReady"),
        yes("PodScheduled"),
    ];
    let started = pod["status"]["startTime"].as_str().map_or_else(|| snapshot.stamp(), str::to_owned);
    let host = machine.node.address.to_string();
    let address = match pod["status"]["podIP"].as_str() {
        Some(address) => address.to_owned(),
        None if pod["spec"]["hostNetwork"] == true => host.clone(),
        None => pod_address(snapshot::uid(pod)),
    };
    let state = json!({"running": {"startedAt": started}});
    let done = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": started,
    }});
    let mut status = json!({
        "phase": "Running", "startTime": started,
        "hostIP": host, "hostIPs": [{"ip": host}], "podIP": address, "podIPs": [{"ip": address}],
        "conditions": conditions::with(pod, &updates, &snapshot.stamp()),
        "containerStatuses": containers(pod, "containers", &state, true),
    });
    if pod["spec"]["initContainers"].as_array().is_some_and(|all| !all.is_empty()) {
        status["initContainerStatuses"] = containers(pod, "initContainers", &done, false);
    }
    status
}

fn succeeded(snapshot: &Snapshot, pod: &Value) -> Value {
    let not = |of| ConditionUpdate { of, status: "False", reason: "PodCompleted", message: "" };
    let now = snapshot.stamp();
    let started = pod["status"]["startTime"].as_str().unwrap_or(&now);
    let state = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now,
    }});
    json!({
        "phase": "Succeeded",
        "conditions": conditions::with(pod, &[not("Ready"), not("ContainersReady")], &now),
        "containerStatuses": containers(pod, "containers", &state, false),
    })
}

fn containers(pod: &Value, list: &str, state: &Value, runs: bool) -> Value {
    let all = pod["spec"][list].as_array().into_iter().flatten();
    let statuses = all.map(|container| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
            "ready": runs || list == "initContainers", "started": runs, "state": state, "lastState": {},
        })
    });
    statuses.collect()
}

/// An address in the Pod network. Nothing listens there.
fn pod_address(uid: &str) -> String {
    let mut bytes = uid.bytes().filter_map(|byte| char::from(byte).to_digit(16));
    let mut octet = || bytes.next().unwrap_or(0) * 16 + bytes.next().unwrap_or(1);
    format!("10.244.{}.{}", octet(), octet().clamp(2, 254))
}
