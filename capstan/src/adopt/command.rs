//! Commands that the output suggests.

use capstan_object::Key;

/// Pauses or resumes a Cluster in another management cluster.
pub fn pause(kubeconfig: &str, cluster: &Key, paused: bool) -> String {
    format!(
        "kubectl --kubeconfig {kubeconfig} -n {} patch clusters.cluster.x-k8s.io {} --type merge -p '{{\"spec\":{{\"paused\":{paused}}}}}'",
        cluster.namespace, cluster.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_paused_by_its_full_kind() {
        assert_eq!(
            pause("old", &Key::new("n", "c"), true),
            "kubectl --kubeconfig old -n n patch clusters.cluster.x-k8s.io c --type merge -p '{\"spec\":{\"paused\":true}}'"
        );
    }
}
