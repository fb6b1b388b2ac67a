//! The kinds of Cluster API and its providers that a server has, found by asking it.

use std::collections::BTreeMap;

use capstan_controller::{ApiError, Client, KindName, List, ListOptions};
use serde::Deserialize;
use serde_json::Value;

/// Groups that Cluster API and its providers live in end so.
const GROUPS: &str = "cluster.x-k8s.io";

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    /// The preferred one first, as servers list them.
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    short_names: Vec<String>,
    namespaced: bool,
    kind: String,
    verbs: Vec<String>,
}

/// A kind and the names that people have for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The kind, in the first version that has it.
    pub kind: KindName,
    /// Singular and short names.
    pub aliases: Vec<String>,
}

impl Known {
    /// Whether somebody means this kind.
    pub fn is(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        word == self.kind.plural
            || word == self.kind.kind.to_lowercase()
            || word == self.kind.to_string()
            || self.aliases.contains(&word)
    }
}

/// The namespaced kinds, each once, in the first version that has it: providers share a group, and not its versions.
pub async fn known(client: &Client) -> Result<Vec<Known>, ApiError> {
    let groups: Groups = parse(&client.document("/apis").await?)?;
    let mut kinds = BTreeMap::new();
    for Group { name, versions } in groups.groups.into_iter().filter(|group| group.name.ends_with(GROUPS)) {
        for Version { version } in versions {
            let resources: Resources = parse(&client.document(&format!("/apis/{name}/{version}")).await?)?;
            for resource in resources.resources {
                if resource.namespaced && resource.verbs.iter().any(|verb| verb == "list") {
                    let kind = KindName::namespaced(&name, &version, &resource.kind, &resource.name);
                    let aliases = [resource.singular_name].into_iter().chain(resource.short_names).collect();
                    kinds.entry((name.clone(), resource.kind)).or_insert(Known { kind, aliases });
                }
            }
        }
    }
    Ok(kinds.into_values().collect())
}

/// All objects of a kind in a namespace, or in all of them, each with its kind, which lists leave out.
pub async fn list(client: &Client, kind: &KindName, namespace: &str) -> Result<Vec<Value>, ApiError> {
    let mut options = ListOptions { limit: Some(500), ..ListOptions::default() };
    let mut all = Vec::new();
    loop {
        let page: List<Value> = client.list(kind, namespace, &options).await?;
        all.extend(page.items.into_iter().map(|mut item| {
            item["apiVersion"] = kind.api_version().into();
            item["kind"] = kind.kind.as_ref().into();
            item
        }));
        if page.next.is_empty() {
            return Ok(all);
        }
        options.next = page.next;
    }
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(ApiError::Decode)
}
