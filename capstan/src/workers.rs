//! The workers of a cluster: its MachineDeployments and MachinePools.

use anyhow::{Result, anyhow};
use capstan_capi_types::core::{MachineDeployment, MachinePool, label};
use capstan_controller::{KindName, ListOptions};
use capstan_object::{Object, ObjectMeta};

use crate::connection::{Management, missing};

/// A MachineDeployment or MachinePool.
#[derive(Debug, Clone)]
pub struct WorkerGroup {
    pub kind: KindName,
    pub name: String,
    pub replicas: i32,
    /// In its spec; may be empty.
    pub version: String,
    /// The annotation by which an autoscaler manages it.
    pub autoscaled: Option<String>,
    /// Versions of nodes that joined and that no Machine stands for.
    pub unlisted: Vec<String>,
}

/// A MachinePool with this annotation has its number of machines from elsewhere.
const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";

impl WorkerGroup {
    pub fn of_deployment(deployment: &MachineDeployment) -> Self {
        let spec = &deployment.spec;
        Self::new(&deployment.metadata, spec.replicas, &spec.template.spec.version, deployment)
    }

    pub fn of_pool(pool: &MachinePool) -> Self {
        let spec = &pool.spec;
        let group = Self::new(&pool.metadata, spec.replicas, &spec.template.spec.version, pool);
        // Not all providers of pools keep Machines. Older managers do not report versions.
        let unlisted: Vec<String> = match pool.status.versions.as_slice() {
            [] if pool.status.node_refs.is_empty() => Vec::new(),
            [] => vec![group.version.clone()],
            versions => versions.iter().map(|it| it.version.clone()).collect(),
        };
        let managed = pool.metadata.annotations.contains_key(REPLICAS_MANAGED_BY);
        let autoscaled = group.autoscaled.clone().or_else(|| managed.then(|| REPLICAS_MANAGED_BY.to_owned()));
        Self { unlisted, autoscaled, ..group }
    }

    fn new<T: Object>(meta: &ObjectMeta, replicas: Option<i32>, version: &str, _: &T) -> Self {
        Self {
            kind: KindName::of::<T>(),
            name: meta.name.clone(),
            replicas: replicas.unwrap_or(1),
            version: version.to_owned(),
            autoscaled: meta.annotations.keys().find(|key| key.contains("autoscaler-node-group")).cloned(),
            unlisted: Vec::new(),
        }
    }

    pub fn is_pool(&self) -> bool {
        self.kind.kind == MachinePool::KIND.kind
    }

    /// Such as `machinepool/demo-workers`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind.kind.to_lowercase(), self.name)
    }

    /// Whether a Machine with these labels is one of it.
    pub fn has(&self, machine: &ObjectMeta) -> bool {
        let (label, name) = match self.is_pool() {
            true => (label::POOL_NAME, label::value(&self.name)),
            false => (label::DEPLOYMENT_NAME, self.name.clone()),
        };
        machine.labels.get(label) == Some(&name)
    }
}

pub async fn deployments(management: &Management, cluster: &str) -> Result<Vec<MachineDeployment>> {
    let all: Vec<MachineDeployment> =
        management.client.list_all(&management.namespace, &ListOptions::default()).await?;
    Ok(all.into_iter().filter(|deployment| deployment.spec.cluster_name == cluster).collect())
}

/// All workers of a cluster, deployments first.
pub async fn groups(management: &Management, cluster: &str) -> Result<Vec<WorkerGroup>> {
    let mut groups: Vec<WorkerGroup> =
        deployments(management, cluster).await?.iter().map(WorkerGroup::of_deployment).collect();
    let options = ListOptions::default();
    let pools: Vec<MachinePool> = match management.client.list_all(&management.namespace, &options).await {
        // Upstream serves the kind only behind a flag.
        Err(error) if error.is_not_found() => Vec::new(),
        pools => pools?,
    };
    let own = pools.iter().filter(|pool| pool.spec.cluster_name == cluster);
    groups.extend(own.map(WorkerGroup::of_pool));
    Ok(groups)
}

/// The one of this name, in full or without the prefix of the cluster.
pub fn named<'a, T>(
    cluster: &str,
    namespace: &str,
    what: &str,
    all: &'a [T],
    name_of: impl Fn(&T) -> &str,
    name: &str,
) -> Result<&'a T> {
    let full_name = format!("{cluster}-{name}");
    let find = |name: &str| all.iter().find(|one| name_of(one) == name);
    find(name).or_else(|| find(&full_name)).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(&name_of).collect();
        anyhow!(missing(&format!("{what} of cluster {cluster}"), name, namespace, &names))
    })
}

/// The MachineDeployment of this name, in full or without the prefix of the cluster.
pub fn named_deployment<'a>(
    cluster: &str,
    namespace: &str,
    all: &'a [MachineDeployment],
    name: &str,
) -> Result<&'a MachineDeployment> {
    named(cluster, namespace, "machinedeployment", all, |it| &it.metadata.name, name)
}
