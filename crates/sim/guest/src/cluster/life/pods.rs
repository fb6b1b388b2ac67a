//! What becomes of Pods whose Node is gone or lost.

use jiff::SignedDuration;
use serde_json::Value;

use super::decision::Decision;
use super::picture::{Picture, is_deleting, node_name, time};

const ACTOR: &str = "kube-controller-manager";
/// How long a Pod that does not say otherwise stays on a Node that is lost.
const TOLERATED: SignedDuration = SignedDuration::from_secs(300);

pub(super) fn decide(picture: &Picture, out: &mut Decision) {
    for pod in picture.all("Pod") {
        let Some(name) = node_name(pod) else { continue };
        match picture.get("Node", name) {
            None => out.delete(ACTOR, "Pod", pod, Some(0)),
            Some(node) if !is_deleting(pod) => evict(picture, pod, node, out),
            Some(_) => {}
        }
    }
}

/// Deletes a Pod that tolerates a taint of its Node no longer.
fn evict(picture: &Picture, pod: &Value, node: &Value, out: &mut Decision) {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    for taint in taints.filter(|taint| taint["effect"] == "NoExecute") {
        let since = time(&taint["timeAdded"]).unwrap_or(picture.now);
        let ends = match tolerates_for(pod, taint) {
            Toleration::Ever => continue,
            Toleration::For(seconds) => since + seconds,
            // What the API server gives to Pods that say nothing of lost Nodes.
            Toleration::Never if is_about_loss(taint) => since + TOLERATED,
            Toleration::Never => since,
        };
        if picture.now >= ends {
            return out.delete(ACTOR, "Pod", pod, None);
        }
        out.look_at(ends);
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

/// Whether a toleration is about a taint.
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
