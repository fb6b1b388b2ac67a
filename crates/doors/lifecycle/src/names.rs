//! Names, labels and annotations that EKS Anywhere's clusters have, so that running ones can be taken over.

use capstan_object::ObjectMeta;

/// Namespace of the generated Cluster API objects and of the credentials.
pub const SYSTEM_NAMESPACE: &str = "eksa-system";

pub const CLUSTER_FINALIZER: &str = "clusters.anywhere.eks.amazonaws.com/finalizer";

pub mod label {
    /// On generated objects: name of the cluster they belong to.
    pub const CLUSTER_NAME: &str = "cluster.anywhere.eks.amazonaws.com/cluster-name";
    /// On generated objects: namespace of that cluster.
    pub const CLUSTER_NAMESPACE: &str = "cluster.anywhere.eks.amazonaws.com/cluster-namespace";
    /// On Machines and their nodes: they are of the control plane.
    pub const CONTROL_PLANE_ROLE: &str = "node-role.kubernetes.io/control-plane";
}

pub mod annotation {
    /// The object is not reconciled while this is `true`.
    pub const PAUSED: &str = "anywhere.eks.amazonaws.com/paused";
    /// Skips the check whether the endpoint's address is in use.
    pub const SKIP_IP_CHECK: &str = "anywhere.eks.amazonaws.com/skip-ip-check";
    /// If `true`, a paused cluster can be deleted.
    pub const ALLOW_DELETE_WHEN_PAUSED: &str = "anywhere.eks.amazonaws.com/allow-delete-when-paused";
    /// EKS Anywhere's mark on clusters in which it installed Cilium.
    pub const CILIUM_INSTALLED: &str = "anywhere.eks.amazonaws.com/eksa-cilium";
    /// Digest of what was last applied to a generated object: shows removed fields without a request.
    pub const APPLIED: &str = "capstan.dev/lifecycle-applied";
    /// On clusters: the CNI, `cilium` or `calico`.
    pub const CNI: &str = "capstan.dev/lifecycle-cni";
    /// On ConfigMaps of the CNI: the hash that a binding records once it was applied.
    pub const CNI_HASH: &str = "capstan.dev/lifecycle-cni-hash";
    /// On the first ConfigMap of the CNI: the workload cluster may have objects that check a version.
    pub const CNI_PREFLIGHT: &str = "capstan.dev/lifecycle-cni-preflight";
    /// Ends annotations of machine templates about disks and symlinks.
    pub const CLOUDSTACK_SUFFIX: &str = "cloudstack.anywhere.eks.amazonaws.com/v1alpha1";
}

/// Whether an annotation is `true`. EKS Anywhere takes no notice of other values.
pub fn is_set(object: &ObjectMeta, annotation: &str) -> bool {
    object.annotations.get(annotation).is_some_and(|value| value == "true")
}

/// The first name of the control plane's machine template.
pub fn control_plane_template(cluster: &str) -> String {
    format!("{cluster}-control-plane-1")
}

/// Name of a group's MachineDeployment.
pub fn deployment(cluster: &str, group: &str) -> String {
    format!("{cluster}-{group}")
}

/// The first name of a group's templates.
pub fn worker_template(cluster: &str, group: &str) -> String {
    format!("{cluster}-{group}-1")
}

pub fn control_plane_health_check(cluster: &str) -> String {
    format!("{cluster}-kcp-unhealthy")
}

pub fn worker_health_check(cluster: &str, group: &str) -> String {
    format!("{cluster}-{group}-worker-unhealthy")
}

/// The operator's Secret with the credentials of registry mirrors.
pub const REGISTRY_CREDENTIALS: &str = "registry-credentials";

/// Name of the cluster's Secret with containerd's configuration.
pub fn registry(cluster: &str) -> String {
    format!("{cluster}-registry")
}

/// Name of the cluster's ClusterResourceSet and ConfigMap with the CNI.
pub fn cni(cluster: &str) -> String {
    format!("{cluster}-cni")
}

/// The name of a template that takes the place of another: the number at its end grows by one.
pub fn next_template(name: &str) -> String {
    match name.rsplit_once('-').and_then(|(front, number)| Some((front, number.parse::<u64>().ok()?))) {
        Some((front, number)) => format!("{front}-{}", number.saturating_add(1)),
        None => format!("{name}-1"),
    }
}

#[cfg(test)]
mod tests {
    use super::next_template;

    #[test]
    fn templates_are_numbered() {
        for (name, next) in [
            ("a-control-plane-1", "a-control-plane-2"),
            ("a-md-0-9", "a-md-0-10"),
            ("a-control-plane-template-1234567890000", "a-control-plane-template-1234567890001"),
            ("by-hand", "by-hand-1"),
        ] {
            assert_eq!(next_template(name), next);
        }
    }
}
