//! Which host a machine goes to.

use crate::cloud::Cloud;
use crate::model::compute::{AffinityKind, Vm};
use crate::model::place::{Host, HostState};
use crate::model::table::Key;

impl Cloud {
    /// Cores, MHz and MiB that are given away on a host.
    pub(crate) fn allocated_on(&self, host: Key<Host>) -> (u64, u64, u64) {
        let mut sum = self.hosts[host].system;
        for vm in self.vms.iter().filter(|vm| vm.host == Some(host) && vm.state.occupies()) {
            sum.0 += vm.size.cores;
            sum.1 += vm.size.cores * vm.size.mhz;
            sum.2 += vm.size.memory_mib;
        }
        sum
    }

    /// The host with the most memory left that takes a machine and honours its affinity groups. The server chooses at
    /// random among those; one seed must give one trace.
    pub(super) fn place(&self, vm: Key<Vm>, without: &[Key<Host>]) -> Option<Key<Host>> {
        if self.full {
            return None;
        }
        let row = &self.vms[vm];
        let size = row.size;
        let others_on = |host: Key<Host>, kind: AffinityKind| {
            row.affinity.iter().filter(|group| self.affinity_groups[**group].kind == kind).any(|group| {
                self.vms.iter().any(|other| {
                    other.key != vm
                        && other.affinity.contains(group)
                        && other.host == Some(host)
                        && other.state.occupies()
                })
            })
        };
        let company = self.hosts.iter().any(|host| others_on(host.key, AffinityKind::Together));
        self.hosts
            .iter()
            .filter(|host| {
                host.zone == row.zone && host.state == HostState::Enabled && !without.contains(&host.key)
            })
            .filter_map(|host| {
                let used = self.allocated_on(host.key);
                let memory = host.memory_mib.checked_sub(used.2 + size.memory_mib)?;
                (host.cores * host.mhz).checked_sub(used.1 + size.cores * size.mhz)?;
                let fits = size.cores <= host.cores
                    && !others_on(host.key, AffinityKind::Anti)
                    && (!company || others_on(host.key, AffinityKind::Together));
                let liked = others_on(host.key, AffinityKind::SoftTogether);
                let disliked = others_on(host.key, AffinityKind::SoftAnti);
                fits.then_some(((disliked, !liked, std::cmp::Reverse(memory), host.key), host.key))
            })
            .min_by_key(|(order, _)| *order)
            .map(|(_, host)| host)
    }
}
