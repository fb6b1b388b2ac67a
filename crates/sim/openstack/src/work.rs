//! Work that is due later, as data: it can be dumped and restored with the resources.

use serde::{Deserialize, Serialize};

use crate::cloud::Cloud;
use crate::{cinder, glance, nova, octavia};

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "work", rename_all_fields = "camelCase")]
pub(crate) enum Task {
    /// The state of a floating IP is reported.
    FloatingActive {
        id: String,
    },
    /// The next step of building a server.
    ServerBuild {
        id: String,
        step: nova::BuildStep,
    },
    /// The end of an action of a server.
    ServerAction {
        id: String,
        action: String,
    },
    /// A server is shown as deleted.
    ServerDeleted {
        id: String,
    },
    /// A deleted server is forgotten.
    ServerForgotten {
        id: String,
    },
    /// A volume reaches a status, or is gone.
    VolumeStatus {
        id: String,
        status: String,
    },
    /// A snapshot reaches a status, or is gone.
    SnapshotStatus {
        id: String,
        status: String,
    },
    VolumeAttached {
        id: String,
        server: String,
        device: String,
    },
    VolumeDetached {
        id: String,
        server: String,
    },
    /// An image reaches a status.
    ImageStatus {
        id: String,
        status: String,
    },
    /// A change of a load balancer takes effect.
    BalancerReady {
        id: String,
    },
    /// A load balancer is gone.
    BalancerGone {
        id: String,
    },
}

impl Task {
    /// Name, as faults use it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::FloatingActive { .. } => "floatingActive",
            Self::ServerBuild { .. } => "serverBuild",
            Self::ServerAction { .. } => "serverAction",
            Self::ServerDeleted { .. } => "serverDeleted",
            Self::ServerForgotten { .. } => "serverForgotten",
            Self::VolumeStatus { .. } => "volumeStatus",
            Self::SnapshotStatus { .. } => "snapshotStatus",
            Self::VolumeAttached { .. } => "volumeAttached",
            Self::VolumeDetached { .. } => "volumeDetached",
            Self::ImageStatus { .. } => "imageStatus",
            Self::BalancerReady { .. } => "balancerReady",
            Self::BalancerGone { .. } => "balancerGone",
        }
    }

    pub(crate) fn run(self, cloud: &mut Cloud) {
        match self {
            Self::FloatingActive { id } => {
                use crate::table::Fields as _;
                let held = cloud.get("floatingips", &id).is_some_and(|it| it.has("port_id"));
                cloud.set("floatingips", &id, "status", if held { "ACTIVE" } else { "DOWN" });
            }
            Self::ServerBuild { id, step } => nova::build(cloud, &id, step),
            Self::ServerAction { id, action } => nova::finish_action(cloud, &id, &action),
            Self::ServerDeleted { id } => nova::deleted(cloud, &id),
            Self::ServerForgotten { id } => nova::forget(cloud, &id),
            Self::VolumeStatus { id, status } => cinder::reach(cloud, "volumes", &id, &status),
            Self::SnapshotStatus { id, status } => cinder::reach(cloud, "snapshots", &id, &status),
            Self::VolumeAttached { id, server, device } => cinder::attached(cloud, &id, &server, &device),
            Self::VolumeDetached { id, server } => cinder::detached(cloud, &id, &server),
            Self::ImageStatus { id, status } => glance::reach(cloud, &id, &status),
            Self::BalancerReady { id } => octavia::ready(cloud, &id),
            Self::BalancerGone { id } => octavia::gone(cloud, &id),
        }
    }
}
