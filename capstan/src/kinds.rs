//! The kinds of Cluster API and its providers that a server has, by discovery.

use std::collections::BTreeMap;

use capstan_capi_types::core::Cluster;
use capstan_controller::{ApiError, Client, KindName, List, ListOptions};
use serde::Deserialize;
use serde_json::Value;

/// Suffix of the API groups of Cluster API and its providers.
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

/// A kind and its other names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedKind {
    pub kind: KindName,
    /// Singular and short names.
    pub aliases: Vec<String>,
}

impl ServedKind {
    /// Whether `word` names this kind: plural, kind, `plural.group`, singular or short name.
    pub fn is(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        word == self.kind.plural
            || word == self.kind.kind.to_lowercase()
            || word == self.kind.to_string()
            || self.aliases.contains(&word)
    }
}

/// The namespaced kinds, each in the first version that has it: providers share a group but not its versions.
pub async fn served_kinds(client: &Client) -> Result<Vec<ServedKind>, ApiError> {
    let groups: Groups = parse(&client.document("/apis").await?)?;
    let mut kinds = BTreeMap::new();
    for Group { name, versions } in groups.groups.into_iter().filter(|group| group.name.ends_with(GROUPS)) {
        for Version { version } in versions {
            let resources: Resources = parse(&client.document(&format!("/apis/{name}/{version}")).await?)?;
            for resource in resources.resources {
                if resource.namespaced && resource.verbs.iter().any(|verb| verb == "list") {
                    let kind = KindName::namespaced(&name, &version, &resource.kind, &resource.name);
                    let aliases = [resource.singular_name].into_iter().chain(resource.short_names).collect();
                    kinds.entry((name.clone(), resource.kind)).or_insert(ServedKind { kind, aliases });
                }
            }
        }
    }
    Ok(kinds.into_values().collect())
}

/// All objects of a kind in a namespace (all namespaces if empty), with `apiVersion` and `kind`, which lists omit.
pub async fn list(client: &Client, kind: &KindName, namespace: &str) -> Result<Vec<Value>, ApiError> {
    list_matching(client, kind, namespace, "").await
}

/// Clusters of all namespaces; of one namespace without the permission to list all.
pub async fn clusters(client: &Client, namespace: &str) -> Result<Vec<Value>, ApiError> {
    let kind = KindName::of::<Cluster>();
    match list(client, &kind, "").await {
        Err(ApiError::Status { code: 403, .. }) => list(client, &kind, namespace).await,
        found => found,
    }
}

/// Like [`list`], of objects that match a label selector.
pub async fn list_matching(
    client: &Client,
    kind: &KindName,
    namespace: &str,
    selector: &str,
) -> Result<Vec<Value>, ApiError> {
    let mut options = ListOptions { limit: Some(500), labels: selector.to_owned(), ..ListOptions::default() };
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

/// The name of the cluster that an object of Cluster API says it belongs to.
pub fn cluster_of(object: &Value) -> Option<&str> {
    let label = object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"].as_str();
    let group =
        object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    let is_cluster_api = group.is_some_and(|group| group.ends_with(GROUPS));
    let field = is_cluster_api.then(|| object["spec"]["clusterName"].as_str()).flatten();
    label.or(field).filter(|name| !name.is_empty())
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(ApiError::Decode)
}
