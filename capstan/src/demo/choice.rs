//! The cloud that the demonstration shows. Whoever wants another changes this file.

/// Help of the command.
pub const ABOUT: &str =
    "Show it all at once: a management cluster, a simulated CloudStack, and a cluster on it in a minute";

/// What people call the cloud.
pub const CLOUD: &str = "CloudStack";
/// Its provider, in the program's list of clouds.
pub const PROVIDER: &str = "cloudstack";
/// What its simulator answers with JSON, and nobody else does.
pub const PROBE: &str = "/sim/faults";

/// The sample cluster.
pub const CLUSTER: &str = include_str!("../../../examples/demo.yaml");
/// The kind whose `spec.controlPlaneEndpoint.port` is the demonstration's.
pub const CLUSTER_KIND: &str = "CloudStackCluster";
/// The kind of the templates that hints name.
#[cfg(test)]
pub const TEMPLATE_KIND: &str = "CloudStackMachineTemplate";
/// The cloud's machines, as kubectl takes them.
pub const MACHINES: &str = "cloudstackmachine";
/// The Secret that the sample cluster names.
pub const CREDENTIALS: &str = "cloudstack-credentials";
