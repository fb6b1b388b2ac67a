//! Kubelets: they register their Nodes, say how these are and run the Pods that are bound to them.

use serde_json::{Value, json};

use super::conditions::{self, Says};
use super::decision::{Decision, Step};
use super::node;
use super::picture::{self, Machine, Picture, has_ended, is_deleting, node_name, time};

const ACTOR: &str = "kubelet";

pub(super) fn decide(picture: &Picture, out: &mut Decision) {
    for machine in picture.machines.iter().filter(|machine| machine.posts) {
        match picture.get("Node", &machine.node.name) {
            None if machine.registers => out.create(ACTOR, node::registered(machine)),
            // Somebody deleted it. Only a kubelet that starts registers.
            None => {}
            Some(node) => {
                if machine.registers {
                    adopt(machine, node, out);
                }
                renew_lease(picture, machine, node, out);
                report(picture, machine, node, out);
            }
        }
        for pod in picture.all("Pod").filter(|pod| node_name(pod) == Some(&machine.node.name)) {
            run(picture, machine, pod, out);
        }
    }
}

/// A kubelet that finds a Node of its name takes it for its own.
fn adopt(machine: &Machine, node: &Value, out: &mut Decision) {
    let wanted = node::registered(machine);
    let mut patch = json!({"metadata": {"labels": wanted["metadata"]["labels"]}});
    if node["spec"]["providerID"].is_null() {
        patch["spec"] = json!({"providerID": wanted["spec"]["providerID"]});
    }
    out.patch(ACTOR, "Node", node, patch);
    out.steps.push(Step::Registered { vm: machine.vm.clone() });
}

fn renew_lease(picture: &Picture, machine: &Machine, node: &Value, out: &mut Decision) {
    let name = &machine.node.name;
    let now = picture.now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let Some(lease) = picture.get("Lease", &format!("kube-node-lease/{name}")) else {
        let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": picture::uid(node)}]);
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
    let Some(every) = picture.heartbeat else { return };
    let due = time(&lease["spec"]["renewTime"]).map(|renewed| renewed + every);
    match due.filter(|due| *due > picture.now) {
        Some(due) => out.look_at(due),
        None => {
            out.patch(ACTOR, "Lease", lease, json!({"spec": {"renewTime": now}}));
            out.look_at(picture.now + every);
        }
    }
}

fn report(picture: &Picture, machine: &Machine, node: &Value, out: &mut Decision) {
    let mut network = machine.network;
    if !network && installs_network(picture, &machine.node.name) {
        out.steps.push(Step::NetworkInstalled { vm: machine.vm.clone() });
        network = true;
    }
    let fine = |of, reason, message| Says { of, status: "False", reason, message };
    let ready = if network {
        Says {
            of: "Ready",
            status: "True",
            reason: "KubeletReady",
            message: "kubelet is posting ready status",
        }
    } else {
        Says { of: "Ready", status: "False", reason: "KubeletNotReady", message: node::NO_NETWORK }
    };
    let says = [
        fine("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        fine("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        fine("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ready,
    ];
    let mut status = node::facts(machine);
    status["conditions"] = conditions::with(node, &says, &picture.stamp());
    out.status(ACTOR, "Node", node, status);
}

/// A network plugin runs on a Node, which puts its configuration on the disk.
fn installs_network(picture: &Picture, node: &str) -> bool {
    picture.all("Pod").any(|pod| {
        node_name(pod) == Some(node) && is_network_plugin(pod) && conditions::is_true(pod, "Ready")
    })
}

/// Pods that install a network plugin: they write where the container runtime looks for it, or are known by name.
fn is_network_plugin(pod: &Value) -> bool {
    picture::controller(pod).is_some_and(|owner| owner["kind"] == "DaemonSet") && would_install_network(pod)
}

/// Whether Pods of this template, run by a DaemonSet, install a network plugin.
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

/// Brings one Pod nearer to what it should be.
fn run(picture: &Picture, machine: &Machine, pod: &Value, out: &mut Decision) {
    if is_deleting(pod) {
        return end(picture, pod, out);
    }
    if has_ended(pod) {
        return;
    }
    let on_host = pod["spec"]["hostNetwork"] == true;
    if !machine.network && !on_host {
        return wait_for_network(picture, machine, pod, out);
    }
    let bound =
        conditions::find(pod, "PodScheduled").and_then(|scheduled| time(&scheduled["lastTransitionTime"]));
    let bound = bound.or_else(|| time(&pod["metadata"]["creationTimestamp"])).unwrap_or(picture.now);
    let ready_at = bound + picture.pod_start;
    if picture.now < ready_at {
        return out.look_at(ready_at);
    }
    if picture::controller(pod).is_some_and(|owner| owner["kind"] == "Job") {
        // What a Job does takes as long as starting it.
        let ends = ready_at + picture.pod_start;
        if picture.now >= ends {
            return out.status(ACTOR, "Pod", pod, succeeded(picture, pod));
        }
        out.look_at(ends);
    }
    out.status(ACTOR, "Pod", pod, running(picture, machine, pod));
}

/// A Pod is gone when its containers have ended, which they do at once if they are given the time.
fn end(picture: &Picture, pod: &Value, out: &mut Decision) {
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let grace = jiff::SignedDuration::from_secs(grace);
    let latest = time(&pod["metadata"]["deletionTimestamp"]).unwrap_or(picture.now);
    let ends = latest - grace + grace.min(picture.pod_start);
    if picture.now < ends {
        out.look_at(ends);
    } else {
        out.delete(ACTOR, "Pod", pod, Some(0));
    }
}

fn wait_for_network(picture: &Picture, machine: &Machine, pod: &Value, out: &mut Decision) {
    let names = container_names(pod);
    let message = format!("containers with unready status: [{}]", names.join(" "));
    let not = |of| Says { of, status: "False", reason: "ContainersNotReady", message: &message };
    let says = [
        Says { of: "PodReadyToStartContainers", status: "False", reason: "", message: "" },
        Says { of: "Initialized", status: "True", reason: "", message: "" },
        not("Ready"),
        not("ContainersReady"),
    ];
    out.status(
        ACTOR,
        "Pod",
        pod,
        json!({
            "phase": "Pending", "hostIP": machine.node.address.to_string(),
            "conditions": conditions::with(pod, &says, &picture.stamp()),
        }),
    );
}

fn container_names(pod: &Value) -> Vec<&str> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.filter_map(|container| container["name"].as_str()).collect()
}

fn running(picture: &Picture, machine: &Machine, pod: &Value) -> Value {
    let yes = |of| Says { of, status: "True", reason: "", message: "" };
    let says = [
        yes("PodReadyToStartContainers"),
        yes("Initialized"),
        yes("Ready"),
        yes("ContainersReady"),
        yes("PodScheduled"),
    ];
    let started = pod["status"]["startTime"].as_str().map_or_else(|| picture.stamp(), str::to_owned);
    let host = machine.node.address.to_string();
    let address = match pod["status"]["podIP"].as_str() {
        Some(address) => address.to_owned(),
        None if pod["spec"]["hostNetwork"] == true => host.clone(),
        None => pod_address(picture::uid(pod)),
    };
    let state = json!({"running": {"startedAt": started}});
    let done = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": started,
    }});
    let mut status = json!({
        "phase": "Running", "startTime": started,
        "hostIP": host, "hostIPs": [{"ip": host}], "podIP": address, "podIPs": [{"ip": address}],
        "conditions": conditions::with(pod, &says, &picture.stamp()),
        "containerStatuses": containers(pod, "containers", &state, true),
    });
    if pod["spec"]["initContainers"].as_array().is_some_and(|all| !all.is_empty()) {
        status["initContainerStatuses"] = containers(pod, "initContainers", &done, false);
    }
    status
}

fn succeeded(picture: &Picture, pod: &Value) -> Value {
    let not = |of| Says { of, status: "False", reason: "PodCompleted", message: "" };
    let now = picture.stamp();
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
    let told = all.map(|container| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
            "ready": runs || list == "initContainers", "started": runs, "state": state, "lastState": {},
        })
    });
    told.collect()
}

/// An address in the network of Pods. Nothing listens there.
fn pod_address(uid: &str) -> String {
    let mut bytes = uid.bytes().filter_map(|byte| char::from(byte).to_digit(16));
    let mut octet = || bytes.next().unwrap_or(0) * 16 + bytes.next().unwrap_or(1);
    format!("10.244.{}.{}", octet(), octet().clamp(2, 254))
}
