//! Take-over of clusters from another management cluster: the provider's part of `capstan adopt`.

use capstan_controller::{KindName, Runtime};
use capstan_object::Key;
use serde_json::Value;

/// What `capstan adopt` needs to know of a provider. Objects are JSON as the source has them, in any served version,
/// with the uids of the source.
pub trait Adoption: Send + Sync {
    /// The kind of infrastructure cluster, such as `CloudStackCluster`.
    fn cluster_kind(&self) -> &'static str;

    /// Secrets with credentials that the objects of a cluster refer to.
    fn credentials(&self, objects: &[Value]) -> Vec<CredentialRef>;

    /// Records on the objects of a cluster what is lost when they get new uids, such as uids in ownership marks.
    fn record(&self, objects: &mut [Value]);

    /// The provider's controllers on connections that only read.
    fn observer(&self) -> Box<dyn Observer>;
}

/// A front end, whose objects users write and Cluster API's objects are generated from, when clusters are taken over.
pub trait FrontEnd: Send + Sync {
    /// The kinds of its objects.
    fn kinds(&self) -> Vec<KindName>;

    /// The objects that describe a Cluster of Cluster API, paused. The first owns the others.
    fn manifests(&self, objects: &[Value], cluster: &Key) -> Vec<Value>;

    /// Makes an object of the cluster known as generated from these manifests, if it was.
    fn connect(&self, object: &mut Value, manifests: &[Value]);

    /// Whether several clusters may use an object.
    fn is_shared(&self, object: &Value) -> bool;

    /// Whether its controllers leave an object alone.
    fn is_paused(&self, object: &Value) -> bool;

    /// Merge patch that pauses one of its objects.
    fn pause(&self) -> Value;
}

/// A reference to a Secret with credentials.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CredentialRef {
    /// `Kind/name` of the object that refers to it.
    pub object: String,
    /// Such as `spec.failureDomains[0].acsEndpoint`.
    pub field: String,
    pub secret: Key,
}

/// Controllers that read clouds and change nothing there: commands that would are refused before they are sent.
pub trait Observer: Send + Sync {
    fn add_controllers(&self, runtime: &mut Runtime);

    /// The refused commands with their parameters, each once, in order. Contains no secrets.
    fn refused(&self) -> Vec<String>;
}
