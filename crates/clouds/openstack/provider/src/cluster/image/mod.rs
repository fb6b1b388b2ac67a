//! Images that a cluster brings along: registered in Glance from a URL if the project sees none of the name.
//!
//! ```text
//! annotation ─▶ image of the name? ─┬─ yes: used as it is, whosever it is
//!                                   └─ no: queued ─▶ importing ─▶ active
//!                                            ▲─────────┘ failed: tried again a while later
//! ```
//!
//! Those that were registered are private, carry the cluster's mark, and go when nobody needs them: no annotation names
//! them and no server was made of them.

mod decide;
mod observe;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use capstan_object::ObjectMeta;
use serde::{Deserialize, Serialize};

pub(super) use decide::{keep, leaving, removal};
pub use observe::ImageState;
#[cfg(test)]
pub(super) use observe::OwnImage;
pub(super) use observe::{create, observe};

/// On OpenStackClusters: images to register, as JSON.
pub const IMAGES: &str = "capstan.dev/openstack-images";
/// On OpenStackClusters: ids of the registered images by name, as JSON.
const REGISTERED: &str = "capstan.dev/openstack-registered-images";

/// Images and properties of one, at most.
const MOST: usize = 32;
/// Characters of a name, URL or value.
const LONGEST: usize = 2048;

/// Glance's disk formats that hypervisors boot.
const FORMATS: [&str; 5] = ["qcow2", "raw", "vhd", "vmdk", "iso"];

/// Attributes that are not the annotation's.
const OWN: [&str; 6] = ["id", "name", "status", "visibility", "owner", crate::mark::METADATA];

/// An image to register.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WantedImage {
    pub name: String,
    /// Where Glance fetches the data.
    pub url: String,
    #[serde(default = "qcow2")]
    pub disk_format: String,
    #[serde(default, rename = "minDiskGiB")]
    pub min_disk_gib: u64,
    #[serde(default, rename = "minMemoryMiB")]
    pub min_memory_mib: u64,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Such as `os_distro` and `hw_disk_bus`.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

fn qcow2() -> String {
    FORMATS[0].to_owned()
}

/// The images of the annotation.
pub(super) fn wanted(meta: &ObjectMeta) -> Result<Vec<WantedImage>, String> {
    let Some(text) = meta.annotations.get(IMAGES) else { return Ok(Vec::new()) };
    let images: Vec<WantedImage> = serde_json::from_str(text)
        .map_err(|error| format!("annotation {IMAGES}: {error}; it is a JSON list"))?;
    if images.len() > MOST {
        return Err(format!("annotation {IMAGES}: {} images are too many; {MOST} are allowed", images.len()));
    }
    let mut names = BTreeSet::new();
    for (at, image) in images.iter().enumerate() {
        checked(image).map_err(|why| format!("annotation {IMAGES}: [{at}].{why}"))?;
        if !names.insert(&image.name) {
            return Err(format!("annotation {IMAGES}: [{at}].name {:?} is defined twice", image.name));
        }
    }
    Ok(images)
}

fn checked(image: &WantedImage) -> Result<(), String> {
    let fits = |text: &str| !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
    if !fits(&image.name) || image.name.len() > 255 {
        return Err("name: use 1 to 255 characters".to_owned());
    }
    let rest = image.url.strip_prefix("https://").or_else(|| image.url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    // Annotations are no place for passwords.
    if !fits(&image.url) || host.is_empty() || host.contains('@') {
        return Err("url: use a URL of http or https without a user".to_owned());
    }
    if !FORMATS.contains(&image.disk_format.as_str()) {
        return Err(format!("diskFormat {:?}: use one of {}", image.disk_format, FORMATS.join(", ")));
    }
    let pairs = image.properties.iter();
    if image.properties.len() > MOST
        || !pairs.clone().all(|(name, value)| fits(name) && value.len() <= LONGEST)
    {
        return Err(format!("properties: use at most {MOST}, of at most {LONGEST} characters"));
    }
    if let Some((name, _)) = pairs.clone().find(|(name, _)| OWN.contains(&name.as_str())) {
        return Err(format!("properties.{name}: remove it: it is set by Capstan or Glance"));
    }
    if image.tags.len() > MOST || !image.tags.iter().all(|tag| fits(tag) && tag.len() <= 255) {
        return Err(format!("tags: use at most {MOST}, of 1 to 255 characters"));
    }
    Ok(())
}

/// Ids of the registered images by name.
fn recorded(meta: &ObjectMeta) -> BTreeMap<String, String> {
    meta.annotations.get(REGISTERED).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn record(meta: &mut ObjectMeta, images: &BTreeMap<String, String>) {
    match serde_json::to_string(images) {
        Ok(text) if !images.is_empty() => drop(meta.annotations.insert(REGISTERED.to_owned(), text)),
        _ => drop(meta.annotations.remove(REGISTERED)),
    }
}
