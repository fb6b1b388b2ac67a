//! The clouds of the demo. To demo another, add it here.

/// Help of the command.
pub const ABOUT: &str =
    "Start a management cluster, a simulated CloudStack or OpenStack and a cluster on it, in about a minute";

/// Help of the flag that chooses one.
pub const CLOUD_HELP: &str =
    "The simulated cloud; defaults to cloudstack, or the one that the data directory was created with";

/// The port of API servers in the sample clusters; replaced by that of the data directory.
pub const SAMPLE_PORT: u16 = 16443;

/// A cloud to demo.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its provider, in the program's list of clouds; the value of `--cloud`.
    pub provider: &'static str,
    /// Display name of the cloud.
    pub name: &'static str,
    /// The sample cluster.
    pub cluster: &'static str,
    /// The kind of the templates that hints name.
    #[cfg(test)]
    pub template_kind: &'static str,
    /// The cloud's machine kind, for kubectl.
    pub machines: &'static str,
    /// The Secret that the sample cluster refers to.
    pub credentials: &'static str,
    /// How long the sample cluster takes at speed 1, in seconds.
    pub unhurried_seconds: u32,
}

/// The first is the default.
pub const CHOICES: [Choice; 2] = [
    Choice {
        provider: "cloudstack",
        name: "CloudStack",
        cluster: include_str!("../../../examples/demo.yaml"),
        #[cfg(test)]
        template_kind: "CloudStackMachineTemplate",
        machines: "cloudstackmachine",
        credentials: "cloudstack-credentials",
        unhurried_seconds: 165,
    },
    Choice {
        provider: "openstack",
        name: "OpenStack",
        cluster: include_str!("../../../examples/demo-openstack.yaml"),
        #[cfg(test)]
        template_kind: "OpenStackMachineTemplate",
        machines: "openstackmachine",
        credentials: "openstack-credentials",
        unhurried_seconds: 240,
    },
];

/// The values of `--cloud`.
pub const PROVIDERS: [&str; CHOICES.len()] = [CHOICES[0].provider, CHOICES[1].provider];

pub fn find(provider: &str) -> Option<&'static Choice> {
    CHOICES.iter().find(|choice| choice.provider == provider)
}
