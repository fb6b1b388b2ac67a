//! The objects of a worker group.

use capstan_capi_types::bootstrap::KubeadmConfigTemplate;
use capstan_capi_types::core::{
    Bootstrap, MachineDeployment, MachineDeploymentRolloutStrategyRollingUpdate,
    MachineDeploymentRolloutStrategyType, annotation, label,
};
use capstan_cloudstack_types::v1beta3::CloudStackMachineTemplate;
use capstan_object::IntOrString;

use super::infrastructure::reference;
use super::node::{self, Role};
use super::{GeneratedGroup, Manifests, cluster_name, health_check, machine_template, metadata};
use crate::names;
use crate::types::WorkerNodeGroupConfiguration;
use crate::version;

pub(super) fn generate(
    manifests: &Manifests<'_>,
    group: &WorkerNodeGroupConfiguration,
    at: usize,
) -> Result<GeneratedGroup, String> {
    let cluster = manifests.cluster;
    let path = format!("spec.workerNodeGroupConfigurations[{at}]");
    let config =
        manifests.machine_config(group.machine_group_ref.as_ref(), &format!("{path}.machineGroupRef"))?;
    let release = manifests.release(cluster.version_of(group), &format!("{path}.kubernetesVersion"))?;
    skew(manifests, group).map_err(|why| format!("{path}.kubernetesVersion: {why}"))?;
    let template = names::worker_template(cluster_name(cluster), &group.name);
    let machines = machine_template::generate(cluster, &template, config);

    let role = Role { labels: &group.labels, kubelet: group.kubelet_configuration.as_ref(), config };
    let mut bootstrap =
        KubeadmConfigTemplate { metadata: metadata(cluster, &template), ..KubeadmConfigTemplate::default() };
    let spec = &mut bootstrap.spec.template.spec;
    node::complete(manifests, &role, spec)?;
    let mut registration = node::registration(manifests, &role);
    // An empty list: kubeadm adds no taints of its own.
    registration.taints = Some(group.taints.clone());
    spec.join_configuration.node_registration = registration;
    spec.join_configuration.patches = node::patches(&role);

    let name = names::deployment(cluster_name(cluster), &group.name);
    let mut deployment =
        MachineDeployment { metadata: metadata(cluster, &name), ..MachineDeployment::default() };
    match &group.autoscaling_configuration {
        // The autoscaler sets the replicas.
        Some(bounds) => {
            for (key, value) in [
                (annotation::AUTOSCALER_MIN_SIZE, bounds.min_count),
                (annotation::AUTOSCALER_MAX_SIZE, bounds.max_count),
            ] {
                deployment.metadata.annotations.insert(key.to_owned(), value.to_string());
            }
        }
        None => deployment.spec.replicas = Some(group.count.unwrap_or(1)),
    }
    deployment.spec.cluster_name = cluster_name(cluster).to_owned();
    let machine = &mut deployment.spec.template;
    machine.metadata.labels.insert(label::CLUSTER_NAME.to_owned(), cluster_name(cluster).to_owned());
    machine.spec.cluster_name = cluster_name(cluster).to_owned();
    machine.spec.version.clone_from(&release.version);
    machine.spec.bootstrap =
        Bootstrap { config_ref: reference::<KubeadmConfigTemplate>(&template), ..Bootstrap::default() };
    machine.spec.infrastructure_ref = reference::<CloudStackMachineTemplate>(&template);
    if let Some(update) = group.upgrade_rollout_strategy.as_ref().and_then(|it| it.rolling_update.as_ref()) {
        let strategy = &mut deployment.spec.rollout.strategy;
        strategy.kind = Some(MachineDeploymentRolloutStrategyType::RollingUpdate);
        strategy.rolling_update = MachineDeploymentRolloutStrategyRollingUpdate {
            max_surge: Some(IntOrString::Int(update.max_surge)),
            max_unavailable: Some(IntOrString::Int(update.max_unavailable)),
        };
    }
    Ok(GeneratedGroup {
        deployment,
        bootstrap,
        machines,
        health_check: health_check::of_group(cluster, group),
    })
}

/// Workers are not further behind the control plane than the server allows.
fn skew(manifests: &Manifests<'_>, group: &WorkerNodeGroupConfiguration) -> Result<(), String> {
    let (cluster, most) = (manifests.cluster, manifests.releases.worker_skew);
    let (own, of_cluster) = (cluster.version_of(group), cluster.spec.kubernetes_version.as_str());
    let behind = version::minor(of_cluster)?.saturating_sub(version::minor(own)?);
    match behind <= most {
        true => Ok(()),
        false => Err(format!(
            "{own} is {behind} minor versions behind {of_cluster} of the control plane, and at most {most} are allowed: upgrade the group first"
        )),
    }
}
