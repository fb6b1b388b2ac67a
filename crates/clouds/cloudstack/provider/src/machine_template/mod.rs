//! `CloudStackMachineTemplate`: what machines are made from, and how large they will be.
//!
//! Owns: the status of CloudStackMachineTemplates. Reads: the Cluster that owns the template, its CloudStackCluster, the
//! cloud's offering and template. Who scales from zero has no Node to look at and reads the capacity here.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::Cluster;
use capstan_cloudstack_client::ZoneId;
use capstan_cloudstack_client::commands::ListTemplates;
use capstan_cloudstack_client::model::{ServiceOffering, Template};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackMachineTemplate, Identifier,
};
use capstan_controller::{Change, Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};

use crate::clouds::{Access, Clouds};
use crate::cluster::infrastructure_of;
use crate::error::CloudError;
use crate::machine::service_offerings;

/// The controller of CloudStackMachineTemplates.
pub struct MachineTemplates {
    clouds: Clouds,
}

impl MachineTemplates {
    /// A controller of templates for these clouds.
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds }
    }
}

/// What the cloud offers for a template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offered {
    /// Processors and memory.
    pub offering: Option<ServiceOffering>,
    /// Template of the root disk.
    pub template: Option<Template>,
}

/// What was seen beside the CloudStackMachineTemplate; `None` if there was nothing to ask, or nobody.
#[derive(Debug, Default)]
pub struct Seen {
    /// Offerings and templates of the cloud.
    pub offered: Option<Result<Offered, CloudError>>,
}

impl Controller for MachineTemplates {
    const NAME: &'static str = "cloudstackmachinetemplate";
    type Kind = CloudStackMachineTemplate;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<CloudStackMachineTemplate>) {
        watches.read::<capstan_provider_kit::SecretOutline>();
        watches.read::<CloudStackCluster>();
        watches.read::<CloudStackFailureDomain>();
        watches.related::<Cluster>(|change: &Change<Cluster>, caches| {
            let relevant = |cluster: &Arc<Cluster>| cluster.status.initialization.infrastructure_provisioned;
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            let Some(cluster) = change.latest() else { return Vec::new() };
            let templates = caches
                .of::<CloudStackMachineTemplate>()
                .and_then(|templates| templates.owned_by(&cluster.metadata.uid));
            templates.unwrap_or_default().iter().map(|template| template.key()).collect()
        });
    }

    async fn observe(
        &self,
        object: &Arc<CloudStackMachineTemplate>,
        view: &View,
    ) -> Result<Seen, ObserveError> {
        // Offerings do not change their size, and templates not what they name.
        if !object.status.capacity.is_empty() || object.metadata.is_deleting() {
            return Ok(Seen::default());
        }
        let Some(cluster) = owners::of::<Cluster>(&object.metadata, view)? else {
            return Ok(Seen::default());
        };
        let Some(key) = infrastructure_of(&cluster) else { return Ok(Seen::default()) };
        let Some(infrastructure) = view.get::<CloudStackCluster>(&key)? else { return Ok(Seen::default()) };
        let Some(first) = infrastructure.spec.failure_domains.first() else { return Ok(Seen::default()) };
        let name = names::failure_domain_object(&first.name, &cluster.metadata.name);
        let domain = view.get::<CloudStackFailureDomain>(&Key::new(key.namespace.as_str(), name))?;
        let Some(domain) = domain.filter(|domain| domain.status.ready) else { return Ok(Seen::default()) };
        let offered = match self.clouds.access(&domain.spec, view).await {
            Ok(access) => offered(object, &domain, &access).await,
            Err(cause) => Err(cause),
        };
        Ok(Seen { offered: Some(offered) })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}

async fn offered(
    object: &CloudStackMachineTemplate,
    domain: &CloudStackFailureDomain,
    access: &Access,
) -> Result<Offered, CloudError> {
    let spec = &object.spec.template.spec;
    let zone: ZoneId = domain.spec.zone.id.as_str().into();
    let named = |wanted: &Identifier| Some(wanted.name.clone()).filter(|_| wanted.id.is_empty());
    let id = |wanted: &Identifier| Some(wanted.id.clone()).filter(|id| !id.is_empty());
    // The same questions as when a machine is ordered: the answers are remembered for it.
    let offerings = service_offerings(&spec.offering, &zone, access).await?;
    let is_named = |it: &&ServiceOffering| !spec.offering.id.is_empty() || it.name == spec.offering.name;
    let templates = ListTemplates {
        id: id(&spec.template).map(Into::into),
        name: named(&spec.template),
        zoneid: Some(zone),
        scope: access.scope(),
        ..ListTemplates::default()
    };
    let explain = |error: capstan_cloudstack_client::Error| access.explain(&error);
    let templates = access.client.cached(&templates).await.map_err(explain)?;
    Ok(Offered { offering: offerings.iter().find(is_named).cloned(), template: templates.first().cloned() })
}
