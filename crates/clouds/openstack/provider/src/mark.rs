//! Whose a thing in the cloud is. Names say cluster and namespace, as CAPO's do, and two management clusters may use the
//! same. What this provider creates also says which object it was created for: in its description, servers in metadata.

use capstan_object::ObjectMeta;
use capstan_openstack_client::compute::Server;
use capstan_provider_kit::mark::{self, InText};

pub(crate) use capstan_provider_kit::mark::Owner;

/// On OpenStackClusters and OpenStackServers: what their things in the cloud are marked with. It survives `clusterctl
/// move`, which changes uids.
pub const ANNOTATION: &str = "capstan.dev/openstack-mark";

/// Key of the mark in the metadata of servers.
pub(crate) const METADATA: &str = "capstan-mark";

/// The mark in descriptions.
const TEXT: InText = InText { prefix: " capstan-mark=" };

/// The mark of an object.
pub(crate) fn of(meta: &ObjectMeta) -> String {
    mark::of(meta, ANNOTATION)
}

/// A server has the mark in its metadata.
pub(crate) fn is_on_server(server: &Server, mark: &str) -> bool {
    server.metadata.get(METADATA).is_some_and(|held| held == mark)
}

/// CAPO's description of things of a cluster.
pub(crate) fn words(namespace: &str, cluster: &str) -> String {
    format!("Created by cluster-api-provider-openstack cluster {namespace}-{cluster}")
}

/// CAPO's description of things of a cluster, with the mark.
pub(crate) fn description(namespace: &str, cluster: &str, mark: &str) -> String {
    with(&words(namespace, cluster), mark)
}

pub(crate) fn with(words: &str, mark: &str) -> String {
    TEXT.with(words, mark)
}

/// The mark in a description.
pub(crate) fn held(description: &str) -> Option<&str> {
    TEXT.held(description)
}

/// Whose a thing with this description is. What has no mark is CAPO's, or older than marks.
pub(crate) fn owner(description: &str, mark: &str) -> Owner {
    TEXT.owner(description, mark)
}
