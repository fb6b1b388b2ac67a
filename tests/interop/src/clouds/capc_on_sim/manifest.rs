//! CAPC's published templates, read from its module and filled in as a user does.

use std::net::IpAddr;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bed::cloudstack::CloudStack;
use crate::bed::install;
use crate::bed::template::substituted;
use crate::peers::catalog::{CAPC, CAPC_MODULE};
use crate::peers::module_dir;

/// Kubernetes version of the clusters. The clouds have an image of it.
pub const VERSION: &str = "v1.36.0";
/// Name of the credentials Secret, in the namespace that the templates assume.
pub const KEYS: &str = "cloudstack-credentials";
/// Name of the SSH key that is registered in the cloud.
pub const SSH_KEY: &str = "somebody";
/// A public key without a private key.
pub const SSH_KEY_MATERIAL: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJJ somebody";

/// Values of the template's variables.
pub struct TemplateValues<'a> {
    /// Name of the cluster and of its network.
    pub name: &'a str,
    /// Control plane machines and workers.
    pub machines: (i64, i64),
    /// Public address of its API server.
    pub address: IpAddr,
}

/// The objects of a published template. `""` is the plain one.
pub fn published(template: &str, values: &TemplateValues<'_>, cloud: &CloudStack) -> Result<Vec<Value>> {
    let folder = module_dir(CAPC_MODULE, &format!("v{CAPC}"))?.join("templates");
    let path = folder.join(format!("cluster-template{template}.yaml"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text = substituted(&text, |variable| {
        Some(match variable {
            "CLUSTER_NAME" | "CLOUDSTACK_NETWORK_NAME" | "CLOUDSTACK_VPC_NAME" => values.name.to_owned(),
            "CLUSTER_ENDPOINT_IP" => values.address.to_string(),
            "CLUSTER_ENDPOINT_PORT" => cloud.endpoint_port.to_string(),
            "KUBERNETES_VERSION" => VERSION.to_owned(),
            "CONTROL_PLANE_MACHINE_COUNT" => values.machines.0.to_string(),
            "WORKER_MACHINE_COUNT" => values.machines.1.to_string(),
            "CLOUDSTACK_ZONE_NAME" => "zone-1".to_owned(),
            "CLOUDSTACK_TEMPLATE_NAME" => format!("ubuntu-2404-kube-{VERSION}"),
            "CLOUDSTACK_CONTROL_PLANE_MACHINE_OFFERING" | "CLOUDSTACK_WORKER_MACHINE_OFFERING" => {
                "Small Instance".to_owned()
            }
            "CLOUDSTACK_DISK_OFFERING_NAME" => "Small".to_owned(),
            "CLOUDSTACK_DISK_OFFERING_DEVICE" => "/dev/vdb".to_owned(),
            "CLOUDSTACK_DISK_OFFERING_FILESYSTEM" => "ext4".to_owned(),
            "CLOUDSTACK_DISK_OFFERING_LABEL" => "data_disk".to_owned(),
            "CLOUDSTACK_DISK_OFFERING_MOUNT_PATH" => "/data".to_owned(),
            "CLOUDSTACK_SSH_KEY_NAME" => SSH_KEY.to_owned(),
            "OS_USERID" => "somebody".to_owned(),
            "SSH_KEY_MATERIAL" => SSH_KEY_MATERIAL.to_owned(),
            _ => return None,
        })
    })
    .with_context(|| path.display().to_string())?;
    install::documents(&text)
}
