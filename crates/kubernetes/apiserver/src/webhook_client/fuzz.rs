//! Any answer of a webhook's server is an object or a short error.

use http::{Response, StatusCode};
use proptest::prelude::*;

use super::answer::read;
use crate::fuzz::{config, mutated_bytes};

const ANSWER: &[u8] =
    br#"{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no","response":{"uid":"u"}}"#;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_response_is_an_object_or_an_error(
        body in prop_oneof![mutated_bytes(ANSWER.to_vec()), proptest::collection::vec(any::<u8>(), 0..64)],
        code in 200_u16..600,
        content_type in proptest::option::of("[ -~]{0,16}"),
        most in 0_usize..4096,
    ) {
        let mut response = Response::builder().status(StatusCode::from_u16(code).expect("a code"));
        if let Some(content_type) = content_type {
            response = response.header("content-type", content_type);
        }
        let (head, ()) = response.body(()).expect("a response").into_parts();
        match read(&head, &body, most) {
            Ok(answer) => prop_assert!(answer.is_object() && (200..=206).contains(&code)),
            Err(why) => prop_assert!(!why.is_empty() && why.len() < 20_000, "{}", why),
        }
    }
}
