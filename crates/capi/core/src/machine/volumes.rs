//! Waits for volumes to be detached from a drained node: a volume that is attached when the VM is deleted may be lost.

use std::collections::BTreeSet;

use capstan_controller::{ApiError, Client, ListOptions};
use capstan_object::Time;

use super::drain::Plan;
use crate::conditions::shortened;
use crate::workload::{Node, PersistentVolume, VolumeAttachment};

/// Maximum number of names per category in a message.
const SHOWN: usize = 5;

/// Volumes that must be detached from a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attached {
    pub claims: BTreeSet<String>,
    /// Volumes without a claim.
    pub unclaimed: BTreeSet<String>,
    /// Attached according to the node, but without a PersistentVolume.
    pub unknown_to_node: BTreeSet<String>,
    /// Attached according to a VolumeAttachment, but without a PersistentVolume.
    pub unknown_to_attachments: BTreeSet<String>,
}

impl Attached {
    /// Compares what the node and the attachments report with the volumes there are.
    pub fn new(
        node: &Node,
        attachments: &[VolumeAttachment],
        volumes: &[PersistentVolume],
        kept_claims: &[String],
    ) -> Self {
        let mut attached = Self {
            unknown_to_node: node.status.volumes_attached.iter().map(|volume| volume.name.clone()).collect(),
            unknown_to_attachments: attachments
                .iter()
                .filter(|attachment| {
                    attachment.status.attached && attachment.spec.node_name == node.metadata.name
                })
                .filter_map(|attachment| attachment.spec.source.persistent_volume_name.clone())
                .collect(),
            ..Self::default()
        };
        let (by_node, by_attachment) =
            (attached.unknown_to_node.clone(), attached.unknown_to_attachments.clone());
        for volume in volumes {
            let reported = volume
                .spec
                .csi
                .as_ref()
                .map(|csi| format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle));
            let reported = reported.filter(|name| by_node.contains(name));
            if reported.is_none() && !by_attachment.contains(&volume.metadata.name) {
                continue;
            }
            if let Some(name) = &reported {
                attached.unknown_to_node.remove(name);
            }
            attached.unknown_to_attachments.remove(&volume.metadata.name);
            match volume.spec.claim_ref.as_ref().filter(|claim| claim.kind == "PersistentVolumeClaim") {
                Some(claim) => {
                    let claim = format!("{}/{}", claim.namespace, claim.name);
                    if !kept_claims.contains(&claim) {
                        attached.claims.insert(claim);
                    }
                }
                None => drop(attached.unclaimed.insert(volume.metadata.name.clone())),
            }
        }
        attached
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn message(&self, since: Time) -> String {
        let mut message = format!("Waiting for Node volumes to be detached (started at {since})");
        for (what, names) in [
            ("PersistentVolumeClaims", &self.claims),
            ("PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim", &self.unclaimed),
            (
                "Node with .status.volumesAttached entries not matching a PersistentVolume",
                &self.unknown_to_node,
            ),
            (
                "VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume",
                &self.unknown_to_attachments,
            ),
        ] {
            if !names.is_empty() {
                let names: Vec<_> = names.iter().collect();
                message.push_str(&format!("\n* {what}: {}", shortened(&names, SHOWN)));
            }
        }
        message
    }
}

/// Reads the volumes of a node. PersistentVolumes are listed only if something is attached.
pub(super) async fn attached(client: &Client, node: &Node, plan: &Plan) -> Result<Attached, ApiError> {
    let options = ListOptions { limit: Some(100), ..ListOptions::default() };
    let attachments = client.list_all::<VolumeAttachment>("", &options).await?;
    let bare = Attached::new(node, &attachments, &[], &plan.kept_claims);
    if bare.is_empty() {
        return Ok(bare);
    }
    let volumes = client.list_all::<PersistentVolume>("", &options).await?;
    Ok(Attached::new(node, &attachments, &volumes, &plan.kept_claims))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn a_volume_blocks_unless_a_skipped_pod_uses_it() {
        let node: Node = read(json!({
            "metadata": {"name": "node"},
            "status": {"volumesAttached": [{"name": "kubernetes.io/csi/d^h"}, {"name": "strange"}]},
        }));
        let attachment = |volume: &str, node: &str, attached: bool| {
            read::<VolumeAttachment>(json!({
                "spec": {"nodeName": node, "source": {"persistentVolumeName": volume}},
                "status": {"attached": attached},
            }))
        };
        let claimed = |name: &str, claim: &str| {
            read::<PersistentVolume>(json!({
                "metadata": {"name": name},
                "spec": {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "n", "name": claim}},
            }))
        };
        let mut by_handle = claimed("by-handle", "c1");
        by_handle.spec.csi = read(json!({"driver": "d", "volumeHandle": "h"}));
        let unclaimed: PersistentVolume = read(json!({"metadata": {"name": "unclaimed"}}));
        let attached = Attached::new(
            &node,
            &[
                attachment("kept", "node", true),
                attachment("elsewhere", "other", true),
                attachment("detached", "node", false),
                attachment("unclaimed", "node", true),
                attachment("vanished", "node", true),
            ],
            &[
                by_handle,
                claimed("kept", "c2"),
                claimed("elsewhere", "c3"),
                claimed("detached", "c4"),
                unclaimed,
            ],
            &["n/c2".to_owned()],
        );
        assert_eq!(
            attached.message(jiff::Timestamp::UNIX_EPOCH.into()),
            "Waiting for Node volumes to be detached (started at 1970-01-01T00:00:00Z)\n\
             * PersistentVolumeClaims: n/c1\n\
             * PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: unclaimed\n\
             * Node with .status.volumesAttached entries not matching a PersistentVolume: strange\n\
             * VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: vanished"
        );
        assert!(Attached::new(&Node::default(), &[], &[], &[]).is_empty());
    }
}
