//! What is left of the quotas of a project, and what the machines and clusters of a plan take of them.

use std::collections::BTreeMap;

use capstan_object::Key;
use capstan_openstack_client::compute::QuotaUse;
use capstan_openstack_client::load_balancer::LoadBalancer;
use capstan_openstack_client::{Class, Error};
use capstan_openstack_types::v1beta2::OpenStackMachineSpec;
use capstan_provider_kit::{Amount, Left, OtherLimit};

use crate::cluster::Needs;
use crate::error::CloudError;
use crate::project::{Access, SETTLED};

/// What is taken of the quotas of a project.
pub(super) struct Taken {
    pub machines: BTreeMap<Key, OpenStackMachineSpec>,
    pub clusters: Needs,
    /// Floating IPs that pools of these machines hold and nobody uses.
    pub pooled: u64,
}

/// What is left of the quotas of a project.
pub(super) struct Limits {
    pub left: Result<Left, String>,
    pub others: Vec<OtherLimit>,
    /// Quotas that are not known, and why.
    pub unknown: Vec<String>,
}

/// Why a quota is not known.
fn why(error: &Error) -> String {
    match error.class() {
        // Some clouds keep quotas from members.
        Class::Permission => "the project may not read it".to_owned(),
        _ => CloudError::of(error).text(),
    }
}

fn amount(left: Option<u64>) -> Amount {
    left.map_or(Amount::Unlimited, |left| Amount::Limited(i64::try_from(left).unwrap_or(i64::MAX)))
}

fn left(quota: QuotaUse) -> Amount {
    amount(quota.left())
}

/// What is left of a limit where -1 is without one.
fn rest(limit: i64, used: i64) -> Amount {
    if limit < 0 { Amount::Unlimited } else { Amount::Limited(limit.saturating_sub(used)) }
}

fn volumes(spec: &OpenStackMachineSpec) -> impl Iterator<Item = u64> + '_ {
    let root = spec.root_volume.iter().map(|root| root.size_gib);
    let more = spec.additional_block_devices.iter().filter(|device| device.storage.kind == "Volume");
    root.chain(more.map(|device| device.size_gib)).map(|size| u64::try_from(size).unwrap_or_default())
}

impl Taken {
    fn each(&self, of: impl Fn(&OpenStackMachineSpec) -> u64) -> BTreeMap<Key, u64> {
        self.machines.iter().map(|(key, spec)| (key.clone(), of(spec))).collect()
    }
}

pub(super) async fn limits(taken: &Taken, access: &Access) -> Limits {
    let (client, project) = (&access.client, access.project.id.as_str());
    let compute = client.compute_quota(project).await.map_err(|error| why(&error));
    let mut limits = Limits {
        left: compute.map(|quota| Left {
            machines: Some(left(quota.instances)),
            cpus: Some(left(quota.cores)),
            memory_mib: Some(left(quota.ram)),
        }),
        others: Vec::new(),
        unknown: Vec::new(),
    };
    limits.networks(taken, access).await;
    let each = taken.each(|spec| volumes(spec).count().try_into().unwrap_or(u64::MAX));
    if each.values().any(|count| *count > 0) {
        match client.volume_limits().await {
            Ok(quota) => {
                limits.add("volumes", rest(quota.max_volumes, quota.volumes_used), each, 0);
                let each = taken.each(|spec| volumes(spec).fold(0, u64::saturating_add));
                limits.add("GiB of volumes", rest(quota.max_gigabytes, quota.gigabytes_used), each, 0);
            }
            Err(error) => limits.unknown("volumes", &error),
        }
    }
    if taken.clusters.load_balancers > 0 {
        match load_balancers(access).await {
            Ok(left) => limits.add("load balancers", left, BTreeMap::new(), taken.clusters.load_balancers),
            Err(error) => limits.unknown("load balancers", &error),
        }
    }
    limits
}

async fn load_balancers(access: &Access) -> Result<Amount, Error> {
    let quota = access.client.load_balancer_quota(&access.project.id).await?;
    let held = access.all::<LoadBalancer>(SETTLED).await?.len();
    Ok(rest(quota.load_balancer.unwrap_or(-1), i64::try_from(held).unwrap_or(i64::MAX)))
}

impl Limits {
    fn add(&mut self, what: &'static str, left: Amount, by_machine: BTreeMap<Key, u64>, besides: u64) {
        self.others.push(OtherLimit { what, left, by_machine, besides });
    }

    fn unknown(&mut self, what: &str, error: &Error) {
        self.unknown.push(format!("the quota of {what} is not known: {}", why(error)));
    }

    async fn networks(&mut self, taken: &Taken, access: &Access) {
        let quota = match access.client.network_quota(&access.project.id).await {
            Ok(quota) => quota,
            Err(error) => return self.unknown("ports and floating IPs", &error),
        };
        let clusters = taken.clusters;
        // A machine without ports in its spec has one.
        let ports = taken.each(|spec| u64::try_from(spec.ports.len()).unwrap_or(u64::MAX).max(1));
        self.add("ports", left(quota.port), ports, clusters.ports);
        let addresses = taken.each(|spec| u64::from(spec.floating_ip_pool_ref.is_some()));
        let free = quota.floatingip.left().map(|left| left.saturating_add(taken.pooled));
        self.add("floating IPs", amount(free), addresses, clusters.floating_ips);
        for (what, quota, needed) in [
            ("networks", quota.network, clusters.networks),
            ("subnets", quota.subnet, clusters.subnets),
            ("routers", quota.router, clusters.routers),
            ("security groups", quota.security_group, clusters.security_groups),
        ] {
            self.add(what, left(quota), BTreeMap::new(), needed);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_are_the_root_volume_and_devices_in_cinder() {
        let spec: OpenStackMachineSpec = serde_json::from_value(json!({
            "flavor": {"id": "f"}, "image": {"id": "i"}, "rootVolume": {"sizeGiB": 20},
            "additionalBlockDevices": [
                {"name": "a", "sizeGiB": 5, "storage": {"type": "Volume"}},
                {"name": "b", "sizeGiB": 9, "storage": {"type": "Local"}},
            ],
        }))
        .expect("a spec");
        assert_eq!(volumes(&spec).collect::<Vec<_>>(), [20, 5]);
    }

    #[test]
    fn a_lowered_limit_leaves_less_than_nothing_and_minus_one_is_no_limit() {
        assert_eq!((rest(2, 5), rest(-1, 5)), (Amount::Limited(-3), Amount::Unlimited));
    }
}
