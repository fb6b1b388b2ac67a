//! Versions of Kubernetes and of kubeadm's configuration API.

use capstan_capi_types::version;
use semver::Version;

use crate::Error;

/// A version of kubeadm's configuration API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubeadmApi {
    /// For Kubernetes 1.22 to 1.30.
    V1Beta3,
    /// For Kubernetes 1.31 and later.
    V1Beta4,
}

impl KubeadmApi {
    /// The version that kubeadm of a Kubernetes version reads. Pre-releases count as their release.
    pub fn of(version: &str) -> Result<Self, Error> {
        let parsed = kubernetes_version(version)?;
        match (parsed.major, parsed.minor) {
            (major, minor) if (major, minor) < (1, 22) => Err(Error::VersionTooOld(version.to_owned())),
            (1, minor) if minor < 31 => Ok(Self::V1Beta3),
            _ => Ok(Self::V1Beta4),
        }
    }

    /// The `apiVersion` in files.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1Beta3 => "kubeadm.k8s.io/v1beta3",
            Self::V1Beta4 => "kubeadm.k8s.io/v1beta4",
        }
    }
}

/// Parses a Kubernetes version as tolerantly as upstream: optional `v`, missing parts are zero, leading zeros are
/// dropped.
pub fn kubernetes_version(text: &str) -> Result<Version, Error> {
    version::tolerant(text).ok_or_else(|| Error::Version(text.to_owned()))
}
