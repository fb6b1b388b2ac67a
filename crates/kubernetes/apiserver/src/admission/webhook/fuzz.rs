//! Any answer to an AdmissionReview is a decision or an error.

use proptest::prelude::*;
use serde_json::json;

use super::review;
use crate::fuzz::{config, mutated};

fn answer() -> impl Strategy<Value = serde_json::Value> {
    mutated(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": "u", "allowed": true, "patch": "W10=", "patchType": "JSONPatch", "warnings": ["w", "\u{e9}"],
            "auditAnnotations": {"a": "b"},
            "status": {"code": 403, "reason": "Forbidden", "message": "no",
                "details": {"name": "n", "causes": [{"field": "f", "message": "m", "reason": "r"}], "retryAfterSeconds": 1}},
        },
    }))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_answer_of_a_webhook_is_a_decision_or_an_error(answer in answer(), mutating: bool, old: bool) {
        let version = if old { "v1beta1" } else { "v1" };
        let unreadable = review::unreadable(version, &answer);
        prop_assert!(unreadable.is_none_or(|why| why.len() < 4096));
        if let Ok(verdict) = review::validate_response(version, "u", mutating, &answer) {
            prop_assert!(mutating || verdict.patch.is_empty());
            let denial = review::denial("w", &verdict.result);
            prop_assert!(denial.code >= 400, "a rejection has the code {}", denial.code);
            prop_assert!(denial.message.contains("denied the request"));
        }
    }
}
