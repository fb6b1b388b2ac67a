//! Configurations for which our kubeadm and real kubeadm agree; `cargo xtask kubeadm-accepts` runs the real one.

use std::path::Path;

use capstan_schema::patch::merge;
use serde_json::{Value, json};

use super::kubeadm::runs;
use super::*;

fn table() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/kubeadm-accepts/verdicts.yaml");
    let text = std::fs::read_to_string(&path).expect("the table");
    serde_saphyr::from_str(&text).expect("YAML")
}

#[tokio::test(start_paused = true)]
async fn our_kubeadm_accepts_and_rejects_what_real_kubeadm_does() {
    let table = table();
    let mut wrong = Vec::new();
    for case in table["cases"].as_array().expect("cases") {
        let (verb, documents): (_, &[&str]) =
            if case.get("join").is_some() { ("join", &["join"]) } else { ("init", &["cluster", "init"]) };
        let laid_over = |name: &&str| {
            let over = case.get(*name).cloned().unwrap_or(json!({}));
            merge::apply(table["plain"][*name].clone(), over).expect("a document").to_string()
        };
        let config: Vec<String> = documents.iter().map(laid_over).collect();
        let mut machine = vm(runs(verb, &config.join("\n---\n")));
        machine.image = Image { kubernetes: Some("v1.36.3".to_owned()) };
        let booted = boot(machine).await;
        let error = case["error"].as_str().unwrap_or_default();
        let is_as_expected = match &booted.outcome {
            Ok(_) => error.is_empty(),
            Err(why) => !error.is_empty() && why.contains(error),
        };
        if !is_as_expected {
            wrong.push(format!("{}: {:?} instead of {error:?}", case["name"], booted.outcome));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
