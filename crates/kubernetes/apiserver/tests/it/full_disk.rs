//! A full disk: the server is alive, reads and deletes work, and other writes work again when there is space.

use std::time::Duration;

use capstan_apiserver::{Config, Digest};
use capstan_store::{Options, SimDisk, Store};
use serde_json::{Value, json};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, finalizers: &[&str]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "finalizers": finalizers}})
}

async fn health(client: &Client) -> [u16; 3] {
    let mut codes = [0; 3];
    for (code, path) in codes.iter_mut().zip(["/livez", "/healthz", "/readyz"]) {
        *code = client.reply("GET", path, &[], String::new()).await.status().as_u16();
    }
    codes
}

#[tokio::test(start_paused = true)]
async fn on_a_full_disk_deletes_work_and_writes_work_again_when_there_is_space() {
    let disk = SimDisk::new(1);
    let store: Store<Digest> = Store::open(disk.clone(), Options::default()).expect("a store");
    let client = Client::with(Config::in_memory().with_store(store)).await;
    assert_eq!(client.create(MAPS, &map("plain", &[])).await.0, 201);
    assert_eq!(client.create(MAPS, &map("finalized", &["example.com/wait"])).await.0, 201);

    disk.set_capacity(disk.used());
    let mut refused = None;
    for number in 0..200 {
        let (code, answer) = client.create(MAPS, &map(&format!("filler-{number}"), &[])).await;
        if code != 201 {
            refused = Some((code, answer));
            break;
        }
    }
    let (code, answer) = refused.expect("a full disk");
    assert_eq!((code, &answer["reason"]), (507, &json!("InsufficientStorage")), "{answer}");
    assert!(answer["message"].as_str().expect("text").contains("deletes still work"), "{answer}");
    assert_eq!(health(&client).await, [200, 200, 500]);

    let plain = format!("{MAPS}/plain");
    assert_eq!(client.call("DELETE", &plain, &Value::Null).await.0, 200);
    assert_eq!(client.get(&plain).await.0, 404);
    let finalized = format!("{MAPS}/finalized");
    assert_eq!(client.call("DELETE", &finalized, &Value::Null).await.0, 200);
    assert_eq!(client.get(&finalized).await.0, 200, "it waits for its finalizer");
    let patch = json!({"metadata": {"finalizers": null}});
    assert_eq!(client.patch(&finalized, "application/merge-patch+json", &patch).await.0, 200);
    assert_eq!(client.get(&finalized).await.0, 404);
    assert_eq!(health(&client).await, [200, 200, 500], "deletes do not make it ready");

    disk.set_capacity(u64::MAX);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(health(&client).await, [200, 200, 200], "nobody had to write or to restart it");
    assert_eq!(client.create(MAPS, &map("after", &[])).await.0, 201);
}
