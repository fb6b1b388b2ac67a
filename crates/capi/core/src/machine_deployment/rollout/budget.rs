//! `maxSurge` and `maxUnavailable`.

use super::Strategy;

/// Surge and unavailability of the deployment, with percentages resolved.
fn resolve(strategy: &Strategy, desired: i32) -> (i32, i32) {
    match strategy {
        Strategy::RollingUpdate { max_surge, max_unavailable } => {
            let surge = max_surge.scaled(desired, true).unwrap_or(0);
            let unavailable = max_unavailable.scaled(desired, false).unwrap_or(0);
            // Both at zero would never make progress; a percentage may have been rounded down to it.
            (surge, if surge == 0 && unavailable == 0 { 1 } else { unavailable })
        }
        Strategy::OnDelete => (0, 0),
    }
}

/// How many machines may exist beyond the replicas.
pub fn max_surge(strategy: &Strategy, desired: i32) -> i32 {
    resolve(strategy, desired).0
}

/// How many replicas may be unavailable.
pub fn max_unavailable(strategy: &Strategy, desired: i32) -> i32 {
    resolve(strategy, desired).1.min(desired)
}

#[cfg(test)]
mod tests {
    use capstan_object::IntOrString;

    use super::*;

    fn rolling(surge: &str, unavailable: &str) -> Strategy {
        let parse =
            |text: &str| text.parse().map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int);
        Strategy::RollingUpdate { max_surge: parse(surge), max_unavailable: parse(unavailable) }
    }

    #[test]
    fn surge_rounds_up_unavailability_down_and_never_both_to_zero() {
        for (surge, unavailable, desired, expected) in [
            ("1", "0", 3, (1, 0)),
            ("0", "1%", 2, (0, 1)),
            ("25%", "25%", 3, (1, 0)),
            ("0", "10", 6, (0, 6)),
            ("10", "0", 6, (10, 0)),
            ("25%", "25%", 0, (0, 0)),
        ] {
            let strategy = rolling(surge, unavailable);
            assert_eq!(
                (max_surge(&strategy, desired), max_unavailable(&strategy, desired)),
                expected,
                "{surge} {unavailable} of {desired}"
            );
        }
    }

    #[test]
    fn on_delete_has_no_surge() {
        assert_eq!((max_surge(&Strategy::OnDelete, 5), max_unavailable(&Strategy::OnDelete, 5)), (0, 0));
    }
}
