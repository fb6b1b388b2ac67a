//! Names of definitions, tags and operations.

/// Name of a custom resource's definition: the group reversed, version, kind.
pub fn custom_definition(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{kind}", parts.join("."))
}

/// Tag of a group-version's operations: `apps_v1`, `exampleCom_v1`.
pub fn tag(group: &str, version: &str) -> String {
    format!("{}_{}", identifier(trimmed(group), false), identifier(version, false))
}

/// Identifier of an operation: verb, group, version, then the object of the verb.
pub fn operation(verb: &str, group: &str, version: &str, rest: &str) -> String {
    let (group, version, rest) =
        (identifier(trimmed(group), true), identifier(version, true), identifier(rest, true));
    format!("{verb}{group}{version}{rest}")
}

fn trimmed(group: &str) -> &str {
    match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    }
}

/// Letters, digits and underscores. Other characters are dropped and the next letter is capitalised.
fn identifier(text: &str, capitalize: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut capital = capitalize;
    for (index, letter) in text.char_indices() {
        if !(letter.is_alphabetic() || letter == '_' || (index != 0 && letter.is_numeric())) {
            capital = true;
        } else if capital {
            out.extend(letter.to_uppercase());
            capital = false;
        } else {
            out.push(letter);
        }
    }
    out
}

/// The first letter in upper case.
pub fn title(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_upstream() {
        assert_eq!(
            custom_definition("cluster.x-k8s.io", "v1beta2", "Cluster"),
            "io.x-k8s.cluster.v1beta2.Cluster"
        );
        assert_eq!(tag("", "v1"), "core_v1");
        assert_eq!(tag("example.com", "v1"), "exampleCom_v1");
        assert_eq!(tag("rbac.authorization.k8s.io", "v1"), "rbacAuthorization_v1");
        assert_eq!(
            operation("list", "example.com", "v1", "NamespacedWidget"),
            "listExampleComV1NamespacedWidget"
        );
        assert_eq!(
            operation("delete", "cluster.x-k8s.io", "v1beta2", "CollectionNamespacedCluster"),
            "deleteClusterXK8sIoV1beta2CollectionNamespacedCluster"
        );
        assert_eq!(operation("read", "", "v1", "NamespacedPodStatus"), "readCoreV1NamespacedPodStatus");
        assert_eq!(title("status"), "Status");
    }
}
