//! Properties of whole clusters, in addition to those that the harness checks for any controller.
//!
//! | property | checker |
//! |---|---|
//! | S2 never more machines than their owner may have | [`NeverTooMany`] |
//! | S6 etcd keeps its quorum, one step of a control plane at a time | [`KeepsQuorum`] |
//! | S7 a cluster is initialized once | [`InitializedOnce`] |
//! | S8 versions follow the skew policy and never go back | [`VersionsInOrder`] |
//! | S9 nodes are drained before their machines are destroyed | [`DrainsFirst`] |
//! | S10 nothing while the cluster is paused | [`NothingWhileClusterPaused`] |
//! | S11 a deleting cluster gets no machines | [`NoMachinesWhileDeleting`] |
//! | S13 no secrets outside of Secrets | [`KeepsSecrets`] |
//! | O1 operations end with the right result | [`OperationsEnd`] |
//! | S17 no two machines share an id, an address or a node | [`NothingShared`] |

mod counts;
mod drain;
mod guests;
mod initialization;
mod operations;
mod paused;
mod quorum;
mod secrets;
mod versions;

use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachineSet, annotation};
use capstan_controller::KindName;
use capstan_guest::Site;
use capstan_harness::{
    Acknowledged, AtMost, Checker, FinalizersGuard, FollowsOwnWrites, History, IntentsFirst,
    NoChildrenWhileDeleting, NothingWhilePaused, OnlyOwned, WatchStreams,
};
use capstan_sim_provider::MACHINE_FINALIZER;
use capstan_sim_provider::types::{SimCluster, SimMachine};

pub use counts::{NeverTooMany, NoMachinesWhileDeleting, NothingShared};
pub use drain::DrainsFirst;
pub use guests::{ByHostName, ByMachine};
pub use initialization::InitializedOnce;
pub use operations::OperationsEnd;
pub use paused::NothingWhileClusterPaused;
pub use quorum::KeepsQuorum;
pub use secrets::KeepsSecrets;
pub use versions::VersionsInOrder;

/// Every checker, for a world whose machines are in a site.
pub fn all(site: &Site) -> Vec<Box<dyn Checker>> {
    let owners = vec![
        KindName::of::<Cluster>(),
        KindName::of::<KubeadmControlPlane>(),
        KindName::of::<MachineDeployment>(),
        KindName::of::<MachineSet>(),
        KindName::of::<Machine>(),
        KindName::of::<KubeadmConfig>(),
        KindName::of::<SimCluster>(),
        KindName::of::<SimMachine>(),
    ];
    let makes_or_destroys = |summary: &str| {
        let verb = summary.split(' ').next().unwrap_or_default();
        matches!(verb, "create-vm" | "destroy-vm" | "create-balancer" | "destroy-balancer")
    };
    vec![
        Box::new(AtMost::new("S1", ByMachine::new(site), |_, _| Some(1))),
        Box::new(AtMost::new("S1", ByHostName::new(site), |_, _| Some(1))),
        Box::new(NeverTooMany),
        Box::new(OperationsEnd::default()),
        Box::new(OnlyOwned(ByMachine::new(site))),
        Box::new(FinalizersGuard::new(ByMachine::new(site), KindName::of::<SimMachine>(), MACHINE_FINALIZER)),
        Box::new(IntentsFirst::new(makes_or_destroys)),
        Box::new(KeepsQuorum::new(site)),
        Box::new(InitializedOnce::new(site)),
        Box::new(VersionsInOrder::new(site)),
        Box::new(DrainsFirst::new(site)),
        Box::new(NothingWhilePaused::new(annotation::PAUSED)),
        Box::new(NothingWhileClusterPaused::default()),
        Box::new(NoChildrenWhileDeleting::new(owners)),
        Box::new(NoMachinesWhileDeleting::default()),
        Box::new(FollowsOwnWrites::default()),
        Box::new(KeepsSecrets::new(site)),
        Box::new(NothingShared),
        Box::new(Acknowledged::default()),
        Box::new(History::default()),
        Box::new(WatchStreams::default()),
    ]
}
