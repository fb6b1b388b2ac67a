//! Detects what others take away from the networks of an account.
//!
//! CloudStack has no watch, and the four lists of rules and addresses a minute are over the budget of two calls a minute
//! and account. Its event log is one list and shows every order that removes something, whoever gave it:
//!
//! ```text
//! each minute: listEvents, newest first ── nothing was removed ─▶ idle
//!                     └── LB.DELETE, FIREWALL.CLOSE, … ─▶ one list per kind for the account ─▶ compared with each record
//! ```
//!
//! A role without `listEvents` has the lists read every five minutes instead.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capstan_cloudstack_client::commands::{
    ListEgressFirewallRules, ListEvents, ListFirewallRules, ListLoadBalancerRules, ListNetworks,
    ListPublicIpAddresses, Scope,
};
use capstan_cloudstack_client::model::{Event, FirewallRule, LoadBalancerRule, Network, PublicIpAddress};
use capstan_cloudstack_client::{Class, Client, Error};
use tokio::time::Instant;

use crate::account_cache::SETTLED;

/// Entries of the event log that are read.
const PAGE: u32 = 100;
/// Interval of comparisons where the event log cannot be read: five lists, so one call a minute on average.
const WITHOUT_EVENTS: Duration = Duration::from_secs(300);

/// Networks of an account, and what is on them. Each list was complete when it was read.
#[derive(Debug, Default)]
pub(crate) struct NetworkInventory {
    pub networks: Vec<Network>,
    pub addresses: Vec<PublicIpAddress>,
    pub rules: Vec<LoadBalancerRule>,
    pub ingress: Vec<FirewallRule>,
    pub egress: Vec<FirewallRule>,
}

impl NetworkInventory {
    async fn list(client: &Client, scope: &Scope) -> Result<Self, Error> {
        let scope = || scope.clone();
        Ok(Self {
            networks: client.list(&ListNetworks { scope: scope(), ..Default::default() }).await?,
            addresses: client.list(&ListPublicIpAddresses { scope: scope(), ..Default::default() }).await?,
            rules: client.list(&ListLoadBalancerRules { scope: scope(), ..Default::default() }).await?,
            ingress: client.list(&ListFirewallRules { scope: scope(), ..Default::default() }).await?,
            egress: client.list(&ListEgressFirewallRules { scope: scope(), ..Default::default() }).await?,
        })
    }
}

/// What the last poll of an account showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Polled {
    /// Something was removed before this moment; who compared later knows of it.
    pub removed: Option<Instant>,
    /// Time until the next poll.
    pub next: Duration,
}

/// Drift detection of an account.
#[derive(Default)]
pub(crate) struct DriftDetector {
    polled: Option<Instant>,
    log: SeenEvents,
    without_events: bool,
    removed: Option<Instant>,
    inventory: Option<(Instant, Arc<NetworkInventory>)>,
}

impl DriftDetector {
    /// Polls the account unless that was done within the last minute.
    pub(crate) async fn poll(&mut self, client: &Client, scope: &Scope) -> Result<Polled, Error> {
        let every = if self.without_events { WITHOUT_EVENTS } else { SETTLED };
        let age = self.polled.map(|at| at.elapsed());
        if let Some(age) = age.filter(|age| *age < every) {
            return Ok(Polled { removed: self.removed, next: every - age });
        }
        let now = Instant::now();
        let question = ListEvents { scope: scope.clone() };
        let removed = match client.first_page(&question, PAGE).await {
            Ok((events, count)) => {
                self.without_events = false;
                self.log.removed(&events, count)
            }
            Err(error) if error.class() == Class::Permission => {
                self.without_events = true;
                true
            }
            Err(error) => return Err(error),
        };
        self.polled = Some(now);
        if removed {
            self.removed = Some(Instant::now());
        }
        let every = if self.without_events { WITHOUT_EVENTS } else { SETTLED };
        Ok(Polled { removed: self.removed, next: every.saturating_sub(now.elapsed()) })
    }

    /// The networks of the account, listed after a moment.
    pub(crate) async fn inventory(
        &mut self,
        client: &Client,
        scope: &Scope,
        after: Instant,
    ) -> Result<(Instant, Arc<NetworkInventory>), Error> {
        if let Some((at, known)) = self.inventory.as_ref().filter(|(at, _)| *at >= after) {
            return Ok((*at, known.clone()));
        }
        let at = Instant::now();
        let listed = Arc::new(NetworkInventory::list(client, scope).await?);
        self.inventory = Some((at, listed.clone()));
        Ok((at, listed))
    }

    /// Drops the inventory: a call of ours changed something.
    pub(crate) fn changed(&mut self) {
        self.inventory = None;
    }
}

/// The part of the event log that was read before.
#[derive(Debug, Default)]
struct SeenEvents {
    ids: BTreeSet<String>,
    count: usize,
}

impl SeenEvents {
    /// Whether the newest entries may contain the removal of a rule, an address or a network that was not seen before.
    /// They may where entries are missing between those that were seen and these.
    fn removed(&mut self, newest: &[Event], count: usize) -> bool {
        let new: Vec<&Event> = newest.iter().filter(|event| !self.ids.contains(&event.id)).collect();
        let is_first = self.ids.is_empty();
        let gap = !is_first && (new.len() == newest.len() || count > self.count.saturating_add(new.len()));
        let removes = new.iter().any(|event| event.kind.as_deref().is_some_and(is_removal));
        self.ids = newest.iter().map(|event| event.id.clone()).collect();
        self.count = count;
        removes || gap && !newest.is_empty()
    }
}

/// An event type of an order that may take away what leads to an API server.
fn is_removal(kind: &str) -> bool {
    matches!(
        kind,
        "LB.DELETE"
            | "FIREWALL.CLOSE"
            | "FIREWALL.EGRESS.CLOSE"
            | "NET.IPRELEASE"
            | "NETWORK.DELETE"
            | "NETWORK.RESTART"
            | "NETWORK.UPDATE"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(kinds: &[(&str, &str)]) -> Vec<Event> {
        let event = |(id, kind): &(&str, &str)| Event {
            id: (*id).to_owned(),
            kind: Some((*kind).to_owned()),
            state: None,
            level: None,
            created: None,
        };
        kinds.iter().map(event).collect()
    }

    #[test]
    fn only_removals_that_are_new_or_may_have_been_missed_lead_to_a_comparison() {
        let mut log = SeenEvents::default();
        assert!(!log.removed(&[], 0), "an account without events");
        assert!(!log.removed(&events(&[("1", "LB.CREATE"), ("2", "VM.CREATE")]), 2), "nothing is removed");
        assert!(log.removed(&events(&[("2", "VM.CREATE"), ("3", "LB.DELETE")]), 3), "a removal");
        assert!(!log.removed(&events(&[("2", "VM.CREATE"), ("3", "LB.DELETE")]), 3), "the same again");
        assert!(!log.removed(&events(&[("3", "LB.DELETE"), ("4", "VM.STOP")]), 2), "older ones were purged");
        assert!(log.removed(&events(&[("8", "VM.STOP"), ("9", "VM.START")]), 7), "some were missed");
        assert!(log.removed(&events(&[("8", "VM.STOP"), ("9", "VM.START")]), 9), "some are not shown");
    }

    #[test]
    fn a_removal_before_the_first_poll_counts() {
        assert!(SeenEvents::default().removed(&events(&[("1", "FIREWALL.EGRESS.CLOSE")]), 1));
    }
}
