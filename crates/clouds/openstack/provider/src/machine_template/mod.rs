//! `OpenStackMachineTemplate`: what machines are made from, and how large they will be.
//!
//! Owns: the status of OpenStackMachineTemplates that belong to a Cluster. Reads: the Cluster, its OpenStackCluster, the
//! credentials, flavor and image in the cloud. Who scales from zero has no Node to look at and reads the capacity here.
//! Templates of a ClusterClass have no status: patches complete them.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, condition as capi};
use capstan_controller::{Caches, Change, Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};
use capstan_openstack_client::compute::Flavor;
use capstan_openstack_types::v1alpha1::OpenStackClusterIdentity;
use capstan_openstack_types::v1beta2::{OpenStackCluster, OpenStackMachineTemplate};
use capstan_provider_kit::{SecretOutline, decisions, infrastructure_of_cluster};

use crate::catalog;
use crate::clouds::{Clouds, Namespace};
use crate::error::CloudError;

/// The controller of OpenStackMachineTemplates.
pub struct OpenStackMachineTemplates {
    clouds: Clouds,
}

impl OpenStackMachineTemplates {
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds }
    }
}

/// What the cloud offers for a template.
#[derive(Debug)]
pub struct Offered {
    pub flavor: Result<Flavor, CloudError>,
    /// What the image says about its system.
    pub operating_system: Result<String, CloudError>,
}

/// Observed state besides the OpenStackMachineTemplate.
#[derive(Debug, Default)]
pub struct Seen {
    /// `None` if no cloud is to be asked: the template belongs to no Cluster with an OpenStackCluster.
    pub offered: Option<Result<Offered, CloudError>>,
}

/// Templates of a Cluster.
fn templates_of(uid: &str, caches: &Caches) -> Vec<Key> {
    let templates = caches.of::<OpenStackMachineTemplate>().and_then(|templates| templates.owned_by(uid));
    templates.unwrap_or_default().iter().map(|template| template.key()).collect()
}

impl Controller for OpenStackMachineTemplates {
    const NAME: &'static str = "openstackmachinetemplate";
    type Kind = OpenStackMachineTemplate;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<OpenStackMachineTemplate>) {
        watches.read::<SecretOutline>();
        watches.read::<OpenStackClusterIdentity>();
        watches.read::<Namespace>();
        watches.related::<Cluster>(|change: &Change<Cluster>, caches| {
            if !paused::concerns_members(change) {
                return Vec::new();
            }
            change.latest().map(|cluster| templates_of(&cluster.metadata.uid, caches)).unwrap_or_default()
        });
        watches.related::<OpenStackCluster>(|change: &Change<OpenStackCluster>, caches| {
            let reference = |it: &Arc<OpenStackCluster>| it.spec.identity_ref.clone();
            if change.old.as_ref().map(reference) == change.new.as_ref().map(reference) {
                return Vec::new();
            }
            let owners = change.latest().map(|it| it.metadata.owner_references.clone()).unwrap_or_default();
            let clusters = owners.iter().filter(|owner| owner.kind == Cluster::KIND.kind);
            clusters.flat_map(|owner| templates_of(&owner.uid, caches)).collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[capi::READY, decisions::CLOUD_REACHABLE]
    }

    fn paused(&self, object: &OpenStackMachineTemplate, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = owners::of::<Cluster>(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, OpenStackMachineTemplate::KIND.kind))
    }

    async fn observe(
        &self,
        object: &Arc<OpenStackMachineTemplate>,
        view: &View,
    ) -> Result<Seen, ObserveError> {
        let meta = &object.metadata;
        let cluster = owners::of::<Cluster>(meta, view)?.filter(|_| !meta.is_deleting());
        let key = cluster.as_deref().and_then(infrastructure_of_cluster::<OpenStackCluster>);
        let Some(key) = key else { return Ok(Seen::default()) };
        let Some(infrastructure) = view.get::<OpenStackCluster>(&key)? else { return Ok(Seen::default()) };
        let spec = &object.spec.template.spec;
        let reference = spec.identity_ref.as_ref().unwrap_or(&infrastructure.spec.identity_ref);
        let offered = match self.clouds.access(reference, &meta.namespace, view).await {
            Ok(access) => {
                let field = "spec.template.spec";
                let flavor = catalog::flavor(&access, &spec.flavor, &format!("{field}.flavor")).await;
                let image = format!("{field}.image");
                let operating_system = catalog::operating_system(&access, &spec.image, &image).await;
                Ok(Offered { flavor, operating_system })
            }
            Err(error) => Err(error),
        };
        Ok(Seen { offered: Some(offered) })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}
