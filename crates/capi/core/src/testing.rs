//! Objects for tests of decisions.

use capstan_capi_types::core::Machine;
use capstan_object::{Condition, ConditionStatus, ObjectMeta};
use jiff::Timestamp;

/// A timestamp in seconds since the start of a test.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + seconds).expect("a moment")
}

/// A machine with a uid derived from its name.
pub fn machine(name: &str) -> Machine {
    let metadata = ObjectMeta {
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        creation_timestamp: Some(at(0).into()),
        ..ObjectMeta::named("ns", name)
    };
    Machine { metadata, ..Machine::default() }
}

/// A condition that changed at the start of a test.
pub fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: match status {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        },
        observed_generation: None,
        last_transition_time: at(0).into(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}
