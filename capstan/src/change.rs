//! Changes of specs by commands, with dry runs that the server validates.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Client, KindName};
use capstan_object::{Key, Object as _};
use http::{Method, Request, header};
use serde_json::{Value, json};

use crate::connection::Management;
use crate::kinds::served_kinds;
use crate::output::{Action, ActionReport};

/// A patch of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub kind: KindName,
    pub name: String,
    /// Such as `replicas 1 → 3`.
    pub what: String,
    /// Merge patch.
    pub patch: Value,
}

/// Sends the changes in order and reports each; with `dry_run` the server only validates them.
pub async fn apply_changes(
    management: &Management,
    changes: &[Change],
    dry_run: bool,
    report: &mut ActionReport,
) -> Result<()> {
    for change in changes {
        let object = format!("{}/{}", change.kind.kind.to_lowercase(), change.name);
        let sent = send(management, change, dry_run).await;
        if let Err(error) = sent.with_context(|| format!("{object} was not changed")) {
            report.finish()?;
            return Err(error);
        }
        let what = change.what.clone();
        let sentence = format!("{object}: {what}{}", if dry_run { " (dry run)" } else { "" });
        report.record(Action { object, what, dry_run, sentence })?;
    }
    report.finish()
}

/// Sends a change and returns the changed object.
pub async fn send(management: &Management, change: &Change, dry_run: bool) -> Result<Value> {
    let path = change.kind.object_path(&Key::new(&management.namespace, &change.name), None);
    let kind = "application/merge-patch+json";
    let path = format!("{path}?fieldManager=capstan-cli");
    patch(&management.client, &path, kind, &change.patch, dry_run).await
}

/// Sends a patch to a path that has a query; with `dry_run` the server only validates it. Returns the patched object.
pub async fn patch(client: &Client, path: &str, kind: &str, body: &Value, dry_run: bool) -> Result<Value> {
    let dry = if dry_run { "&dryRun=All" } else { "" };
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(format!("{path}{dry}"))
        .header(header::CONTENT_TYPE, kind)
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(body.to_string()))?;
    Ok(serde_json::from_slice(&client.exchange(request).await?)?)
}

/// The control plane of a cluster, whatever its kind.
pub struct ControlPlane {
    pub kind: KindName,
    pub object: Value,
}

impl ControlPlane {
    pub async fn of(management: &Management, cluster: &Cluster) -> Result<Self> {
        let reference = &cluster.spec.control_plane_ref;
        let title = &cluster.metadata().name;
        if reference.name.is_empty() {
            bail!("cluster {title} has no control plane object: spec.controlPlaneRef is empty");
        }
        let kinds = served_kinds(&management.client).await?;
        let kind = kinds.into_iter().map(|known| known.kind);
        let kind =
            kind.into_iter().find(|kind| kind.group == reference.api_group && kind.kind == reference.kind);
        let kind = kind.with_context(|| format!("the server does not have the kind {}", reference.kind))?;
        let key = Key::new(&management.namespace, &reference.name);
        let found = management.client.get_raw(&kind, &key).await?;
        let found = found
            .with_context(|| format!("{} {key} does not exist; cluster {title} refers to it", kind.kind))?;
        Ok(Self { object: found.parse()?, kind })
    }

    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn change(&self, what: String, spec: Value) -> Change {
        Change { kind: self.kind.clone(), name: self.name().to_owned(), what, patch: json!({"spec": spec}) }
    }
}
