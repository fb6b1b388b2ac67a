//! The order of a machine: all parameters of `deployVirtualMachine` but its boot data. A pure function of what was
//! observed; carrying it out is one request.

use std::collections::BTreeMap;
use std::net::IpAddr;

use capstan_cloudstack_client::commands::{DeployVirtualMachine, NetworkAddress, Owner};
use capstan_cloudstack_client::model::{DiskOffering, ServiceOffering, Template};
use capstan_cloudstack_client::{
    AffinityGroupId, DiskOfferingId, NetworkId, ServiceOfferingId, TemplateId, UserData, ZoneId,
};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackMachine, CloudStackMachineSpec,
};
use capstan_provider_kit::{BootDataRef, order};
use serde::{Deserialize, Serialize};

use super::catalog::Catalog;
use super::{Seen, preflight, user_data};
use crate::annotation;
use crate::code;
use crate::error::CloudError;
use crate::named::{is_same, named};
use crate::outlook;
use crate::quota::Amounts;

/// The order of a machine. Its name is beside it in the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    pub cluster: String,
    /// The failure domain, by the name that the manifest gives it. Its keys are used.
    pub failure_domain: String,
    pub zone: ZoneId,
    /// Processors and memory.
    pub offering: ServiceOfferingId,
    pub template: TemplateId,
    /// Networks; the first is the default.
    pub networks: Vec<Interface>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DataDisk>,
    /// Name of an SSH key in CloudStack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_key: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affinity_groups: Vec<AffinityGroupId>,
    /// Settings, such as `cpuNumber`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// What people are shown, and the host name in boot data.
    pub display_name: String,
    /// The account or project, unless it is that of the keys.
    #[serde(default, skip_serializing_if = "Owner::is_caller")]
    pub owner: Owner,
    /// Reference to the boot data, not its content.
    pub boot_data: BootDataRef,
    /// Boot data travels compressed.
    pub gzip: bool,
    /// Characters of user data in base64 that the server takes; in intents of releases that read it later its default.
    #[serde(default = "default_user_data_limit")]
    pub user_data_limit: usize,
    /// What it takes of the limits of the account; none in intents of releases that did not compare them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<MachineSize>,
}

/// Processors and memory of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSize {
    /// Processors.
    pub cpus: u64,
    /// Mebibytes of memory.
    pub memory_mib: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The network.
    pub id: NetworkId,
    /// The address; any if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDisk {
    pub offering: DiskOfferingId,
    /// Gigabytes, if the offering leaves that open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl order::Order for Order {
    const VERSION: u32 = 1;
}

fn default_user_data_limit() -> usize {
    UserData::DEFAULT_LIMIT
}

/// Only administrators can read the server's limit, so the manifest says it where it is not the default.
fn user_data_limit(infrastructure: Option<&CloudStackCluster>) -> usize {
    let given = infrastructure.and_then(|it| it.metadata.annotations.get(annotation::USER_DATA_LIMIT));
    given.and_then(|text| text.parse().ok()).unwrap_or(UserData::DEFAULT_LIMIT)
}

impl Order {
    /// Ids of its networks.
    pub(super) fn network_ids(&self) -> Vec<NetworkId> {
        self.networks.iter().map(|interface| interface.id.clone()).collect()
    }

    /// The order of an object's machine, or why there can be none; `None` if what it is chosen from was not observed.
    pub(super) fn of(object: &CloudStackMachine, seen: &Seen) -> Option<Result<Self, CloudError>> {
        let (machine, cluster, domain) =
            (seen.machine.as_ref()?, seen.cluster.as_ref()?, seen.domain.as_ref()?);
        let catalog = match seen.catalog.as_ref()? {
            Ok(catalog) => catalog,
            Err(cause) => return Some(Err(cause.clone())),
        };
        let boot_data = seen.boot_data.as_ref()?;
        let order = || {
            let spec = &object.spec;
            let offering = service_offering(spec, &catalog.service_offerings)?;
            let size = outlook::size(offering, spec);
            let size = size.map(|size| MachineSize { cpus: size.cpus, memory_mib: size.memory_mib });
            let template = template(spec, &machine.spec.version, &catalog.templates)?.id.clone();
            let networks = networks(spec, domain, catalog)?;
            let disk = disk(spec, &catalog.disk_offerings)?;
            if catalog.lacks_ssh_key {
                return Err(no_ssh_key(&spec.ssh_key));
            }
            let wrong = |message: String| CloudError::new(code::BOOT_DATA, "BootData", message);
            let boot_data = boot_data.as_ref().map_err(|error| wrong(error.to_string()))?;
            if boot_data.ignition && spec.uncompressed_user_data == Some(false) {
                return Err(wrong(format!(
                    "Secret {}/{} holds Ignition, which does not read compressed data: remove \
                     spec.uncompressedUserData or set it to true",
                    object.metadata.namespace, boot_data.reference.secret
                )));
            }
            let groups = match spec.affinity_group_ids.is_empty() {
                false => spec.affinity_group_ids.iter().map(|id| id.as_str().into()).collect(),
                true => seen.group.iter().map(|group| group.spec.id.as_str().into()).collect(),
            };
            Ok(Self {
                cluster: cluster.metadata.name.clone(),
                failure_domain: domain.spec.name.clone(),
                zone: domain.spec.zone.id.as_str().into(),
                offering: offering.id.clone(),
                template,
                networks,
                disk,
                ssh_key: Some(spec.ssh_key.clone()).filter(|key| !key.is_empty()),
                affinity_groups: groups,
                details: spec.details.clone(),
                display_name: machine.metadata.name.clone(),
                owner: catalog.owner.clone(),
                gzip: !spec.uncompressed_user_data.unwrap_or(boot_data.ignition),
                user_data_limit: user_data_limit(seen.infrastructure.as_deref()),
                boot_data: boot_data.reference.clone(),
                size,
            })
        };
        Some(order())
    }

    /// User data made from the boot data that the order refers to.
    pub(super) fn user_data(&self, boot_data: Vec<u8>) -> Result<UserData, CloudError> {
        user_data::render(boot_data, &self.display_name, &self.failure_domain, self.gzip)
    }

    /// What the machine takes of the limits of the account.
    pub(super) fn amounts(&self) -> Amounts {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let size = self.size.map_or((0, 0), |size| (number(size.cpus), number(size.memory_mib)));
        Amounts {
            machines: 1,
            cpus: size.0,
            memory_mib: size.1,
            volumes: 1 + i64::from(self.disk.is_some()),
            ..Amounts::default()
        }
    }

    /// The order in CloudStack's words.
    pub(super) fn request(&self, name: &str, user_data: UserData) -> DeployVirtualMachine {
        let mut request =
            DeployVirtualMachine::new(self.zone.clone(), self.offering.clone(), self.template.clone());
        request.name = Some(name.to_owned());
        request.displayname = Some(self.display_name.clone());
        match self.networks.as_slice() {
            [Interface { id, ip: None }] => request.networkids = vec![id.clone()],
            several => {
                let address = |it: &Interface| NetworkAddress { networkid: it.id.clone(), ip: it.ip };
                request.iptonetworklist = several.iter().map(address).collect();
            }
        }
        if let Some(disk) = &self.disk {
            request.diskofferingid = Some(disk.offering.clone());
            request.size = disk.size;
        }
        request.keypair.clone_from(&self.ssh_key);
        request.affinitygroupids.clone_from(&self.affinity_groups);
        request.details.clone_from(&self.details);
        request.userdata = Some(user_data);
        request.owner = self.owner.clone();
        request
    }
}

fn missing(what: &str, shown: &str, field: &str) -> CloudError {
    let message =
        format!("there is no {what} {shown} that the account can use in the zone: correct spec.{field}");
    CloudError::new(code::NOT_FOUND, "NotFound", message)
}

fn several(what: &str, shown: &str, field: &str) -> CloudError {
    let message = format!("more than one {what} is called {shown}: give spec.{field}.id");
    CloudError::new(code::AMBIGUOUS, "Ambiguous", message)
}

fn no_ssh_key(name: &str) -> CloudError {
    let message = format!("the account has no SSH key {name:?}: register it, or correct spec.sshKey");
    CloudError::new(code::NOT_FOUND, "NotFound", message)
}

fn shown(id: &str, name: &str) -> String {
    if id.is_empty() { format!("{name:?}") } else { format!("with id {id:?}") }
}

/// The only one of those found that is called as it should be: look-ups by name find every name that contains it.
fn only<'a, T>(
    found: impl Iterator<Item = &'a T>,
    what: &str,
    shown: &str,
    field: &str,
) -> Result<&'a T, CloudError> {
    let mut found = found;
    let first = found.next().ok_or_else(|| missing(what, shown, field))?;
    if found.next().is_some() { Err(several(what, shown, field)) } else { Ok(first) }
}

/// Those of a name; all of them if it is empty, as they were found by an id.
fn called<'a, T>(found: &'a [T], wanted: &str, name: impl Fn(&T) -> &str) -> std::vec::IntoIter<&'a T> {
    let called = match wanted {
        "" => found.iter().collect(),
        wanted => named(found, wanted, |it| Some(name(it))),
    };
    called.into_iter()
}

/// The offering that a machine names.
pub(super) fn service_offering<'a>(
    spec: &CloudStackMachineSpec,
    found: &'a [ServiceOffering],
) -> Result<&'a ServiceOffering, CloudError> {
    let wanted = &spec.offering;
    let named = called(found, &wanted.name, |it| &it.name);
    only(named, "service offering", &shown(&wanted.id, &wanted.name), "offering")
}

/// The template that a machine names, if it is there and fits what the machine shall be.
pub(super) fn template<'a>(
    spec: &CloudStackMachineSpec,
    version: &str,
    found: &'a [Template],
) -> Result<&'a Template, CloudError> {
    let wanted = &spec.template;
    let shown = shown(&wanted.id, &wanted.name);
    let named = called(found, &wanted.name, |it| &it.name);
    let template = only(named, "template", &shown, "template")?;
    if !template.isready {
        let message = format!(
            "template {shown} is not ready in the zone: wait for its download, or correct spec.template"
        );
        return Err(CloudError::new(code::NOT_FOUND, "TemplateNotReady", message));
    }
    preflight::fits(template, version, &spec.details)?;
    Ok(template)
}

/// The data disk that a machine names, if it names one.
fn disk(spec: &CloudStackMachineSpec, found: &[DiskOffering]) -> Result<Option<DataDisk>, CloudError> {
    let wanted = &spec.disk_offering;
    if wanted.id.is_empty() && wanted.name.is_empty() {
        return Ok(None);
    }
    let named = called(found, &wanted.name, |it| &it.name);
    let offering = only(named, "disk offering", &shown(&wanted.id, &wanted.name), "diskOffering")?;
    let size = u64::try_from(wanted.custom_size_in_gb).ok().filter(|size| *size > 0);
    let name = &offering.name;
    let message = match (offering.iscustomized, size) {
        (true, None) => format!("disk offering {name} needs a size: set spec.diskOffering.customSizeInGB"),
        (false, Some(_)) => {
            format!("disk offering {name} has a size of its own: remove spec.diskOffering.customSizeInGB")
        }
        (_, size) => return Ok(Some(DataDisk { offering: offering.id.clone(), size })),
    };
    Err(CloudError::new(code::REFUSED, "DiskSize", message))
}

/// Networks of the machine; the failure domain's comes first, and is the only one if the machine names none.
fn networks(
    spec: &CloudStackMachineSpec,
    domain: &CloudStackFailureDomain,
    catalog: &Catalog,
) -> Result<Vec<Interface>, CloudError> {
    let first = &domain.spec.zone.network;
    if spec.networks.is_empty() {
        return Ok(vec![Interface { id: first.id.as_str().into(), ip: None }]);
    }
    let mut interfaces = Vec::with_capacity(spec.networks.len());
    for (at, wanted) in spec.networks.iter().enumerate() {
        let others = catalog.networks.get(&wanted.name).map(Vec::as_slice).unwrap_or_default();
        let is_other = others.iter().any(|it| it.name.as_ref() == Some(&wanted.name));
        let named = wanted.name == first.name || is_same(&wanted.name, &first.name) && !is_other;
        let same = wanted.id == first.id || wanted.id.is_empty() && named;
        if at == 0 && !same {
            let message = format!(
                "spec.networks[0] is {:?}, but the network of failure domain {} is {:?}: name that one first",
                wanted.name, domain.spec.name, first.name
            );
            return Err(CloudError::new(code::REFUSED, "Refused", message));
        }
        let id: NetworkId = match (same, wanted.id.as_str()) {
            (true, _) => first.id.as_str().into(),
            (false, "") => {
                let named = called(others, &wanted.name, |it| it.name.as_deref().unwrap_or_default());
                only(named, "network", &format!("{:?}", wanted.name), "networks")?.id.clone()
            }
            (false, id) => id.into(),
        };
        let ip = match wanted.ip.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| {
                let message =
                    format!("spec.networks[{at}].ip is {text:?}, which is not an address: correct it");
                CloudError::new(code::REFUSED, "Refused", message)
            })?),
        };
        interfaces.push(Interface { id, ip });
    }
    Ok(interfaces)
}
