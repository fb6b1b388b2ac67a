//! Discovery: the legacy documents under `/api` and `/apis`, and aggregated discovery (`apidiscovery.k8s.io/v2`) in
//! one document.

mod aggregated;
mod document;
mod legacy;
mod order;
mod version;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

pub use document::{Document, hash};
pub use order::{compare_groups, compare_versions, group_priority};
pub use version::{GIT_VERSION, version};

use crate::registry::{Group, Registry, Resource, api_version};

/// `Content-Type` of aggregated discovery.
pub const AGGREGATED_MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The discovery documents of one server, rendered on the first request after each change of the registry.
#[derive(Debug, Default)]
pub struct Discovery {
    pages: Mutex<Option<Arc<Pages>>>,
}

#[derive(Debug)]
pub struct Pages {
    registry: Arc<Registry>,
    aggregated_core: OnceLock<Arc<Document>>,
    aggregated_groups: OnceLock<Arc<Document>>,
    groups: OnceLock<Bytes>,
}

impl Discovery {
    pub fn pages(&self, registry: &Arc<Registry>) -> Arc<Pages> {
        let mut pages = self.pages.lock();
        match &*pages {
            Some(current) if Arc::ptr_eq(&current.registry, registry) => current.clone(),
            _ => pages.insert(Arc::new(Pages::new(registry.clone()))).clone(),
        }
    }
}

impl Pages {
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            aggregated_core: OnceLock::new(),
            aggregated_groups: OnceLock::new(),
            groups: OnceLock::new(),
        }
    }

    /// `/api`; `address` is the host and port of the server as clients see it.
    pub fn core_versions(&self, address: &str) -> Bytes {
        render(&legacy::core_versions(address))
    }

    /// `/apis`.
    pub fn groups(&self) -> Bytes {
        self.groups.get_or_init(|| render(&legacy::groups(&self.registry.groups))).clone()
    }

    /// `/apis/<group>`, if the group is served.
    pub fn group(&self, name: &str) -> Option<Bytes> {
        let group = self.registry.groups.iter().find(|group| group.name == name && !name.is_empty())?;
        Some(render(&legacy::group(group)))
    }

    /// `/api/<version>` (with an empty group) and `/apis/<group>/<version>`, if served.
    pub fn resources(&self, group: &str, version: &str) -> Option<Bytes> {
        let resources = self.registry.resources.get(&(group.to_owned(), version.to_owned()))?;
        Some(render(&legacy::resources(group, &api_version(group, version), resources)))
    }

    /// `/api` as aggregated discovery.
    pub fn aggregated_core(&self) -> Arc<Document> {
        self.aggregated_core
            .get_or_init(|| {
                let core = self.registry.groups.iter().filter(|group| group.name.is_empty());
                Document::shared(render(&aggregated::list(&self.registry, core)).into())
            })
            .clone()
    }

    /// `/apis` as aggregated discovery.
    pub fn aggregated_groups(&self) -> Arc<Document> {
        self.aggregated_groups
            .get_or_init(|| {
                let mut named: Vec<&Group> =
                    self.registry.groups.iter().filter(|group| !group.name.is_empty()).collect();
                named.sort_by(|a, b| compare_groups(&a.name, &b.name));
                Document::shared(render(&aggregated::list(&self.registry, named.into_iter())).into())
            })
            .clone()
    }
}

/// Subresources in order: built-in ones by name, custom ones with `status` before `scale`.
fn listed_subresources(resource: &Resource) -> Vec<&crate::registry::Subresource> {
    let mut subresources: Vec<_> = resource.subresources.iter().collect();
    if resource.custom().is_some() {
        subresources.sort_by_key(|subresource| subresource.name != "status");
    } else {
        subresources.sort_by(|a, b| a.name.cmp(&b.name));
    }
    subresources
}

fn render(value: &serde_json::Value) -> Bytes {
    crate::reply::line(value)
}

#[cfg(test)]
mod tests;
