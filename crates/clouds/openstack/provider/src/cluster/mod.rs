//! `OpenStackCluster`: network, router, security groups and endpoint of a cluster.
//!
//! Owns: OpenStackClusters, their finalizer, endpoint and status; the network, subnet, router, security groups, load
//! balancer with its members, and floating IP of their name. Reads: the Cluster that owns it, its OpenStackMachines and
//! OpenStackServers, the credentials, the cloud. On deletion: all of it goes, after the machines. With an annotation also the
//! application credential of the workload and the Secrets with it.
//!
//! ```text
//! network ─▶ subnet ─┬─▶ router ─▶ interface ─────────┬─▶ floating IP ─▶ endpoint
//!                    ├─▶ load balancer with its parts ─┘
//! groups ────────────┴─▶ rules                    members follow the control plane
//! ```

mod balancer;
mod balancer_order;
#[cfg(test)]
mod balancer_tests;
mod bastion;
mod call;
mod cluster_name;
mod credential;
mod decide;
mod delete;
mod dual_stack;
mod image;
mod make;
mod needs;
mod observe;
mod observed;
mod plan;
mod resolve;
mod rules;
mod server_groups;
mod services;
#[cfg(test)]
mod tests;
mod volumes;

use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, Machine, condition as capi, label};
use capstan_controller::{
    Caches, Change, Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Key, Object, ObjectMeta};
use capstan_openstack_types::v1alpha1::{OpenStackClusterIdentity, OpenStackServer};
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachine};
use capstan_provider_kit::{SecretOutline, decisions, infrastructure_of_cluster};

use crate::clouds::{Clouds, Namespace};
use crate::condition;
use credential::FreshCredentials;

pub use call::ClusterCall;
pub(crate) use needs::{Needs, missing, needs};
pub use observed::Seen;

/// The controller of OpenStackClusters.
pub struct OpenStackClusters {
    clouds: Clouds,
    /// Secrets of application credentials that are in no Secret yet.
    fresh: FreshCredentials,
}

impl OpenStackClusters {
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds, fresh: FreshCredentials::default() }
    }
}

/// The OpenStackCluster of the cluster whose label something carries.
fn cluster_of(meta: &ObjectMeta, caches: &Caches) -> Option<Key> {
    let key = Key::new(meta.namespace.as_str(), meta.labels.get(label::CLUSTER_NAME)?.as_str());
    infrastructure_of_cluster::<OpenStackCluster>(&*caches.get::<Cluster>(&key).ok()??)
}

impl Controller for OpenStackClusters {
    const NAME: &'static str = "openstackcluster";
    type Kind = OpenStackCluster;
    type Seen = Seen;
    type Call = ClusterCall;

    fn watches(&self, watches: &mut Watches<OpenStackCluster>) {
        // Those with the application credential are owned.
        watches.owned::<SecretOutline>();
        watches.read::<OpenStackClusterIdentity>();
        watches.read::<Namespace>();
        watches.read::<Machine>();
        watches.index_label::<OpenStackMachine>(label::CLUSTER_NAME);
        watches.related::<Cluster>(|change, _| match paused::concerns_members(change) {
            true => {
                let cluster = change.latest();
                cluster.and_then(|it| infrastructure_of_cluster::<OpenStackCluster>(it)).into_iter().collect()
            }
            false => Vec::new(),
        });
        watches.related::<OpenStackMachine>(|change: &Change<OpenStackMachine>, caches| {
            // A server group is asked for by the Machine that owns it.
            let relevant = |machine: &Arc<OpenStackMachine>| {
                (machine.metadata.is_deleting(), machine.metadata.owner_references.len())
            };
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            change.latest().and_then(|machine| cluster_of(&machine.metadata, caches)).into_iter().collect()
        });
        // Members of the load balancer follow the servers.
        watches.related::<OpenStackServer>(|change: &Change<OpenStackServer>, caches| {
            let relevant = |server: &Arc<OpenStackServer>| {
                let status = &server.status;
                (status.instance_id.clone(), status.resources.clone(), status.ready)
            };
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            change.latest().and_then(|server| cluster_of(&server.metadata, caches)).into_iter().collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[
            capi::READY,
            capi::PAUSED,
            condition::AUTHENTICATED,
            decisions::CLOUD_REACHABLE,
            condition::NETWORK_READY,
            condition::ROUTER_READY,
            condition::GROUPS_READY,
            condition::ENDPOINT_READY,
        ]
    }

    fn paused(&self, object: &OpenStackCluster, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = owners::of::<Cluster>(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, OpenStackCluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<OpenStackCluster>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(object, view, (&self.clouds, &self.fresh)).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &ClusterCall, object: &Arc<OpenStackCluster>, view: &View) -> Outcome {
        let access = self.clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await;
        match access {
            Ok(access) => match call {
                ClusterCall::CreateCredential { name, order } => {
                    credential::create(name, order, (object.key(), &self.fresh), &access).await
                }
                ClusterCall::DeleteCredential { id } => credential::delete(id, &access).await,
                call => make::make(call, &access).await,
            },
            Err(error) => error.outcome(),
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<ClusterCall>,
        object: &Arc<OpenStackCluster>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        let access = self.clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await?;
        resolve::resolve(intent, object, view, &access).await
    }

    fn gone(&self, key: &Key) {
        self.fresh.forget(key);
    }
}
