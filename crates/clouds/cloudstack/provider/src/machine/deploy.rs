//! The order of a machine: what its object says, in CloudStack's words.

use capstan_capi_types::core::Machine;
use capstan_cloudstack_client::commands::{
    DeployVirtualMachine, ListDiskOfferings, ListNetworks, ListServiceOfferings, ListSshKeyPairs,
    ListTemplates, NetworkAddress,
};
use capstan_cloudstack_client::model::{DiskOffering, ServiceOffering, Template};
use capstan_cloudstack_client::{Code, Error, NetworkId, UserData, ZoneId};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomain, CloudStackMachine, CloudStackMachineSpec};
use capstan_controller::View;
use capstan_object::Key;
use capstan_provider_kit::Secret;

use super::decide::domain_name;
use super::{Seen, preflight};
use crate::clouds::Access;
use crate::code;
use crate::trouble::Trouble;

/// Name of the machine in boot data, for cloud-init's templates.
const HOST_NAME: &str = "ds.meta_data.hostname";
/// Name of the failure domain in boot data.
const FAILURE_DOMAIN: &str = "ds.meta_data.failuredomain";

/// What the Secret of boot data calls the format of Flatcar and its like.
const IGNITION: &[u8] = b"ignition";

fn missing(what: &str, shown: &str, field: &str) -> Trouble {
    let message =
        format!("there is no {what} {shown} that the account can use in the zone: correct spec.{field}");
    Trouble::new(code::NOT_FOUND, "NotFound", message)
}

fn several(what: &str, shown: &str, field: &str) -> Trouble {
    let message = format!("more than one {what} is called {shown}: give spec.{field}.id");
    Trouble::new(code::AMBIGUOUS, "Ambiguous", message)
}

/// The order of a machine.
pub(super) async fn order(
    object: &CloudStackMachine,
    seen: &Seen,
    access: &Access,
    view: &View,
) -> Result<DeployVirtualMachine, Trouble> {
    let (Some(machine), Some(domain)) = (&seen.machine, &seen.domain) else {
        let message =
            format!("its Machine or failure domain {} is gone", domain_name(seen.domain.as_deref()));
        return Err(Trouble::new(code::FAILED, "NotPlaced", message));
    };
    let zone: ZoneId = domain.spec.zone.id.as_str().into();
    let offering = service_offering(&object.spec, &zone, access).await?;
    let template = fits(&object.spec, &machine.spec.version, &zone, access).await?;
    let mut order = DeployVirtualMachine::new(zone.clone(), offering.id, template.id);
    order.name = Some(object.metadata.name.clone());
    order.displayname = Some(machine.metadata.name.clone());
    let spec = &object.spec;
    if spec.networks.is_empty() {
        order.networkids = vec![domain.spec.zone.network.id.as_str().into()];
    } else {
        order.iptonetworklist = networks(object, domain, access).await?;
    }
    if let Some(disk) = disk_offering(object, &zone, access).await? {
        let size = u64::try_from(spec.disk_offering.custom_size_in_gb).ok().filter(|size| *size > 0);
        order.size = match (disk.iscustomized, size) {
            (true, None) => {
                let message =
                    format!("disk offering {} needs a size: set spec.diskOffering.customSizeInGB", disk.name);
                return Err(Trouble::new(code::REFUSED, "DiskSize", message));
            }
            (false, Some(_)) => {
                let message = format!(
                    "disk offering {} has a size of its own: remove spec.diskOffering.customSizeInGB",
                    disk.name
                );
                return Err(Trouble::new(code::REFUSED, "DiskSize", message));
            }
            (_, size) => size,
        };
        order.diskofferingid = Some(disk.id);
    }
    order.keypair = Some(spec.ssh_key.clone()).filter(|key| !key.is_empty());
    order.affinitygroupids = match spec.affinity_group_ids.is_empty() {
        false => spec.affinity_group_ids.iter().map(|id| id.as_str().into()).collect(),
        true => seen.group.iter().map(|group| group.spec.id.as_str().into()).collect(),
    };
    order.details.clone_from(&spec.details);
    order.userdata = Some(user_data(object, machine, &domain.spec.name, view).await?);
    order.owner = access.owner.clone();
    Ok(order)
}

/// Why an order was refused, if that is for the SSH key it names. CloudStack calls it a wrong parameter like any other,
/// so the key is looked up.
pub(super) async fn lacks_key(object: &CloudStackMachine, access: &Access, error: &Error) -> Option<Trouble> {
    let name = Some(&object.spec.ssh_key).filter(|name| !name.is_empty())?;
    if error.code() != Some(Code::Parameter) {
        return None;
    }
    let question =
        ListSshKeyPairs { name: Some(name.clone()), scope: access.scope(), ..ListSshKeyPairs::default() };
    let found = access.client.list(&question).await.ok()?;
    let missing = || {
        let message = format!("the account has no SSH key {name:?}: register it, or correct spec.sshKey");
        Trouble::new(code::NOT_FOUND, "NotFound", message)
    };
    found.is_empty().then(missing)
}

/// The boot data of a machine, as it travels.
pub(super) async fn user_data(
    object: &CloudStackMachine,
    machine: &Machine,
    failure_domain: &str,
    view: &View,
) -> Result<UserData, Trouble> {
    let wrong = |message: String| Trouble::new(code::BOOT_DATA, "BootData", message);
    let name = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
    let key = Key::new(object.metadata.namespace.as_str(), name);
    let read = view.client().get::<Secret>(&key).await;
    let read = read.map_err(|error| wrong(format!("Secret {key} cannot be read: {error}")))?;
    let mut secret = read.ok_or_else(|| wrong(format!("there is no Secret {key}")))?;
    let data = secret.data.remove("value");
    let data = data.ok_or_else(|| wrong(format!("Secret {key} has no boot data in its key \"value\"")))?;
    let data = match String::from_utf8(data) {
        Ok(text) => filled_in(&text, &machine.metadata.name, failure_domain).into_bytes(),
        Err(other) => other.into_bytes(),
    };
    let ignition = secret.data.get("format").is_some_and(|format| format.as_slice() == IGNITION);
    if ignition && object.spec.uncompressed_user_data == Some(false) {
        let message = format!(
            "Secret {key} holds Ignition, which does not read compressed data: remove spec.uncompressedUserData or set \
             it to true"
        );
        return Err(wrong(message));
    }
    let packed = match object.spec.uncompressed_user_data.unwrap_or(ignition) {
        true => UserData::plain(&data),
        false => UserData::gzip(&data),
    };
    let packed = packed.map_err(|error| wrong(error.to_string()))?;
    Ok(packed)
}

/// What cloud-init cannot know itself is put in its place, as CAPC does it.
fn filled_in(text: &str, host_name: &str, failure_domain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from.find("}}");
        match end.filter(|end| from[2..*end].trim() == HOST_NAME) {
            Some(end) => {
                out.push_str(host_name);
                rest = &from[end + 2..];
            }
            None => {
                out.push_str("{{");
                rest = &from[2..];
            }
        }
    }
    out.push_str(rest);
    out.replace(FAILURE_DOMAIN, failure_domain)
}

/// The template that a machine is made from, if it fits what the machine shall be.
pub(crate) async fn fits(
    spec: &CloudStackMachineSpec,
    version: &str,
    zone: &ZoneId,
    access: &Access,
) -> Result<Template, Trouble> {
    let template = template(spec, zone, access).await?;
    preflight::fits(&template, version, &spec.details)?;
    Ok(template)
}

/// The offering that a machine names.
pub(crate) async fn service_offering(
    spec: &CloudStackMachineSpec,
    zone: &ZoneId,
    access: &Access,
) -> Result<ServiceOffering, Trouble> {
    let wanted = &spec.offering;
    let question = match wanted.id.as_str() {
        "" => ListServiceOfferings {
            name: Some(wanted.name.clone()),
            zoneid: Some(zone.clone()),
            projectid: access.owner.projectid.clone(),
            ..ListServiceOfferings::default()
        },
        id => ListServiceOfferings { id: Some(id.into()), ..ListServiceOfferings::default() },
    };
    let found = access.client.cached(&question).await;
    let shown = shown(&wanted.id, &wanted.name);
    let found =
        found.map_err(|error| unknown(&error, access, || missing("service offering", &shown, "offering")))?;
    let fits = |it: &&ServiceOffering| wanted.name.is_empty() || it.name == wanted.name;
    only(
        found.iter().filter(fits),
        || missing("service offering", &shown, "offering"),
        || several("service offering", &shown, "offering"),
    )
}

async fn template(spec: &CloudStackMachineSpec, zone: &ZoneId, access: &Access) -> Result<Template, Trouble> {
    let wanted = &spec.template;
    let id = Some(wanted.id.as_str()).filter(|id| !id.is_empty());
    let question = ListTemplates {
        id: id.map(Into::into),
        name: Some(wanted.name.clone()).filter(|_| id.is_none()),
        zoneid: Some(zone.clone()),
        scope: access.scope(),
        ..ListTemplates::default()
    };
    let found = access.client.cached(&question).await;
    let shown = shown(&wanted.id, &wanted.name);
    let found = found.map_err(|error| unknown(&error, access, || missing("template", &shown, "template")))?;
    let fits = |it: &&Template| wanted.name.is_empty() || it.name == wanted.name;
    let found = only(
        found.iter().filter(fits),
        || missing("template", &shown, "template"),
        || several("template", &shown, "template"),
    )?;
    if !found.isready {
        let message = format!(
            "template {shown} is not ready in the zone: wait for its download, or correct spec.template"
        );
        return Err(Trouble::new(code::NOT_FOUND, "TemplateNotReady", message));
    }
    Ok(found)
}

async fn disk_offering(
    object: &CloudStackMachine,
    zone: &ZoneId,
    access: &Access,
) -> Result<Option<DiskOffering>, Trouble> {
    let wanted = &object.spec.disk_offering;
    if wanted.id.is_empty() && wanted.name.is_empty() {
        return Ok(None);
    }
    let question = match wanted.id.as_str() {
        "" => ListDiskOfferings {
            name: Some(wanted.name.clone()),
            zoneid: Some(zone.clone()),
            projectid: access.owner.projectid.clone(),
            ..ListDiskOfferings::default()
        },
        id => ListDiskOfferings { id: Some(id.into()), ..ListDiskOfferings::default() },
    };
    let found = access.client.cached(&question).await;
    let shown = shown(&wanted.id, &wanted.name);
    let found = found
        .map_err(|error| unknown(&error, access, || missing("disk offering", &shown, "diskOffering")))?;
    let fits = |it: &&DiskOffering| wanted.name.is_empty() || it.name == wanted.name;
    let found = only(
        found.iter().filter(fits),
        || missing("disk offering", &shown, "diskOffering"),
        || several("disk offering", &shown, "diskOffering"),
    )?;
    Ok(Some(found))
}

/// Networks of the machine with wishes for addresses; the failure domain's comes first.
async fn networks(
    object: &CloudStackMachine,
    domain: &CloudStackFailureDomain,
    access: &Access,
) -> Result<Vec<NetworkAddress>, Trouble> {
    let first = &domain.spec.zone.network;
    let mut addresses = Vec::new();
    for (at, wanted) in object.spec.networks.iter().enumerate() {
        let same = wanted.id == first.id || wanted.id.is_empty() && wanted.name == first.name;
        if at == 0 && !same {
            let message = format!(
                "spec.networks[0] is {:?}, but the network of failure domain {} is {:?}: name that one first",
                wanted.name, domain.spec.name, first.name
            );
            return Err(Trouble::new(code::REFUSED, "Refused", message));
        }
        let networkid: NetworkId = match (same, wanted.id.as_str()) {
            (true, _) => first.id.as_str().into(),
            (false, "") => {
                let question = ListNetworks {
                    name: Some(wanted.name.clone()),
                    zoneid: Some(domain.spec.zone.id.as_str().into()),
                    scope: access.scope(),
                    ..ListNetworks::default()
                };
                let found = access.client.list(&question).await.map_err(|error| access.trouble(&error))?;
                let shown = format!("{:?}", wanted.name);
                only(
                    found.iter(),
                    || missing("network", &shown, "networks"),
                    || several("network", &shown, "networks"),
                )?
                .id
            }
            (false, id) => id.into(),
        };
        let ip = match wanted.ip.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| {
                let message = format!("spec.networks[{at}].ip is {text:?}, which is no address: correct it");
                Trouble::new(code::REFUSED, "Refused", message)
            })?),
        };
        addresses.push(NetworkAddress { networkid, ip });
    }
    Ok(addresses)
}

fn shown(id: &str, name: &str) -> String {
    if id.is_empty() { format!("{name:?}") } else { format!("with id {id:?}") }
}

/// An unknown id is refused as a wrong parameter.
fn unknown(
    error: &capstan_cloudstack_client::Error,
    access: &Access,
    missing: impl FnOnce() -> Trouble,
) -> Trouble {
    match error.code() {
        Some(capstan_cloudstack_client::Code::Parameter) => missing(),
        _ => access.trouble(error),
    }
}

fn only<'a, T: Clone + 'a>(
    mut found: impl Iterator<Item = &'a T>,
    missing: impl FnOnce() -> Trouble,
    several: impl FnOnce() -> Trouble,
) -> Result<T, Trouble> {
    let first = found.next().ok_or_else(missing)?;
    if found.next().is_some() { Err(several()) } else { Ok(first.clone()) }
}

#[cfg(test)]
mod tests {
    use super::filled_in;

    #[test]
    fn boot_data_is_filled_in_as_capc_does_it() {
        for (text, filled) in [
            ("name: '{{ ds.meta_data.hostname }}'", "name: 'm-1'"),
            ("{{ds.meta_data.hostname}}{{ds.meta_data.failuredomain}}", "m-1{{fd1}}"),
            ("zone=ds.meta_data.failuredomain", "zone=fd1"),
            (
                "{{ ds.meta_data.instance_id }} {{ local_hostname }}",
                "{{ ds.meta_data.instance_id }} {{ local_hostname }}",
            ),
            ("{{ open", "{{ open"),
            ("{{{{ ds.meta_data.hostname }}", "{{m-1"),
        ] {
            assert_eq!(filled_in(text, "m-1", "fd1"), filled, "{text}");
        }
    }
}
