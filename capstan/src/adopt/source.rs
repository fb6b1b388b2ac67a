//! Where clusters come from: an export in files, or a live management cluster. Only reads.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capstan_controller::KindName;
use capstan_object::{Key, Scope};
use capstan_provider_kit::FrontEnd;
use serde_json::Value;

use super::refs::text;
use crate::apply::read_all;
use crate::connection::{ConnectionArgs, Management, is_unreachable};
use crate::kinds::{list, served_kinds};
use crate::plugins::Plugins;

/// The objects of an export. Those without a namespace are in `namespace`.
pub fn export(path: &Path, namespace: &str) -> Result<Vec<Value>> {
    let mut objects = read_all(&[path.to_owned()])?;
    for object in &mut objects {
        if text(object, "metadata.namespace").is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
    }
    Ok(objects)
}

/// A live management cluster.
pub struct Live {
    management: Management,
    pub kubeconfig: PathBuf,
}

impl Live {
    pub fn open(kubeconfig: &Path, namespace: &str, plugins: &Plugins) -> Result<Self> {
        let arguments = ConnectionArgs {
            kubeconfig: Some(kubeconfig.to_owned()),
            data_dir: None,
            namespace: namespace.to_owned(),
        };
        let management = arguments.open(plugins).context("--from-kubeconfig")?;
        Ok(Self { management, kubeconfig: kubeconfig.to_owned() })
    }

    /// `host:port` of its server.
    pub fn server(&self) -> &str {
        &self.management.authority
    }

    pub fn namespace(&self) -> &str {
        &self.management.namespace
    }

    /// All objects of its namespace that may belong to clusters.
    pub async fn objects(&self) -> Result<Vec<Value>> {
        let client = &self.management.client;
        let kinds =
            served_kinds(client).await.map_err(anyhow::Error::from).map_err(|error| self.failed(error));
        let mut kinds: Vec<KindName> = kinds?.into_iter().map(|served| served.kind).collect();
        kinds.push(secrets());
        kinds.push(KindName::namespaced("", "v1", "ConfigMap", "configmaps"));
        let mut all = Vec::new();
        for kind in kinds.iter().filter(|kind| kind.scope == Scope::Namespaced) {
            let found = list(client, kind, self.namespace()).await;
            all.extend(found.with_context(|| format!("cannot list {kind} of the old management cluster"))?);
        }
        Ok(all)
    }

    /// What clusters are generated from, of all namespaces; none of kinds that it does not have.
    pub async fn manifests(&self) -> Result<Vec<Value>> {
        let client = &self.management.client;
        let mut all = Vec::new();
        for kind in manifest_kinds(&self.management).await? {
            let found = list(client, &kind, "").await;
            all.extend(found.with_context(|| format!("cannot list {kind} of the old management cluster"))?);
        }
        Ok(all)
    }

    /// A Secret of any namespace.
    pub async fn secret(&self, key: &Key) -> Result<Option<Value>> {
        let found = self.management.client.get_raw(&secrets(), key).await;
        let found =
            found.with_context(|| format!("cannot read Secret {key} of the old management cluster"))?;
        Ok(found.map(|found| found.parse()).transpose()?)
    }

    /// A Cluster; `None` if it is gone.
    pub async fn cluster(&self, key: &Key) -> Result<Option<Value>> {
        let client = &self.management.client;
        let kinds =
            served_kinds(client).await.map_err(anyhow::Error::from).map_err(|error| self.failed(error))?;
        let cluster = kinds.into_iter().map(|served| served.kind);
        let Some(kind) =
            cluster.into_iter().find(|kind| kind.kind == "Cluster" && kind.group == super::refs::GROUPS)
        else {
            bail!("the server at {} does not have the kind Cluster of Cluster API", self.server());
        };
        let found = client.get_raw(&kind, key).await?;
        Ok(found.map(|found| found.parse()).transpose()?)
    }

    fn failed(&self, error: anyhow::Error) -> anyhow::Error {
        let server = self.server();
        let what = match is_unreachable(&error) {
            true => format!("the old management cluster at {server} cannot be reached"),
            false => format!("cannot list the kinds of the old management cluster at {server}"),
        };
        error.context(what)
    }
}

/// The kinds of front ends that a management cluster has.
pub async fn manifest_kinds(management: &Management) -> Result<Vec<KindName>> {
    let mut kinds = Vec::new();
    for kind in super::front_ends(&management.plugins).flat_map(FrontEnd::kinds) {
        match management.client.served(&kind.api_version(), &kind.kind).await {
            Err(error) if error.is_not_found() => {}
            served => kinds.extend(served?),
        }
    }
    Ok(kinds)
}

fn secrets() -> KindName {
    KindName::namespaced("", "v1", "Secret", "secrets")
}
