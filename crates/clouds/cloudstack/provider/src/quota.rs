//! What is left of the limits of an account or project, so that an order which CloudStack would refuse is not sent.
//!
//! One question serves many orders: each takes its part from the answer, until the answer does not suffice or is old. The
//! limits of a domain are shown to administrators only, so that orders beyond them are refused by CloudStack.

use std::fmt;
use std::time::Duration;

use capstan_cloudstack_client::model::{Amount, Quota};
use tokio::time::Instant;

use crate::account_cache::JUST_NOW;

/// How long an answer that suffices is believed.
const TRUSTED: Duration = Duration::from_secs(600);

/// Amounts of what accounts have limits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
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
            "{needed} {what} are needed, and the limit of the account or project leaves {}: raise the limit, or delete \
             what is not used; nothing was ordered",
            (*left).max(0)
        )
    }
}

/// The first limit that leaves less than is needed, beside what was taken since it was asked for.
fn exceeded(quota: &Quota, taken: &Amounts, needed: &Amounts) -> Option<Exceeded> {
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

/// What an account has left, as it was last reported.
#[derive(Debug, Default)]
pub(crate) struct QuotaGauge {
    /// When it was asked; `None` in the answer if the cloud does not tell.
    asked: Option<(Instant, Option<Quota>)>,
    /// What was ordered since.
    taken: Amounts,
}

impl QuotaGauge {
    /// Takes part of what is left, if that much is. `needed` may be more than is taken by this order: what orders that have
    /// to follow it take.
    pub(crate) async fn take(
        &mut self,
        needed: &Amounts,
        taken: &Amounts,
        ask: impl Future<Output = Option<Quota>>,
    ) -> Result<(), Exceeded> {
        let mut lacking = self.lacking(needed, TRUSTED);
        if !matches!(lacking, Some(Ok(()))) && self.lacking(needed, JUST_NOW).is_none() {
            let now = Instant::now();
            *self = Self { asked: Some((now, ask.await)), taken: Amounts::default() };
            lacking = self.lacking(needed, TRUSTED);
        }
        match lacking {
            Some(Err(exceeded)) => Err(exceeded),
            _ => {
                self.taken.add(taken);
                Ok(())
            }
        }
    }

    /// Whether an answer that is at most so old suffices; `None` if there is no such answer.
    fn lacking(&self, needed: &Amounts, most: Duration) -> Option<Result<(), Exceeded>> {
        let (_, quota) = self.asked.as_ref().filter(|(at, _)| at.elapsed() < most)?;
        let lacking = quota.as_ref().and_then(|quota| exceeded(quota, &self.taken, needed));
        Some(lacking.map_or(Ok(()), Err))
    }

    /// The cloud refused an order: the answer is not believed any more.
    pub(crate) fn forget(&mut self) {
        self.asked = None;
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
        let (mut gauge, asked) = (QuotaGauge::default(), Cell::new(0));
        let left = Cell::new(2);
        let ask = async || {
            asked.set(asked.get() + 1);
            Some(quota(left.get(), 9))
        };
        for _ in 0..2 {
            assert_eq!(gauge.take(&machine(), &machine(), ask()).await, Ok(()));
        }
        assert_eq!(asked.get(), 1);
        let lacking = Exceeded { what: "virtual machines", needed: 1, left: 0 };
        assert_eq!(gauge.take(&machine(), &machine(), ask()).await, Err(lacking.clone()), "both were taken");
        assert_eq!(asked.get(), 1, "the answer is seconds old");
        tokio::time::advance(JUST_NOW).await;
        left.set(0);
        assert_eq!(gauge.take(&machine(), &machine(), ask()).await, Err(lacking));
        assert_eq!(asked.get(), 2);
        tokio::time::advance(JUST_NOW).await;
        left.set(1);
        assert_eq!(gauge.take(&machine(), &machine(), ask()).await, Ok(()), "somebody deleted a machine");
        tokio::time::advance(TRUSTED).await;
        assert_eq!(gauge.take(&machine(), &machine(), ask()).await, Ok(()));
        assert_eq!(asked.get(), 4, "an old answer is not believed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_tells_nothing_is_left_to_refuse() {
        let mut gauge = QuotaGauge::default();
        assert_eq!(gauge.take(&machine(), &machine(), async { None }).await, Ok(()));
        let address = Amounts { addresses: 1, ..Amounts::default() };
        gauge.forget();
        let none = Quota { ipavailable: Some(Amount::Limited(0)), ..Quota::default() };
        let error = gauge.take(&address, &address, async { Some(none) }).await.expect_err("no address");
        assert_eq!(
            error.to_string(),
            "1 public addresses are needed, and the limit of the account or project leaves 0: raise the limit, or delete \
             what is not used; nothing was ordered"
        );
    }
}
