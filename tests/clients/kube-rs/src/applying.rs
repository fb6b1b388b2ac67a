//! Server-side apply.

use anyhow::{Result, bail, ensure};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::objects::gadgets_api;

async fn apply(
    client: &Client,
    name: &str,
    params: &PatchParams,
    spec: Value,
) -> kube::Result<DynamicObject> {
    let object = json!({
        "apiVersion": "kube-rs.example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec,
    });
    gadgets_api(client).patch(name, params, &Patch::Apply(object)).await
}

pub async fn an_apply_that_touches_anothers_field_conflicts_until_forced(client: &Client) -> Result<()> {
    let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));
    apply(client, "applied", &first, json!({"size": 5, "parts": [{"name": "wheel", "weight": 1}]})).await?;
    let both = apply(client, "applied", &second, json!({"parts": [{"name": "axle", "weight": 2}]})).await?;
    ensure!(both.data["spec"]["parts"].as_array().is_some_and(|parts| parts.len() == 2), "{both:?}");
    match apply(client, "applied", &second, json!({"size": 6})).await {
        Err(kube::Error::Api(status)) => {
            ensure!(status.code == 409 && status.reason == "Conflict", "{status:?}");
            ensure!(status.message.contains("conflict with \"first\""), "{status:?}");
            let causes = status.details.as_ref().map(|details| json!(details.causes)).unwrap_or_default();
            ensure!(causes[0]["field"] == ".spec.size", "{causes}");
        }
        other => bail!("no conflict: {other:?}"),
    }
    let forced = apply(client, "applied", &second.force(), json!({"size": 6})).await?;
    ensure!(
        forced.data["spec"] == json!({"size": 6, "parts": [{"name": "wheel", "weight": 1}]}),
        "{forced:?}"
    );
    let entries = json!(forced.metadata.managed_fields);
    let mut managers: Vec<_> =
        entries.as_array().into_iter().flatten().filter_map(|entry| entry["manager"].as_str()).collect();
    managers.sort_unstable();
    ensure!(managers == ["first", "second"], "{managers:?}");
    Ok(())
}

pub async fn a_field_nobody_applies_any_more_is_gone(client: &Client) -> Result<()> {
    let params = PatchParams::apply("only");
    apply(client, "shrinking", &params, json!({"size": 7, "parts": [{"name": "wheel"}]})).await?;
    let shrunk = apply(client, "shrinking", &params, json!({"parts": [{"name": "axle"}]})).await?;
    // What has a default comes back with it.
    ensure!(shrunk.data["spec"] == json!({"size": 3, "parts": [{"name": "axle"}]}), "{shrunk:?}");
    Ok(())
}
