//! Priority levels: how many requests of a kind run at a time.

use std::sync::Arc;

use capstan_builtin::flowcontrol;
use http::HeaderValue;
use serde_json::Value;

use crate::auth::{ObjectSource, bucket};

/// A priority level.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub name: Arc<str>,
    /// As a response names it; none if it is no text for a header.
    pub uid: Option<HeaderValue>,
    /// Shares of the server's seats.
    shares: usize,
    lendable_percent: usize,
    borrowing_percent: Option<usize>,
    queuing: Option<Queuing>,
    exempt: bool,
    /// `None` for an exempt level, and until the seats are distributed.
    pub limits: Option<Limits>,
}

/// Queues of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queuing {
    pub queues: u64,
    /// Queues among which a flow chooses.
    pub hand: usize,
    pub length: usize,
}

/// Seats of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// The level's share of all seats.
    pub nominal: usize,
    /// Seats that no other level gets.
    pub guaranteed: usize,
    /// Seats with everything that may be borrowed.
    pub most: usize,
    /// `None` rejects what cannot run.
    pub queuing: Option<Queuing>,
}

/// The stored levels, and the mandatory ones if they are missing.
pub(super) fn read(source: &dyn ObjectSource) -> Vec<Level> {
    let mut levels: Vec<Level> =
        source.list(bucket::PRIORITY_LEVELS).iter().map(|object| Level::from_json(object)).collect();
    for object in flowcontrol::bootstrap() {
        let is_level = object.mandatory && object.kind == "PriorityLevelConfiguration";
        if is_level && !levels.iter().any(|level| *level.name == *object.name) {
            levels.push(Level::from_json(&object.object()));
        }
    }
    levels
}

impl Level {
    fn from_json(object: &Value) -> Self {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        let spec = &object["spec"];
        let exempt = spec["type"] == "Exempt";
        let config = if exempt { &spec["exempt"] } else { &spec["limited"] };
        let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
        let response = &config["limitResponse"];
        let queuing = (response["type"] == "Queue").then(|| Queuing {
            queues: response["queuing"]["queues"].as_u64().unwrap_or(1).max(1),
            hand: number(&response["queuing"]["handSize"]).unwrap_or(1).max(1),
            length: number(&response["queuing"]["queueLengthLimit"]).unwrap_or(1).max(1),
        });
        Self {
            name: text("name").into(),
            uid: HeaderValue::from_str(text("uid")).ok(),
            shares: number(&config["nominalConcurrencyShares"]).unwrap_or(0),
            lendable_percent: number(&config["lendablePercent"]).unwrap_or(0).min(100),
            borrowing_percent: number(&config["borrowingLimitPercent"]),
            queuing,
            exempt,
            limits: None,
        }
    }
}

/// Distributes the seats of a server.
pub(super) fn with_limits(levels: Vec<Level>, seats: usize) -> Vec<Arc<Level>> {
    let shares: usize = levels.iter().map(|level| level.shares).sum::<usize>().max(1);
    let limited = levels.into_iter().map(|mut level| {
        if !level.exempt {
            let nominal = seats.saturating_mul(level.shares).div_ceil(shares);
            let lendable = (nominal * level.lendable_percent + 50) / 100;
            let most = match level.borrowing_percent {
                None => seats,
                Some(percent) => {
                    nominal.saturating_add((nominal.saturating_mul(percent) + 50) / 100).min(seats)
                }
            };
            let guaranteed = nominal.saturating_sub(lendable);
            level.limits = Some(Limits { nominal, guaranteed, most, queuing: level.queuing });
        }
        Arc::new(level)
    });
    limited.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_shared_as_upstream_shares_them() {
        let levels = flowcontrol::bootstrap().iter().filter(|o| o.kind == "PriorityLevelConfiguration");
        let levels = levels.map(|object| Level::from_json(&object.object())).collect();
        let limits: Vec<(String, Option<(usize, usize)>)> = with_limits(levels, 600)
            .iter()
            .map(|level| (level.name.to_string(), level.limits.map(|l| (l.nominal, l.guaranteed))))
            .collect();
        let wanted = [
            ("exempt", None),
            ("catch-all", Some((13, 13))),
            ("system", Some((74, 50))),
            ("node-high", Some((98, 73))),
            ("leader-election", Some((25, 25))),
            ("workload-high", Some((98, 49))),
            ("workload-low", Some((245, 24))),
            ("global-default", Some((49, 24))),
        ];
        assert_eq!(limits, wanted.map(|(name, limits)| (name.to_owned(), limits)));
    }
}
