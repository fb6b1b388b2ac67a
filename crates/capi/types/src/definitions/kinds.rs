//! Names, labels, columns and subresources of each kind.

use capstan_object::Object;
use capstan_object::kstatus::condition::RECONCILING;

use super::{CLUSTER_LABEL, CLUSTERCTL, Column, Definition, Version, age, boolean, integer, paused, text};
use crate::addons::{ClusterResourceSet, ClusterResourceSetBinding};
use crate::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use crate::clusterctl::Provider;
use crate::controlplane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use crate::core::{
    Cluster, ClusterClass, Machine, MachineDeployment, MachineDrainRule, MachineHealthCheck, MachinePool,
    MachineSet,
};
use crate::ipam::{IPAddress, IPAddressClaim};
use crate::runtime::ExtensionConfig;
use crate::{v1alpha1, v1beta1};

const CORE: &[(&str, &str)] = &[CLUSTERCTL, ("cluster.x-k8s.io/provider", "cluster-api")];
/// Contract label: which API version follows which contract.
const BOOTSTRAP: &[(&str, &str)] = &[
    CLUSTERCTL,
    ("cluster.x-k8s.io/provider", "bootstrap-kubeadm"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1beta2"),
];
const CONTROL_PLANE: &[(&str, &str)] = &[
    CLUSTERCTL,
    ("cluster.x-k8s.io/provider", "control-plane-kubeadm"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1beta2"),
];
const INVENTORY: &[(&str, &str)] = &[CLUSTERCTL, ("clusterctl.cluster.x-k8s.io/core", "inventory")];

const AVAILABLE: &str = r#".status.conditions[?(@.type=="Available")].status"#;
const VARIABLES_READY: &str = r#".status.conditions[?(@.type=="VariablesReady")].status"#;
const CLUSTER_CLASS_OWNER: &str = r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#;

fn definition<T: Object>(
    short_names: &'static [&'static str],
    labels: &'static [(&'static str, &'static str)],
    versions: Vec<Version>,
) -> Definition {
    Definition { kind: T::KIND, short_names, labels, versions }
}

pub(super) fn all() -> Vec<Definition> {
    let mut all = core();
    all.extend(kubeadm());
    all.extend(addons());
    all.extend(addresses());
    all.push(extensions());
    all.push(definition::<Provider>(
        &[],
        INVENTORY,
        vec![Version::of::<Provider>(vec![
            age(),
            text("Type", ".type"),
            text("Provider", ".providerName"),
            text("Version", ".version"),
        ])],
    ));
    all
}

fn core() -> Vec<Definition> {
    let cluster = Version::of::<Cluster>(vec![
        text("ClusterClass", ".spec.topology.classRef.name"),
        text("Available", AVAILABLE),
        integer("CP Desired", ".status.controlPlane.desiredReplicas"),
        integer("CP Current", ".status.controlPlane.replicas").wide(),
        integer("CP Ready", ".status.controlPlane.readyReplicas").wide(),
        integer("CP Available", ".status.controlPlane.availableReplicas"),
        integer("CP Up-to-date", ".status.controlPlane.upToDateReplicas"),
        integer("W Desired", ".status.workers.desiredReplicas"),
        integer("W Current", ".status.workers.replicas").wide(),
        integer("W Ready", ".status.workers.readyReplicas").wide(),
        integer("W Available", ".status.workers.availableReplicas"),
        integer("W Up-to-date", ".status.workers.upToDateReplicas"),
        paused(),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.topology.version"),
    ]);
    let class_columns = || vec![paused(), text("Variables Ready", VARIABLES_READY), age()];
    let class = Version::of::<ClusterClass>(class_columns());
    let machine = Version::of::<Machine>(vec![
        text("Cluster", ".spec.clusterName"),
        text("Node Name", ".status.nodeRef.name"),
        text("Provider ID", ".spec.providerID").wide(),
        text("Failure domain", ".status.failureDomain"),
        text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#),
        text("Available", AVAILABLE),
        text("Up-to-date", r#".status.conditions[?(@.type=="UpToDate")].status"#),
        text("Internal-IP", r#".status.addresses[?(@.type=="InternalIP")].address"#).wide(),
        text("External-IP", r#".status.addresses[?(@.type=="ExternalIP")].address"#).wide(),
        text("OS-Image", ".status.nodeInfo.osImage").wide(),
        paused(),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.version"),
    ]);
    let machine_set = Version::of::<MachineSet>(vec![
        text("Cluster", ".spec.clusterName"),
        integer("Desired", ".spec.replicas"),
        integer("Current", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        integer("Available", ".status.availableReplicas"),
        integer("Up-to-date", ".status.upToDateReplicas"),
        paused(),
        age(),
        text("Version", ".spec.template.spec.version"),
    ]);
    let machine_deployment = Version::of::<MachineDeployment>(vec![
        text("Cluster", ".spec.clusterName"),
        text("Available", AVAILABLE),
        integer("Desired", ".spec.replicas"),
        integer("Current", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        integer("Available", ".status.availableReplicas"),
        integer("Up-to-date", ".status.upToDateReplicas"),
        paused(),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.template.spec.version"),
    ]);
    let machine_pool = Version::of::<MachinePool>(vec![
        text("Cluster", ".spec.clusterName"),
        integer("Desired", ".spec.replicas"),
        integer("Current", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        integer("Available", ".status.availableReplicas"),
        integer("Up-to-date", ".status.upToDateReplicas"),
        paused(),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.template.spec.version"),
    ]);
    let machine_health_check = Version::of::<MachineHealthCheck>(vec![
        text("Cluster", ".spec.clusterName"),
        integer("Replicas", ".status.expectedMachines"),
        integer("Healthy", ".status.currentHealthy"),
        paused(),
        age(),
    ]);
    let machine_drain_rule = Version::of::<MachineDrainRule>(drain_rule_columns());
    let old = old_core();
    vec![
        definition::<Cluster>(&["cl"], CORE, vec![old.cluster, reconciling(cluster.with_status())]),
        definition::<ClusterClass>(&["cc"], CORE, vec![old.cluster_class, class.with_status()]),
        definition::<Machine>(&["ma"], CORE, vec![old.machine, machine.with_status()]),
        definition::<MachineSet>(
            &["ms"],
            CORE,
            vec![old.machine_set, reconciling(machine_set.with_status().with_scale())],
        ),
        definition::<MachineDeployment>(
            &["md"],
            CORE,
            vec![old.machine_deployment, reconciling(machine_deployment.with_status().with_scale())],
        ),
        definition::<MachinePool>(
            &["mp"],
            CORE,
            vec![old.machine_pool, machine_pool.with_status().with_scale_by_number()],
        ),
        definition::<MachineHealthCheck>(
            &["mhc", "mhcs"],
            CORE,
            vec![old.machine_health_check, machine_health_check.with_status()],
        ),
        definition::<MachineDrainRule>(&[], CORE, vec![old.machine_drain_rule, machine_drain_rule]),
    ]
}

/// A version whose controller reports unfinished work as condition `Reconciling`.
fn reconciling(version: Version) -> Version {
    version.pending(RECONCILING, "True")
}

fn drain_rule_columns() -> Vec<Column> {
    vec![text("Behavior", ".spec.drain.behavior"), text("Order", ".spec.drain.order"), age()]
}

/// v1beta1 of the core kinds.
struct OldCore {
    cluster: Version,
    cluster_class: Version,
    machine: Version,
    machine_set: Version,
    machine_deployment: Version,
    machine_pool: Version,
    machine_health_check: Version,
    machine_drain_rule: Version,
}

fn old_core() -> OldCore {
    use v1beta1::core::{Cluster, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet};
    let cluster = Version::of::<Cluster>(vec![
        text("ClusterClass", ".spec.topology.class"),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.topology.version"),
    ]);
    let machine = Version::of::<Machine>(vec![
        text("Cluster", ".spec.clusterName"),
        text("NodeName", ".status.nodeRef.name"),
        text("ProviderID", ".spec.providerID"),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.version"),
    ]);
    let machine_set = Version::of::<MachineSet>(vec![
        text("Cluster", ".spec.clusterName"),
        integer("Desired", ".spec.replicas").wide(),
        integer("Replicas", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        integer("Available", ".status.availableReplicas"),
        age(),
        text("Version", ".spec.template.spec.version"),
    ]);
    let machine_deployment = Version::of::<MachineDeployment>(vec![
        text("Cluster", ".spec.clusterName"),
        integer("Desired", ".spec.replicas").wide(),
        integer("Replicas", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        integer("Updated", ".status.updatedReplicas"),
        integer("Unavailable", ".status.unavailableReplicas"),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.template.spec.version"),
    ]);
    let machine_pool = Version::of::<MachinePool>(vec![
        text("Cluster", ".spec.clusterName"),
        integer("Desired", ".spec.replicas").wide(),
        text("Replicas", ".status.replicas"),
        text("Phase", ".status.phase"),
        age(),
        text("Version", ".spec.template.spec.version"),
    ]);
    let machine_health_check = Version::of::<MachineHealthCheck>(vec![
        text("Cluster", ".spec.clusterName"),
        integer("ExpectedMachines", ".status.expectedMachines"),
        text("MaxUnhealthy", ".spec.maxUnhealthy"),
        integer("CurrentHealthy", ".status.currentHealthy"),
        age(),
    ]);
    // Both versions of this kind are the same.
    let machine_drain_rule =
        Version { name: "v1beta1", ..Version::of::<MachineDrainRule>(drain_rule_columns()) };
    let cluster_class = Version::of::<v1beta1::cluster_class::ClusterClass>(vec![age()]);
    OldCore {
        cluster_class: cluster_class.with_status().deprecated(),
        cluster: cluster.with_status().deprecated(),
        machine: machine.with_status().deprecated(),
        machine_set: machine_set.with_status().with_scale().deprecated(),
        machine_deployment: machine_deployment.with_status().with_scale().deprecated(),
        machine_pool: machine_pool.with_status().with_scale_by_number().deprecated(),
        machine_health_check: machine_health_check.with_status().deprecated(),
        machine_drain_rule: machine_drain_rule.deprecated(),
    }
}

fn kubeadm() -> Vec<Definition> {
    let old_config =
        Version::of::<v1beta1::bootstrap::KubeadmConfig>(vec![text("Cluster", CLUSTER_LABEL), age()]);
    let old_config_template = Version::of::<v1beta1::bootstrap::KubeadmConfigTemplate>(vec![age()]);
    let old_control_plane = Version::of::<v1beta1::controlplane::KubeadmControlPlane>(vec![
        text("Cluster", CLUSTER_LABEL),
        boolean("Initialized", ".status.initialized"),
        boolean("API Server Available", ".status.ready"),
        integer("Desired", ".spec.replicas").wide(),
        integer("Replicas", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        integer("Updated", ".status.updatedReplicas"),
        integer("Unavailable", ".status.unavailableReplicas"),
        age(),
        text("Version", ".spec.version"),
    ]);
    let old_control_plane_template =
        Version::of::<v1beta1::controlplane::KubeadmControlPlaneTemplate>(vec![age()]);
    let config = Version::of::<KubeadmConfig>(vec![
        text("Cluster", CLUSTER_LABEL),
        paused(),
        text("Data secret created", ".status.initialization.dataSecretCreated"),
        age(),
    ]);
    let config_template = Version::of::<KubeadmConfigTemplate>(vec![
        text("ClusterClass", CLUSTER_CLASS_OWNER),
        text("Cluster", r#".metadata.ownerReferences[?(@.kind=="Cluster")].name"#),
        age(),
    ]);
    let control_plane = Version::of::<KubeadmControlPlane>(vec![
        text("Cluster", CLUSTER_LABEL),
        text("Available", AVAILABLE),
        integer("Desired", ".spec.replicas"),
        integer("Current", ".status.replicas"),
        integer("Ready", ".status.readyReplicas"),
        integer("Available", ".status.availableReplicas"),
        integer("Up-to-date", ".status.upToDateReplicas"),
        paused(),
        boolean("Initialized", ".status.initialization.controlPlaneInitialized"),
        age(),
        text("Version", ".spec.version"),
    ]);
    let control_plane_template =
        Version::of::<KubeadmControlPlaneTemplate>(vec![text("ClusterClass", CLUSTER_CLASS_OWNER), age()]);
    vec![
        definition::<KubeadmConfig>(
            &[],
            BOOTSTRAP,
            vec![old_config.with_status().deprecated(), config.with_status()],
        ),
        definition::<KubeadmConfigTemplate>(
            &[],
            BOOTSTRAP,
            vec![old_config_template.deprecated(), config_template],
        ),
        definition::<KubeadmControlPlane>(
            &["kcp"],
            CONTROL_PLANE,
            vec![
                old_control_plane.with_status().with_scale().deprecated(),
                reconciling(control_plane.with_status().with_scale()),
            ],
        ),
        definition::<KubeadmControlPlaneTemplate>(
            &[],
            CONTROL_PLANE,
            vec![old_control_plane_template.deprecated(), control_plane_template],
        ),
    ]
}

fn addons() -> Vec<Definition> {
    let old_set = Version::of::<v1beta1::addons::ClusterResourceSet>(vec![age()]);
    let old_binding = Version::of::<v1beta1::addons::ClusterResourceSetBinding>(vec![age()]);
    let set = Version::of::<ClusterResourceSet>(vec![
        text("Applied", r#".status.conditions[?(@.type=="ResourcesApplied")].status"#),
        paused(),
        age(),
    ]);
    let binding = Version::of::<ClusterResourceSetBinding>(vec![text("Cluster", ".spec.clusterName"), age()]);
    vec![
        definition::<ClusterResourceSet>(
            &[],
            CORE,
            vec![old_set.with_status().deprecated(), set.with_status()],
        ),
        definition::<ClusterResourceSetBinding>(
            &[],
            CORE,
            vec![old_binding.with_status().deprecated(), binding],
        ),
    ]
}

fn addresses() -> Vec<Definition> {
    fn pool() -> [Column; 2] {
        [text("Pool Name", ".spec.poolRef.name"), text("Pool Kind", ".spec.poolRef.kind")]
    }
    let columns = || std::iter::once(text("Address", ".spec.address")).chain(pool()).chain([age()]).collect();
    let address = Version::of::<IPAddress>(columns());
    let old_address = Version::of::<v1beta1::ipam::IPAddress>(columns());
    let columns = || pool().into_iter().chain([age()]).collect();
    let claim = Version::of::<IPAddressClaim>(columns());
    let old_claim = Version::of::<v1beta1::ipam::IPAddressClaim>(columns());
    vec![
        definition::<IPAddress>(&[], CORE, vec![old_address.deprecated(), address]),
        definition::<IPAddressClaim>(
            &[],
            CORE,
            vec![old_claim.with_status().deprecated(), claim.with_status()],
        ),
    ]
}

fn extensions() -> Definition {
    let old = Version::of::<v1alpha1::ExtensionConfig>(vec![age()]);
    let config = Version::of::<ExtensionConfig>(vec![
        paused(),
        text("Discovered", r#".status.conditions[?(@.type=="Discovered")].status"#),
        age(),
    ]);
    definition::<ExtensionConfig>(&["ext"], CORE, vec![old.with_status().deprecated(), config.with_status()])
}
