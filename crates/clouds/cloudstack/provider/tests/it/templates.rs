//! The templates that `clusterctl generate cluster` fills in: each is admitted, and its variables are documented.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use serde_json::Value;

use crate::cloud::Cloud;
use crate::manifests::{self, NAMESPACE};
use crate::story::CheckResult;
use crate::story::{Script, failed};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../..")
}

/// Every template: its name without what all have in common, and its text.
fn templates() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("templates/cloudstack")).expect("templates");
    let mut all: Vec<_> = folder
        .map(|entry| {
            let path = entry.expect("a file").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            (name.replace("cluster-template", "c"), std::fs::read_to_string(path).expect("a text"))
        })
        .collect();
    all.sort();
    all
}

/// Variables of a text, each with what it is if nobody says.
fn variables(text: &str) -> BTreeSet<(&str, Option<&str>)> {
    let starts = text.split("${").skip(1);
    let inside = starts.filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    inside
        .map(|inside| inside.split_once(":=").map_or((inside, None), |(name, default)| (name, Some(default))))
        .collect()
}

/// What somebody would say.
fn value(name: &str, cluster: &str) -> String {
    match name {
        "CLUSTER_NAME" => cluster,
        "KUBERNETES_VERSION" => "v1.36.0",
        "CLUSTER_ENDPOINT_IP" => "10.1.1.250",
        "CLOUDSTACK_ZONE_NAME" => "zone-1",
        "CLOUDSTACK_TEMPLATE_NAME" => "ubuntu-2404-kube-v1.36.0",
        "CLOUDSTACK_CONTROL_PLANE_MACHINE_OFFERING" => "Small Instance",
        "CLOUDSTACK_WORKER_MACHINE_OFFERING" => "Medium Instance",
        "SSH_KEY_MATERIAL" => "ssh-ed25519 AAAA somebody",
        _ => "something",
    }
    .to_owned()
}

fn filled_in(text: &str, cluster: &str) -> String {
    let mut text = text.to_owned();
    for (name, default) in variables(&text.clone()) {
        match default {
            Some(default) => text = text.replace(&format!("${{{name}:={default}}}"), default),
            None => text = text.replace(&format!("${{{name}}}"), &value(name, cluster)),
        }
    }
    text
}

fn all_are_admitted<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let user = world.user()?;
        for (name, text) in templates() {
            let text = filled_in(&text, &name);
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(&text).map_err(|error| failed(format!("{name}: {error}")))?;
            for mut body in documents {
                let kind = manifests::kind(body["kind"].as_str().unwrap_or_default());
                body["metadata"]["namespace"] = NAMESPACE.into();
                // Strictly: a field that does not exist would be dropped without a word.
                let made = user.create(&kind, NAMESPACE, &body).await;
                let made = made.map_err(|error| failed(format!("{name}: {}: {error}", kind.kind)))?;
                let made: Value = made.parse().map_err(failed)?;
                if let Some(lost) = lost(&body["spec"], &made["spec"], "spec") {
                    return Err(Violation::new(
                        "template",
                        format!("{name}: {}: {lost} is no field", kind.kind),
                    ));
                }
            }
        }
        let made = world.objects()?.list(&KindName::of::<CloudStackCluster>()).len();
        match made == templates().len() {
            true => Ok(()),
            false => Err(failed(format!("{made} clusters came of the templates"))),
        }
    })
}

/// A field of what was sent that is not in what was stored.
fn lost(sent: &Value, stored: &Value, at: &str) -> Option<String> {
    match (sent, stored) {
        (Value::Object(sent), stored) => sent.iter().find_map(|(name, value)| {
            let at = format!("{at}.{name}");
            match stored.get(name) {
                // What is empty need not be kept.
                None if [Value::Null, "".into(), 0.into(), serde_json::json!({})].contains(value) => None,
                None => Some(at),
                Some(stored) => lost(value, stored, &at),
            }
        }),
        (Value::Array(sent), Value::Array(stored)) => {
            sent.iter().zip(stored).find_map(|(sent, stored)| lost(sent, stored, &format!("{at}[]")))
        }
        _ => None,
    }
}

#[test]
fn every_template_with_its_variables_filled_in_is_admitted_whole() {
    let report = run(&Script { mishap_at_end: Some(all_are_admitted), ..Script::of(&[]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn every_variable_of_a_template_is_documented() {
    let documented = std::fs::read_to_string(root().join("docs/cloudstack.md")).expect("the document");
    for (template, text) in templates() {
        for (name, _) in variables(&text) {
            assert!(documented.contains(&format!("`{name}`")), "{template}: {name}");
        }
    }
}
