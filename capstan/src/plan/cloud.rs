//! What the controllers of providers would change in clouds once clusters are resumed: they run on a copy, with
//! connections that only read.

use std::time::Duration;

use anyhow::{Context, Result};
use capstan_capi_plane::Settings;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Client, Env, KindName, ListOptions, Patch, Runtime};
use capstan_object::{Key, Object as _};
use capstan_provider_kit::Adoption;
use capstan_rehearsal::{Kinds, Records, serve_copy};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Resumption;
use crate::apply::title;
use crate::connection::Management;
use crate::kinds::{cluster_of, list};
use crate::plugins::Plugins;

/// Without work for this long, the controllers have compared everything.
const QUIET: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);
/// The longest wait for clouds that answer slowly.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The result.
#[derive(Debug, Default)]
pub struct CloudPreview {
    /// Commands that would change something, with their parameters.
    pub calls: Vec<String>,
    /// Infrastructure objects that are not ready, and why: explains the calls, or what could not be compared.
    pub warnings: Vec<String>,
}

/// Resumes clusters on a copy and lets the providers compare it with their clouds.
pub async fn preview(
    management: &Management,
    records: &Records,
    kinds: &Kinds,
    resumed: &[Resumption],
) -> Result<CloudPreview> {
    let observers: Vec<_> = adoptions(&management.plugins).map(|adoption| adoption.observer()).collect();
    let records = with_credentials(management, records).await?;
    let copy = serve_copy(&records, kinds).await.context("cannot copy the clusters")?;
    let client = Client::in_process(copy, "capstan-plan");
    pause_others(&client, resumed).await?;
    for Resumption { kind, key, patches } in resumed {
        for patch in patches {
            client.patch(kind, key, None, &Patch::Merge(patch.clone())).await?;
        }
    }
    let options = capstan_capi_plane::options(&Settings::default());
    let mut runtime = Runtime::new(client.clone(), Env::system(), options);
    observers.iter().for_each(|observer| observer.add_controllers(&mut runtime));
    runtime.start();
    let settled = settle(&runtime).await;
    runtime.stop().await;
    let mut warnings = Vec::new();
    if !settled {
        warnings.push(format!(
            "clouds were not compared completely within {} s: the list of calls may be incomplete",
            TIMEOUT.as_secs()
        ));
    }
    for kind in kinds.names().iter().filter(|kind| kind.group.starts_with("infrastructure.")) {
        for Resumption { key, .. } in resumed {
            warnings.extend(not_ready(&client, kind, &key.namespace, &key.name).await?);
        }
    }
    let calls = observers.iter().flat_map(|observer| observer.refused()).collect();
    Ok(CloudPreview { calls, warnings })
}

fn adoptions(plugins: &Plugins) -> impl Iterator<Item = &dyn Adoption> {
    plugins.providers().filter_map(|provider| provider.adoption())
}

/// The records with Secrets that clouds need and that are in other namespaces.
async fn with_credentials(management: &Management, records: &Records) -> Result<Records> {
    let kind = KindName::namespaced("", "v1", "Secret", "secrets");
    let objects: Vec<Value> = records.0.iter().map(|(_, object)| object.clone()).collect();
    let mut all = records.clone();
    let references = adoptions(&management.plugins).flat_map(|adoption| adoption.credentials(&objects));
    let mut secrets: Vec<Key> = references.map(|reference| reference.secret).collect();
    secrets.sort();
    secrets.dedup();
    for key in secrets {
        let known = objects.iter().any(|object| {
            let meta = &object["metadata"];
            object["kind"] == "Secret" && meta["name"] == key.name && meta["namespace"] == key.namespace
        });
        if !known && let Some(found) = management.client.get_raw(&kind, &key).await? {
            all.0.push((kind.clone(), found.parse()?));
        }
    }
    Ok(all)
}

/// What goes on in other clusters is no part of the preview.
async fn pause_others(client: &Client, resumed: &[Resumption]) -> Result<()> {
    let all: Vec<Cluster> = client.list_all("", &ListOptions::default()).await?;
    for cluster in all.iter().filter(|cluster| !resumed.iter().any(|it| it.key == cluster.key())) {
        let patch = Patch::Merge(json!({"spec": {"paused": true}}));
        client.patch(&KindName::of::<Cluster>(), &cluster.key(), None, &patch).await?;
    }
    Ok(())
}

/// Waits until the controllers have nothing to do; returns whether they got there in time.
async fn settle(runtime: &Runtime) -> bool {
    runtime.caches().synced().await;
    let begun = Instant::now();
    let mut idle_since = begun;
    while begun.elapsed() < TIMEOUT {
        tokio::time::sleep(POLL).await;
        if runtime.load().0 > 0 {
            idle_since = Instant::now();
        } else if idle_since.elapsed() >= QUIET {
            return true;
        }
    }
    false
}

/// Objects of a cluster whose `Ready` condition is not true.
async fn not_ready(client: &Client, kind: &KindName, namespace: &str, cluster: &str) -> Result<Vec<String>> {
    let all = list(client, kind, namespace).await?;
    let mine = all.iter().filter(|object| cluster_of(object) == Some(cluster));
    Ok(mine.filter_map(failure).collect())
}

fn failure(object: &Value) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    let message = capstan_view::one_line(ready["message"].as_str().unwrap_or_default());
    (ready["status"] != "True").then(|| format!("{} is not ready: {message}", title(object)))
}
