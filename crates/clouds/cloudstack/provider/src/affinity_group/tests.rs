//! Decisions about CloudStackAffinityGroups, as a table.

use std::time::Duration;

use capstan_cloudstack_client::model::AffinityGroup;
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::CloudStackAffinityGroup;
use capstan_controller::{Call, Decision, Failure};
use capstan_object::ObjectMeta;
use capstan_provider_kit::testing::{effects, look, now};
use serde_json::json;

use super::decide::decide;
use super::{AffinityGroups, Seen};
use crate::code;
use crate::error::CloudError;

fn decided(
    deleting: bool,
    group: Option<Result<Option<AffinityGroup>, CloudError>>,
) -> Decision<AffinityGroups> {
    let mut object = CloudStackAffinityGroup { metadata: ObjectMeta::named("ns", "g"), ..Default::default() };
    object.metadata.finalizers.push(names::finalizer::AFFINITY_GROUP.to_owned());
    object.metadata.deletion_timestamp = deleting.then(|| now().into());
    object.spec.name = "G".to_owned();
    decide(&look(object, Seen { group, ..Seen::default() }))
}

fn group() -> AffinityGroup {
    serde_json::from_value(json!({"id": "g1", "name": "G"})).expect("a group")
}

#[test]
fn a_group_is_made_recorded_and_deleted() {
    let cause = || CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no answer");
    let rows = [
        ("missing", false, Ok(None), Some("create-group G"), false, true),
        ("there", false, Ok(Some(group())), None, true, true),
        ("cannot be asked", false, Err(cause()), None, false, true),
        ("to be deleted", true, Ok(Some(group())), Some("delete-group g1"), false, true),
        ("gone", true, Ok(None), None, false, false),
        ("to be deleted and cannot be asked", true, Err(cause()), None, false, true),
    ];
    for (says, deleting, seen, call, ready, held) in rows {
        let decision = decided(deleting, Some(seen));
        let called = effects(&decision);
        assert_eq!(called.first().map(String::as_str), call, "{says}");
        assert_eq!(decision.object.status.ready, ready, "{says}");
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), held, "{says}");
    }
}

#[test]
fn an_order_that_was_refused_pauses_and_a_restart_does_not_forget_it() {
    let object = decided(false, Some(Ok(None))).object;
    let at = |object: &CloudStackAffinityGroup, seconds: i64| {
        let mut look = look(object.clone(), Seen { group: Some(Ok(None)), ..Seen::default() });
        look.now = now() + jiff::SignedDuration::from_secs(seconds);
        look
    };
    let mut refused = at(&object, 0);
    let [planned] = decide(&refused).effects.try_into().expect("one call");
    let capstan_controller::Effect::Call(call) = planned.effect else { panic!("a call") };
    let error = capstan_controller::Error { code: code::REFUSED, message: "no such type".to_owned() };
    let failure = Failure { effect: call.summary(), call: Some(call), error, since: now(), attempts: 1 };
    refused.failures.push(failure);
    let refused = decide(&refused);
    assert!(refused.effects.is_empty() && refused.look_again == Some(Duration::from_secs(30)));
    assert!(decide(&at(&refused.object, 29)).effects.is_empty(), "the annotation outlives the process");
    assert_eq!(effects(&decide(&at(&refused.object, 30))), ["create-group G"]);
    let there = look(refused.object, Seen { group: Some(Ok(Some(group()))), ..Seen::default() });
    assert!(decide(&there).object.metadata.annotations.is_empty());
}
