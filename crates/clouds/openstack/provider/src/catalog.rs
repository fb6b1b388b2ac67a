//! Flavors and images that manifests name, with what they offer and need.

use capstan_openstack_client::compute::Flavor;
use capstan_openstack_client::image::Image;
use capstan_openstack_types::v1beta2::{FlavorParam, ImageParam};

use crate::code;
use crate::error::CloudError;
use crate::lookup;
use crate::project::{Access, CATALOG, SETTLED};

/// The flavor of a parameter. `field` is where the manifest has it.
pub(crate) async fn flavor(access: &Access, param: &FlavorParam, field: &str) -> Result<Flavor, CloudError> {
    let name = param.filter.as_ref().and_then(|filter| filter.name.as_deref());
    let id = param.id.as_deref().filter(|id| !id.is_empty());
    let of = |all: &[Flavor]| {
        let wanted = |flavor: &&Flavor| match id {
            Some(id) => flavor.id.as_str() == id,
            None => Some(flavor.name.as_str()) == name,
        };
        all.iter().find(wanted).cloned()
    };
    // It may have been created since the list was made.
    for age in [CATALOG, SETTLED] {
        if let Some(found) = of(&access.all::<Flavor>(age).await?) {
            return Ok(found);
        }
    }
    // Flavors of one project only are in no list of an administrator.
    if let Some(id) = id
        && let Some(found) = access.client.find::<Flavor>(&id.into()).await?
    {
        return Ok(found);
    }
    let (what, wanted) = if id.is_some() { ("id", id) } else { ("name", name) };
    let message = format!(
        "{field}: there is no flavor with {what} {:?}; correct the {what}",
        wanted.unwrap_or_default()
    );
    Err(CloudError::new(code::NOT_FOUND, "OpenStackError", message))
}

/// The image of a parameter.
pub(crate) async fn image(access: &Access, param: &ImageParam, field: &str) -> Result<Image, CloudError> {
    let id = lookup::image(access, param, field).await?;
    let found = access.client.find::<Image>(&id.as_str().into()).await?;
    found.ok_or_else(|| no_image(&id, field))
}

/// What the image of a parameter says about its system, kept for a while; empty if it says nothing.
pub(crate) async fn operating_system(
    access: &Access,
    param: &ImageParam,
    field: &str,
) -> Result<String, CloudError> {
    let id = lookup::image(access, param, field).await?;
    let ask = async {
        let image = access.client.find::<Image>(&id.as_str().into()).await?;
        let of = |image: Image| image.property("os_type").unwrap_or_default().to_owned();
        Ok(image.map(of).into_iter().collect())
    };
    let found = access.lookup(&format!("os_type of image {id}"), ask).await?;
    found.first().cloned().ok_or_else(|| no_image(&id, field))
}

fn no_image(id: &str, field: &str) -> CloudError {
    let message = format!("{field}: there is no image {id}; correct the id");
    CloudError::new(code::NOT_FOUND, "OpenStackError", message)
}
