//! Volumes that Cinder's CSI driver made for PersistentVolumes of a workload cluster. They hold data, so they stay when the
//! cluster is deleted unless an annotation asks for their deletion.
//!
//! The driver writes its own name of the cluster into the metadata of volumes and snapshots. Its default is the same for all
//! clusters, and two clusters of a project may have one name: then nothing shows whose a volume is, and all of them stay.

use std::collections::BTreeSet;

use capstan_controller::View;
use capstan_openstack_client::block_storage::{Snapshot, SnapshotFilter, Volume, VolumeFilter, VolumeStatus};
use capstan_openstack_client::{Class, Error, List};
use capstan_openstack_types::v1beta2::OpenStackCluster;

use super::call::ClusterCall;
use super::cluster_name::name_of_cluster;
use crate::code;
use crate::error::CloudError;
use crate::project::Access;

/// On OpenStackClusters: `keep` or `delete`.
pub const POLICY: &str = "capstan.dev/openstack-volumes";
/// On OpenStackClusters: the driver's name of the cluster, its flag `--cluster`. Defaults to the name of the Cluster.
pub const CSI_CLUSTER: &str = "capstan.dev/openstack-csi-cluster";

/// Key of the driver's name of the cluster in metadata.
const METADATA: &str = "cinder.csi.openstack.org/cluster";
/// The driver's name of clusters that were not given one.
const DEFAULT: &str = "kubernetes";

/// What the driver left.
#[derive(Debug, Clone, Default)]
pub struct VolumesState {
    /// Why the annotations have no effect.
    pub refused: Option<String>,
    /// Ids and states, once the cluster is being deleted.
    pub snapshots: Vec<(String, String)>,
    /// Those without snapshots of others: Cinder keeps these.
    pub volumes: Vec<LeftVolume>,
}

#[derive(Debug, Clone)]
pub struct LeftVolume {
    pub id: String,
    pub status: VolumeStatus,
    pub has_snapshots: bool,
}

/// The driver's name of a cluster.
fn csi_name(object: &OpenStackCluster, cluster: &str) -> String {
    object.metadata.annotations.get(CSI_CLUSTER).cloned().unwrap_or_else(|| cluster.to_owned())
}

/// The name by which volumes are deleted; `None` if they stay.
fn deleted_by(object: &OpenStackCluster, cluster: &str) -> Result<Option<String>, String> {
    match object.metadata.annotations.get(POLICY).map(String::as_str) {
        None | Some("keep") => Ok(None),
        Some("delete") => match csi_name(object, cluster) {
            name if name == DEFAULT => Err(format!(
                "annotation {POLICY}: volumes are kept, because {DEFAULT:?} is the CSI driver's name of every cluster that was \
                 given none: start the driver with --cluster, and set annotation {CSI_CLUSTER}"
            )),
            name => Ok(Some(name)),
        },
        Some(other) => Err(format!("annotation {POLICY} is {other:?}: use keep or delete")),
    }
}

pub(super) async fn observe(
    object: &OpenStackCluster,
    cluster: &str,
    access: &Access,
    view: &View,
) -> Result<VolumesState, CloudError> {
    let refused = |why: String| Ok(VolumesState { refused: Some(why), ..VolumesState::default() });
    let name = match deleted_by(object, cluster) {
        Ok(Some(name)) => name,
        Ok(None) => return Ok(VolumesState::default()),
        Err(why) => return refused(format!("{}: {why}", code::REFUSED)),
    };
    for other in view.list::<OpenStackCluster>("")? {
        let theirs = name_of_cluster(&other, view)?;
        let is_same = theirs.is_some_and(|theirs| csi_name(&other, &theirs) == name);
        if other.metadata.uid != object.metadata.uid && is_same {
            return refused(format!(
                "{}: annotation {POLICY}: volumes are kept, because the CSI driver of {}/{} has the same name {name:?}: give each \
                 cluster a name of its own with --cluster and annotation {CSI_CLUSTER}",
                code::REFUSED,
                other.metadata.namespace,
                other.metadata.name
            ));
        }
    }
    if !object.metadata.is_deleting() {
        return Ok(VolumesState::default());
    }
    let all: Vec<Volume> = listed(access, &VolumeFilter::default()).await?;
    let snapshots: Vec<Snapshot> = listed(access, &SnapshotFilter::default()).await?;
    Ok(left(&name, &all, &snapshots))
}

/// All of a kind. Clouds exist without Cinder.
async fn listed<R: List>(access: &Access, filter: &R::Filter) -> Result<Vec<R>, Error> {
    match access.client.list::<R>(filter).await {
        Err(error) if error.class() == Class::Unsupported => Ok(Vec::new()),
        listed => listed,
    }
}

/// What has the driver's name of the cluster.
fn left(name: &str, all: &[Volume], snapshots: &[Snapshot]) -> VolumesState {
    let (own, others): (Vec<&Snapshot>, Vec<&Snapshot>) =
        snapshots.iter().partition(|it| it.metadata.get(METADATA).is_some_and(|held| held == name));
    let kept: BTreeSet<&str> = others.iter().map(|it| it.volume_id.as_str()).collect();
    let ours = all.iter().filter(|it| it.metadata.get(METADATA).is_some_and(|held| held == name));
    let volumes = ours.filter(|it| !kept.contains(it.id.as_str())).map(|it| LeftVolume {
        id: it.id.to_string(),
        status: it.status.clone(),
        has_snapshots: own.iter().any(|snapshot| snapshot.volume_id == it.id),
    });
    VolumesState {
        refused: None,
        volumes: volumes.collect(),
        snapshots: own.iter().map(|it| (it.id.to_string(), it.status.clone())).collect(),
    }
}

/// The calls that remove them. Cinder keeps a volume while it has snapshots.
pub(super) fn removal(state: &VolumesState) -> Vec<ClusterCall> {
    let snapshots =
        state.snapshots.iter().filter(|(_, status)| matches!(status.as_str(), "available" | "error"));
    let snapshots = snapshots.map(|(id, _)| ClusterCall::DeleteSnapshot { id: id.clone() });
    let removable = |volume: &&LeftVolume| {
        use VolumeStatus as Status;
        !volume.has_snapshots
            && matches!(volume.status, Status::Available | Status::Error | Status::ErrorDeleting)
    };
    let volumes = state.volumes.iter().filter(removable);
    snapshots.chain(volumes.map(|volume| ClusterCall::DeleteVolume { id: volume.id.clone() })).collect()
}

/// How many are left.
pub(super) fn count(state: &VolumesState) -> usize {
    state.snapshots.len() + state.volumes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(annotations: &[(&str, &str)]) -> OpenStackCluster {
        let mut cluster = OpenStackCluster::default();
        let pairs = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        cluster.metadata.annotations = pairs.collect();
        cluster
    }

    #[test]
    fn volumes_stay_unless_they_are_known_to_be_the_clusters_and_their_deletion_is_asked_for() {
        for (annotations, wanted) in [
            (vec![], Ok(None)),
            (vec![(POLICY, "keep")], Ok(None)),
            (vec![(POLICY, "delete")], Ok(Some("c"))),
            (vec![(POLICY, "delete"), (CSI_CLUSTER, "blue")], Ok(Some("blue"))),
            (vec![(POLICY, "delete"), (CSI_CLUSTER, DEFAULT)], Err("of every cluster that was given none")),
            (vec![(POLICY, "Retain")], Err("use keep or delete")),
        ] {
            match (deleted_by(&cluster(&annotations), "c"), wanted) {
                (Ok(name), Ok(wanted)) => assert_eq!(name.as_deref(), wanted),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (other, wanted) => panic!("{annotations:?}: {other:?}, not {wanted:?}"),
            }
        }
    }

    #[test]
    fn snapshots_go_first_and_volumes_with_snapshots_of_others_stay() {
        let of = |name: &str| json!({METADATA: name});
        let volume = |id: &str, name: &str, status: &str| -> Volume {
            let body: Value = json!({"id": id, "status": status, "metadata": of(name)});
            serde_json::from_value(body).expect("a volume")
        };
        let snapshot = |id: &str, volume: &str, name: &str| -> Snapshot {
            let body = json!({"id": id, "volume_id": volume, "status": "available", "metadata": of(name)});
            serde_json::from_value(body).expect("a snapshot")
        };
        let all = [
            volume("plain", "c", "available"),
            volume("saved", "c", "available"),
            volume("archived", "c", "available"),
            volume("used", "c", "in-use"),
            volume("theirs", "d", "available"),
        ];
        let snapshots = [snapshot("s1", "saved", "c"), snapshot("s2", "archived", "by-hand")];
        let state = left("c", &all, &snapshots);
        let snapshot = ClusterCall::DeleteSnapshot { id: "s1".to_owned() };
        let plain = ClusterCall::DeleteVolume { id: "plain".to_owned() };
        assert_eq!(removal(&state), [snapshot, plain]);
        assert_eq!(count(&state), 4, "plain, saved and used, and a snapshot");
    }
}
