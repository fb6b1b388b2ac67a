//! Fields of EKS Anywhere's API that have no effect here are refused by name, never ignored.

use capstan_capi_types::admission::FieldError;
use serde_json::json;

use super::Errors;
use crate::types::Cluster;

pub(super) fn validate(cluster: &Cluster, errors: &mut Errors) {
    let spec = &cluster.spec;
    let control_plane = &spec.control_plane_configuration;
    let packages = spec.packages.as_ref().is_some_and(|packages| *packages != json!({"disable": true}));
    let found = [
        (
            spec.external_etcd_configuration.is_some(),
            "spec.externalEtcdConfiguration",
            "external etcd is not supported: remove it, and etcd runs on the control plane machines",
        ),
        (
            !spec.identity_provider_refs.is_empty(),
            "spec.identityProviderRefs",
            "identity providers are not supported: set the API server's flags with controlPlaneConfiguration.apiServerExtraArgs",
        ),
        (
            spec.git_ops_ref.is_some(),
            "spec.gitOpsRef",
            "gitOpsRef is not supported: point your GitOps tool at this API server",
        ),
        (
            spec.pod_iam_config.is_some(),
            "spec.podIamConfig",
            "pod IAM is not supported: set service-account-issuer with controlPlaneConfiguration.apiServerExtraArgs",
        ),
        (
            packages,
            "spec.packages",
            "curated packages are not supported: remove it, or set disable: true alone",
        ),
        (
            control_plane.skip_load_balancer_deployment,
            "spec.controlPlaneConfiguration.skipLoadBalancerDeployment",
            "skipLoadBalancerDeployment is supported on bare metal only: remove it",
        ),
        (
            control_plane.skip_admission_for_system_resources == Some(true),
            "spec.controlPlaneConfiguration.skipAdmissionForSystemResources",
            "skipAdmissionForSystemResources needs a patched API server and is not supported: remove it",
        ),
    ];
    for (_, path, what) in found.into_iter().filter(|(found, ..)| *found) {
        errors.push(FieldError::forbidden(path, what));
    }
    for (at, group) in spec.worker_node_group_configurations.iter().enumerate() {
        if !group.failure_domains.is_empty() {
            let what = "failureDomains are not supported on CloudStack: machines are spread over the availability zones";
            let path = format!("spec.workerNodeGroupConfigurations[{at}].failureDomains");
            errors.push(FieldError::forbidden(path, what));
        }
    }
}
