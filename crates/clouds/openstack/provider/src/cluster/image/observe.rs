//! The images of a cluster in Glance, and the calls that make them.

use std::collections::{BTreeMap, BTreeSet};

use capstan_controller::View;
use capstan_openstack_client::compute::Server;
use capstan_openstack_client::image::{Image, ImageStatus, NewImage};
use capstan_openstack_client::{Class, Error};
use capstan_openstack_types::v1beta2::OpenStackCluster;
use jiff::Timestamp;

use super::{WantedImage, recorded, wanted};
use crate::error::CloudError;
use crate::mark::{self, METADATA};
use crate::project::{Access, CATALOG, PENDING, SETTLED};

/// What Glance has of the images of a cluster. Empty for clusters that never had one.
#[derive(Debug, Clone, Default)]
pub struct ImageState {
    /// Names of images that the project sees and can use.
    pub usable: BTreeSet<String>,
    /// Those that were registered for the cluster.
    pub ours: Vec<OwnImage>,
    /// Ids of images of which there are servers.
    pub in_use: BTreeSet<String>,
    /// Names that other clusters want.
    pub shared: BTreeSet<String>,
    /// Glance can download; only known while something is to be downloaded.
    pub downloads: Option<bool>,
}

/// An image that was registered for the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnImage {
    pub id: String,
    pub name: String,
    pub status: ImageStatus,
    /// Why the last import failed, and when.
    pub failed: Option<(Timestamp, String)>,
}

fn has_mark(image: &Image, mark: &str) -> bool {
    image.property(METADATA) == Some(mark)
}

pub(in crate::cluster) async fn observe(
    object: &OpenStackCluster,
    access: &Access,
    view: &View,
) -> Result<ImageState, CloudError> {
    let meta = &object.metadata;
    // What is wrong with the annotation is said by the decision.
    let wanted: Vec<WantedImage> = wanted(meta).unwrap_or_default();
    let recorded = recorded(meta);
    if wanted.is_empty() && recorded.is_empty() {
        return Ok(ImageState::default());
    }
    let mark = mark::of(meta);
    let usable = |image: &Image| image.status == ImageStatus::Active;
    let mut all = access.all::<Image>(CATALOG).await?;
    let missing = |all: &[Image]| {
        wanted.iter().any(|wanted| !all.iter().any(|image| image.name == wanted.name && usable(image)))
    };
    if missing(&all) || meta.is_deleting() {
        all = access.all::<Image>(PENDING).await?;
    }
    let mut state = ImageState {
        usable: all.iter().filter(|image| usable(image)).map(|image| image.name.clone()).collect(),
        ..ImageState::default()
    };
    for image in all.iter().filter(|image| has_mark(image, &mark)) {
        let mut own = OwnImage {
            id: image.id.to_string(),
            name: image.name.clone(),
            status: image.status.clone(),
            failed: None,
        };
        if image.status == ImageStatus::Queued {
            own.failed = failure(access, image).await?;
        }
        state.ours.push(own);
    }
    let downloading = state.ours.iter().any(|image| image.status == ImageStatus::Queued);
    if (missing(&all) || downloading) && !meta.is_deleting() {
        state.downloads = downloads(access).await?;
    }
    let unwanted = |image: &OwnImage| !wanted.iter().any(|wanted| wanted.name == image.name);
    if meta.is_deleting() || state.ours.iter().any(unwanted) {
        let servers = access.all::<Server>(SETTLED).await?;
        state.in_use =
            servers.iter().filter_map(|it| it.image_id.0.as_ref().map(ToString::to_string)).collect();
        for other in view.list::<OpenStackCluster>("")? {
            if other.metadata.uid != meta.uid {
                let theirs = super::wanted(&other.metadata).unwrap_or_default();
                state.shared.extend(theirs.into_iter().map(|image| image.name));
            }
        }
    }
    Ok(state)
}

/// Why the last import of an image failed, if one did. Older services do not say.
async fn failure(access: &Access, image: &Image) -> Result<Option<(Timestamp, String)>, CloudError> {
    let tasks = match access.client.image_tasks(&image.id).await {
        Ok(tasks) => tasks,
        Err(error) if unsaid(&error) => return Ok(None),
        Err(error) => return Err(CloudError::of(&error)),
    };
    let last = tasks.into_iter().max_by_key(|task| task.created_at);
    let failed = last.filter(|task| task.status == "failure");
    Ok(failed.and_then(|task| Some((task.updated_at.or(task.created_at)?.0, task.message))))
}

fn unsaid(error: &Error) -> bool {
    matches!(error.class(), Class::NotFound | Class::Permission | Class::Unsupported | Class::Protocol)
}

/// Whether Glance downloads, if it says so.
async fn downloads(access: &Access) -> Result<Option<bool>, CloudError> {
    match access.client.import_methods().await {
        Ok(methods) => Ok(Some(methods.iter().any(|method| method == "web-download"))),
        Err(error) if unsaid(&error) => Ok(None),
        Err(error) => Err(CloudError::of(&error)),
    }
}

/// Registers an image without its data.
pub(in crate::cluster) async fn create(
    image: &WantedImage,
    mark: &str,
    access: &Access,
) -> Result<(), Error> {
    let mut properties: BTreeMap<String, String> = image.properties.clone();
    properties.insert(METADATA.to_owned(), mark.to_owned());
    let least = |number: u64| Some(number).filter(|number| *number > 0);
    let new = NewImage {
        name: image.name.clone(),
        disk_format: Some(image.disk_format.clone()),
        container_format: Some("bare".to_owned()),
        visibility: Some("private".to_owned()),
        tags: image.tags.clone(),
        min_disk: least(image.min_disk_gib),
        min_ram: least(image.min_memory_mib),
        protected: None,
        properties,
    };
    let made = access.client.create::<Image>(&new).await?;
    access.put(&made).await;
    Ok(())
}
