//! What kubeadm of a Kubernetes release includes: image names, and versions of etcd and CoreDNS.

use serde_json::Value;

/// Default image repository.
const DEFAULT_REPOSITORY: &str = "registry.k8s.io";

/// Versions of etcd and CoreDNS by minor release of Kubernetes, newest first.
const RELEASES: [(u64, &str, &str); 7] = [
    (36, "3.6.8-0", "v1.14.2"),
    (35, "3.6.6-0", "v1.13.1"),
    (34, "3.6.4-0", "v1.12.1"),
    (33, "3.5.21-0", "v1.12.0"),
    (32, "3.5.16-0", "v1.11.3"),
    (31, "3.5.15-0", "v1.11.1"),
    (30, "3.5.12-0", "v1.11.1"),
];

/// The minor release of a version such as `v1.36.0`.
pub(crate) fn minor(version: &str) -> Option<u64> {
    version.strip_prefix('v').unwrap_or(version).split('.').nth(1)?.parse().ok()
}

/// Images of a cluster, from its `ClusterConfiguration`.
pub(super) struct Images<'a> {
    configuration: &'a Value,
}

impl<'a> Images<'a> {
    pub(super) fn new(configuration: &'a Value) -> Self {
        Self { configuration }
    }

    /// The Kubernetes version, with `v`.
    pub(super) fn version(&self) -> &'a str {
        self.configuration["kubernetesVersion"].as_str().unwrap_or("v1.36.0")
    }

    fn repository(&self) -> &'a str {
        given(&self.configuration["imageRepository"]).unwrap_or(DEFAULT_REPOSITORY)
    }

    fn release(&self) -> (u64, &'static str, &'static str) {
        let minor = minor(self.version()).unwrap_or(u64::MAX);
        // Newer than the table: its newest. Older: its oldest.
        let known = RELEASES.into_iter().find(|(known, ..)| *known <= minor);
        known.unwrap_or(RELEASES[RELEASES.len() - 1])
    }

    /// The image of a Kubernetes component, such as `kube-proxy`.
    pub(super) fn kubernetes(&self, name: &str) -> String {
        // Tags cannot have `+`.
        format!("{}/{name}:{}", self.repository(), self.version().replace('+', "_"))
    }

    pub(super) fn etcd(&self) -> String {
        let local = &self.configuration["etcd"]["local"];
        let repository = given(&local["imageRepository"]).unwrap_or(self.repository());
        format!("{repository}/etcd:{}", given(&local["imageTag"]).unwrap_or(self.release().1))
    }

    /// The version of etcd, such as `3.6.8`.
    pub(super) fn etcd_version(&self) -> String {
        let tag = given(&self.configuration["etcd"]["local"]["imageTag"]).unwrap_or(self.release().1);
        tag.trim_start_matches('v').split('-').next().unwrap_or(tag).to_owned()
    }

    /// The image of CoreDNS. It has a subfolder in the default repository only.
    pub(super) fn coredns(&self) -> String {
        let dns = &self.configuration["dns"];
        let repository = match (given(&dns["imageRepository"]), self.repository()) {
            (Some(repository), _) => repository.to_owned(),
            (None, DEFAULT_REPOSITORY) => format!("{DEFAULT_REPOSITORY}/coredns"),
            (None, repository) => repository.to_owned(),
        };
        format!("{repository}/coredns:{}", given(&dns["imageTag"]).unwrap_or(self.release().2))
    }
}

fn given(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn images_follow_the_configuration() {
        let plain = json!({"kubernetesVersion": "v1.36.0+x"});
        let images = Images::new(&plain);
        assert_eq!(images.kubernetes("kube-proxy"), format!("{DEFAULT_REPOSITORY}/kube-proxy:v1.36.0_x"));
        assert_eq!(images.coredns(), format!("{DEFAULT_REPOSITORY}/coredns/coredns:v1.14.2"));
        assert_eq!(images.etcd_version(), "3.6.8");
        let own = json!({
            "kubernetesVersion": "v1.34.2", "imageRepository": "example.org/k8s",
            "etcd": {"local": {"imageTag": "3.5.9-0"}}, "dns": {"imageRepository": "example.org/dns"},
        });
        let images = Images::new(&own);
        assert_eq!(images.etcd(), "example.org/k8s/etcd:3.5.9-0");
        assert_eq!(images.coredns(), "example.org/dns/coredns:v1.12.1");
        assert_eq!(images.kubernetes("kube-apiserver"), "example.org/k8s/kube-apiserver:v1.34.2");
    }

    #[test]
    fn releases_outside_the_table_take_the_nearest() {
        for (version, etcd) in [("v1.99.0", "3.6.8"), ("v1.20.1", "3.5.12"), ("v1.33.4", "3.5.21")] {
            let configuration = json!({"kubernetesVersion": version});
            assert_eq!(Images::new(&configuration).etcd_version(), etcd, "{version}");
        }
    }
}
