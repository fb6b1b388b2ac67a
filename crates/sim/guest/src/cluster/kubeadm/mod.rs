//! The objects that `kubeadm init` creates.
//!
//! ```text
//!   config.rs   kubeadm-config, kubelet-config, cluster-info
//!   access.rs   roles and bindings that let new nodes read them
//!   token.rs    bootstrap tokens
//!   addons.rs   kube-proxy and CoreDNS
//! ```

mod access;
mod addons;
pub(super) mod config;
pub(crate) mod token;

use capstan_controller::KindName;
use jiff::Timestamp;
use serde_json::Value;

use super::kinds;
use crate::request::{InitRequest, KubeadmError};

/// An object that kubeadm creates, and its phase.
pub(super) struct CreatedObject {
    pub(super) phase: &'static str,
    pub(super) kind: KindName,
    pub(super) object: Value,
}

/// All objects of `kubeadm init`, in order.
pub(super) fn objects(
    request: &InitRequest,
    ca: &str,
    now: Timestamp,
) -> Result<Vec<CreatedObject>, KubeadmError> {
    let configuration = &request.cluster_configuration;
    let skips = |phase: &str| {
        let outer = phase.split('/').next().unwrap_or(phase);
        request.skipped_phases.iter().any(|skipped| skipped == phase || skipped == outer)
    };
    let mut all = Vec::new();
    let mut create = |phase: &'static str, objects: Vec<Value>| {
        if !skips(phase) {
            all.extend(objects.into_iter().filter_map(|object| {
                let kind = kinds::named(object["kind"].as_str()?)?;
                Some(CreatedObject { phase, kind, object })
            }));
        }
    };
    create("wait-control-plane", config::api_server(configuration));
    create("kubeconfig/admin", access::administrators());
    create("upload-config/kubeadm", config::kubeadm_config(configuration));
    create("upload-config/kubelet", config::kubelet_config(configuration));
    let mut tokens = Vec::new();
    for token in &request.bootstrap_tokens {
        tokens.push(token::secret(token, now)?);
    }
    let server = config::server(configuration, request.node.address);
    create("bootstrap-token", tokens);
    create("bootstrap-token", access::bootstrap_tokens());
    create("bootstrap-token", config::cluster_info(&server, ca));
    create("addon/coredns", addons::coredns(configuration));
    create("addon/kube-proxy", addons::kube_proxy(configuration, &server));
    Ok(all)
}
