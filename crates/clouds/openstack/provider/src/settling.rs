//! Requests whose answer was lost may still be on their way.

use capstan_controller::Resolution;
use jiff::{SignedDuration, Timestamp};

/// How long a request that creates something may still take effect after its answer was lost.
const IN_FLIGHT: SignedDuration = SignedDuration::from_secs(30);

/// Not known yet if the request is young.
pub(crate) fn still_in_flight(now: Timestamp, sent: Timestamp) -> Option<Resolution> {
    (now.duration_since(sent) < IN_FLIGHT)
        .then(|| Resolution::NotYetKnown { reason: "it may still appear in OpenStack".to_owned() })
}
