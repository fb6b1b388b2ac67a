//! Kinds and objects by name, for what is known only at run time.

use std::borrow::Cow;
use std::fmt;

use capstan_object::{Key, Kind, Object, OwnerReference, Scope};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindName {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// API version.
    pub version: Cow<'static, str>,
    /// Kind, as manifests write it.
    pub kind: Cow<'static, str>,
    /// Plural, as paths write it.
    pub plural: Cow<'static, str>,
    /// Where objects live.
    pub scope: Scope,
}

impl From<Kind> for KindName {
    fn from(kind: Kind) -> Self {
        Self {
            group: Cow::Borrowed(kind.group),
            version: Cow::Borrowed(kind.version),
            kind: Cow::Borrowed(kind.kind),
            plural: Cow::Borrowed(kind.plural),
            scope: kind.scope,
        }
    }
}

impl KindName {
    /// The names of a type.
    pub fn of<T: Object>() -> Self {
        T::KIND.into()
    }

    /// A namespaced kind that no type in this process stands for.
    pub fn namespaced(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self {
            group: Cow::Owned(group.into()),
            version: Cow::Owned(version.into()),
            kind: Cow::Owned(kind.into()),
            plural: Cow::Owned(plural.into()),
            scope: Scope::Namespaced,
        }
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// An owner reference names this kind, in whatever version.
    pub fn is_kind_of(&self, owner: &OwnerReference) -> bool {
        owner.kind == self.kind && owner.group() == self.group
    }

    /// The path of the collection, in one namespace or in all.
    pub fn collection_path(&self, namespace: &str) -> String {
        let mut path = String::with_capacity(96);
        if self.group.is_empty() {
            path.push_str("/api/");
        } else {
            path.push_str("/apis/");
            path.push_str(&self.group);
            path.push('/');
        }
        path.push_str(&self.version);
        if !namespace.is_empty() && self.scope == Scope::Namespaced {
            path.push_str("/namespaces/");
            path.extend(utf8_percent_encode(namespace, PATH_SEGMENT));
        }
        path.push('/');
        path.push_str(&self.plural);
        path
    }

    /// The path of an object or one of its subresources.
    pub fn object_path(&self, key: &Key, subresource: Option<&str>) -> String {
        let mut path = self.collection_path(&key.namespace);
        path.push('/');
        path.extend(utf8_percent_encode(&key.name, PATH_SEGMENT));
        if let Some(subresource) = subresource {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }
}

/// What a name may hold unescaped in a path.
const PATH_SEGMENT: &percent_encoding::AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

impl fmt::Display for KindName {
    /// `machines.cluster.x-k8s.io`, as `kubectl get` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

/// An object by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    pub kind: KindName,
    pub key: Key,
}

impl ObjectRef {
    /// A reference to a typed object.
    pub fn to<T: Object>(object: &T) -> Self {
        Self { kind: T::KIND.into(), key: object.key() }
    }

    /// A reference by name.
    pub fn new(kind: impl Into<KindName>, key: Key) -> Self {
        Self { kind: kind.into(), key }
    }

    pub fn path(&self, subresource: Option<&str>) -> String {
        self.kind.object_path(&self.key, subresource)
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_group_and_scope() {
        let machines = KindName::namespaced("cluster.x-k8s.io", "v1beta2", "Machine", "machines");
        let mut nodes = KindName::namespaced("", "v1", "Node", "nodes");
        nodes.scope = Scope::Cluster;
        for (kind, key, subresource, path) in [
            (&machines, Key::new("a", "b"), None, "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/b"),
            (
                &machines,
                Key::new("a", "b"),
                Some("status"),
                "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/b/status",
            ),
            (&nodes, Key::new("", "n"), None, "/api/v1/nodes/n"),
        ] {
            assert_eq!(kind.object_path(&key, subresource), path);
        }
        assert_eq!(machines.collection_path(""), "/apis/cluster.x-k8s.io/v1beta2/machines");
    }
}
