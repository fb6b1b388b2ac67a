//! Calls whose answer was lost.

use capstan_controller::Resolution;
use jiff::{SignedDuration, Timestamp};

/// How long a request that creates something may take effect after its answer was lost.
const IN_FLIGHT: SignedDuration = SignedDuration::from_secs(30);

/// What became of a call that was `sent` and not answered. `has_happened` is what the cloud shows `now`; only a call that
/// creates something may still be on its way, so it is not created again while it is young.
pub fn resolution(
    has_happened: bool,
    creates: bool,
    (sent, now): (Timestamp, Timestamp),
    cloud: &str,
) -> Resolution {
    if has_happened {
        return Resolution::happened();
    }
    match creates && now.duration_since(sent) < IN_FLIGHT {
        true => Resolution::NotYetKnown { reason: format!("it may still appear in {cloud}") },
        false => Resolution::DidNotHappen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_creation_is_not_made_again() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        for (has_happened, creates, seconds, expected) in [
            (true, true, 1, Resolution::happened()),
            (true, false, 100, Resolution::happened()),
            (false, true, 29, Resolution::NotYetKnown { reason: "it may still appear in Toy".to_owned() }),
            (false, true, 30, Resolution::DidNotHappen),
            (false, false, 1, Resolution::DidNotHappen),
        ] {
            assert_eq!(
                resolution(has_happened, creates, (at(0), at(seconds)), "Toy"),
                expected,
                "{seconds} s"
            );
        }
    }
}
