//! The Node of a machine: arguments of its kubelet.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::config::{Arguments, Node};
use super::{Abort, Kubeadm};
use crate::request::{ExternalCloud, NodeRequest};

/// How long kubeadm waits for a kubelet.
const KUBELET: Duration = Duration::from_secs(4 * 60);

/// Kubernetes labels that kubelets may set on their own Nodes.
const ALLOWED: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Arguments of the kubelet, and why it would not start with them.
pub(super) struct Kubelet {
    pub(super) request: NodeRequest,
    pub(super) flags: Vec<(String, String)>,
    refusal: Option<String>,
}

impl Kubeadm<'_, '_> {
    /// The Node of this machine.
    pub(super) fn kubelet(&self, node: &Node, control_plane: bool) -> Kubelet {
        let given: Vec<(&str, &str)> = node.kubelet_extra_args.iter().flat_map(Arguments::pairs).collect();
        // The last value wins.
        let argument =
            |name: &str| given.iter().rev().find(|(held, _)| *held == name).map(|(_, value)| unquoted(value));
        let mut refusal = None;
        let labels = match labels(&argument("node-labels").unwrap_or_default()) {
            Ok(labels) => labels,
            Err(why) => {
                refusal = Some(why);
                BTreeMap::new()
            }
        };
        let mut taints = node.taints.clone();
        if let Some(text) = argument("register-with-taints") {
            match parse_taints(&text) {
                Ok(more) => {
                    let default =
                        json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"});
                    let held =
                        taints.get_or_insert_with(|| if control_plane { vec![default] } else { Vec::new() });
                    let new: Vec<Value> = more.into_iter().filter(|taint| !held.contains(taint)).collect();
                    held.extend(new);
                }
                Err(why) => refusal = Some(why),
            }
        }
        let external = (argument("cloud-provider").as_deref() == Some("external")).then(|| {
            let node_ip = argument("node-ip").unwrap_or_default();
            ExternalCloud { node_ip: node_ip.split(',').find_map(|address| address.trim().parse().ok()) }
        });
        let provider_id = argument("provider-id").filter(|id| !id.is_empty());
        // Otherwise it is the cloud controller manager's to set.
        let own = || self.guest.vm.provider_id.clone().filter(|_| external.is_none());
        let provider_id = provider_id.or_else(own);
        let mut flags = vec![("container-runtime-endpoint".to_owned(), node.cri_socket.clone())];
        if node.name != self.guest.hostname.to_lowercase() {
            flags.push(("hostname-override".to_owned(), node.name.clone()));
        }
        flags.extend(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Kubelet {
            request: NodeRequest {
                vm: self.guest.vm.id.clone(),
                name: argument("hostname-override").unwrap_or_else(|| node.name.clone()).to_lowercase(),
                address: self.guest.address,
                kubelet_version: format!("v{}", self.version),
                provider_id,
                external,
                labels,
                taints,
            },
            flags,
            refusal,
        }
    }

    /// A kubelet that does not start: kubeadm fails after its timeout.
    pub(super) async fn wait_for_kubelet(&mut self, kubelet: &Kubelet, phase: &str) -> Result<(), Abort> {
        let Some(why) = &kubelet.refusal else { return Ok(()) };
        self.guest.services.remove("kubelet.service");
        self.guest.screen.line(&format!("kubelet: E run.go:72] \"command failed\" err=\"{why}\""));
        self.print("[kubelet-check] Waiting for a healthy kubelet at http://127.0.0.1:10248/healthz. This can take up to 4m0s");
        tokio::time::sleep(KUBELET).await;
        self.print("[kubelet-check] The kubelet is not healthy after 4m0s");
        Err(Abort::phase(
            phase,
            "failed while waiting for the kubelet to start: The HTTP call equal to 'curl -sSL http://127.0.0.1:10248/healthz' \
             returned error: Get \"http://127.0.0.1:10248/healthz\": dial tcp 127.0.0.1:10248: connect: connection refused",
        ))
    }
}

/// A flag as the kubelet gets it: systemd removes the quotes in the environment file that kubeadm writes. Templates
/// with `cloudstack:///'…'` rely on it.
fn unquoted(text: &str) -> String {
    text.replace(['\'', '"'], "")
}

/// Parses `a=b,c=d`; kubelets may not set reserved labels.
fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        labels.insert(key.to_owned(), value.to_owned());
    }
    let forbidden: Vec<&str> = labels.keys().map(String::as_str).filter(|key| !may_set(key)).collect();
    if forbidden.is_empty() {
        return Ok(labels);
    }
    Err(format!(
        "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{}]",
        forbidden.join(" ")
    ))
}

fn may_set(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return true };
    let within = |domain: &str| prefix == domain || prefix.ends_with(&format!(".{domain}"));
    if !within("kubernetes.io") && !within("k8s.io") {
        return true;
    }
    ALLOWED.contains(&key) || within("kubelet.kubernetes.io") || within("node.kubernetes.io")
}

/// Parses `key=value:Effect,…`.
fn parse_taints(text: &str) -> Result<Vec<Value>, String> {
    let mut taints = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let wrong = || {
            format!(
                "invalid argument {part:?} for \"--register-with-taints\" flag: invalid taint spec: {part}"
            )
        };
        let (key, effect) = part.rsplit_once(':').ok_or_else(wrong)?;
        if !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            return Err(wrong());
        }
        let mut taint = json!({"effect": effect});
        match key.split_once('=') {
            Some((key, value)) => {
                taint["key"] = key.into();
                if !value.is_empty() {
                    taint["value"] = value.into();
                }
            }
            None => taint["key"] = key.into(),
        }
        taints.push(taint);
    }
    Ok(taints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_set_only_allowed_labels() {
        for (key, allowed) in [
            ("zone", true),
            ("example.com/a", true),
            ("node.cluster.x-k8s.io/a", true),
            ("topology.kubernetes.io/zone", true),
            ("node.kubernetes.io/a", true),
            ("kubelet.kubernetes.io/a", true),
            ("node-role.kubernetes.io/worker", false),
            ("k8s.io/a", false),
        ] {
            assert_eq!(may_set(key), allowed, "{key}");
        }
        assert!(labels("a=b,node-role.kubernetes.io/x=").is_err());
        assert_eq!(labels("a=b,c").map(|labels| labels.len()), Ok(2));
    }

    #[test]
    fn taints_are_parsed_from_the_flag() {
        assert_eq!(
            parse_taints("a=b:NoSchedule,c:NoExecute"),
            Ok(vec![
                json!({"key": "a", "value": "b", "effect": "NoSchedule"}),
                json!({"key": "c", "effect": "NoExecute"})
            ])
        );
        assert!(parse_taints("a=b:Sometimes").is_err() && parse_taints("a").is_err());
    }
}
