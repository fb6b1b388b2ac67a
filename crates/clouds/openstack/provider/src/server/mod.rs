//! `OpenStackServer`: a server with its ports, trunks and volumes. OpenStackMachines and bastions have one each.
//!
//! Owns: OpenStackServers, their finalizer and status; the server, ports, trunks and volumes of their name and mark; the
//! IPAddressClaim of a server with a `floatingIPPoolRef`. Reads: the address that its pool gave, the Cluster, the
//! OpenStackMachine and its template for allowed address pairs, the Secret with the boot data, the credentials, the cloud.
//!
//! ```text
//! filters ─▶ ids in status ─▶ claim ─▶ ports, volumes ─▶ server ─▶ runs ─▶ seen each minute in a list of the whole project
//! ```
//!
//! A server that existed and is gone is reported and never created again: the owner of the Machine replaces it.

mod address_pairs;
mod call;
mod create;
mod decide;
#[cfg(test)]
mod delete_tests;
mod floating_ip;
mod observe;
mod observed;
mod order;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, condition as capi, label};
use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use capstan_controller::{
    Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::Object;
use capstan_openstack_types::v1alpha1::{OpenStackClusterIdentity, OpenStackFloatingIPPool, OpenStackServer};
use capstan_openstack_types::v1beta2::{OpenStackMachine, OpenStackMachineTemplate};
use capstan_provider_kit::{SecretOutline, decisions};

use crate::clouds::{Clouds, Namespace};
use crate::condition;

pub use call::ServerCall;
pub use observed::Seen;

/// On OpenStackServers: the id of the server in Nova. It survives `clusterctl move`, which drops status.
pub const SERVER_ID: &str = "capstan.dev/openstack-server";

/// On OpenStackServers that are being deleted: ids of ports that their trunks carried and that go with them, separated by
/// commas. Nothing else shows whose they were once they are taken from the trunk.
const SUB_PORTS: &str = "capstan.dev/openstack-sub-ports";

/// The id of the server, if there was one.
fn known_id(object: &OpenStackServer) -> Option<String> {
    object.status.instance_id.clone().or_else(|| object.metadata.annotations.get(SERVER_ID).cloned())
}

/// The controller of OpenStackServers.
pub struct OpenStackServers {
    clouds: Clouds,
}

impl OpenStackServers {
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds }
    }
}

impl Controller for OpenStackServers {
    const NAME: &'static str = "openstackserver";
    type Kind = OpenStackServer;
    type Seen = Seen;
    type Call = ServerCall;

    fn watches(&self, watches: &mut Watches<OpenStackServer>) {
        watches.read::<SecretOutline>();
        watches.read::<OpenStackClusterIdentity>();
        watches.read::<Namespace>();
        watches.index_label::<OpenStackServer>(label::CLUSTER_NAME);
        watches.owned::<IPAddressClaim>();
        watches.read::<IPAddress>();
        watches.read::<OpenStackFloatingIPPool>();
        watches.related::<OpenStackMachine>(|change, _| match address_pairs::has_changed(change) {
            true => change.latest().map(|machine| machine.key()).into_iter().collect(),
            false => Vec::new(),
        });
        watches.related::<OpenStackMachineTemplate>(|change, caches| {
            address_pairs::machines_of(change, |namespace| {
                let machines = caches.of::<OpenStackMachine>().and_then(|machines| machines.list(namespace));
                machines.unwrap_or_default()
            })
        });
        watches.related::<Cluster>(|change, caches| {
            let Some(cluster) = change.latest().filter(|_| paused::concerns_members(change)) else {
                return Vec::new();
            };
            let meta = &cluster.metadata;
            let servers = caches
                .of::<OpenStackServer>()
                .and_then(|servers| servers.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name));
            servers.unwrap_or_default().iter().map(|server| server.key()).collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[
            capi::READY,
            capi::PAUSED,
            condition::INSTANCE_READY,
            condition::FLOATING_IP_READY,
            decisions::CLOUD_REACHABLE,
        ]
    }

    fn paused(&self, object: &OpenStackServer, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = observe::cluster_of(object, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, OpenStackServer::KIND.kind))
    }

    async fn observe(&self, object: &Arc<OpenStackServer>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(object, view, &self.clouds).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &ServerCall, object: &Arc<OpenStackServer>, view: &View) -> Outcome {
        let access = self.clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await;
        match access {
            Ok(access) => call::make(call, object, view, &access).await,
            Err(error) => error.outcome(),
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<ServerCall>,
        object: &Arc<OpenStackServer>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        let access = self.clouds.access(&object.spec.identity_ref, &object.metadata.namespace, view).await?;
        call::resolve(intent, object, view, &access).await
    }
}
