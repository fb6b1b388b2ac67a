//! How much of Nova a project may have, and has.

use crate::client::{Call, Client};
use crate::error::Error;
use crate::loose::model;
use crate::resource::encoded;
use crate::service::Service;

model! {
    /// How much of something a project may have, and has.
    pub struct QuotaUse {
        /// What it may have; -1 is without a limit.
        pub limit: i64,
        /// What it has.
        #[serde(alias = "used")]
        pub in_use: i64,
        /// What is about to be made.
        pub reserved: i64,
    }

    /// How much of Nova a project may have, and has.
    pub struct ComputeQuota {
        /// Servers.
        pub instances: QuotaUse,
        /// Processors.
        pub cores: QuotaUse,
        /// Memory, MiB.
        pub ram: QuotaUse,
        /// SSH keys of a user.
        pub key_pairs: QuotaUse,
        /// Groups.
        pub server_groups: QuotaUse,
        /// Servers of a group.
        pub server_group_members: QuotaUse,
        /// Metadata of a server.
        pub metadata_items: QuotaUse,
    }
}

impl QuotaUse {
    /// What is left; none without a limit.
    pub fn left(&self) -> Option<u64> {
        let left = self.limit.saturating_sub(self.in_use).saturating_sub(self.reserved);
        (self.limit >= 0).then(|| u64::try_from(left).unwrap_or_default())
    }
}

impl Client {
    /// How much of Nova a project may have, and has. Members may ask about their own.
    pub async fn compute_quota(&self, project: &str) -> Result<ComputeQuota, Error> {
        let path = format!("os-quota-sets/{}/detail", encoded(project));
        self.read(&Call::read(Service::Compute, path), Some("quota_set")).await
    }
}
