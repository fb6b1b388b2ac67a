//! Kubernetes releases that clusters may have: which version a minor version stands for, and where its images are.
//!
//! EKS Anywhere reads this from bundles that it downloads. Here the operator configures it, in a file of the server.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::version::{self, MOST_SKEW};

/// Minor versions without a file.
const DEFAULT_MINORS: std::ops::RangeInclusive<u32> = 28..=36;
/// kube-vip without a file.
const KUBE_VIP: &str = "ghcr.io/kube-vip/kube-vip:v0.8.9";

/// Minor versions that kubelets may be behind the API server without a file, as in EKS Anywhere.
const WORKER_SKEW: u32 = 2;

/// The releases that clusters may have: the version window, and how far workers may be behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Releases {
    /// Minor versions that worker groups may be behind the control plane.
    pub worker_skew: u32,
    by_minor: BTreeMap<u32, Release>,
    /// Image of kube-vip; empty deploys none, for networks with a load balancer.
    pub kube_vip_image: String,
}

/// What a minor version stands for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Release {
    /// The minor version, such as `1.33`.
    pub kubernetes_version: String,
    /// The version, such as `v1.33.4`.
    pub version: String,
    /// Repository of Kubernetes' images; kubeadm's if empty.
    pub image_repository: String,
    pub etcd: Image,
    #[serde(rename = "coreDNS")]
    pub core_dns: Image,
}

/// An image; kubeadm's if empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Image {
    pub image_repository: String,
    pub image_tag: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    releases: Vec<Release>,
    #[serde(default)]
    kube_vip_image: Option<String>,
    #[serde(default)]
    worker_skew: Option<u32>,
}

impl Default for Releases {
    /// Upstream's images, first patch of each minor version: kubeadm of a later patch installs it, too.
    fn default() -> Self {
        let release = |minor| Release {
            kubernetes_version: format!("1.{minor}"),
            version: format!("v1.{minor}.0"),
            ..Release::default()
        };
        Self {
            by_minor: DEFAULT_MINORS.map(|minor| (minor, release(minor))).collect(),
            kube_vip_image: KUBE_VIP.to_owned(),
            worker_skew: WORKER_SKEW,
        }
    }
}

impl Releases {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let mut by_minor = BTreeMap::new();
        for (at, release) in file.releases.into_iter().enumerate() {
            let minor = version::minor(&release.kubernetes_version)
                .map_err(|why| format!("releases[{at}].kubernetesVersion: {why}"))?;
            let prefix = format!("v1.{minor}.");
            if !release.version.starts_with(&prefix) {
                return Err(format!(
                    "releases[{at}].version: {:?} is not a version of 1.{minor}: its prefix must be {prefix}",
                    release.version
                ));
            }
            if by_minor.insert(minor, release).is_some() {
                return Err(format!("releases[{at}].kubernetesVersion: duplicate 1.{minor}"));
            }
        }
        if by_minor.is_empty() {
            return Err("releases: name at least one release".to_owned());
        }
        let worker_skew = file.worker_skew.unwrap_or(WORKER_SKEW);
        if worker_skew > MOST_SKEW {
            return Err(format!(
                "workerSkew: {worker_skew} is more than Kubernetes supports: use 0 to {MOST_SKEW}"
            ));
        }
        let kube_vip_image = file.kube_vip_image.unwrap_or_else(|| KUBE_VIP.to_owned());
        Ok(Self { by_minor, kube_vip_image, worker_skew })
    }

    pub fn get(&self, minor: &str) -> Result<&Release, String> {
        let number = version::minor(minor)?;
        self.by_minor.get(&number).ok_or_else(|| {
            let known: Vec<String> = self.by_minor.keys().map(|minor| format!("1.{minor}")).collect();
            format!("Kubernetes {minor} is not supported: use one of {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_minor_versions_stand_for() {
        let text =
            "releases:\n- {kubernetesVersion: '1.33', version: v1.33.4-eks-1-33-10, imageRepository: r/k}\n";
        let releases = Releases::parse(text).expect("releases");
        assert_eq!(releases.get("1.33").map(|release| release.version.as_str()), Ok("v1.33.4-eks-1-33-10"));
        let error = releases.get("1.34").expect_err("outside");
        assert_eq!(error, "Kubernetes 1.34 is not supported: use one of 1.33");
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        for (text, why) in [
            ("releases: []", "name at least one release"),
            (
                "{workerSkew: 4, releases: [{kubernetesVersion: '1.33', version: v1.33.0}]}",
                "workerSkew: 4 is more than Kubernetes supports: use 0 to 3",
            ),
            ("releases: [{kubernetesVersion: '1.33', version: v1.32.0}]", "releases[0].version"),
            ("releases: [{kubernetesVersion: 'x', version: v1.32.0}]", "releases[0].kubernetesVersion"),
            (
                "releases: [{kubernetesVersion: '1.33', version: v1.33.0, imageRepositry: a}]",
                "imageRepositry",
            ),
            (
                "releases: [{kubernetesVersion: '1.33', version: v1.33.0}, {kubernetesVersion: '1.33', version: v1.33.1}]",
                "duplicate 1.",
            ),
        ] {
            let error = Releases::parse(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }
}
