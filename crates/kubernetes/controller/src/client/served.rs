//! Which kinds a server has.

use capstan_object::Scope;
use serde::Deserialize;

use super::{ApiError, Client};
use crate::KindName;

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
}

impl Client {
    /// The names of a kind, as the server has it; `None` if that version has no such kind.
    pub async fn served(&self, api_version: &str, kind: &str) -> Result<Option<KindName>, ApiError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{api_version}") };
        let bytes = self.document(&path).await?;
        let served: Resources = serde_json::from_slice(&bytes).map_err(ApiError::Decode)?;
        let is_it = |resource: &Resource| resource.kind == kind && !resource.name.contains('/');
        Ok(served.resources.into_iter().find(is_it).map(|found| KindName {
            scope: if found.namespaced { Scope::Namespaced } else { Scope::Cluster },
            ..KindName::namespaced(group, version, kind, found.name)
        }))
    }
}
