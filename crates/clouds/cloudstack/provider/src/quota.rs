//! What is left of the limits of an account or project, so that an order which CloudStack would refuse is not made.
//!
//! One question serves many orders. Each observes what is left beside the orders of others: those that were sent since
//! the question, and those that are about to be sent. The limits of a domain are shown to administrators only, so that
//! orders beyond them are refused by CloudStack.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use capstan_cloudstack_client::ZoneId;
use capstan_cloudstack_client::model::{Amount, Quota};
use tokio::time::Instant;

use crate::code;
use crate::error::CloudError;

/// How long an answer that suffices is believed.
const TRUSTED: Duration = Duration::from_secs(600);
/// How long an answer that does not suffice is believed: orders that wait for more share a question a minute.
const INSUFFICIENT: Duration = Duration::from_secs(50);
/// An order that was about to be sent and was not by then is not coming.
const ABANDONED: Duration = Duration::from_secs(60);
/// How long it is remembered that a zone had no free address.
const SHORTAGE: Duration = Duration::from_secs(600);

/// Amounts of what accounts have limits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    pub machines: i64,
    pub cpus: i64,
    pub memory_mib: i64,
    pub volumes: i64,
    pub addresses: i64,
    pub networks: i64,
}

impl Amounts {
    fn add(&mut self, more: &Self) {
        self.machines += more.machines;
        self.cpus += more.cpus;
        self.memory_mib += more.memory_mib;
        self.volumes += more.volumes;
        self.addresses += more.addresses;
        self.networks += more.networks;
    }
}

/// A limit that an order would exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exceeded {
    what: &'static str,
    needed: i64,
    left: i64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, needed, left } = self;
        write!(
            f,
            "{what} needed: {needed}; the limit of the account or project leaves {}: raise the limit, or delete what is \
             not used; nothing was ordered",
            (*left).max(0)
        )
    }
}

/// What the limits leave for one order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headroom {
    /// What was left when the cloud was asked; `None` if it does not report it.
    quota: Option<Quota>,
    /// Amounts that others ordered since.
    taken: Amounts,
}

impl Headroom {
    #[cfg(test)]
    pub(crate) fn of(quota: Quota) -> Self {
        Self { quota: Some(quota), taken: Amounts::default() }
    }

    /// The first limit that leaves less than is needed.
    fn exceeded(&self, needed: &Amounts) -> Option<Exceeded> {
        let (quota, taken) = (self.quota.as_ref()?, &self.taken);
        let all = [
            ("virtual machines", quota.vmavailable, taken.machines, needed.machines),
            ("processors", quota.cpuavailable, taken.cpus, needed.cpus),
            ("MiB of memory", quota.memoryavailable, taken.memory_mib, needed.memory_mib),
            ("volumes", quota.volumeavailable, taken.volumes, needed.volumes),
            ("public addresses", quota.ipavailable, taken.addresses, needed.addresses),
            ("networks", quota.networkavailable, taken.networks, needed.networks),
        ];
        all.into_iter().find_map(|(what, available, taken, needed)| match available {
            Some(Amount::Limited(most)) if needed > 0 && needed > most - taken => {
                Some(Exceeded { what, needed, left: most - taken })
            }
            _ => None,
        })
    }

    /// Why an order of this size is not made.
    pub(crate) fn refuses(&self, needed: &Amounts) -> Option<CloudError> {
        let exceeded = self.exceeded(needed)?;
        Some(CloudError::new(code::QUOTA, "QuotaExceeded", exceeded.to_string()))
    }
}

/// An order that the last answer does not know of.
#[derive(Debug)]
struct Reserved {
    amounts: Amounts,
    at: Instant,
    sent: bool,
}

/// What an account has left, as it was last reported.
#[derive(Debug, Default)]
pub(crate) struct QuotaGauge {
    /// When it was asked; `None` in the answer if the cloud does not report it.
    asked: Option<(Instant, Option<Quota>)>,
    /// Orders since, by the key of whoever makes them.
    orders: BTreeMap<String, Reserved>,
    /// Zones that had no free address, and when.
    shortages: BTreeMap<ZoneId, Instant>,
}

impl QuotaGauge {
    /// What is left for an order beside those of others. What it takes is reserved if that suffices, so that two orders
    /// never count on the same rest. `needed` may be more than is taken by this order: what orders that have to follow it
    /// take.
    pub(crate) async fn observe(
        &mut self,
        order: &str,
        needed: &Amounts,
        taken: &Amounts,
        ask: impl Future<Output = Option<Quota>>,
    ) -> Headroom {
        self.orders.remove(order);
        self.orders.retain(|_, it| it.sent || it.at.elapsed() < ABANDONED);
        let believed = match self.headroom().exceeded(needed) {
            None => TRUSTED,
            Some(_) => INSUFFICIENT,
        };
        if self.asked.as_ref().is_none_or(|(at, _)| at.elapsed() >= believed) {
            let now = Instant::now();
            self.asked = Some((now, ask.await));
            self.orders.retain(|_, it| !it.sent);
        }
        let headroom = self.headroom();
        if headroom.exceeded(needed).is_none() {
            let reserved = Reserved { amounts: *taken, at: Instant::now(), sent: false };
            self.orders.insert(order.to_owned(), reserved);
        }
        headroom
    }

    fn headroom(&self) -> Headroom {
        let mut taken = Amounts::default();
        self.orders.values().for_each(|order| taken.add(&order.amounts));
        Headroom { quota: self.asked.as_ref().and_then(|(_, quota)| quota.clone()), taken }
    }

    /// The cloud took an order: the next answer counts it.
    pub(crate) fn sent(&mut self, order: &str) {
        if let Some(order) = self.orders.get_mut(order) {
            order.sent = true;
        }
    }

    /// The cloud refused an order: the answer is not believed any more.
    pub(crate) fn forget(&mut self) {
        self.asked = None;
    }

    /// The cloud refused an order because no address of a zone was free, or has free ones again.
    pub(crate) fn short_of_addresses(&mut self, zone: &ZoneId, short: bool) {
        match short {
            true => drop(self.shortages.insert(zone.clone(), Instant::now())),
            false => drop(self.shortages.remove(zone)),
        }
    }

    /// No address of the zone was free a while ago.
    pub(crate) fn is_short_of_addresses(&self, zone: &ZoneId) -> bool {
        self.shortages.get(zone).is_some_and(|at| at.elapsed() < SHORTAGE)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn machine() -> Amounts {
        Amounts { machines: 1, cpus: 2, memory_mib: 2048, volumes: 1, ..Amounts::default() }
    }

    fn quota(machines: i64, cpus: i64) -> Quota {
        Quota {
            vmavailable: Some(Amount::Limited(machines)),
            cpuavailable: Some(Amount::Limited(cpus)),
            memoryavailable: Some(Amount::Unlimited),
            ..Quota::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_serves_orders_until_its_answer_does_not_suffice() {
        let gauge = tokio::sync::Mutex::new(QuotaGauge::default());
        let (asked, left) = (Cell::new(0), Cell::new(2));
        let order = async |name: &str| {
            let ask = async {
                asked.set(asked.get() + 1);
                Some(quota(left.get(), 9))
            };
            let mut gauge = gauge.lock().await;
            let headroom = gauge.observe(name, &machine(), &machine(), ask).await;
            headroom.exceeded(&machine())
        };
        for name in ["a", "b", "a"] {
            assert_eq!(order(name).await, None, "{name}: an order counts once, however often it is observed");
        }
        let lacking = Some(Exceeded { what: "virtual machines", needed: 1, left: 0 });
        assert_eq!(order("c").await, lacking, "both are reserved");
        assert_eq!(asked.get(), 1, "the answer is seconds old");
        gauge.lock().await.sent("a");
        gauge.lock().await.sent("b");
        tokio::time::advance(INSUFFICIENT).await;
        left.set(0);
        assert_eq!(order("c").await, lacking);
        assert_eq!(asked.get(), 2);
        tokio::time::advance(INSUFFICIENT).await;
        left.set(1);
        assert_eq!(order("c").await, None, "somebody deleted a machine");
        assert_eq!(order("d").await, lacking, "it is reserved");
        tokio::time::advance(ABANDONED).await;
        assert_eq!(order("d").await, None, "the order was never sent");
        tokio::time::advance(TRUSTED).await;
        assert_eq!(order("d").await, None);
        assert_eq!(asked.get(), 4, "an old answer is not believed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_reports_nothing_is_left_to_refuse() {
        let mut gauge = QuotaGauge::default();
        assert_eq!(
            gauge.observe("a", &machine(), &machine(), async { None }).await.refuses(&machine()),
            None
        );
        let address = Amounts { addresses: 1, ..Amounts::default() };
        gauge.forget();
        let none = Quota { ipavailable: Some(Amount::Limited(0)), ..Quota::default() };
        let left = gauge.observe("b", &address, &address, async { Some(none) }).await;
        assert_eq!(
            left.refuses(&address).expect("no address").text(),
            "E-CS-QUOTA: public addresses needed: 1; the limit of the account or project leaves 0: raise the limit, or \
             delete what is not used; nothing was ordered"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_shortage_of_addresses_is_remembered_for_a_while() {
        let (mut gauge, zone) = (QuotaGauge::default(), ZoneId::from("z"));
        assert!(!gauge.is_short_of_addresses(&zone));
        gauge.short_of_addresses(&zone, true);
        assert!(gauge.is_short_of_addresses(&zone));
        tokio::time::advance(SHORTAGE).await;
        assert!(!gauge.is_short_of_addresses(&zone));
    }
}
