//! `Cluster`. Rules that depend on a ClusterClass are not checked here.

use std::net::IpAddr;

use capstan_schema::meta;

use super::common::{shown, validate_rolling_update, validate_taints, validate_template_meta};
use super::{Admission, Features, FieldError};
use crate::core::topology::{MachineDeploymentTopology, Topology};
use crate::core::{Cluster, annotation};
use crate::version;

const TOPOLOGY: &str = "spec.topology";

impl Cluster {
    /// The cluster uses a ClusterClass.
    pub fn has_topology(&self) -> bool {
        self.spec.topology != Topology::default()
    }
}

impl Admission for Cluster {
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        if self.has_topology() {
            if !self.spec.topology.version.starts_with('v') {
                self.spec.topology.version.insert(0, 'v');
            }
            if self.spec.topology.class_ref.name.is_empty() {
                return Err(FieldError::required("spec.topology.classRef.name", "cannot be empty"));
            }
        }
        Ok(())
    }

    fn validate(&self, old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &self.spec;
        // The name becomes a label value on every object of the cluster.
        for problem in meta::label_value(&self.metadata.name) {
            errors.push(FieldError::invalid(
                "metadata.name",
                self.metadata.name.as_str(),
                format!("must be a valid label value {problem}"),
            ));
        }
        if !spec.infrastructure_ref.is_defined()
            && old.is_some_and(|old| old.spec.infrastructure_ref.is_defined())
        {
            errors.push(FieldError::forbidden("spec.infrastructureRef", "cannot be removed"));
        }
        if !spec.control_plane_ref.is_defined()
            && !spec.infrastructure_ref.is_defined()
            && !self.has_topology()
        {
            errors.push(FieldError::forbidden(
                "spec",
                "one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set",
            ));
        }
        if !spec.control_plane_ref.is_defined()
            && old.is_some_and(|old| old.spec.control_plane_ref.is_defined())
        {
            errors.push(FieldError::forbidden("spec.controlPlaneRef", "cannot be removed"));
        }
        let network = &spec.cluster_network;
        validate_ranges(&network.pods.cidr_blocks, "spec.clusterNetwork.pods.cidrBlocks", &mut errors);
        validate_ranges(
            &network.services.cidr_blocks,
            "spec.clusterNetwork.services.cidrBlocks",
            &mut errors,
        );
        if self.has_topology() {
            validate_topology(self, old, features, &mut errors);
        } else if old.is_some_and(Self::has_topology) {
            errors.push(FieldError::forbidden(TOPOLOGY, "cannot be removed from an existing Cluster"));
        }
        errors
    }
}

fn validate_ranges(ranges: &[String], path: &str, errors: &mut Vec<FieldError>) {
    for (at, range) in ranges.iter().enumerate() {
        if !is_range(range) {
            errors.push(FieldError::invalid(
                format!("{path}[{at}]"),
                range.as_str(),
                format!("invalid CIDR address: {range}"),
            ));
        }
    }
}

/// A CIDR as Go parses it: no leading zeros in numbers, which other parsers read as octal.
fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse().is_ok_and(|bits: u32| bits <= most)
}

fn validate_topology(
    cluster: &Cluster,
    old: Option<&Cluster>,
    features: &Features,
    errors: &mut Vec<FieldError>,
) {
    let topology = &cluster.spec.topology;
    if !features.cluster_topology {
        errors.push(FieldError::forbidden(
            TOPOLOGY,
            "clusters of a ClusterClass are not supported by this server; set spec.infrastructureRef and spec.controlPlaneRef instead",
        ));
        return;
    }
    if topology.class_ref.name.is_empty() {
        errors.push(FieldError::required("spec.topology.class", "classRef.name cannot be empty"));
        return;
    }
    let text = topology.version.as_str();
    if !text.starts_with('v') {
        errors.push(FieldError::invalid("spec.topology.version", text, "must start with v"));
    }
    if !version::is_semantic(text) {
        errors.push(FieldError::invalid(
            "spec.topology.version",
            text,
            "version must be a valid semantic version",
        ));
    }
    let control_plane = &topology.control_plane;
    validate_template_meta(&control_plane.metadata, "spec.topology.controlPlane.metadata", errors);
    validate_taints(&control_plane.taints, "spec.topology.controlPlane.taints", features, errors);
    for deployment in &topology.workers.machine_deployments {
        validate_machine_deployment(cluster, deployment, features, errors);
    }
    for pool in &topology.workers.machine_pools {
        let path = format!("spec.topology.workers.machinePools[{}]", pool.name);
        validate_template_meta(&pool.metadata, &format!("{path}.metadata"), errors);
        validate_taints(&pool.taints, &format!("{path}.taints"), features, errors);
    }
    validate_upgrade_concurrency(cluster, errors);
    if let Some(old) = old {
        validate_topology_change(cluster, old, errors);
    }
}

fn validate_machine_deployment(
    cluster: &Cluster,
    deployment: &MachineDeploymentTopology,
    features: &Features,
    errors: &mut Vec<FieldError>,
) {
    let path = format!("spec.topology.workers.machineDeployments[{}]", deployment.name);
    validate_template_meta(&deployment.metadata, &format!("{path}.metadata"), errors);
    let rolling_update = &deployment.rollout.strategy.rolling_update;
    validate_rolling_update(
        rolling_update.max_unavailable.as_ref(),
        rolling_update.max_surge.as_ref(),
        &format!("{path}.rollout.strategy"),
        errors,
    );
    validate_taints(&deployment.taints, &format!("{path}.taints"), features, errors);
    let scaled_elsewhere = [annotation::AUTOSCALER_MIN_SIZE, annotation::AUTOSCALER_MAX_SIZE]
        .iter()
        .any(|name| deployment.metadata.annotations.contains_key(*name));
    if let (Some(replicas), true) = (deployment.replicas, scaled_elsewhere) {
        errors.push(FieldError::invalid(
            format!("{path}.replicas"),
            replicas,
            format!(
                "cannot be set for cluster {:?} in namespace {:?} if the same MachineDeploymentTopology has autoscaler annotations",
                cluster.metadata.name, cluster.metadata.namespace
            ),
        ));
    }
}

fn validate_upgrade_concurrency(cluster: &Cluster, errors: &mut Vec<FieldError>) {
    let Some(text) = cluster.metadata.annotations.get(annotation::TOPOLOGY_UPGRADE_CONCURRENCY) else {
        return;
    };
    let problem = match text.parse::<i64>() {
        Err(_) => format!(
            "could not parse the value of the annotation: strconv.Atoi: parsing {}: invalid syntax",
            shown(text)
        ),
        Ok(..1) => "value cannot be less than 1".to_owned(),
        Ok(_) => return,
    };
    errors.push(FieldError::invalid(
        format!("metadata.annotations.{}", annotation::TOPOLOGY_UPGRADE_CONCURRENCY),
        text.as_str(),
        problem,
    ));
}

fn validate_topology_change(cluster: &Cluster, old: &Cluster, errors: &mut Vec<FieldError>) {
    let annotations = &cluster.metadata.annotations;
    if !old.has_topology() || old.spec.topology.class_ref.name.is_empty() {
        if !annotations.contains_key(annotation::TOPOLOGY_UNSAFE_UPDATE_CLASS_NAME) {
            errors.push(FieldError::forbidden(
                "spec.topology.class",
                "classRef cannot be set on an existing Cluster",
            ));
        }
        return;
    }
    if annotations.contains_key(annotation::TOPOLOGY_UNSAFE_UPDATE_VERSION) {
        return;
    }
    let text = cluster.spec.topology.version.as_str();
    let (Some(new), Some(old)) = (version::tolerant(text), version::tolerant(&old.spec.topology.version))
    else {
        return;
    };
    // Whether minors may be skipped depends on the class.
    if version::plain(&new) < version::plain(&old) {
        let message = format!("version cannot be decreased from \"{old}\" to \"{new}\"");
        errors.push(FieldError::invalid("spec.topology.version", text, message));
    }
}
