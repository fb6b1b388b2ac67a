//! Whatever a service, a proxy or a file says, the client makes something of it or an error.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::compute::{Flavor, Server};
use crate::config::Clouds;
use crate::load_balancer::LoadBalancer;
use crate::network::{Network, Port};
use crate::token::TokenBody;
use crate::{Service, read_refusal};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        "[a-z_]{1,8}",
        prop::sample::select(vec![
            "error",
            "errors",
            "message",
            "NeutronError",
            "faultstring",
            "code",
            "id",
            "status",
            "token",
            "clouds",
            "auth",
            "regions",
            "image",
            "flavor",
            "addresses",
            "networks",
            "networks_links",
            "links",
            "next",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    // With as many cases as `PROPTEST_CASES` says.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_error_body_is_read_and_bounded(status in 400u16..600, json in any_json(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for service in Service::ALL {
            for body in [json.to_string().into_bytes(), bytes.clone()] {
                let refusal = read_refusal(*service, status, &HeaderMap::new(), &body);
                prop_assert!(refusal.text.len() <= 1100 && refusal.fault.len() <= 1100);
                prop_assert!(!refusal.text.chars().any(char::is_control));
            }
        }
    }

    #[test]
    fn any_settings_are_used_or_refused(json in any_json(), text in ".{0,80}") {
        for text in [json.to_string(), json!({ "clouds": { "c": json } }).to_string(), text] {
            if let Ok(clouds) = Clouds::parse(&text, Some(&text), Some(&text)) {
                _ = clouds.cloud(None, None);
                _ = clouds.cloud(Some("c"), Some("r"));
            }
        }
    }

    #[test]
    fn any_thing_is_decoded_or_refused(json in any_json()) {
        _ = serde_json::from_value::<Server>(json.clone());
        _ = serde_json::from_value::<Flavor>(json.clone());
        _ = serde_json::from_value::<Network>(json.clone());
        _ = serde_json::from_value::<Port>(json.clone());
        _ = serde_json::from_value::<LoadBalancer>(json.clone());
        _ = serde_json::from_value::<TokenBody>(json);
    }

    #[test]
    fn any_list_ends(pages in prop::collection::vec(any_json(), 1..4), next in "[a-z]{0,3}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let script = Script::new(move |_, before| {
                let mut page = json!({ "networks": [{ "id": "1" }], "networks_links": [{ "rel": "next", "href": format!("/x?marker={next}{before}") }] });
                if let Some(Value::Object(fields)) = pages.get(before) {
                    page = Value::Object(fields.clone());
                }
                match before > pages.len() + 2 {
                    true => ok(json!({ "networks": [] })),
                    false => ok(page),
                }
            });
            _ = script.client().list::<Network>(&crate::network::NetworkFilter::default()).await;
        });
    }
}
