//! Detects what others change in the networks of an account.
//!
//! CloudStack has no watch, and the four lists of rules and addresses a minute are over the budget of two calls a minute
//! and account. Its event log is one list and shows every order, whoever gave it:
//!
//! ```text
//! each minute: listEvents, newest first ── nothing was changed ─▶ idle
//!                     ├── LB.DELETE, FIREWALL.CLOSE, … ─▶ one list per kind for the account ─▶ compared with each record,
//!                     │                                   and once more a poll later: an order is logged before it is done
//!                     ├── FIREWALL.OPEN, … ─▶ the same, for clusters whose manifest says who may come in
//!                     └── LB.REMOVE.FROM.RULE ─▶ one list per rule ─▶ compared with its machines
//! ```
//!
//! Some orders of an administrator are in no log but their own. What they change is listed every ten minutes where a cluster
//! depends on it: ingress rules where the manifest says who may come in, networks and access lists where it is on a tier.
//! The polls are that much rarer then: one list takes the place of one poll.
//!
//! A role without `listEvents` has the lists read every five minutes instead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use capstan_cloudstack_client::commands::{
    ListEgressFirewallRules, ListEvents, ListFirewallRules, ListLoadBalancerRuleInstances,
    ListLoadBalancerRules, ListNetworkAcls, ListNetworks, ListPublicIpAddresses, Scope,
};
use capstan_cloudstack_client::model::{
    Event, FirewallRule, LoadBalancerRule, Network, NetworkAclRule, PublicIpAddress,
};
use capstan_cloudstack_client::{Class, Client, Error, LoadBalancerRuleId, VirtualMachineId};
use tokio::time::Instant;

use crate::isolated_network::has_acl;

/// Entries of the event log that are read.
const PAGE: u32 = 100;
/// Interval of comparisons where the event log cannot be read: five lists, so one call a minute on average.
const WITHOUT_EVENTS: Duration = Duration::from_secs(300);

/// Interval of the lists of what the event log may not show.
const UNLOGGED: Duration = Duration::from_secs(600);
/// Calls of that interval: one a minute.
const CALLS: u32 = 10;

/// What a cluster depends on that an administrator may change without an entry in the log of the account: CloudStack logs
/// such orders for the account that gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unlogged {
    /// Firewall rules that let in more than the manifest says.
    pub ingress: bool,
    /// Access lists, and which of them a tier has.
    pub acls: bool,
}

/// Networks of an account, and what is on them. Each list was complete when it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkInventory {
    pub networks: Vec<Network>,
    pub addresses: Vec<PublicIpAddress>,
    pub rules: Vec<LoadBalancerRule>,
    pub ingress: Vec<FirewallRule>,
    pub egress: Vec<FirewallRule>,
    /// Rules of access lists, by their lists; `None` if no network has one to speak of, or they may not be listed.
    pub acls: Option<Vec<NetworkAclRule>>,
}

impl NetworkInventory {
    async fn list(client: &Client, scope: &Scope) -> Result<Self, Error> {
        let (networks, acls) = tiers(client, scope).await?;
        let scope = || scope.clone();
        Ok(Self {
            networks,
            acls,
            addresses: client.list(&ListPublicIpAddresses { scope: scope(), ..Default::default() }).await?,
            rules: client.list(&ListLoadBalancerRules { scope: scope(), ..Default::default() }).await?,
            ingress: client.list(&ListFirewallRules { scope: scope(), ..Default::default() }).await?,
            egress: client.list(&ListEgressFirewallRules { scope: scope(), ..Default::default() }).await?,
        })
    }

    /// The same with what the event log may not show as it is now.
    async fn relisted(&self, client: &Client, scope: &Scope, what: Unlogged) -> Result<Self, Error> {
        let mut fresh = self.clone();
        if what.acls {
            (fresh.networks, fresh.acls) = tiers(client, scope).await?;
        }
        if what.ingress {
            let question = ListFirewallRules { scope: scope.clone(), ..Default::default() };
            fresh.ingress = client.list(&question).await?;
        }
        Ok(fresh)
    }

    /// How many lists that takes.
    fn lists(&self, what: Unlogged) -> u32 {
        let tiers = if what.acls { 1 + u32::from(self.acls.is_some()) } else { 0 };
        tiers + u32::from(what.ingress)
    }
}

/// Networks, with the rules of their access lists if one of them has a list to speak of.
async fn tiers(client: &Client, scope: &Scope) -> Result<(Vec<Network>, Option<Vec<NetworkAclRule>>), Error> {
    let networks = client.list(&ListNetworks { scope: scope.clone(), ..Default::default() }).await?;
    let acls = match networks.iter().any(has_acl) {
        true => match client.list(&ListNetworkAcls { aclid: None, scope: scope.clone() }).await {
            // A role for clusters outside of VPCs lacks the command.
            Err(error) if error.class() == Class::Permission => None,
            rules => Some(rules?),
        },
        false => None,
    };
    Ok((networks, acls))
}

/// What the last poll of an account showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Polled {
    /// Something was taken away or forbidden before this moment; who compared later knows of it.
    pub altered: Option<Instant>,
    /// Something was opened before this moment, perhaps by us.
    pub opened: Option<Instant>,
    /// A member was taken out of a load balancer rule before this moment.
    pub detached: Option<Instant>,
    /// Time until the next poll.
    pub next: Duration,
}

/// Drift detection of an account.
#[derive(Default)]
pub(crate) struct DriftDetector {
    polled: Option<Instant>,
    log: SeenEvents,
    without_events: bool,
    altered: Option<Instant>,
    opened: Option<Instant>,
    /// The last poll showed an order that had not ended: what it changes may change after the comparison.
    unfinished: Alterations,
    detached: Option<Instant>,
    inventory: Option<(Instant, Arc<NetworkInventory>)>,
    /// When clusters last said that they depend on what the event log may not show.
    ingress_matters: Option<Instant>,
    acls_matter: Option<Instant>,
    /// When that was last listed, or first depended on.
    relisted: Option<Instant>,
    /// Members of load balancer rules that were asked for, and when.
    members: BTreeMap<LoadBalancerRuleId, (Instant, BTreeSet<VirtualMachineId>)>,
}

impl DriftDetector {
    /// A cluster depends on what the event log may not show.
    pub(crate) fn depends_on(&mut self, what: Unlogged) {
        let now = Instant::now();
        self.ingress_matters = what.ingress.then_some(now).or(self.ingress_matters);
        self.acls_matter = what.acls.then_some(now).or(self.acls_matter);
    }

    /// What clusters depend on that the event log may not show.
    fn unlogged(&self) -> Unlogged {
        let matters = |said: Option<Instant>| said.is_some_and(|said| said.elapsed() < UNLOGGED);
        Unlogged { ingress: matters(self.ingress_matters), acls: matters(self.acls_matter) }
    }

    /// Interval of polls.
    fn every(&self) -> Duration {
        if self.without_events {
            return WITHOUT_EVENTS;
        }
        let what = self.unlogged();
        let lists = match &self.inventory {
            Some((_, known)) => known.lists(what),
            None => NetworkInventory::default().lists(what),
        };
        UNLOGGED / CALLS.saturating_sub(lists).max(1)
    }

    /// Lists what the event log may not show if that is due, and has it compared. Until everything was listed once, that is
    /// left to the comparison.
    async fn relist(&mut self, client: &Client, scope: &Scope) -> Result<(), Error> {
        let what = self.unlogged();
        if what == Unlogged::default() || self.without_events {
            self.relisted = None;
            return Ok(());
        }
        let last = *self.relisted.get_or_insert_with(Instant::now);
        // Polls are not on the second.
        if last.elapsed() + UNLOGGED / CALLS / 2 < UNLOGGED {
            return Ok(());
        }
        let at = Instant::now();
        // The other lists are as good as new unless something happened since.
        let happened = self.altered.max(self.opened);
        self.inventory = self.inventory.take().filter(|(listed, _)| happened.is_none_or(|it| *listed >= it));
        if let Some((_, known)) = &self.inventory {
            self.inventory = Some((at, Arc::new(known.relisted(client, scope, what).await?)));
        }
        (self.relisted, self.altered) = (Some(at), Some(at));
        Ok(())
    }

    /// Polls the account unless that was done within the last minute or so.
    pub(crate) async fn poll(&mut self, client: &Client, scope: &Scope) -> Result<Polled, Error> {
        let every = self.every();
        let age = self.polled.map(|at| at.elapsed());
        if let Some(age) = age.filter(|age| *age < every) {
            return Ok(self.polled(every - age));
        }
        let now = Instant::now();
        let question = ListEvents { scope: scope.clone() };
        let before = self.unfinished;
        let altered = match client.first_page(&question, PAGE).await {
            Ok((events, count)) => {
                self.without_events = false;
                let (altered, unfinished) = self.log.altered(&events, count);
                self.unfinished = unfinished;
                altered.or(before)
            }
            Err(error) if error.class() == Class::Permission => {
                self.without_events = true;
                self.unfinished = Alterations::default();
                Alterations { network: true, member: true, opening: true }
            }
            Err(error) => return Err(error),
        };
        self.polled = Some(now);
        let seen = Instant::now();
        self.altered = altered.network.then_some(seen).or(self.altered);
        self.opened = altered.opening.then_some(seen).or(self.opened);
        self.detached = altered.member.then_some(seen).or(self.detached);
        self.relist(client, scope).await?;
        Ok(self.polled(self.every().saturating_sub(now.elapsed())))
    }

    fn polled(&self, next: Duration) -> Polled {
        Polled { altered: self.altered, opened: self.opened, detached: self.detached, next }
    }

    /// Whether a machine is a member of a rule, if somebody took members out of rules of the account. `None` if nobody did.
    pub(crate) async fn is_member(
        &mut self,
        client: &Client,
        rule: &LoadBalancerRuleId,
        machine: &VirtualMachineId,
    ) -> Result<Option<bool>, Error> {
        let Some(after) = self.detached else { return Ok(None) };
        if let Some((_, members)) = self.members.get(rule).filter(|(at, _)| *at >= after) {
            return Ok(Some(members.contains(machine)));
        }
        let at = Instant::now();
        let question = ListLoadBalancerRuleInstances { id: rule.clone(), applied: None };
        let listed = client.list(&question).await?;
        let members: BTreeSet<_> = listed.into_iter().map(|member| member.id).collect();
        let is_member = members.contains(machine);
        self.members.insert(rule.clone(), (at, members));
        Ok(Some(is_member))
    }

    /// Takes over a membership that one of our own calls began or ended.
    pub(crate) fn membership(&mut self, rule: &LoadBalancerRuleId, machine: &VirtualMachineId, begins: bool) {
        if let Some((_, members)) = self.members.get_mut(rule) {
            match begins {
                true => members.insert(machine.clone()),
                false => members.remove(machine),
            };
        }
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

/// What new entries of the event log may have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Alterations {
    /// A rule, an address or a network is gone, or an access list forbids more.
    network: bool,
    /// A firewall lets more in.
    opening: bool,
    /// A member of a load balancer rule.
    member: bool,
}

/// The part of the event log that was read before.
#[derive(Debug, Default)]
struct SeenEvents {
    ids: BTreeSet<String>,
    count: usize,
}

impl Alterations {
    fn or(self, other: Self) -> Self {
        Self {
            network: self.network || other.network,
            opening: self.opening || other.opening,
            member: self.member || other.member,
        }
    }
}

impl SeenEvents {
    /// What the newest entries may have changed that was not seen before, and what of it is not known to be done. Where
    /// entries are missing between those that were seen and these, they may have changed anything.
    fn altered(&mut self, newest: &[Event], count: usize) -> (Alterations, Alterations) {
        let new: Vec<&Event> = newest.iter().filter(|event| !self.ids.contains(&event.id)).collect();
        let is_first = self.ids.is_empty();
        let gap = !is_first && (new.len() == newest.len() || count > self.count.saturating_add(new.len()));
        let any = |is: fn(&str) -> bool| new.iter().any(|event| event.kind.as_deref().is_some_and(is));
        let missed = gap && !newest.is_empty();
        let altered = Alterations {
            network: missed || any(is_alteration),
            opening: missed || any(is_opening),
            member: missed || any(|it| it == DETACHED),
        };
        // Of one kind, orders end in any order: as many ends as begins are needed.
        let count_of = |is: fn(&str) -> bool, state: &str| {
            let of = |event: &&&Event| {
                event.kind.as_deref().is_some_and(is) && event.state.as_deref() == Some(state)
            };
            new.iter().filter(of).count()
        };
        let open = |is: fn(&str) -> bool| count_of(is, "Scheduled") > count_of(is, "Completed");
        let unfinished = Alterations {
            network: missed || open(is_alteration),
            opening: missed || open(is_opening),
            member: missed || open(|it| it == DETACHED),
        };
        self.ids = newest.iter().map(|event| event.id.clone()).collect();
        self.count = count;
        (altered, unfinished)
    }
}

/// The event type of an order that takes members out of a load balancer rule.
const DETACHED: &str = "LB.REMOVE.FROM.RULE";

/// An event type of an order that lets more in.
fn is_opening(kind: &str) -> bool {
    matches!(kind, "FIREWALL.OPEN" | "ROUTING.IPV4.FIREWALL.RULE.CREATE" | "LB.UPDATE")
}

/// An event type of an order that may take away what leads to an API server. A new rule of an access list may forbid.
fn is_alteration(kind: &str) -> bool {
    matches!(
        kind,
        "LB.DELETE"
            | "FIREWALL.CLOSE"
            | "FIREWALL.EGRESS.CLOSE"
            | "ROUTING.IPV4.FIREWALL.RULE.DELETE"
            | "NET.RULEDELETE"
            | "NET.IPRELEASE"
            | "NETWORK.ACL.DELETE"
            | "NETWORK.ACL.REPLACE"
            | "NETWORK.ACL.ITEM.CREATE"
            | "NETWORK.ACL.ITEM.UPDATE"
            | "NETWORK.ACL.ITEM.DELETE"
            | "VPC.DELETE"
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
        let mut altered = |kinds: &[(&str, &str)], count| log.altered(&events(kinds), count).0.network;
        assert!(!altered(&[], 0), "an account without events");
        assert!(!altered(&[("1", "LB.CREATE"), ("2", "VM.CREATE")], 2), "nothing is removed");
        assert!(altered(&[("2", "VM.CREATE"), ("3", "LB.DELETE")], 3), "a removal");
        assert!(!altered(&[("2", "VM.CREATE"), ("3", "LB.DELETE")], 3), "the same again");
        assert!(!altered(&[("3", "LB.DELETE"), ("4", "VM.STOP")], 2), "older ones were purged");
        assert!(altered(&[("8", "VM.STOP"), ("9", "VM.START")], 7), "some were missed");
        assert!(altered(&[("8", "VM.STOP"), ("9", "VM.START")], 9), "some are not shown");
    }

    #[tokio::test(start_paused = true)]
    async fn lists_of_what_is_not_logged_take_the_place_of_polls_while_a_cluster_depends_on_them() {
        let (ingress, acls) = (true, true);
        let rows = [
            (Unlogged::default(), None, 60),
            (Unlogged { ingress, acls: false }, None, 66),
            (Unlogged { ingress: false, acls }, None, 66),
            (Unlogged { ingress: false, acls }, Some(Vec::new()), 75),
            (Unlogged { ingress, acls }, Some(Vec::new()), 85),
        ];
        for (what, listed, seconds) in rows {
            let known = NetworkInventory { acls: listed, ..NetworkInventory::default() };
            let inventory = Some((Instant::now(), Arc::new(known)));
            let mut detector = DriftDetector { inventory, ..DriftDetector::default() };
            detector.depends_on(what);
            assert_eq!(detector.every().as_secs(), seconds, "{what:?}");
            tokio::time::advance(UNLOGGED).await;
            assert_eq!(detector.every().as_secs(), 60, "nobody says so any more");
        }
    }

    #[test]
    fn a_removal_before_the_first_poll_counts() {
        let (altered, _) = SeenEvents::default().altered(&events(&[("1", "FIREWALL.EGRESS.CLOSE")]), 1);
        assert_eq!(altered, Alterations { network: true, ..Alterations::default() });
    }

    #[test]
    fn what_is_opened_concerns_only_those_who_say_who_may_come_in() {
        for (kind, opening, network) in [
            ("FIREWALL.OPEN", true, false),
            ("NETWORK.ACL.ITEM.CREATE", false, true),
            ("NET.RULEADD", false, false),
        ] {
            let (altered, _) = SeenEvents::default().altered(&events(&[("1", kind)]), 1);
            assert_eq!(altered, Alterations { network, opening, member: false }, "{kind}");
        }
    }

    #[test]
    fn a_member_that_is_taken_out_of_a_rule_leads_to_a_comparison_of_members_only() {
        let (altered, _) = SeenEvents::default().altered(&events(&[("1", DETACHED)]), 1);
        assert_eq!(altered, Alterations { member: true, ..Alterations::default() });
    }

    #[test]
    fn an_order_that_has_not_ended_is_compared_again_at_the_next_poll() {
        let event = |id: &str, state: &str| {
            let mut event = events(&[(id, "NETWORK.ACL.ITEM.DELETE")]).remove(0);
            event.state = Some(state.to_owned());
            event
        };
        let mut log = SeenEvents::default();
        let rows = [
            (vec![event("1", "Scheduled"), event("2", "Started")], 2, true),
            (vec![event("2", "Started"), event("3", "Completed")], 3, false),
            (vec![event("3", "Completed"), event("4", "Scheduled"), event("5", "Completed")], 5, false),
        ];
        for (newest, count, again) in rows {
            let (altered, unfinished) = log.altered(&newest, count);
            let expected = Alterations { network: again, ..Alterations::default() };
            assert_eq!((altered.network, unfinished), (true, expected), "of {count}");
        }
    }
}
