//! Whose a thing in the cloud is. Names say cluster and namespace, as CAPO's do, and two management clusters may use the
//! same. What this provider creates also says which object it was created for: in its description, servers in metadata.

use capstan_object::ObjectMeta;

/// On OpenStackClusters and OpenStackServers: what their things in the cloud are marked with. It survives `clusterctl
/// move`, which changes uids.
pub const ANNOTATION: &str = "capstan.dev/openstack-mark";

/// Key of the mark in the metadata of servers.
pub(crate) const METADATA: &str = "capstan-mark";

/// In front of the mark in descriptions.
const IN_DESCRIPTION: &str = " capstan-mark=";

/// The mark of an object.
pub(crate) fn of(meta: &ObjectMeta) -> String {
    meta.annotations.get(ANNOTATION).unwrap_or(&meta.uid).clone()
}

/// CAPO's description of things of a cluster.
pub(crate) fn words(namespace: &str, cluster: &str) -> String {
    format!("Created by cluster-api-provider-openstack cluster {namespace}-{cluster}")
}

/// CAPO's description of things of a cluster, with the mark.
pub(crate) fn description(namespace: &str, cluster: &str, mark: &str) -> String {
    with(&words(namespace, cluster), mark)
}

/// Words with the mark.
pub(crate) fn with(words: &str, mark: &str) -> String {
    format!("{words}{IN_DESCRIPTION}{mark}")
}

/// Whose a thing with this description is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Ours by its mark.
    Ours,
    /// No mark: CAPO's or older than marks. It is taken over by its name.
    Unmarked,
    /// It has the mark of another object.
    Foreign,
}

/// The mark in a description.
pub(crate) fn held(description: &str) -> Option<&str> {
    description.rsplit_once(IN_DESCRIPTION).map(|(_, mark)| mark)
}

pub(crate) fn owner(description: &str, mark: &str) -> Owner {
    match held(description) {
        Some(held) if held == mark => Owner::Ours,
        Some(_) => Owner::Foreign,
        None => Owner::Unmarked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_distinguishes_ours_from_others_and_from_what_has_none() {
        let ours = description("ns", "c", "m1");
        assert_eq!(owner(&ours, "m1"), Owner::Ours);
        assert_eq!(owner(&ours, "m2"), Owner::Foreign);
        assert_eq!(owner("Cluster API managed group", "m1"), Owner::Unmarked);
    }
}
