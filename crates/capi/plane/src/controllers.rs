//! The controllers and their settings.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_addons::cluster_resource_set::ClusterResourceSetController;
use capstan_capi_addons::cluster_resource_set_binding::ClusterResourceSetBindingController;
use capstan_capi_core::cluster::ClusterController;
use capstan_capi_core::machine::{self, MachineController};
use capstan_capi_core::machine_deployment::MachineDeployments;
use capstan_capi_core::machine_health_check::MachineHealthChecks;
use capstan_capi_core::machine_pool::MachinePools;
use capstan_capi_core::machine_set::MachineSets;
use capstan_capi_core::workload::Nodes;
use capstan_capi_kubeadm::bootstrap::{self, BootstrapController};
use capstan_capi_kubeadm::certificates::{Keys, Purpose, SystemKeys};
use capstan_capi_kubeadm::cluster_kubeconfig::ClusterKubeconfigs;
use capstan_capi_kubeadm::control_plane::{self, ControlPlaneController};
use capstan_capi_runtime::{ExtensionConfigs, Extensions, InPlaceUpdates};
use capstan_capi_topology::cluster::ClusterTopologies;
use capstan_capi_topology::cluster_class::ClusterClasses;
use capstan_capi_types::bootstrap::EncryptionAlgorithmType;
use capstan_capi_types::core::{annotation, label};
use capstan_controller::{Client, Clusters, Dial, Env, Options, Runtime, Workloads};
use capstan_object::Key;

use crate::extensions::over_https;

/// Controllers that run together: what upstream ships as one manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Clusters, their classes and extensions, machines, their sets, deployments, pools and health checks.
    Core,
    /// Bootstrap data for kubeadm.
    Bootstrap,
    /// Control planes of kubeadm machines.
    ControlPlane,
    /// ClusterResourceSets.
    Addons,
    /// Infrastructure providers; they are not in this crate.
    Infrastructure,
}

#[derive(Debug, thiserror::Error)]
#[error("unknown controllers {0:?}: choose among core, bootstrap, control-plane, addons, infrastructure")]
pub struct UnknownGroup(String);

impl Group {
    pub const ALL: [Self; 5] =
        [Self::Core, Self::Bootstrap, Self::ControlPlane, Self::Addons, Self::Infrastructure];

    /// The group that reconciles the kinds of an API group.
    pub fn of_kind(api_group: &str) -> Option<Self> {
        match api_group {
            "cluster.x-k8s.io" | "ipam.cluster.x-k8s.io" | "runtime.cluster.x-k8s.io" => Some(Self::Core),
            "addons.cluster.x-k8s.io" => Some(Self::Addons),
            "bootstrap.cluster.x-k8s.io" => Some(Self::Bootstrap),
            "controlplane.cluster.x-k8s.io" => Some(Self::ControlPlane),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Bootstrap => "bootstrap",
            Self::ControlPlane => "control-plane",
            Self::Addons => "addons",
            Self::Infrastructure => "infrastructure",
        }
    }
}

impl FromStr for Group {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Self, UnknownGroup> {
        Self::ALL.into_iter().find(|group| group.name() == name).ok_or_else(|| UnknownGroup(name.to_owned()))
    }
}

#[derive(Clone)]
pub struct Settings {
    pub controllers: BTreeSet<Group>,
    /// Reconcile only this namespace; all if empty.
    pub namespace: String,
    /// Reconcile only objects whose watch-filter label has this value.
    pub watch_filter: Option<String>,
    /// Default key algorithm of clusters.
    pub default_algorithm: EncryptionAlgorithmType,
    /// Lifetime of bootstrap tokens. Those of pools are replaced as long as the pool exists.
    pub token_ttl: Duration,
    pub machine: machine::Settings,
    /// Source of keys.
    pub keys: Arc<dyn Keys>,
    /// Calls to extension servers.
    pub extensions: Arc<Extensions>,
    /// Concurrent reconciles per controller.
    pub concurrency: usize,
    /// Name of this process in events.
    pub instance: String,
}

impl Default for Settings {
    fn default() -> Self {
        let options = Options::default();
        Self {
            controllers: Group::ALL.into(),
            namespace: options.namespace,
            watch_filter: None,
            default_algorithm: bootstrap::Settings::default().default_algorithm,
            token_ttl: bootstrap::Settings::default().token_ttl,
            machine: machine::Settings::default(),
            keys: Arc::new(SystemKeys),
            extensions: over_https(Env::system(), None),
            concurrency: options.concurrency,
            instance: options.instance,
        }
    }
}

/// Options of the controller runtime.
pub fn options(settings: &Settings) -> Options {
    Options {
        namespace: settings.namespace.clone(),
        watch_filter: settings.watch_filter.clone().map(|value| (label::WATCH_FILTER.to_owned(), value)),
        pause_annotation: Some(annotation::PAUSED.to_owned()),
        concurrency: settings.concurrency,
        cluster_label: Some(label::CLUSTER_NAME.to_owned()),
        instance: settings.instance.clone(),
        ..Options::default()
    }
}

/// The workload clusters of a management cluster, by their kubeconfig Secrets.
pub fn workloads(management: Client, dial: Arc<dyn Dial>, env: Env) -> Arc<dyn Workloads> {
    let kubeconfig = |cluster: &Key| {
        let secret = Purpose::Kubeconfig.secret_name(&cluster.name);
        (Key::new(cluster.namespace.as_str(), secret), "value")
    };
    Arc::new(Clusters::new(management, kubeconfig, dial, env, "capstan"))
}

/// Adds the enabled controllers.
pub fn add_controllers(runtime: &mut Runtime, settings: &Settings) {
    let runs = |group: Group| settings.controllers.contains(&group);
    // One for each controller: each retries its own objects.
    let updater = || Arc::new(InPlaceUpdates::new(settings.extensions.clone()));
    // Nodes of a workload cluster are watched once per process.
    let nodes = Nodes::new();
    if runs(Group::Core) {
        runtime.add(ClusterController::new().sharing(nodes.clone()));
        runtime.add(MachineController::new(nodes.clone(), settings.machine.clone()).updating(updater()));
        runtime.add(MachineSets);
        runtime.add(MachineDeployments::default().updating(updater()));
        runtime.add(MachinePools::new(nodes.clone()));
        runtime.add(MachineHealthChecks::new(nodes.clone()));
        runtime.add(ClusterKubeconfigs::new(settings.default_algorithm, settings.keys.clone()));
        runtime.add(ExtensionConfigs::new(settings.extensions.clone()));
        runtime.add(ClusterClasses::new(settings.extensions.clone()));
        runtime.add(ClusterTopologies::new(settings.extensions.clone()));
    }
    if runs(Group::Bootstrap) {
        let settings_of = bootstrap::Settings {
            default_algorithm: settings.default_algorithm,
            token_ttl: settings.token_ttl,
        };
        runtime.add(BootstrapController::new(settings_of, settings.keys.clone()));
    }
    if runs(Group::ControlPlane) {
        let settings_of = control_plane::Settings {
            default_algorithm: settings.default_algorithm,
            ..control_plane::Settings::default()
        };
        let controller = ControlPlaneController::new(settings_of, settings.keys.clone());
        runtime.add(controller.sharing(nodes).updating(updater()));
    }
    if runs(Group::Addons) {
        runtime.add(ClusterResourceSetController::default());
        runtime.add(ClusterResourceSetBindingController);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_names_round_trip() {
        for group in Group::ALL {
            assert_eq!(group.name().parse::<Group>().ok(), Some(group));
        }
        assert!("cores".parse::<Group>().is_err());
    }
}
