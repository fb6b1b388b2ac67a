//! The server that a command is about, and the objects of a cluster on it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capstan_capi_types::core::Cluster;
use capstan_controller::{Access, ApiError, Client, Env, KindName, List, ListOptions, Remote, TcpDial};
use capstan_object::{Key, Object as _};
use capstan_view::{Part, Tree};
use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;

/// Groups that Cluster API and its providers live in end so.
const GROUPS: &str = "cluster.x-k8s.io";

/// Which server, and where on it.
#[derive(Debug, clap::Args)]
pub struct Reach {
    /// Kubeconfig of the management cluster; a server writes `admin.kubeconfig` into its data directory
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Namespace of the cluster
    #[arg(long, short, default_value = "default")]
    namespace: String,
}

impl Reach {
    /// The tree of a cluster as it is now.
    pub fn tree(&self, cluster: &str) -> Result<Tree> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(self.fetch(cluster))
    }

    async fn fetch(&self, name: &str) -> Result<Tree> {
        let access = Access::from_file(&self.kubeconfig)
            .with_context(|| format!("{} does not lead to a server", self.kubeconfig.display()))?;
        let client =
            Client::new(Arc::new(Remote::new(access, Arc::new(TcpDial), &Env::system())?), "capstan");
        let found = client.get::<Cluster>(&Key::new(&self.namespace, name)).await;
        let Some(cluster) = found.context("the cluster cannot be read")? else {
            bail!(
                "there is no Cluster {name} in namespace {}; `kubectl get clusters -A` lists those there are",
                self.namespace
            );
        };
        let kinds = kinds(&client).await.context("the kinds of the server cannot be listed")?;
        let lists = try_join_all(kinds.iter().map(|kind| self.list(&client, kind))).await?;
        let parts = lists.iter().flatten().filter_map(Part::of).collect();
        Tree::below(&cluster.metadata().uid, parts).context("the cluster went while it was looked at")
    }

    /// All objects of a kind, each with its kind, which lists leave out.
    async fn list(&self, client: &Client, kind: &KindName) -> Result<Vec<Value>, ApiError> {
        let mut options = ListOptions { limit: Some(500), ..ListOptions::default() };
        let mut all = Vec::new();
        loop {
            let page: List<Value> = client.list(kind, &self.namespace, &options).await?;
            all.extend(page.items.into_iter().map(|mut item| {
                item["kind"] = kind.kind.as_ref().into();
                item
            }));
            if page.next.is_empty() {
                return Ok(all);
            }
            options.next = page.next;
        }
    }
}

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
struct Resource {
    name: String,
    namespaced: bool,
    kind: String,
    verbs: Vec<String>,
}

/// The kinds of Cluster API and its providers that the server has, each once, in the first version that has it: providers
/// share a group, and not its versions.
async fn kinds(client: &Client) -> Result<Vec<KindName>, ApiError> {
    let groups: Groups = parse(&client.document("/apis").await?)?;
    let mut kinds = BTreeMap::new();
    for Group { name, versions } in groups.groups.into_iter().filter(|group| group.name.ends_with(GROUPS)) {
        for Version { version } in versions {
            let resources: Resources = parse(&client.document(&format!("/apis/{name}/{version}")).await?)?;
            for resource in resources.resources {
                if resource.namespaced && resource.verbs.iter().any(|verb| verb == "list") {
                    let kind = KindName::namespaced(&name, &version, &resource.kind, &resource.name);
                    kinds.entry((name.clone(), resource.kind)).or_insert(kind);
                }
            }
        }
    }
    Ok(kinds.into_values().collect())
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(ApiError::Decode)
}
