//! Leaks: resources of accounts that are not in the baseline.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::cloud::Cloud;
use crate::model::identity::Account;
use crate::model::table::{Key, Table};

/// A resource of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Leak {
    pub account: String,
    /// Kind, as the API names it.
    pub kind: &'static str,
    /// Its UUID.
    pub id: String,
    /// Its name or address.
    pub name: String,
}

impl Cloud {
    /// Resources of all accounts, without those of the cloud itself.
    pub(crate) fn owned_resources(&self) -> BTreeSet<Leak> {
        let mut all = BTreeSet::new();
        let mut add = |kind, account: Key<Account>, id: &str, name: String| {
            let account = self.accounts[account].name.clone();
            all.insert(Leak { account, kind, id: id.to_owned(), name });
        };
        fn rows<T>(
            table: &Table<T>,
            kind: &'static str,
            of: impl Fn(&T) -> (Key<Account>, String),
            add: &mut impl FnMut(&'static str, Key<Account>, &str, String),
        ) {
            for row in table.iter() {
                let (account, name) = of(row);
                add(kind, account, &row.uuid, name);
            }
        }
        rows(&self.vms, "virtualmachine", |it| (it.account, it.name.clone()), &mut add);
        rows(&self.networks, "network", |it| (it.account, it.name.clone()), &mut add);
        rows(&self.vpcs, "vpc", |it| (it.account, it.name.clone()), &mut add);
        rows(&self.lb_rules, "loadbalancerrule", |it| (it.account, it.name.clone()), &mut add);
        rows(&self.firewall_rules, "firewallrule", |it| (it.account, it.protocol.clone()), &mut add);
        rows(&self.forwardings, "portforwardingrule", |it| (it.account, it.protocol.clone()), &mut add);
        rows(&self.affinity_groups, "affinitygroup", |it| (it.account, it.name.clone()), &mut add);
        rows(&self.ssh_keys, "sshkeypair", |it| (it.account, it.name.clone()), &mut add);
        rows(&self.kubernetes_clusters, "kubernetescluster", |it| (it.account, it.name.clone()), &mut add);
        // A destroyed disk only waits for the cleanup of the storage.
        for volume in self.volumes.iter().filter(|volume| !volume.destroyed) {
            add("volume", volume.account, &volume.uuid, volume.name.clone());
        }
        for ip in self.ips.iter() {
            if let Some(held) = ip.held.as_ref().filter(|held| !held.system) {
                add("publicipaddress", held.account, &ip.uuid, ip.address.to_string());
            }
        }
        for tag in &self.tags {
            add("tag", tag.account, &tag.resource, tag.key.clone());
        }
        all
    }
}
