//! Changes of what is wanted: said before they are made, judged by the server even when they are not.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Client, KindName};
use capstan_object::{Key, Object as _};
use http::{Method, Request, header};
use serde_json::{Value, json};

use crate::kinds::known;
use crate::output::{Deed, Deeds};
use crate::reach::Management;

/// One change of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The object's kind.
    pub kind: KindName,
    /// The object's name.
    pub name: String,
    /// What changes, in a few words.
    pub what: String,
    /// What is sent.
    pub patch: Value,
}

/// Makes changes in order, or has the server say whether it would.
pub async fn make(
    management: &Management,
    changes: &[Change],
    dry_run: bool,
    deeds: &mut Deeds,
) -> Result<()> {
    for change in changes {
        let object = format!("{}/{}", change.kind.kind.to_lowercase(), change.name);
        let sent = send(management, change, dry_run).await;
        if let Err(error) = sent.with_context(|| format!("{object} is not changed")) {
            deeds.end()?;
            return Err(error);
        }
        let what = change.what.clone();
        let sentence = format!("{object}: {what}{}", if dry_run { " (dry run)" } else { "" });
        deeds.tell(Deed { object, what, dry_run, sentence })?;
    }
    deeds.end()
}

async fn send(management: &Management, change: &Change, dry_run: bool) -> Result<()> {
    let path = change.kind.object_path(&Key::new(&management.namespace, &change.name), None);
    let kind = "application/merge-patch+json";
    let path = format!("{path}?fieldManager=capstan-cli");
    patch(&management.client, &path, kind, &change.patch, dry_run).await.map(drop)
}

/// Sends a patch to a path with a query, or has the server say whether it would take it. Answers the object that it
/// makes.
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
    /// Its kind.
    pub kind: KindName,
    /// The object.
    pub object: Value,
}

impl ControlPlane {
    /// Finds it.
    pub async fn of(management: &Management, cluster: &Cluster) -> Result<Self> {
        let reference = &cluster.spec.control_plane_ref;
        let title = &cluster.metadata().name;
        if reference.name.is_empty() {
            bail!("cluster {title} has no control plane object: spec.controlPlaneRef is empty");
        }
        let kinds = known(&management.client).await?;
        let kind = kinds.into_iter().map(|known| known.kind);
        let kind =
            kind.into_iter().find(|kind| kind.group == reference.api_group && kind.kind == reference.kind);
        let kind = kind.with_context(|| format!("the server has no kind {}", reference.kind))?;
        let key = Key::new(&management.namespace, &reference.name);
        let found = management.client.get_raw(&kind, &key).await?;
        let found =
            found.with_context(|| format!("there is no {} {key}, which cluster {title} names", kind.kind))?;
        Ok(Self { object: found.parse()?, kind })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// A change of its spec.
    pub fn change(&self, what: String, spec: Value) -> Change {
        Change { kind: self.kind.clone(), name: self.name().to_owned(), what, patch: json!({"spec": spec}) }
    }
}

/// Refuses a cluster whose parts are written by a topology: what is changed here would be changed back.
pub fn owns_its_parts(cluster: &Cluster) -> Result<()> {
    if !cluster.spec.topology.version.is_empty() {
        bail!(
            "cluster {} is made from a ClusterClass: change spec.topology of the Cluster instead",
            cluster.metadata().name
        );
    }
    Ok(())
}
