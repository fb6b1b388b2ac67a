//! Kubernetes versions as users write them.

use semver::{BuildMetadata, Prerelease, Version};

/// A version with leading `v` and missing parts allowed: `v1.30` is `1.30.0`.
pub fn tolerant(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<String> = Vec::new();
    for part in numbers.split('.') {
        // Leading zeros are dropped, as upstream's parser does.
        parts.push(part.parse::<u64>().ok()?.to_string());
    }
    if parts.len() < 3 && !rest.is_empty() {
        return None;
    }
    parts.resize(parts.len().max(3), "0".to_owned());
    Version::parse(&format!("{}{rest}", parts.join("."))).ok()
}

/// Tags of images cannot have `+`, so they have `_`.
pub(crate) fn of_image_tag(tag: &str) -> Option<Version> {
    tolerant(&tag.replace('_', "+"))
}

/// Whether the text after an optional `v` is a whole semantic version.
pub(crate) fn is_semantic(text: &str) -> bool {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).is_ok()
}

/// Without pre-release and build.
pub(crate) fn plain(version: &Version) -> Version {
    Version { pre: Prerelease::EMPTY, build: BuildMetadata::EMPTY, ..version.clone() }
}

/// More than one minor version at a time.
pub(crate) fn skips_a_minor(from: &Version, to: &Version) -> bool {
    plain(to) >= Version::new(from.major, from.minor + 2, 0)
}

/// Releases of CoreDNS that upstream's migration of Corefiles knows, oldest first.
pub const COREDNS_RELEASES: &[&str] = &[
    "1.1.3", "1.1.4", "1.2.0", "1.2.1", "1.2.2", "1.2.3", "1.2.4", "1.2.5", "1.2.6", "1.3.0", "1.3.1",
    "1.4.0", "1.5.0", "1.5.1", "1.5.2", "1.6.0", "1.6.1", "1.6.2", "1.6.3", "1.6.4", "1.6.5", "1.6.6",
    "1.6.7", "1.6.9", "1.7.0", "1.7.1", "1.8.0", "1.8.3", "1.8.4", "1.8.5", "1.8.6", "1.8.7", "1.9.0",
    "1.9.1", "1.9.2", "1.9.3", "1.9.4", "1.10.0", "1.10.1", "1.11.0", "1.11.1", "1.11.3", "1.11.4", "1.12.0",
    "1.12.1", "1.12.2", "1.12.3", "1.12.4", "1.13.0", "1.13.1", "1.13.2", "1.14.0", "1.14.1", "1.14.2",
    "1.14.3", "1.14.4", "1.14.6",
];

/// What keeps CoreDNS from being upgraded from one version to another.
pub(crate) fn coredns_upgrade(from: &Version, to: &Version) -> Result<(), String> {
    let (from, to) = (plain(from).to_string(), plain(to).to_string());
    let start = COREDNS_RELEASES
        .iter()
        .position(|known| *known == from)
        .ok_or_else(|| format!("start version '{from}' not supported"))?;
    if COREDNS_RELEASES[start..].contains(&to.as_str()) {
        Ok(())
    } else {
        Err(format!("cannot migrate up to '{to}' from '{from}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_zero_and_nonsense_is_nothing() {
        for (text, version) in [
            ("v1.30", Some("1.30.0")),
            ("1.30.2", Some("1.30.2")),
            (" v1.30.1-rc.0+build ", Some("1.30.1-rc.0+build")),
            ("v1.030.1", Some("1.30.1")),
            ("v1.x", None),
            ("", None),
        ] {
            assert_eq!(tolerant(text).map(|v| v.to_string()).as_deref(), version, "{text}");
        }
    }
}
