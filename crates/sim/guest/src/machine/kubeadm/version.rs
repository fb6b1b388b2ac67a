//! Versions of Kubernetes.

use std::fmt;

/// A version; builds are ignored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(semver::Version);

impl Version {
    /// Parses a full version, with or without `v`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut version = semver::Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()?;
        version.build = semver::BuildMetadata::EMPTY;
        Some(Self(version))
    }

    /// The minor version, such as 36.
    pub(super) fn minor(&self) -> u64 {
        self.0.minor
    }

    pub(super) fn major(&self) -> u64 {
        self.0.major
    }

    /// Whether it is at least 1.`minor`, including release candidates.
    pub(super) fn at_least(&self, minor: u64) -> bool {
        (self.major(), self.minor()) >= (1, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
