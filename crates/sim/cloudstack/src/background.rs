//! Background tasks: expunge destroyed machines, and shut down networks without running machines. They are scheduled
//! per resource, so an idle cloud has none.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::cloud::Cloud;
use crate::jobs::Event;
use crate::model::compute::{Vm, VmState, Volume};
use crate::model::network::{Network, NetworkState};
use crate::model::table::Key;

/// Duration of the expunge of a machine.
const REMOVAL: Duration = Duration::from_millis(300);

impl Cloud {
    /// Next run of a periodic task that is not before a time.
    fn next_round(&self, not_before: Timestamp, interval: Duration) -> Timestamp {
        let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let since = not_before.as_millisecond() - self.began.as_millisecond();
        let rounds = (since + interval - 1).div_euclid(interval);
        Timestamp::from_millisecond(self.began.as_millisecond() + rounds * interval).unwrap_or(not_before)
    }

    /// Schedules the expunge of a machine that was destroyed or failed now.
    pub(crate) fn sweep_later(&mut self, vm: Key<Vm>) {
        let now = self.now;
        self.vms[vm].swept_from = Some(now);
        let delay = SignedDuration::try_from(self.settings.expunge_delay).unwrap_or_default();
        let at = self.next_round(now + delay, self.settings.expunge_interval);
        self.schedule_at(at, Event::Chore(Box::new(move |cloud| cloud.sweep(vm, now))));
    }

    fn sweep(&mut self, vm: Key<Vm>, since: Timestamp) {
        let row = &self.vms[vm];
        // Recovered, destroyed again or removed meanwhile.
        let due = !row.removed && row.swept_from == Some(since) && row.busy.is_none();
        if !due || !matches!(row.state, VmState::Destroyed | VmState::Error | VmState::Expunging) {
            return;
        }
        self.set_state(vm, VmState::Expunging);
        self.schedule(REMOVAL, Event::Chore(Box::new(move |cloud| cloud.expunge(vm))));
    }

    /// Schedules the removal of a disk that was destroyed now.
    pub(crate) fn clean_up_later(&mut self, volume: Key<Volume>) {
        let delay = SignedDuration::try_from(self.settings.storage_cleanup_delay).unwrap_or_default();
        let at = self.next_round(self.now + delay, self.settings.storage_cleanup_interval);
        let clean_up = move |cloud: &mut Self| {
            if cloud.volumes[volume].destroyed && !cloud.volumes[volume].removed {
                cloud.remove_volume(volume);
            }
        };
        self.schedule_at(at, Event::Chore(Box::new(clean_up)));
    }

    /// Schedules the shutdown of the networks of a machine that stopped.
    pub(crate) fn collect_networks_later(&mut self, vm: Key<Vm>) {
        let networks: Vec<_> = self.vms[vm].nics.iter().map(|nic| nic.network).collect();
        for network in networks {
            if self.networks[network].state != NetworkState::Implemented || self.is_in_use(network) {
                continue;
            }
            let wait = SignedDuration::try_from(self.settings.network_gc_wait).unwrap_or_default();
            let at = self.next_round(self.now + wait, self.settings.network_gc_interval);
            self.schedule_at(at, Event::Chore(Box::new(move |cloud| cloud.collect(network))));
        }
    }

    fn is_in_use(&self, network: Key<Network>) -> bool {
        self.vms.iter().any(|vm| vm.state.occupies() && vm.nics.iter().any(|nic| nic.network == network))
    }

    fn collect(&mut self, network: Key<Network>) {
        let row = &self.networks[network];
        if row.removed || row.state != NetworkState::Implemented || self.is_in_use(network) {
            return;
        }
        self.networks[network].state = NetworkState::Shutdown;
        let after = self.settings.timings.power;
        self.schedule(
            after,
            Event::Chore(Box::new(move |cloud| {
                let row = &mut cloud.networks[network];
                if row.state == NetworkState::Shutdown {
                    row.state = NetworkState::Allocated;
                    row.vlan = None;
                }
            })),
        );
    }
}
