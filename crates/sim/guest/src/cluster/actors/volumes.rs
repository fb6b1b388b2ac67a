//! Volumes follow Pods: attached where a Pod uses them, detached when the last one there is gone.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::decision::Decision;
use super::snapshot::{Snapshot, has_ended, namespace, node_name};

const ACTOR: &str = "kube-controller-manager";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
    for pod in snapshot.all("Pod").filter(|pod| !has_ended(pod)) {
        let Some(node) = node_name(pod) else { continue };
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            let claim = volume["persistentVolumeClaim"]["claimName"].as_str();
            let claim = claim.and_then(|claim| {
                snapshot.get("PersistentVolumeClaim", &format!("{}/{claim}", namespace(pod)))
            });
            if let Some(volume) = claim.and_then(|claim| claim["spec"]["volumeName"].as_str()) {
                used.insert((node, volume));
            }
        }
    }
    let mut attached: BTreeSet<(&str, &str)> = BTreeSet::new();
    for attachment in snapshot.all("VolumeAttachment") {
        let node = attachment["spec"]["nodeName"].as_str().unwrap_or_default();
        let volume = attachment["spec"]["source"]["persistentVolumeName"].as_str().unwrap_or_default();
        if used.contains(&(node, volume)) {
            attached.insert((node, volume));
            // Attaching takes no time here.
            out.status(ACTOR, "VolumeAttachment", attachment, json!({"attached": true}));
        } else if snapshot.machine_of(node).is_none_or(|machine| machine.posts) {
            // A kubelet that does not respond may still have it mounted.
            out.delete(ACTOR, "VolumeAttachment", attachment, None);
        }
    }
    for (node, volume) in used.difference(&attached) {
        let driver = snapshot
            .get("PersistentVolume", volume)
            .and_then(|found| found["spec"]["csi"]["driver"].as_str());
        if let Some(driver) = driver {
            out.create(ACTOR, attachment(node, volume, driver));
        }
    }
}

fn attachment(node: &str, volume: &str, driver: &str) -> Value {
    let hash = Sha256::digest(format!("{volume}{driver}{node}"));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": format!("csi-{hash}")},
        "spec": {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}},
    })
}
