//! `maxSurge` and `maxUnavailable`.

use super::Strategy;

/// Surge and unavailability as the deployment states them, percentages resolved.
fn resolve(strategy: &Strategy, desired: i32) -> (i32, i32) {
    match strategy {
        Strategy::RollingUpdate { max_surge, max_unavailable } => {
            let surge = max_surge.scaled(desired, true).unwrap_or(0);
            let unavailable = max_unavailable.scaled(desired, false).unwrap_or(0);
            // Both at zero would never move; a percentage may have been rounded down to it.
            (surge, if surge == 0 && unavailable == 0 { 1 } else { unavailable })
        }
        Strategy::OnDelete => (0, 0),
    }
}

/// How many machines may exist beyond the wanted number.
pub fn max_surge(strategy: &Strategy, desired: i32) -> i32 {
    resolve(strategy, desired).0
}

/// How many of the wanted machines may be unavailable.
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
    fn percentages_round_up_for_surge_and_down_for_unavailability_and_never_stand_still() {
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
    fn deletion_by_hand_knows_no_surge() {
        assert_eq!((max_surge(&Strategy::OnDelete, 5), max_unavailable(&Strategy::OnDelete, 5)), (0, 0));
    }
}
