//! What the cloud has of what a machine names: offerings, templates, networks. Lists and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_cloudstack_client::commands::{
    ListDiskOfferings, ListServiceOfferings, ListSshKeyPairs, ListTemplates, Owner,
};
use capstan_cloudstack_client::model::{DiskOffering, Network, ServiceOffering, Template};
use capstan_cloudstack_client::{Code, Error, ZoneId};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomainSpec, CloudStackMachineSpec, Identifier};

use super::order;
use crate::account_cache::JUST_NOW;
use crate::clouds::Access;
use crate::error::CloudError;

/// What an order is chosen from. Lists hold what the cloud found by the names and ids in the manifest: nothing, what
/// was meant, or more than that.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// For whom machines are made.
    pub owner: Owner,
    pub service_offerings: Arc<Vec<ServiceOffering>>,
    pub templates: Arc<Vec<Template>>,
    /// Disk offerings; none if the machine names none.
    pub disk_offerings: Arc<Vec<DiskOffering>>,
    /// Networks beside the failure domain's, by the name that the machine gives.
    pub networks: BTreeMap<String, Vec<Network>>,
    /// The account has no SSH key of the name. Asked only after an order was refused, as the answer is not cached.
    pub lacks_ssh_key: bool,
}

impl Catalog {
    /// Looks up what a machine names. `refused`: its last order was refused.
    pub(super) async fn look_up(
        spec: &CloudStackMachineSpec,
        domain: &CloudStackFailureDomainSpec,
        refused: bool,
        access: &Access,
    ) -> Result<Self, CloudError> {
        let zone: ZoneId = domain.zone.id.as_str().into();
        Ok(Self {
            owner: access.owner.clone(),
            service_offerings: service_offerings(&spec.offering, &zone, access).await?,
            templates: templates(spec, &zone, access).await?,
            networks: networks(spec, domain, &zone, access).await?,
            disk_offerings: disk_offerings(spec, &zone, access).await?,
            lacks_ssh_key: refused && lacks_ssh_key(spec, access).await,
        })
    }
}

/// An id that is not known is refused as a wrong parameter: nothing was found.
fn found<T>(answer: Result<Arc<Vec<T>>, Error>, access: &Access) -> Result<Arc<Vec<T>>, CloudError> {
    match answer {
        Err(error) if error.code() == Some(Code::Parameter) => Ok(Arc::default()),
        answer => answer.map_err(|error| access.explain(&error)),
    }
}

/// Offerings among which is the one of an id or name, if there is one.
pub(crate) async fn service_offerings(
    wanted: &Identifier,
    zone: &ZoneId,
    access: &Access,
) -> Result<Arc<Vec<ServiceOffering>>, CloudError> {
    if !wanted.id.is_empty() {
        let id = Some(wanted.id.as_str().into());
        let question = ListServiceOfferings { id, ..ListServiceOfferings::default() };
        return found(access.client.cached(&question).await, access);
    }
    // One list of all serves machines of several offerings. A new one is not in a list that was made before.
    let question = |name: Option<String>| ListServiceOfferings {
        name,
        zoneid: Some(zone.clone()),
        projectid: access.owner.projectid.clone(),
        ..ListServiceOfferings::default()
    };
    let all = found(access.client.cached(&question(None)).await, access)?;
    if all.iter().any(|offering| offering.name == wanted.name) {
        return Ok(all);
    }
    found(access.client.cached(&question(Some(wanted.name.clone()))).await, access)
}

async fn templates(
    spec: &CloudStackMachineSpec,
    zone: &ZoneId,
    access: &Access,
) -> Result<Arc<Vec<Template>>, CloudError> {
    let wanted = &spec.template;
    let id = Some(wanted.id.as_str()).filter(|id| !id.is_empty());
    let question = ListTemplates {
        id: id.map(Into::into),
        name: Some(wanted.name.clone()).filter(|_| id.is_none()),
        zoneid: Some(zone.clone()),
        scope: access.scope(),
        ..ListTemplates::default()
    };
    found(access.client.cached(&question).await, access)
}

async fn disk_offerings(
    spec: &CloudStackMachineSpec,
    zone: &ZoneId,
    access: &Access,
) -> Result<Arc<Vec<DiskOffering>>, CloudError> {
    let wanted = &spec.disk_offering;
    let question = match (wanted.id.as_str(), wanted.name.as_str()) {
        ("", "") => return Ok(Arc::default()),
        ("", name) => ListDiskOfferings {
            name: Some(name.to_owned()),
            zoneid: Some(zone.clone()),
            projectid: access.owner.projectid.clone(),
            ..ListDiskOfferings::default()
        },
        (id, _) => ListDiskOfferings { id: Some(id.into()), ..ListDiskOfferings::default() },
    };
    found(access.client.cached(&question).await, access)
}

/// Networks that are named without an id and are not the failure domain's.
async fn networks(
    spec: &CloudStackMachineSpec,
    domain: &CloudStackFailureDomainSpec,
    zone: &ZoneId,
    access: &Access,
) -> Result<BTreeMap<String, Vec<Network>>, CloudError> {
    let mut networks = BTreeMap::new();
    for wanted in &spec.networks {
        let named = wanted.id.is_empty() && wanted.name != domain.zone.network.name;
        if named && !networks.contains_key(&wanted.name) {
            let question = ("", wanted.name.as_str());
            let found =
                access.cache.networks(&access.client, &access.scope(), zone, question, JUST_NOW).await;
            networks.insert(wanted.name.clone(), found.map_err(|error| access.explain(&error))?);
        }
    }
    Ok(networks)
}

/// CloudStack calls a missing key a wrong parameter like any other, so the key is looked up. Roles need not allow that.
async fn lacks_ssh_key(spec: &CloudStackMachineSpec, access: &Access) -> bool {
    let name = Some(spec.ssh_key.clone()).filter(|name| !name.is_empty());
    if name.is_none() {
        return false;
    }
    let question = ListSshKeyPairs { name, scope: access.scope(), ..ListSshKeyPairs::default() };
    access.client.list(&question).await.is_ok_and(|found| found.is_empty())
}

/// The template that a machine is made from, if it fits what the machine shall be.
pub(crate) async fn fits(
    spec: &CloudStackMachineSpec,
    version: &str,
    zone: &ZoneId,
    access: &Access,
) -> Result<Template, CloudError> {
    let found = templates(spec, zone, access).await?;
    order::template(spec, version, &found).cloned()
}

/// The offering that a machine names.
pub(crate) async fn service_offering(
    spec: &CloudStackMachineSpec,
    zone: &ZoneId,
    access: &Access,
) -> Result<ServiceOffering, CloudError> {
    let found = service_offerings(&spec.offering, zone, access).await?;
    order::service_offering(spec, &found).cloned()
}
