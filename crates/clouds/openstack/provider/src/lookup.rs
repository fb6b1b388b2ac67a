//! What parameters of manifests refer to: an id, or a filter that must match exactly one thing.

use capstan_capi_core::conditions::shortened;
use capstan_openstack_client::Error;
use capstan_openstack_client::compute::{Flavor, ServerGroup};
use capstan_openstack_client::image::{Image, ImageFilter, ImageStatus};
use capstan_openstack_client::network::{self as neutron, Network, Router, SecurityGroup, Subnet, TagFilter};
use capstan_openstack_types::v1beta2::{
    ImageParam, NetworkParam, RouterParam, SecurityGroupParam, ServerGroupParam, SubnetFilter, SubnetParam,
};
use serde::Serialize;

use crate::code;
use crate::error::CloudError;
use crate::project::{Access, CATALOG};

/// Ids in a message, at most.
const SHOWN: usize = 5;

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The tag filters of a parameter, which all kinds have.
macro_rules! tags {
    ($filter:expr) => {
        TagFilter {
            tags: $filter.tags.clone(),
            tags_any: $filter.tags_any.clone(),
            not_tags: $filter.not_tags.clone(),
            not_tags_any: $filter.not_tags_any.clone(),
        }
    };
}

/// The only match of a filter. `field` is where the manifest has it.
async fn only(
    access: &Access,
    kind: &str,
    field: &str,
    filter: &impl Serialize,
    ask: impl Future<Output = Result<Vec<String>, Error>>,
) -> Result<String, CloudError> {
    let text = serde_json::to_string(filter).unwrap_or_default();
    let found = access.lookup(&format!("{kind} {text}"), ask).await?;
    match found.as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(CloudError::new(
            code::NOT_FOUND,
            "OpenStackError",
            format!("{field}: no {kind} matches {text}; correct the filter, or create the {kind}"),
        )),
        several => Err(CloudError::new(
            code::AMBIGUOUS,
            "OpenStackError",
            format!(
                "{field}: {} {kind}s match {text}: {}; use the id of one",
                several.len(),
                shortened(several, SHOWN)
            ),
        )),
    }
}

fn nothing(field: &str) -> CloudError {
    let message = format!("{field} has neither id nor filter: set one");
    CloudError::new(code::REFUSED, "InvalidMachineSpec", message)
}

fn ids<R>(found: Vec<R>, id: impl Fn(&R) -> String) -> Vec<String> {
    found.iter().map(id).collect()
}

/// The network of a parameter; `external` if it must lead out of the cloud.
pub(crate) async fn network(
    access: &Access,
    param: &NetworkParam,
    external: bool,
    field: &str,
) -> Result<String, CloudError> {
    if let Some(id) = &param.id {
        return Ok(id.clone());
    }
    let filter = param.filter.as_ref().ok_or_else(|| nothing(field))?;
    let asked = neutron::NetworkFilter {
        id: None,
        name: some(&filter.name),
        description: some(&filter.description),
        project_id: some(&filter.project_id),
        is_external: external.then_some(true),
        tags: tags!(filter),
    };
    let ask = async { Ok(ids(access.client.list::<Network>(&asked).await?, |it| it.id.to_string())) };
    let kind = if external { "external network" } else { "network" };
    only(access, kind, field, filter, ask).await
}

fn subnet_filter(filter: &SubnetFilter, network: Option<&str>) -> neutron::SubnetFilter {
    neutron::SubnetFilter {
        id: None,
        name: some(&filter.name),
        description: some(&filter.description),
        project_id: some(&filter.project_id),
        network_id: network.map(Into::into),
        ip_version: u8::try_from(filter.ip_version).ok().filter(|version| *version > 0),
        cidr: some(&filter.cidr),
        gateway_ip: some(&filter.gateway_ip),
        ipv6_address_mode: some(&filter.ipv6_address_mode),
        ipv6_ra_mode: some(&filter.ipv6_ra_mode),
        tags: tags!(filter),
    }
}

/// The subnet of a parameter, in a network if one is given.
pub(crate) async fn subnet(
    access: &Access,
    param: &SubnetParam,
    network: Option<&str>,
    field: &str,
) -> Result<String, CloudError> {
    if let Some(id) = &param.id {
        return Ok(id.clone());
    }
    let filter = param.filter.as_ref().ok_or_else(|| nothing(field))?;
    let asked = subnet_filter(filter, network);
    let ask = async { Ok(ids(access.client.list::<Subnet>(&asked).await?, |it| it.id.to_string())) };
    only(access, "subnet", field, &(network, filter), ask).await
}

pub(crate) async fn router(access: &Access, param: &RouterParam, field: &str) -> Result<String, CloudError> {
    if let Some(id) = &param.id {
        return Ok(id.clone());
    }
    let filter = param.filter.as_ref().ok_or_else(|| nothing(field))?;
    let asked = neutron::RouterFilter {
        id: None,
        name: some(&filter.name),
        description: some(&filter.description),
        project_id: some(&filter.project_id),
        tags: tags!(filter),
    };
    let ask = async { Ok(ids(access.client.list::<Router>(&asked).await?, |it| it.id.to_string())) };
    only(access, "router", field, filter, ask).await
}

/// Security groups of a parameter: a filter may match several, as in CAPO.
pub(crate) async fn security_groups(
    access: &Access,
    param: &SecurityGroupParam,
    field: &str,
) -> Result<Vec<String>, CloudError> {
    if let Some(id) = &param.id {
        return Ok(vec![id.clone()]);
    }
    let filter = param.filter.as_ref().ok_or_else(|| nothing(field))?;
    let asked = neutron::SecurityGroupFilter {
        id: None,
        name: some(&filter.name),
        description: some(&filter.description),
        project_id: some(&filter.project_id),
        tags: tags!(filter),
    };
    let ask = async { Ok(ids(access.client.list::<SecurityGroup>(&asked).await?, |it| it.id.to_string())) };
    let text = serde_json::to_string(filter).unwrap_or_default();
    let found = access.lookup(&format!("security group {text}"), ask).await?;
    if found.is_empty() {
        let message = format!("{field}: no security group matches {text}; correct the filter");
        return Err(CloudError::new(code::NOT_FOUND, "OpenStackError", message));
    }
    Ok(found.to_vec())
}

pub(crate) async fn image(access: &Access, param: &ImageParam, field: &str) -> Result<String, CloudError> {
    if let Some(id) = &param.id {
        return Ok(id.clone());
    }
    if let Some(reference) = &param.image_ref {
        let message = format!(
            "{field}.imageRef {}: images of the OpenStack resource controller are not supported; use filter or id",
            reference.name
        );
        return Err(CloudError::new(code::UNSUPPORTED, "InvalidMachineSpec", message));
    }
    let filter = param.filter.as_ref().ok_or_else(|| nothing(field))?;
    let asked = ImageFilter { name: filter.name.clone(), tag: filter.tags.clone(), ..ImageFilter::default() };
    let ask = async {
        let mut found = access.client.list::<Image>(&asked).await?;
        found.retain(|it| {
            // Many databases compare without case.
            it.status == ImageStatus::Active && filter.name.as_ref().is_none_or(|name| it.name == *name)
        });
        Ok(ids(found, |it| it.id.to_string()))
    };
    let found = only(access, "image", field, filter, ask).await;
    match found {
        Err(error) if error.code == code::NOT_FOUND => {
            Err(unready(access, &asked, field).await?.unwrap_or(error))
        }
        found => found,
    }
}

/// Why the image of a filter cannot be used yet, if there is one.
async fn unready(
    access: &Access,
    filter: &ImageFilter,
    field: &str,
) -> Result<Option<CloudError>, CloudError> {
    let found = access.client.list::<Image>(filter).await?;
    let same = found.iter().find(|it| filter.name.as_ref().is_none_or(|name| it.name == *name));
    Ok(same.map(|image| {
        let message = format!(
            "{field}: image {} ({}) is {}: it is used once it is active",
            image.name, image.id, image.status
        );
        CloudError::new(code::NOT_FOUND, "OpenStackError", message)
    }))
}

/// A flavor by id or by name.
pub(crate) async fn flavor(
    access: &Access,
    id: Option<&str>,
    name: Option<&str>,
    field: &str,
) -> Result<String, CloudError> {
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        return Ok(id.to_owned());
    }
    let name = name.ok_or_else(|| nothing(field))?;
    let flavors = access.all::<Flavor>(CATALOG).await?;
    let found = flavors.iter().find(|flavor| flavor.name == name);
    found.map(|flavor| flavor.id.to_string()).ok_or_else(|| {
        let message = format!("{field}: there is no flavor {name:?}; correct the name");
        CloudError::new(code::NOT_FOUND, "OpenStackError", message)
    })
}

pub(crate) async fn server_group(
    access: &Access,
    param: &ServerGroupParam,
    field: &str,
) -> Result<String, CloudError> {
    if let Some(id) = &param.id {
        return Ok(id.clone());
    }
    let name = param.filter.as_ref().and_then(|filter| filter.name.clone()).ok_or_else(|| nothing(field))?;
    let groups = access.all::<ServerGroup>(crate::project::SETTLED).await?;
    let mut found = groups.iter().filter(|group| group.name == name);
    match (found.next(), found.next()) {
        (Some(group), None) => Ok(group.id.to_string()),
        (None, _) => {
            let message =
                format!("{field}: there is no server group {name:?}; create it or correct the name");
            Err(CloudError::new(code::NOT_FOUND, "OpenStackError", message))
        }
        _ => {
            let message = format!("{field}: several server groups are called {name:?}; use the id of one");
            Err(CloudError::new(code::AMBIGUOUS, "OpenStackError", message))
        }
    }
}
