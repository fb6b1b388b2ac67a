use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use super::{API_KEY, Reply, SECRET_KEY, Script, alice, once, refusal};
use crate::commands::{DeployVirtualMachine, GetUser, GetUserKeys, ListZones};
use crate::model::VirtualMachine;
use crate::{Rotating, Secret, UserData};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn keys_and_user_data_are_in_no_log() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    // For the whole process: what the other tests log in the meantime must keep the same secrets.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let script = Script::new(|_, before| match before {
        0 => Reply::Broken { never_sent: true },
        1 => refusal(530, 4250, &format!("bad key {API_KEY} or {SECRET_KEY}")),
        _ => Reply::Ok(json!({ "zone": [] })),
    });
    let client = script.client();
    let mut deploy = DeployVirtualMachine::new("z".into(), "o".into(), "t".into());
    deploy.userdata = Some(UserData::plain(b"join token").unwrap());
    let error = client.start(&deploy).await.unwrap_err();
    client.list(&ListZones::default()).await.unwrap();
    let log = String::from_utf8(lines.0.lock().clone()).unwrap();
    assert!(log.contains("deployVirtualMachine") && log.contains("listZones"), "{log}");
    let metrics = script.client().endpoint().metrics().render("cloud");
    for text in [log, error.to_string(), format!("{error:?} {deploy:?}"), metrics] {
        for secret in [API_KEY, SECRET_KEY, "signature=", "am9pbiB0b2tlbg"] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
    assert_eq!(error.refusal().unwrap().text, "bad key [redacted] or [redacted]");
}

#[test]
fn keys_do_not_show_themselves() {
    let shown = format!("{:?} {:?} {:?}", alice(), Rotating::new(alice()), Secret::new(SECRET_KEY));
    assert!(!shown.contains("alice"), "{shown}");
    assert_eq!(serde_json::to_string(&Secret::new(SECRET_KEY)).unwrap(), "\"[redacted]\"");
}

#[tokio::test]
async fn secrets_in_answers_are_hidden_but_there() {
    let script =
        Script::new(|_, _| Reply::Ok(json!({ "userkeys": { "apikey": "a", "secretkey": "b-secret" }})));
    let keys = script.client().call(&GetUserKeys { id: "u".into() }).await.unwrap();
    assert_eq!(keys.secretkey.as_ref().unwrap().expose(), "b-secret");
    assert!(!format!("{keys:?}").contains("b-secret"));
    let machine = json!({ "id": "v", "password": "p-secret", "userdata": "u-secret" });
    let machine: VirtualMachine = serde_json::from_value(machine).unwrap();
    let shown = format!("{machine:?} {}", serde_json::to_string(&machine).unwrap());
    assert!(!shown.contains("-secret"), "{shown}");
}

#[tokio::test]
async fn a_key_that_is_a_parameter_is_sent_in_clear_and_shown_to_nobody() {
    let script = Script::new(|_, _| refusal(432, 9999, "not for you"));
    let command = GetUser { userapikey: Secret::new("k-secret") };
    script.client_with(once()).call(&command).await.unwrap_err();
    assert_eq!(script.seen()[0].get("userapikey"), "k-secret");
    assert!(!format!("{command:?}").contains("k-secret"));
}
