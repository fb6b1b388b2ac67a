//! Questions to CloudStack: whether it has what manifests name. Nothing is changed.

use std::net::IpAddr;
use std::time::Duration;

use capstan_cloudstack_client::commands::{
    ListAccounts, ListAffinityGroups, ListDiskOfferings, ListDomains, ListNetworks, ListServiceOfferings,
    ListTemplates, ListVirtualMachines, ListZones, Scope,
};
use capstan_cloudstack_client::model::Network;
use capstan_cloudstack_client::{Class, Client, Error, ZoneId};
use capstan_cloudstack_provider::{CloudError, Clouds, code};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomainSpec, SecretReference};
use capstan_controller::View;
use capstan_object::Key;

use crate::names::SYSTEM_NAMESPACE;
use crate::types::{CloudStackAvailabilityZone, CloudStackMachineConfigSpec, ResourceIdentifier};
use crate::version;

/// A zone that was found, and how its cloud is asked.
pub(crate) struct OpenZone {
    client: Client,
    scope: Scope,
    secret: Key,
    name: String,
    zone: ZoneId,
}

/// The Secret with the keys of a zone.
pub(crate) fn secret_of(zone: &CloudStackAvailabilityZone) -> Key {
    Key::new(SYSTEM_NAMESPACE, zone.credentials_ref.as_str())
}

/// What a cloud answers within a time, or that it does not.
pub(crate) async fn within<T>(
    time: Duration,
    asked: impl Future<Output = Result<T, CloudError>>,
) -> Result<T, CloudError> {
    tokio::time::timeout(time, asked).await.unwrap_or_else(|_| {
        let what = format!("the CloudStack API did not answer within {} s", time.as_secs());
        Err(CloudError::new(code::UNREACHABLE, "CloudUnreachable", what))
    })
}

fn not_found(what: String) -> CloudError {
    CloudError::new(code::NOT_FOUND, "NotFound", what)
}

/// One of what was listed by id or name: CloudStack compares some names loosely.
fn only<T>(
    found: Vec<T>,
    wanted: &ResourceIdentifier,
    id: impl Fn(&T) -> &str,
    name: impl Fn(&T) -> &str,
    what: &str,
) -> Result<T, CloudError> {
    let fits = |it: &T| match wanted.id.is_empty() {
        false => id(it) == wanted.id,
        true => name(it) == wanted.name,
    };
    let shown = if wanted.id.is_empty() { format!("{:?}", wanted.name) } else { wanted.id.clone() };
    let mut fitting: Vec<T> = found.into_iter().filter(fits).collect();
    match fitting.len() {
        0 => Err(not_found(format!("{what} {shown} does not exist, or is not visible to the account"))),
        1 => Ok(fitting.remove(0)),
        more => Err(CloudError::new(
            code::AMBIGUOUS,
            "Ambiguous",
            format!("there are {more} {what}s {shown}: use the id"),
        )),
    }
}

/// What was listed by an id or a name. CloudStack refuses an id that does not exist as a wrong parameter.
fn listed<T>(answer: Result<Vec<T>, Error>, id: &str) -> Result<Vec<T>, Error> {
    match answer {
        Err(error) if !id.is_empty() && error.class() == Class::Parameter => Ok(Vec::new()),
        answer => answer,
    }
}

fn given(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// Whether a user sees a domain. Users of the stock role User may not list domains, and see their own account's.
async fn sees_domain(client: &Client, domain: &str) -> Result<bool, Error> {
    let path = if domain == "ROOT" { "ROOT".to_owned() } else { format!("ROOT/{domain}") };
    let own = client.list(&ListAccounts::default()).await?;
    if own.iter().any(|account| account.domainpath.as_deref() == Some(path.as_str())) {
        return Ok(true);
    }
    let last = domain.rsplit('/').next().unwrap_or_default();
    let question = ListDomains { name: given(last), listall: Some(true), ..ListDomains::default() };
    let found = client.list(&question).await?;
    Ok(found.iter().any(|domain| domain.path.as_deref() == Some(path.as_str())))
}

impl OpenZone {
    /// Opens a zone: endpoint, domain, account and zone are right.
    pub async fn open(
        clouds: &Clouds,
        wanted: &CloudStackAvailabilityZone,
        view: &View,
    ) -> Result<Self, CloudError> {
        let secret = secret_of(wanted);
        let domain = CloudStackFailureDomainSpec {
            account: wanted.account.clone(),
            domain: wanted.domain.clone(),
            acs_endpoint: SecretReference { name: secret.name.clone(), namespace: secret.namespace.clone() },
            ..CloudStackFailureDomainSpec::default()
        };
        let (client, scope, url) = clouds.asking(&domain, view).await?;
        let plain = |url: &str| url.trim_end_matches('/').to_owned();
        if plain(&url) != plain(&wanted.management_api_endpoint) {
            return Err(CloudError::new(
                code::SECRET,
                "EndpointDiffers",
                format!(
                    "managementApiEndpoint {:?} differs from api-url {url:?} of Secret {secret}: correct one of them",
                    wanted.management_api_endpoint
                ),
            ));
        }
        let explain = |error: Error| CloudError::of(&error, &secret);
        if wanted.account.is_empty() && !wanted.domain.is_empty() {
            let found = sees_domain(&client, &wanted.domain).await.map_err(explain)?;
            if !found {
                return Err(not_found(format!(
                    "domain {:?} does not exist, or the user of Secret {secret} does not see it",
                    wanted.domain
                )));
            }
        }
        let place = ResourceIdentifier { id: wanted.zone.id.clone(), name: wanted.zone.name.clone() };
        let question = ListZones {
            id: given(&place.id).map(Into::into),
            name: given(&place.name).filter(|_| place.id.is_empty()),
            ..ListZones::default()
        };
        let found = listed(client.list(&question).await, &place.id).map_err(explain)?;
        let zone = only(found, &place, |zone| zone.id.as_str(), |zone| &zone.name, "zone")?;
        Ok(Self { client, scope, secret, name: wanted.name.clone(), zone: zone.id })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn explain(&self, error: &Error) -> CloudError {
        CloudError::of(error, &self.secret)
    }

    /// The network exists in the zone, once.
    pub async fn network(&self, wanted: &ResourceIdentifier) -> Result<(), CloudError> {
        let question = ListNetworks {
            id: given(&wanted.id).map(Into::into),
            name: given(&wanted.name).filter(|_| wanted.id.is_empty()),
            zoneid: Some(self.zone.clone()),
            scope: self.scope.clone(),
            ..ListNetworks::default()
        };
        let answer = listed(self.client.list(&question).await, &wanted.id);
        let mut found = answer.map_err(|error| self.explain(&error))?;
        if found.is_empty() {
            // Networks of all tenants are nobody's.
            let question = ListNetworks { scope: Scope::all(), ..question };
            let answer = listed(self.client.list(&question).await, &wanted.id);
            found = answer.map_err(|error| self.explain(&error))?;
        }
        let name = |it: &Network| it.name.clone().unwrap_or_default();
        let found: Vec<(String, String)> = found.iter().map(|it| (it.id.to_string(), name(it))).collect();
        only(found, wanted, |it| &it.0, |it| &it.1, "network").map(drop)
    }

    /// Everything that a machine config names exists; the template is for these minor versions.
    pub async fn machines(
        &self,
        wanted: &CloudStackMachineConfigSpec,
        minors: &[u32],
    ) -> Result<(), CloudError> {
        let explain = |error: Error| self.explain(&error);
        let question = ListTemplates {
            id: given(&wanted.template.id).map(Into::into),
            name: given(&wanted.template.name).filter(|_| wanted.template.id.is_empty()),
            zoneid: Some(self.zone.clone()),
            scope: self.scope.clone(),
            ..ListTemplates::default()
        };
        let found = listed(self.client.list(&question).await, &wanted.template.id).map_err(explain)?;
        let template = only(found, &wanted.template, |it| it.id.as_str(), |it| &it.name, "template")?;
        for minor in minors {
            if !version::is_in_template_name(*minor, &template.name) {
                let what = format!(
                    "template {:?} is not for Kubernetes 1.{minor}: its name must contain 1.{minor}, 1-{minor}, 1_{minor} or 1{minor}",
                    template.name
                );
                return Err(CloudError::new(code::TEMPLATE, "WrongTemplate", what));
            }
        }
        let question = ListServiceOfferings {
            id: given(&wanted.compute_offering.id).map(Into::into),
            name: given(&wanted.compute_offering.name).filter(|_| wanted.compute_offering.id.is_empty()),
            zoneid: Some(self.zone.clone()),
            ..ListServiceOfferings::default()
        };
        let found =
            listed(self.client.list(&question).await, &wanted.compute_offering.id).map_err(explain)?;
        only(found, &wanted.compute_offering, |it| it.id.as_str(), |it| &it.name, "compute offering")?;
        self.disk(wanted).await?;
        for group in &wanted.affinity_group_ids {
            let question = ListAffinityGroups {
                id: Some(group.as_str().into()),
                scope: self.scope.clone(),
                ..ListAffinityGroups::default()
            };
            let found = listed(self.client.list(&question).await, group).map_err(explain)?;
            let group = ResourceIdentifier { id: group.clone(), ..ResourceIdentifier::default() };
            only(found, &group, |it| it.id.as_str(), |it| &it.name, "affinity group")?;
        }
        Ok(())
    }

    async fn disk(&self, wanted: &CloudStackMachineConfigSpec) -> Result<(), CloudError> {
        let Some(disk) = wanted.disk_offering.as_ref().filter(|disk| disk.is_named()) else { return Ok(()) };
        let question = ListDiskOfferings {
            id: given(&disk.id).map(Into::into),
            name: given(&disk.name).filter(|_| disk.id.is_empty()),
            zoneid: Some(self.zone.clone()),
            ..ListDiskOfferings::default()
        };
        let found = listed(self.client.list(&question).await, &disk.id);
        let found = found.map_err(|error| self.explain(&error))?;
        let named = ResourceIdentifier { id: disk.id.clone(), name: disk.name.clone() };
        let offering = only(found, &named, |it| it.id.as_str(), |it| &it.name, "disk offering")?;
        match (offering.iscustomized, disk.custom_size_in_gb) {
            (true, 0) => Err(CloudError::new(
                code::REFUSED,
                "SizeMissing",
                format!("disk offering {:?} leaves the size open: set customSizeInGB", offering.name),
            )),
            (false, size) if size != 0 => Err(CloudError::new(
                code::REFUSED,
                "SizeFixed",
                format!("disk offering {:?} has a fixed size: remove customSizeInGB", offering.name),
            )),
            _ => Ok(()),
        }
    }

    /// A virtual machine of the account that has an address.
    pub async fn holder(&self, address: IpAddr) -> Result<Option<String>, CloudError> {
        let question = ListVirtualMachines {
            details: vec!["nics".to_owned()],
            scope: self.scope.clone(),
            ..ListVirtualMachines::default()
        };
        let found = self.client.list(&question).await.map_err(|error| self.explain(&error))?;
        let holds = |nics: &[capstan_cloudstack_client::model::Nic]| {
            nics.iter().any(|nic| nic.ipaddress == Some(address))
        };
        Ok(found
            .into_iter()
            .find(|machine| holds(&machine.nic))
            .map(|machine| machine.name.unwrap_or_else(|| machine.id.to_string())))
    }
}
