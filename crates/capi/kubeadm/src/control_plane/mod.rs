//! The KubeadmControlPlane controller: machines of a control plane, their etcd, and what kubeadm installed.
//!
//! Owns: KubeadmControlPlanes; their Machines with KubeadmConfigs and infrastructure machines until those machines own
//! them; the Secrets with the cluster's certificates and the admin kubeconfig; the health conditions of control
//! plane machines; etcd members; in the workload cluster kubeadm's configuration, the images of kube-proxy and
//! CoreDNS, and role bindings.
//! Reads: Clusters, Nodes and static pods of the workload cluster.
//!
//! ```text
//! observe ─▶ observed (plain data) ─▶ decide ─▶ calls, effects, status ─▶ act
//!    └────────▶ rollout (pure): the next step ◀──┘
//! ```
//!
//! Machines are added and removed one at a time, and only if etcd keeps its quorum and one API server stays healthy
//! in the worst case. Deleting a machine takes three steps: move etcd's leadership and delete the Machine; core
//! drains the node and waits at our pre-terminate hook; remove the etcd member and the hook.

mod act;
mod calls;
mod cluster_secret;
mod decide;
mod desired_machine;
mod etcd;
#[cfg(test)]
mod fixture;
mod installed;
mod observe;
mod observed;
mod rollout;
mod workload_client;

use std::sync::Arc;

use capstan_capi_core::conditions::v1beta1;
use capstan_capi_core::contract::Definition;
use capstan_capi_core::in_place::Updater;
use capstan_capi_core::paused;
use capstan_capi_core::workload::Nodes;
use capstan_capi_types::bootstrap::{EncryptionAlgorithmType, KubeadmConfig};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition as own;
use capstan_capi_types::core::{Cluster, Machine, condition, label};
use capstan_capi_types::runtime::ExtensionConfig;
use capstan_controller::{
    Controller, Decision, GATHER, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Key, Object};
use jiff::SignedDuration;

use crate::certificates::Keys;

use self::calls::ControlPlaneCall;
use self::decide::decide;
use self::etcd::ClientCertificates;
use self::observed::{Observed, cluster_of};

/// Error codes of this controller.
pub mod code {
    capstan_controller::codes! {
        ETCD = "E-KCP-ETCD", Cluster,
            "an etcd member cannot be removed, or the etcd leader cannot be moved",
            "check that etcd has quorum and that its Pods are reachable through the API server";
        WORKLOAD = "E-KCP-WORKLOAD", Cluster,
            "an object that kubeadm installed in the workload cluster cannot be updated",
            "check that the cluster is reachable; the message has the error of its API server";
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Key algorithm if the configuration sets none.
    pub default_algorithm: EncryptionAlgorithmType,
    /// How long the last known state of an unreachable workload cluster is kept in conditions.
    pub grace: SignedDuration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { default_algorithm: EncryptionAlgorithmType::EcdsaP256, grace: SignedDuration::from_mins(5) }
    }
}

pub struct ControlPlaneController {
    settings: Settings,
    keys: Arc<dyn Keys>,
    nodes: Arc<Nodes>,
    client_certificates: ClientCertificates,
    updater: Option<Arc<dyn Updater>>,
}

impl ControlPlaneController {
    pub fn new(settings: Settings, keys: Arc<dyn Keys>) -> Self {
        Self {
            settings,
            keys,
            nodes: Nodes::new(),
            client_certificates: ClientCertificates::default(),
            updater: None,
        }
    }

    /// Asks an extension which machines it updates in place. Without one, machines are replaced.
    #[must_use]
    pub fn updating(self, updater: Arc<dyn Updater>) -> Self {
        Self { updater: Some(updater), ..self }
    }

    /// Shares the Node caches of workload clusters with other controllers.
    #[must_use]
    pub fn sharing(self, nodes: Arc<Nodes>) -> Self {
        Self { nodes, ..self }
    }
}

/// How v1beta1 conditions derive from ours.
const V1BETA1: v1beta1::Table = v1beta1::Table {
    rows: &[
        v1beta1::same("Available", &[condition::AVAILABLE]),
        v1beta1::same("CertificatesAvailable", &[own::CERTIFICATES_AVAILABLE]),
        v1beta1::same("ControlPlaneComponentsHealthy", &[own::CONTROL_PLANE_COMPONENTS_HEALTHY]),
        v1beta1::same("EtcdClusterHealthy", &[own::ETCD_CLUSTER_HEALTHY]),
        v1beta1::same("MachinesReady", &[condition::MACHINES_READY]),
        v1beta1::same("MachinesSpecUpToDate", &[condition::MACHINES_UP_TO_DATE]),
        v1beta1::RESIZED,
    ],
    ready: &["MachinesSpecUpToDate", "Resized", "MachinesReady", "Available", "CertificatesAvailable"],
};

impl Controller for ControlPlaneController {
    const NAME: &'static str = "kubeadmcontrolplane";
    type Kind = KubeadmControlPlane;
    type Seen = Observed;
    type Call = ControlPlaneCall;

    fn watches(&self, watches: &mut Watches<KubeadmControlPlane>) {
        watches.read::<Definition>().read::<KubeadmConfig>();
        if let Some(updater) = self.updater.clone() {
            watches.related_within::<ExtensionConfig>(GATHER, move |_, _| updater.waiting());
        }
        watches.index_label::<Machine>(label::CLUSTER_NAME);
        watches.index_label::<KubeadmConfig>(label::CONTROL_PLANE_NAME);
        watches.owned_within::<Machine>(GATHER);
        // Machines to adopt, and workers that block a deletion, refer only to their cluster.
        watches.related::<Machine>(|change, caches| {
            let both = change.both().filter(|machine| {
                machine.metadata.controller().is_none_or(|owner| owner.kind != KubeadmControlPlane::KIND.kind)
            });
            let came_or_went = change.old.is_none() || change.new.is_none();
            let orphan = |machine: &&Arc<Machine>| machine.metadata.controller().is_none();
            both.filter(|machine| came_or_went || orphan(machine))
                .filter_map(|machine| {
                    let key =
                        Key::new(machine.metadata.namespace.as_str(), machine.spec.cluster_name.as_str());
                    caches.get::<Cluster>(&key).ok().flatten()
                })
                .filter_map(|cluster| control_plane_of(&cluster))
                .collect()
        });
        watches.related::<Cluster>(|change, _| {
            let relevant = |cluster: &Arc<Cluster>| {
                (
                    cluster.spec.paused,
                    cluster.metadata.is_deleting(),
                    cluster.spec.control_plane_endpoint.clone(),
                    cluster.spec.topology.version.clone(),
                    cluster.status.initialization.infrastructure_provisioned,
                    cluster.status.failure_domains.clone(),
                )
            };
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            change.latest().and_then(|cluster| control_plane_of(cluster)).into_iter().collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        decide::OWNED
    }

    fn paused(&self, object: &KubeadmControlPlane, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = match cluster_of(object) {
            Some(key) => view.get::<Cluster>(&key)?,
            None => None,
        };
        Ok(paused::why(cluster.as_deref(), &object.metadata, KubeadmControlPlane::KIND.kind))
    }

    async fn observe(
        &self,
        object: &Arc<KubeadmControlPlane>,
        view: &View,
    ) -> Result<Observed, ObserveError> {
        let updater = self.updater.as_deref();
        observe::observe(object, view, self.keys.as_ref(), &self.nodes, &self.client_certificates, updater)
            .await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide(&self.settings, look);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &V1BETA1, &mut status.deprecated, |old| &mut old.conditions);
        decision
    }

    async fn call(&self, call: &ControlPlaneCall, object: &Arc<KubeadmControlPlane>, view: &View) -> Outcome {
        act::make(call, object, view, self.keys.as_ref()).await
    }

    async fn resolve(
        &self,
        intent: &Intent<ControlPlaneCall>,
        object: &Arc<KubeadmControlPlane>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        act::resolve(intent, object, view, self.keys.as_ref()).await
    }

    fn gone(&self, key: &Key) {
        self.nodes.forget::<KubeadmControlPlane>(key);
        if let Some(updater) = &self.updater {
            updater.forget(key);
        }
    }
}

/// The control plane of a cluster, if it is a KubeadmControlPlane.
fn control_plane_of(cluster: &Cluster) -> Option<Key> {
    let reference = &cluster.spec.control_plane_ref;
    let kind = KubeadmControlPlane::KIND;
    let ours = reference.kind == kind.kind && reference.api_group == kind.group;
    ours.then(|| Key::new(cluster.metadata.namespace.as_str(), reference.name.as_str()))
}
