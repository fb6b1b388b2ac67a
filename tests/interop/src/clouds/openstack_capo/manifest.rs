//! CAPO's published template, read from its module and filled in as a user does.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use crate::bed::install;
use crate::bed::openstack::{OpenStack, TENANT};
use crate::bed::template::substituted;
use crate::peers::catalog::{CAPO, CAPO_MODULE};
use crate::peers::module_dir;

/// Kubernetes version of the clusters. The clouds have an image of it.
pub const VERSION: &str = "v1.36.0";
/// Name of the SSH key that is registered in the cloud.
pub const SSH_KEY: &str = "somebody";
/// A public key without a private key.
pub const SSH_KEY_MATERIAL: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJ somebody";

/// Values of the template's variables.
pub struct TemplateValues<'a> {
    pub name: &'a str,
    /// Control plane machines and workers.
    pub machines: (i64, i64),
    /// Id of the external network.
    pub external_network: &'a str,
}

/// The objects of the published template, unchanged.
pub fn published(values: &TemplateValues<'_>, cloud: &OpenStack) -> Result<Vec<Value>> {
    let path = module_dir(CAPO_MODULE, &format!("v{CAPO}"))?.join("templates/cluster-template.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text = substituted(&text, |variable| {
        Some(match variable {
            "CLUSTER_NAME" => values.name.to_owned(),
            "KUBERNETES_VERSION" => VERSION.to_owned(),
            "CONTROL_PLANE_MACHINE_COUNT" => values.machines.0.to_string(),
            "WORKER_MACHINE_COUNT" => values.machines.1.to_string(),
            "OPENSTACK_CLOUD" => TENANT.to_owned(),
            "OPENSTACK_CLOUD_YAML_B64" => BASE64.encode(&cloud.clouds_yaml),
            // What CAPO's script sets for a cloud without an authority of its own.
            "OPENSTACK_CLOUD_CACERT_B64" => BASE64.encode("\n"),
            "OPENSTACK_EXTERNAL_NETWORK_ID" => values.external_network.to_owned(),
            "OPENSTACK_DNS_NAMESERVERS" => "9.9.9.9".to_owned(),
            "OPENSTACK_FAILURE_DOMAIN" => "az1".to_owned(),
            // A project has twenty cores by default.
            "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR" | "OPENSTACK_NODE_MACHINE_FLAVOR" => {
                "m1.medium".to_owned()
            }
            "OPENSTACK_IMAGE_NAME" => format!("ubuntu-2404-kube-{VERSION}"),
            "OPENSTACK_SSH_KEY_NAME" => SSH_KEY.to_owned(),
            _ => return None,
        })
    })
    .with_context(|| path.display().to_string())?;
    install::documents(&text)
}
