//! `CloudStackMachineConfig`: reports whether the clusters that use a config have taken it up.
//!
//! Owns: the status. Reads: the clusters that use the config, and the other configs of these. A changed config changes
//! machines without a change of any Cluster, so tools that wait for what they applied have to be held up by the config.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_controller::{Controller, Decision, GATHER, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};

use crate::cluster::{BY_MACHINE_CONFIG, machine_configs_of};
use crate::names::{annotation, is_set};
use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster};

#[derive(Default)]
pub struct MachineConfigs;

/// A cluster that uses the config.
#[derive(Debug)]
pub struct User {
    pub cluster: Arc<Cluster>,
    /// Sum of the generations of everything that the cluster refers to, as it is now.
    pub generations: i64,
}

impl Controller for MachineConfigs {
    const NAME: &'static str = "lifecycle-machine-config";
    type Kind = CloudStackMachineConfig;
    type Seen = Vec<User>;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<CloudStackMachineConfig>) {
        watches.index::<Cluster>(BY_MACHINE_CONFIG, machine_configs_of);
        watches.read::<CloudStackDatacenterConfig>();
        watches.related_within::<Cluster>(GATHER, |change, _| {
            let configs = change.both().flat_map(|cluster| {
                let namespace = cluster.metadata.namespace.as_str();
                cluster.machine_configs().into_iter().map(move |name| Key::new(namespace, name))
            });
            configs.collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &["Ready"]
    }

    fn paused(&self, object: &CloudStackMachineConfig, _: &View) -> Result<Option<String>, ObserveError> {
        let paused = is_set(&object.metadata, annotation::PAUSED);
        Ok(paused.then(|| format!("it has the annotation {}", annotation::PAUSED)))
    }

    async fn observe(
        &self,
        object: &Arc<CloudStackMachineConfig>,
        view: &View,
    ) -> Result<Vec<User>, ObserveError> {
        let clusters = view.indexed::<Cluster>(BY_MACHINE_CONFIG, &object.key().to_string())?;
        let mut users = Vec::with_capacity(clusters.len());
        for cluster in clusters {
            let namespace = cluster.metadata.namespace.as_str();
            let datacenter = Key::new(namespace, cluster.spec.datacenter_ref.name.as_str());
            let datacenter = view.get::<CloudStackDatacenterConfig>(&datacenter)?;
            let mut generations = datacenter.map_or(0, |datacenter| datacenter.metadata.generation);
            for name in cluster.machine_configs() {
                let config = view.get::<CloudStackMachineConfig>(&Key::new(namespace, name))?;
                generations += config.map_or(0, |config| config.metadata.generation);
            }
            users.push(User { cluster, generations });
        }
        Ok(users)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}
