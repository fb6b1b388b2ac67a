//! What an administrator would complain about: orders that are refused again and again, and jobs that fail.

use std::collections::BTreeMap;

use crate::params::Params;

/// Refusals of one order that nobody complains about.
const TOLERATED: u64 = 3;
/// Orders that are remembered at most.
const KEPT: usize = 10_000;
/// Parameters that differ between two tries of one order, or are long. A name is one: whoever tries `m-r1` after `m` tries
/// the same again.
const LEFT_OUT: [&str; 9] = [
    "apikey",
    "signature",
    "signatureversion",
    "expires",
    "response",
    "sessionkey",
    "userdata",
    "name",
    "displayname",
];

/// Complaints so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Complaints {
    /// Orders that were refused more than three times: command and parameters, and how often.
    pub refused: BTreeMap<String, u64>,
    /// Failed jobs, by command.
    pub failed_jobs: BTreeMap<&'static str, u64>,
    /// Entries in the event log.
    pub events: u64,
}

/// Counts refusals and failures.
#[derive(Default)]
pub(crate) struct ComplaintLog {
    refusals: BTreeMap<String, u64>,
    failed_jobs: BTreeMap<&'static str, u64>,
}

impl ComplaintLog {
    /// An order was refused.
    pub(crate) fn refused(&mut self, params: &Params) {
        let mut pairs: Vec<String> = params
            .iter()
            .map(|(name, value)| (name.to_lowercase(), value))
            .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.sort();
        let order = pairs.join("&");
        if self.refusals.len() < KEPT || self.refusals.contains_key(&order) {
            *self.refusals.entry(order).or_default() += 1;
        }
    }

    pub(crate) fn job_failed(&mut self, command: &'static str) {
        *self.failed_jobs.entry(command).or_default() += 1;
    }

    pub(crate) fn complaints(&self, events: u64) -> Complaints {
        let refused = self.refusals.iter().filter(|(_, times)| **times > TOLERATED);
        Complaints {
            refused: refused.map(|(order, times)| (order.clone(), *times)).collect(),
            failed_jobs: self.failed_jobs.clone(),
            events,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_complained_about_when_it_is_refused_for_the_fourth_time() {
        let mut log = ComplaintLog::default();
        for number in 0..4 {
            assert!(log.complaints(0).refused.is_empty());
            log.refused(&Params::parse(&format!("command=deleteNetwork&id=1&signature={number}"), ""));
            log.refused(&Params::parse(&format!("command=deleteVolume&id={number}"), ""));
            log.refused(&Params::parse(
                &format!("command=deployVirtualMachine&zoneid=1&name=m-r{number}"),
                "",
            ));
        }
        let refused = log.complaints(0).refused;
        let expected = ["command=deleteNetwork&id=1", "command=deployVirtualMachine&zoneid=1"];
        assert_eq!(refused.into_iter().collect::<Vec<_>>(), expected.map(|order| (order.to_owned(), 4)));
    }
}
