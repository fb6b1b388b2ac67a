//! Bootstrap tokens: expired ones are deleted, all others sign `cluster-info`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::super::kubeadm::token;
use super::decision::Decision;
use super::snapshot::Snapshot;

const ACTOR: &str = "kube-controller-manager";
const SIGNATURE: &str = "jws-kubeconfig-";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    let mut signers = Vec::new();
    for secret in snapshot.all("Secret").filter(|secret| secret["type"] == "bootstrap.kubernetes.io/token") {
        let expires = text(secret, "expiration");
        let expires = (!expires.is_empty()).then(|| expires.parse::<jiff::Timestamp>());
        match expires {
            Some(Ok(at)) if at > snapshot.now => out.requeue_at(at),
            None => {}
            // An unreadable expiration counts as expired.
            Some(_) => {
                out.delete(ACTOR, "Secret", secret, None);
                continue;
            }
        }
        if text(secret, "usage-bootstrap-signing") == "true" {
            signers.push((text(secret, "token-id"), text(secret, "token-secret")));
        }
    }
    if let Some(info) = snapshot.get("ConfigMap", "kube-public/cluster-info") {
        sign(info, &signers, out);
    }
}

fn sign(info: &Value, signers: &[(String, String)], out: &mut Decision) {
    let Some(content) = info["data"]["kubeconfig"].as_str() else { return };
    let mut data = Map::new();
    // Signatures of deleted tokens are removed too.
    for key in
        info["data"].as_object().into_iter().flat_map(Map::keys).filter(|key| key.starts_with(SIGNATURE))
    {
        data.insert(key.clone(), Value::Null);
    }
    for (id, secret) in signers {
        data.insert(format!("{SIGNATURE}{id}"), token::sign(id, secret, content).into());
    }
    if !data.is_empty() {
        out.patch(ACTOR, "ConfigMap", info, json!({"data": data}));
    }
}

fn text(secret: &Value, key: &str) -> String {
    let held = secret["data"][key].as_str().and_then(|held| STANDARD.decode(held).ok());
    held.and_then(|held| String::from_utf8(held).ok()).unwrap_or_default()
}
