use serde_json::json;

use super::{Reply, Script, once, refusal};
use crate::commands::{DeployVirtualMachine, ListCapabilities, ListZones};
use crate::{Class, Code, Effect, Error, ErrorKind, Refusal};

fn deploy() -> DeployVirtualMachine {
    DeployVirtualMachine::new("z".into(), "o".into(), "t".into())
}

fn refused(effect: Effect, code: Code) -> Error {
    let refusal = Refusal { code, cs_code: None, text: String::new() };
    Error::new("aCommand", effect, ErrorKind::Refused(refusal))
}

#[test]
fn the_table_says_what_each_code_is_whether_it_passes_and_whether_it_may_have_happened() {
    let table = [
        (400, Class::Protocol, false, false),
        (401, Class::Credentials, false, false),
        (404, Class::Protocol, false, false),
        (405, Class::Protocol, false, false),
        (414, Class::Protocol, false, false),
        (429, Class::RateLimited, true, false),
        (430, Class::Parameter, false, false),
        (431, Class::Parameter, false, false),
        (432, Class::Permission, false, false),
        (503, Class::Unavailable, true, false),
        (530, Class::Internal, false, true),
        (531, Class::Permission, false, false),
        (532, Class::Limit, false, false),
        (533, Class::Capacity, false, true),
        (534, Class::Unavailable, true, true),
        (535, Class::Limit, false, false),
        (536, Class::InUse, false, false),
        (537, Class::Conflict, false, false),
    ];
    assert_eq!(table.len(), Code::ALL.len());
    for (number, class, retryable, ambiguous) in table {
        let code = Code::from_number(number);
        assert!(Code::ALL.contains(&code), "{number}");
        assert_eq!(code.number(), number);
        let change = refused(Effect::Change, code);
        assert_eq!(
            (change.class(), change.is_retryable(), change.is_ambiguous()),
            (class, retryable, ambiguous)
        );
        assert!(!refused(Effect::Read, code).is_ambiguous(), "{number}: nothing was to happen");
    }
    assert!(refused(Effect::Change, Code::from_number(599)).is_ambiguous(), "who knows");
}

#[test]
fn a_command_that_left_and_was_not_answered_may_have_happened() {
    let timed_out = ErrorKind::TimedOut(std::time::Duration::from_secs(1));
    let gateway = |status| ErrorKind::Unreadable { status, why: String::new() };
    let table = [
        (ErrorKind::Unreachable(String::new()), false, true),
        (ErrorKind::Lost(String::new()), true, true),
        (timed_out, true, true),
        (gateway(502), true, true),
        (gateway(200), true, false),
        (gateway(302), false, false),
        (gateway(404), false, false),
        (ErrorKind::Unwritable(String::new()), false, false),
    ];
    for (kind, ambiguous, retryable) in table {
        let error = Error::new("aCommand", Effect::Change, kind);
        assert_eq!((error.is_ambiguous(), error.is_retryable()), (ambiguous, retryable), "{error}");
    }
}

#[test]
fn only_what_does_not_exist_is_unknown() {
    let text = |code: u16, text: &str| {
        let refusal = Refusal { code: Code::from_number(code), cs_code: None, text: text.to_owned() };
        Error::new("aCommand", Effect::Change, ErrorKind::Refused(refusal))
    };
    let unknown = "Unable to execute API command x due to invalid value. Invalid parameter id value=a1 due to incorrect \
                   long value format, or entity does not exist";
    let table = [
        (text(431, unknown), true),
        (text(431, "Unable to find UUID for id [29] of type [VirtualMachine]"), true),
        (text(530, unknown), false),
        (text(431, &unknown.replace("a1", "a11")), false),
        (text(431, &unknown.replace("parameter id", "parameter volumeids")), false),
        (
            text(431, "Instance [id = a1, name = m] has delete protection enabled and cannot be deleted."),
            false,
        ),
        (text(431, "Can't delete VPC v as its used by 1 networks"), false),
    ];
    for (error, expected) in table {
        assert_eq!(error.is_unknown("a1"), expected, "{error}");
    }
}

#[tokio::test]
async fn refusals_are_read_whatever_their_wrapper() {
    let table = [
        (refusal(431, 4350, "no"), Code::Parameter, Some(4350)),
        (
            Reply::Status(
                432,
                json!({ "errorresponse": { "errorcode": 432, "cserrorcode": 9999, "errortext": "no" }}),
            ),
            Code::Unsupported,
            Some(9999),
        ),
        (
            Reply::Status(401, json!({ "listzonesresponse": { "errorcode": 401, "errortext": "no" }})),
            Code::Unauthorized,
            None,
        ),
        (Reply::Status(200, json!({ "x": { "errorcode": "530", "errortext": "no" }})), Code::Internal, None),
    ];
    for (reply, code, cs_code) in table {
        let reply = parking_lot::Mutex::new(Some(reply));
        let script = Script::new(move |_, _| reply.lock().take().unwrap());
        let error = script.client_with(once()).list(&ListZones::default()).await.unwrap_err();
        assert_eq!(error.code(), Some(code));
        assert_eq!(error.refusal().unwrap().cs_code, cs_code);
        assert_eq!(error.refusal().unwrap().text, "no");
    }
}

#[tokio::test]
async fn what_is_no_api_is_named_by_status_and_type_and_never_shown() {
    let pages = [
        (404, "text/html", "<html>secret page</html>"),
        (405, "text/plain", "secret method"),
        (200, "text/xml", "<listzonesresponse/>"),
        (200, "application/json", ""),
        (200, "application/json", "{}"),
        (200, "application/json", "[1]"),
        (200, "application/json", "{\"a\":{},\"b\":{}}"),
        (500, "application/json", "{\"a\":{}}"),
    ];
    for (status, kind, body) in pages {
        let script = Script::new(move |_, _| Reply::Text(status, kind, body));
        let error = script.client_with(once()).list(&ListZones::default()).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(&*error.kind, ErrorKind::Unreadable { status: s, .. } if *s == status), "{text}");
        assert!(text.contains(kind) && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn texts_of_the_server_are_bounded_and_have_no_control_characters() {
    let long = format!("a\n\u{1b}[31m{}", "x".repeat(5000));
    let script = Script::new(move |_, _| refusal(431, 4350, &long));
    let error = script.client().call(&ListCapabilities {}).await.unwrap_err();
    let text = &error.refusal().unwrap().text;
    assert!(text.chars().count() <= 1025 && !text.contains(char::is_control), "{text}");
}

#[tokio::test]
async fn an_error_says_command_meaning_numbers_and_the_clouds_own_text() {
    let script = Script::new(|_, _| refusal(535, 9999, "Maximum amount of resources"));
    let error = script.client().start(&deploy()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "deployVirtualMachine: resource limit reached (535/9999): Maximum amount of resources"
    );
}
