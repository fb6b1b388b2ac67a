//! Microversions: what a call needs and what a service has.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A version within a version, such as 2.60.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microversion(pub u16, pub u16);

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Microversion {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        Ok(Self(major.parse().map_err(|_| ())?, minor.parse().map_err(|_| ())?))
    }
}

/// What a call asks for: the newest that the service has, up to a version whose answers this client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Without it the call makes no sense.
    pub at_least: Microversion,
    /// Answers of later ones may look different.
    pub at_most: Microversion,
}

impl Wanted {
    /// This one and no other.
    pub const fn exactly(version: Microversion) -> Self {
        Self { at_least: version, at_most: version }
    }

    /// A range, both ends included.
    pub const fn between(at_least: Microversion, at_most: Microversion) -> Self {
        Self { at_least, at_most }
    }

    /// The same with a higher floor.
    #[must_use]
    pub fn needing(self, version: Microversion) -> Self {
        Self { at_least: self.at_least.max(version), at_most: self.at_most.max(version) }
    }

    /// The version to send, or none if the service has none that fits.
    pub fn choose(self, offered: Offered) -> Option<Microversion> {
        let best = self.at_most.min(offered.max);
        (best >= self.at_least && best >= offered.min).then_some(best)
    }
}

/// What a service has, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// The oldest.
    pub min: Microversion,
    /// The newest.
    pub max: Microversion,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    version: Option<Entry>,
    versions: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    id: String,
    min_version: Option<String>,
    version: Option<String>,
    max_version: Option<String>,
}

/// Reads a version document. A service without microversions writes empty texts, or none.
pub(crate) fn read_offered(body: &[u8], version: Option<&str>) -> Result<Option<Offered>, serde_json::Error> {
    let document: Document = serde_json::from_slice(body)?;
    let major = |id: &str| id.trim_start_matches('v').split('.').next().map(str::to_owned);
    let entry = document
        .version
        .into_iter()
        .chain(document.versions)
        .filter(|entry| version.is_none_or(|version| major(&entry.id) == major(version)))
        .max_by_key(|entry| (entry.id == version.unwrap_or_default(), entry.id.clone()));
    Ok(entry.and_then(|entry| {
        let max = entry.max_version.or(entry.version)?.parse().ok()?;
        Some(Offered { min: entry.min_version?.parse().ok()?, max })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_both_sides_know_is_chosen() {
        let offered = Offered { min: Microversion(2, 1), max: Microversion(2, 60) };
        let wanted = Wanted::between(Microversion(2, 38), Microversion(2, 79));
        assert_eq!(wanted.choose(offered), Some(Microversion(2, 60)));
        assert_eq!(wanted.needing(Microversion(2, 61)).choose(offered), None);
        let newer = Offered { min: Microversion(2, 80), max: Microversion(2, 103) };
        assert_eq!(wanted.choose(newer), None);
        // 2.103 is later than 2.79, which a comparison of texts gets wrong.
        let wide = Offered { min: Microversion(2, 1), max: "2.103".parse().unwrap() };
        assert_eq!(wanted.choose(wide), Some(Microversion(2, 79)));
    }

    #[test]
    fn version_documents_of_the_services_are_read() {
        let offered = |text: &str, version| read_offered(text.as_bytes(), version).unwrap();
        let compute = r#"{"version":{"id":"v2.1","status":"CURRENT","version":"2.103","min_version":"2.1"}}"#;
        assert_eq!(offered(compute, Some("v2.1")).unwrap().max, Microversion(2, 103));
        let both = r#"{"versions":[
            {"id":"v2.0","version":"","min_version":""},
            {"id":"v2.1","version":"2.79","min_version":"2.1"}]}"#;
        assert_eq!(offered(both, Some("v2.1")).unwrap().max, Microversion(2, 79));
        let volume = r#"{"versions":[{"id":"v3.0","version":"3.71","min_version":"3.0"}]}"#;
        assert_eq!(offered(volume, Some("v3")).unwrap().max, Microversion(3, 71));
        let placement = r#"{"versions":[{"id":"v1.0","max_version":"1.39","min_version":"1.0"}]}"#;
        assert_eq!(offered(placement, None).unwrap().max, Microversion(1, 39));
        assert_eq!(offered(r#"{"version":{"id":"v2.1","version":"","min_version":""}}"#, Some("v2.1")), None);
        assert_eq!(offered("{}", None), None);
    }
}
