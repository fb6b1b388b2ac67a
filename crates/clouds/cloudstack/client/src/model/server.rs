//! What a server can do.

use serde::{Deserialize, Serialize};

use crate::loose;

/// How a server is set up, as far as users may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Release, such as `4.22.1.1`.
    pub cloudstackversion: Option<String>,
    /// Ordinary users may expunge and recover machines.
    #[serde(default, deserialize_with = "loose::truth")]
    pub allowuserexpungerecovervm: bool,
    /// Ordinary users may expunge and recover volumes.
    #[serde(default, deserialize_with = "loose::truth")]
    pub allowuserexpungerecovervolume: bool,
    /// Ordinary users see destroyed machines.
    #[serde(default, deserialize_with = "loose::truth")]
    pub allowuserviewdestroyedvm: bool,
    /// The Kubernetes service is on: without it the server does not know its commands.
    #[serde(default, deserialize_with = "loose::truth")]
    pub kubernetesserviceenabled: bool,
    /// Ordinary users may make projects.
    #[serde(default, deserialize_with = "loose::truth")]
    pub allowusercreateprojects: bool,
    /// Some zone has security groups.
    #[serde(default, deserialize_with = "loose::truth")]
    pub securitygroupsenabled: bool,
    /// Gigabytes of the smallest disk of one's own size.
    #[serde(default, deserialize_with = "loose::number")]
    pub customdiskofferingminsize: Option<u64>,
    /// Gigabytes of the largest disk of one's own size.
    #[serde(default, deserialize_with = "loose::number")]
    pub customdiskofferingmaxsize: Option<u64>,
    /// Requests per account in the interval, where they are limited.
    #[serde(default, deserialize_with = "loose::number")]
    pub apilimitmax: Option<u32>,
    /// Seconds of that interval.
    #[serde(default, deserialize_with = "loose::number")]
    pub apilimitinterval: Option<u32>,
}

/// A command that the caller may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Api {
    /// Name of the API.
    pub name: String,
    /// Whether it begins a job.
    #[serde(default, deserialize_with = "loose::truth")]
    pub isasync: bool,
    /// Parameters of the API.
    #[serde(default)]
    pub params: Vec<ApiParameter>,
}

/// A parameter of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiParameter {
    /// Name of the API parameter.
    pub name: String,
    /// Whether the command needs it.
    #[serde(default, deserialize_with = "loose::truth")]
    pub required: bool,
}
