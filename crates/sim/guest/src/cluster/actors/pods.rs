//! Pods whose Node is gone or unreachable.

use jiff::SignedDuration;
use serde_json::Value;

use super::decision::Decision;
use super::snapshot::{Snapshot, is_deleting, node_name, time};

const ACTOR: &str = "kube-controller-manager";
/// Default toleration of a Pod for an unreachable Node.
const TOLERATED: SignedDuration = SignedDuration::from_secs(300);

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for pod in snapshot.all("Pod") {
        let Some(name) = node_name(pod) else { continue };
        match snapshot.get("Node", name) {
            None => out.delete(ACTOR, "Pod", pod, Some(0)),
            Some(node) if !is_deleting(pod) => evict(snapshot, pod, node, out),
            Some(_) => {}
        }
    }
}

/// Deletes a Pod that no longer tolerates a taint of its Node.
fn evict(snapshot: &Snapshot, pod: &Value, node: &Value, out: &mut Decision) {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    for taint in taints.filter(|taint| taint["effect"] == "NoExecute") {
        let since = time(&taint["timeAdded"]).unwrap_or(snapshot.now);
        let ends = match tolerates_for(pod, taint) {
            Toleration::Ever => continue,
            Toleration::For(seconds) => since + seconds,
            // The default toleration that the API server adds to Pods.
            Toleration::Never if is_about_loss(taint) => since + TOLERATED,
            Toleration::Never => since,
        };
        if snapshot.now >= ends {
            return out.delete(ACTOR, "Pod", pod, None);
        }
        out.requeue_at(ends);
    }
}

fn is_about_loss(taint: &Value) -> bool {
    taint["key"] == "node.kubernetes.io/unreachable" || taint["key"] == "node.kubernetes.io/not-ready"
}

enum Toleration {
    Never,
    For(SignedDuration),
    Ever,
}

fn tolerates_for(pod: &Value, taint: &Value) -> Toleration {
    let mut shortest = None;
    for toleration in pod["spec"]["tolerations"].as_array().into_iter().flatten() {
        if tolerates(toleration, taint) {
            match toleration["tolerationSeconds"].as_i64() {
                None => return Toleration::Ever,
                Some(seconds) => shortest = Some(shortest.map_or(seconds, |held: i64| held.min(seconds))),
            }
        }
    }
    shortest.map_or(Toleration::Never, |seconds| Toleration::For(SignedDuration::from_secs(seconds.max(0))))
}

/// Whether a toleration matches a taint.
pub(super) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (effect, key) = (text(&toleration["effect"]), text(&toleration["key"]));
    if !effect.is_empty() && taint["effect"] != effect.as_str() {
        return false;
    }
    if !key.is_empty() && taint["key"] != key.as_str() {
        return false;
    }
    match toleration["operator"].as_str() {
        Some("Exists") => true,
        // An empty key matches all taints only with `Exists`.
        _ => !key.is_empty() && text(&toleration["value"]) == text(&taint["value"]),
    }
}
