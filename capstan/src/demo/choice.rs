//! The cloud of the demo. To demo another, change this file.

/// Help of the command.
pub const ABOUT: &str =
    "Start a management cluster, a simulated CloudStack and a cluster on it, in about a minute";

/// Display name of the cloud.
pub const CLOUD: &str = "CloudStack";
/// Its provider, in the program's list of clouds.
pub const PROVIDER: &str = "cloudstack";
/// A path that only its simulator answers with JSON.
pub const PROBE: &str = "/sim/faults";

/// The sample cluster.
pub const CLUSTER: &str = include_str!("../../../examples/demo.yaml");
/// The kind whose `spec.controlPlaneEndpoint.port` is set to the demo's.
pub const CLUSTER_KIND: &str = "CloudStackCluster";
/// The kind of the templates that hints name.
#[cfg(test)]
pub const TEMPLATE_KIND: &str = "CloudStackMachineTemplate";
/// The cloud's machine kind, for kubectl.
pub const MACHINES: &str = "cloudstackmachine";
/// The Secret that the sample cluster refers to.
pub const CREDENTIALS: &str = "cloudstack-credentials";
