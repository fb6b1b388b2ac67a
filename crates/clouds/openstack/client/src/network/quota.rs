//! How much of Neutron a project may have, and has.

use crate::client::{Call, Client};
use crate::compute::QuotaUse;
use crate::error::Error;
use crate::loose::model;
use crate::resource::encoded;
use crate::service::Service;

model! {
    /// How much of Neutron a project may have, and has.
    pub struct NetworkQuota {
        /// Networks.
        pub network: QuotaUse,
        /// Subnets.
        pub subnet: QuotaUse,
        /// Ports.
        pub port: QuotaUse,
        /// Routers.
        pub router: QuotaUse,
        /// Floating IPs.
        pub floatingip: QuotaUse,
        /// Security groups; the default group counts.
        pub security_group: QuotaUse,
        /// Their rules.
        pub security_group_rule: QuotaUse,
        /// Trunks.
        pub trunk: QuotaUse,
    }
}

impl Client {
    /// How much of Neutron a project may have, and has. Members may ask about their own.
    pub async fn network_quota(&self, project: &str) -> Result<NetworkQuota, Error> {
        let path = format!("quotas/{}/details", encoded(project));
        self.read(&Call::read(Service::Network, path), Some("quota")).await
    }
}
