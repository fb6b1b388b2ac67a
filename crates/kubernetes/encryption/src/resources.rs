//! Resource patterns of an EncryptionConfiguration.

/// One line of `resources`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// `*.*`
    All,
    /// `*.apps`; `*.` is the core group.
    Group(String),
    /// `deployments.apps`, `secrets`.
    Resource { group: String, resource: String },
}

impl Pattern {
    /// Reads a pattern. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        if text == "*.*" {
            return Ok(Self::All);
        }
        if text == "*" {
            return Err("use *.* for all resources, or *. for all of the core group".to_owned());
        }
        if resource.is_empty() || group.contains('*') || (resource.contains('*') && resource != "*") {
            return Err(format!(
                "{text:?} is not a resource: use RESOURCE, RESOURCE.GROUP, *.GROUP, *. or *.*"
            ));
        }
        if text.contains('/') {
            return Err(format!("{text:?} is a subresource: name its resource"));
        }
        if text != text.to_lowercase() {
            return Err(format!("{text:?} has upper case letters: use the plural name in lower case"));
        }
        match resource {
            "*" => Ok(Self::Group(group.to_owned())),
            _ => Ok(Self::Resource { group: group.to_owned(), resource: resource.to_owned() }),
        }
    }

    /// Whether it covers a bucket of the store, which is called `GROUP/RESOURCE`.
    pub fn covers(&self, bucket: &str) -> bool {
        match self {
            Self::All => true,
            Self::Group(group) => {
                bucket.strip_prefix(group.as_str()).is_some_and(|rest| rest.starts_with('/'))
            }
            Self::Resource { group, resource } => bucket
                .strip_prefix(group.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| rest == resource),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_the_buckets_of_their_resources() {
        let cases = [
            ("secrets", "/secrets", true),
            ("secrets", "/secretsx", false),
            ("secrets", "apps/secrets", false),
            ("deployments.apps", "apps/deployments", true),
            ("clusters.cluster.x-k8s.io", "cluster.x-k8s.io/clusters", true),
            ("*.apps", "apps/deployments", true),
            ("*.apps", "apps.example.org/things", false),
            ("*.", "/configmaps", true),
            ("*.", "apps/deployments", false),
            ("*.*", "apps/deployments", true),
        ];
        for (pattern, bucket, covered) in cases {
            assert_eq!(Pattern::parse(pattern).unwrap().covers(bucket), covered, "{pattern} {bucket}");
        }
    }

    #[test]
    fn patterns_without_a_meaning_are_refused() {
        for pattern in ["*", "", "pods/status", "Secrets", "sec*", "*.*.io", ".apps"] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern:?}");
        }
    }
}
