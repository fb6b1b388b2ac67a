//! What MachineDeployments and MachinePools of a topology have in common.

use capstan_capi_types::core::{
    Cluster, ContractVersionedObjectReference, MachineDeletionSpec, MachineSpec, MachineTaint, TemplateMeta,
    annotation, label,
};
use capstan_object::ObjectMeta;

use super::control_plane::merged;
use super::names;
use super::object::{Intent, Texts};
use super::versions::WorkersKind;

/// Prefix of the names of templates for a group of workers.
pub fn template_prefix(cluster: &str, topology: &str) -> String {
    format!("{cluster}-{topology}-")
}

/// A reference to an object that is to be.
pub fn reference(intent: &Intent) -> ContractVersionedObjectReference {
    ContractVersionedObjectReference {
        kind: intent.kind.kind.to_string(),
        name: intent.name().to_owned(),
        api_group: intent.kind.group.to_string(),
    }
}

/// A group of workers of a cluster.
pub(super) struct Group<'a> {
    pub cluster: &'a Cluster,
    pub kind: WorkersKind,
    /// Name in the topology.
    pub topology: &'a str,
}

/// What a topology says about the machines of a group, and what its class says where the topology is silent.
pub(super) struct Machines<'a> {
    pub deletion: [MachineDeletionSpec; 2],
    pub taints: [&'a [MachineTaint]; 2],
    pub min_ready_seconds: [Option<i32>; 2],
}

impl Group<'_> {
    fn label(&self) -> &'static str {
        match self.kind {
            WorkersKind::Deployments => label::TOPOLOGY_DEPLOYMENT_NAME,
            WorkersKind::Pools => label::TOPOLOGY_POOL_NAME,
        }
    }

    /// The label that all objects of the group have.
    pub(super) fn own_label(&self) -> Texts {
        Texts::from([(self.label().to_owned(), self.topology.to_owned())])
    }

    /// The labels that only Machines of this group have.
    pub(super) fn selector(&self) -> Texts {
        let mut selector = self.own_label();
        selector.insert(label::CLUSTER_NAME.to_owned(), self.cluster.metadata.name.clone());
        selector.insert(label::TOPOLOGY_OWNED.to_owned(), String::new());
        selector
    }

    /// Name of the group's own object: the one it has, or one from the class's naming template.
    pub(super) fn name(&self, running: Option<&str>, naming: &str) -> Result<String, String> {
        if let Some(name) = running {
            return Ok(name.to_owned());
        }
        let (part, role) = match self.kind {
            WorkersKind::Deployments => ("machineDeployment", "machine-deployment"),
            WorkersKind::Pools => ("machinePool", "machine-pool"),
        };
        let default = format!("{{{{ .cluster.name }}}}-{{{{ .{part}.topologyName }}}}-{{{{ .random }}}}");
        let naming = if naming.is_empty() { &default } else { naming };
        let suffix = names::suffix(self.cluster, &[role, self.topology]);
        names::from_template(naming, self.cluster, Some((part, self.topology)), &suffix)
    }

    /// Name of an object that the group refers to: the one that is referred to now, or a new one.
    pub(super) fn name_of(&self, role: &str, referred: Option<&str>) -> String {
        match referred.filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => {
                let prefix = template_prefix(&self.cluster.metadata.name, self.topology);
                names::joined(&prefix, &names::suffix(self.cluster, &[role, self.topology]))
            }
        }
    }

    /// Labels and annotations of the group and of its machines. What holds an upgrade back stays with the topology.
    pub(super) fn texts(&self, own: &TemplateMeta, class: &TemplateMeta) -> TemplateMeta {
        let mut labels = merged(&own.labels, &class.labels);
        labels.extend(self.selector());
        let mut annotations = merged(&own.annotations, &class.annotations);
        for name in [annotation::TOPOLOGY_HOLD_UPGRADE_SEQUENCE, annotation::TOPOLOGY_DEFER_UPGRADE] {
            annotations.remove(name);
        }
        TemplateMeta { labels, annotations }
    }

    /// Metadata of the group's own object.
    pub(super) fn metadata(&self, name: &str, texts: &TemplateMeta) -> ObjectMeta {
        let mut metadata = ObjectMeta::named(self.cluster.metadata.namespace.as_str(), name);
        metadata.labels.clone_from(&texts.labels);
        metadata.annotations.clone_from(&texts.annotations);
        metadata
    }

    pub(super) fn machine(
        &self,
        version: String,
        bootstrap: &Intent,
        infrastructure: &Intent,
        machines: &Machines<'_>,
    ) -> MachineSpec {
        let mut machine = MachineSpec { version, ..MachineSpec::default() };
        machine.cluster_name.clone_from(&self.cluster.metadata.name);
        machine.bootstrap.config_ref = reference(bootstrap);
        machine.infrastructure_ref = reference(infrastructure);
        let [own, class] = &machines.deletion;
        machine.deletion = timeouts(own, class);
        machine.taints = own_or_class(machines.taints).to_vec();
        let [own, class] = machines.min_ready_seconds;
        machine.min_ready_seconds = own.or(class);
        machine
    }
}

/// The topology's timeouts, or those of the class where it has none.
pub(super) fn timeouts(own: &MachineDeletionSpec, class: &MachineDeletionSpec) -> MachineDeletionSpec {
    MachineDeletionSpec {
        node_drain_timeout_seconds: own.node_drain_timeout_seconds.or(class.node_drain_timeout_seconds),
        node_volume_detach_timeout_seconds: own
            .node_volume_detach_timeout_seconds
            .or(class.node_volume_detach_timeout_seconds),
        node_deletion_timeout_seconds: own
            .node_deletion_timeout_seconds
            .or(class.node_deletion_timeout_seconds),
    }
}

/// The topology's list, or that of the class if it has none.
pub(super) fn own_or_class<T>([own, class]: [&[T]; 2]) -> &[T] {
    if own.is_empty() { class } else { own }
}
