//! Claims about any answer and any value.

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::sync::Arc;

use super::{SECRET_KEY, alice, read};
use crate::commands::{CreateTags, DeployVirtualMachine, ListVirtualMachines, TagPair};
use crate::model::ResourceType;
use crate::{Client, Endpoint, Limits, Policy, TransportError};

/// A client whose every request gets this answer, and what was asked.
fn client(status: u16, body: Vec<u8>) -> (Client, Arc<Mutex<Vec<Request<Bytes>>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let answer = {
        let asked = asked.clone();
        move |request| {
            asked.lock().push(request);
            let response = Response::builder().status(status).body(Bytes::from(body.clone()));
            let response =
                response.map_err(|error| TransportError { message: error.to_string(), never_sent: true });
            Box::pin(async { response }) as futures::future::BoxFuture<'static, _>
        }
    };
    let endpoint =
        Endpoint::new("http://cloud.example/client/api", Arc::new(answer), Limits::default()).unwrap();
    let policy = Policy { attempts: 1, list_attempts: 1, ..Policy::default() };
    (Client::with_policy(Arc::new(endpoint), Arc::new(alice()), policy), asked)
}

/// Runs without a clock's hands moving: nothing here waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(future)
}

/// JSON that looks like an answer, with values where others belong.
fn answers() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-1".to_owned()),
        Just("1e300".to_owned()),
        Just("\"6443\"".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        "\"[ -~]{0,12}\"".prop_filter("JSON", |text| serde_json::from_str::<String>(text).is_ok()),
    ];
    let keys = prop::sample::select(vec![
        "id",
        "name",
        "state",
        "nic",
        "cpunumber",
        "created",
        "tags",
        "details",
        "jobid",
        "errorcode",
        "errortext",
        "count",
        "success",
        "ipaddress",
    ]);
    let record = prop::collection::vec((keys, value), 0..8).prop_map(|fields| {
        let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    });
    (record.clone(), record, any::<bool>()).prop_map(|(outer, inner, listed)| match listed {
        true => format!("{{\"xresponse\":{{\"count\":1,\"virtualmachine\":[{inner}]}}}}"),
        false => format!("{{\"xresponse\":{outer}}}"),
    })
}

proptest! {
    #[test]
    fn fuzz_any_bytes_are_an_error_and_nothing_else(
        body in prop::collection::vec(any::<u8>(), 0..200),
        status in 100u16..600,
    ) {
        let (client, _) = client(status, body);
        let _ = now(client.list(&ListVirtualMachines::default()));
        let deploy = DeployVirtualMachine::new("z".into(), "o".into(), "t".into());
        let _ = now(client.start(&deploy));
    }

    #[test]
    fn fuzz_answers_with_wrong_values_are_understood_or_refused(body in answers(), status in prop::sample::select(vec![200u16, 431, 530])) {
        let (client, _) = client(status, body.into_bytes());
        let _ = now(client.list(&ListVirtualMachines::default()));
        let _ = now(client.poll::<DeployVirtualMachine>(&"j".into()));
        let deploy = DeployVirtualMachine::new("z".into(), "o".into(), "t".into());
        if let Err(error) = now(client.start(&deploy)) {
            prop_assert!(!error.to_string().contains(SECRET_KEY));
        }
    }

    #[test]
    fn fuzz_any_value_arrives_as_it_was_and_is_signed(key in "\\PC{1,20}", value in any::<String>()) {
        let (client, asked) = client(200, b"{\"x\":{\"jobid\":\"j\"}}".to_vec());
        let tags = vec![TagPair::new(key.clone(), value.clone())];
        let command = CreateTags { resourceids: vec!["r".into()], resourcetype: ResourceType::UserVm, tags };
        now(client.start(&command)).unwrap();
        let asked = asked.lock();
        // Reading checks the signature.
        let seen = read(&asked[0]);
        prop_assert_eq!(seen.get("tags[0].key"), key.as_str());
        prop_assert_eq!(seen.get("tags[0].value"), value.as_str());
    }
}
