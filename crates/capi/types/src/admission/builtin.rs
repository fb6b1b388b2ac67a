//! The builtin variables that patches of a class can name.

/// What is known of a cluster and of each part of it, below `builtin`. Fields of labels and annotations, and entries of
/// lists, cannot be named: templates can use them.
const VARIABLES: [(&str, &[&str]); 4] = [
    (
        "cluster",
        &[
            "",
            "name",
            "namespace",
            "uid",
            "metadata.labels",
            "metadata.annotations",
            "topology",
            "topology.classRef.name",
            "topology.classRef.namespace",
            "topology.class",
            "topology.classNamespace",
            "topology.version",
            "network",
            "network.serviceDomain",
            "network.services",
            "network.pods",
        ],
    ),
    (
        "controlPlane",
        &[
            "",
            "name",
            "replicas",
            "version",
            "metadata.labels",
            "metadata.annotations",
            "machineTemplate.infrastructureRef.name",
        ],
    ),
    ("machineDeployment", &WORKERS),
    ("machinePool", &WORKERS),
];

const WORKERS: [&str; 10] = [
    "",
    "class",
    "name",
    "replicas",
    "topologyName",
    "version",
    "metadata.labels",
    "metadata.annotations",
    "bootstrap.configRef.name",
    "infrastructureRef.name",
];

/// The path below `builtin`, if it begins there.
pub(super) fn below(path: &str) -> Option<&str> {
    path.strip_prefix(crate::variables::BUILTIN)?.strip_prefix('.')
}

/// Whether there is a variable at a path below `builtin`.
pub(super) fn is_variable(path: &str) -> bool {
    let (part, field) = match path.split_once('.') {
        Some((_, "")) => return false,
        Some(split) => split,
        None => (path, ""),
    };
    VARIABLES.iter().any(|(known, fields)| *known == part && fields.contains(&field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_variables_are_known_by_their_whole_path() {
        for (path, expected) in [
            ("builtin.cluster", Some(true)),
            ("builtin.cluster.topology.classRef.name", Some(true)),
            ("builtin.controlPlane.machineTemplate.infrastructureRef.name", Some(true)),
            ("builtin.machinePool.bootstrap.configRef.name", Some(true)),
            ("builtin.", Some(false)),
            ("builtin.cluster.", Some(false)),
            ("builtin.nowhere", Some(false)),
            ("builtin.cluster.network.pods[0]", Some(false)),
            ("builtin.cluster.metadata", Some(false)),
            ("builtin.machineDeployment.uid", Some(false)),
            ("builtin", None),
            ("builtins.cluster", None),
        ] {
            assert_eq!(below(path).map(is_variable), expected, "{path}");
        }
    }
}
