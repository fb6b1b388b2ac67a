//! Watches: by hand from a resource version, and through kube's `watcher`.

use std::pin::pin;

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::{TIMEOUT, config_map, config_maps, restart};

fn version(object: &ConfigMap) -> Result<String> {
    object.resource_version().context("no resourceVersion")
}

/// Two changes, by the versions that they lead to.
async fn change(maps: &Api<ConfigMap>, name: &str, versions: &mut Vec<String>) -> Result<()> {
    versions.push(version(&maps.create(&PostParams::default(), &config_map(name, "1")?).await?)?);
    let patch = Patch::Merge(json!({"data": {"a": "2"}}));
    versions.push(version(&maps.patch(name, &PatchParams::default(), &patch).await?)?);
    Ok(())
}

/// Follows a watch from a version until so many changes were seen.
async fn follow(maps: &Api<ConfigMap>, from: &str, count: usize) -> Result<Vec<String>> {
    let mut events = pin!(maps.watch(&WatchParams::default(), from).await?);
    let mut seen = Vec::new();
    while seen.len() < count {
        match events.try_next().await?.context("the watch ended early")? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                seen.push(version(&object)?);
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => bail!("{status:?}"),
        }
    }
    Ok(seen)
}

pub async fn a_watch_resumes_across_a_restart_without_missing_or_repeating(client: &Client) -> Result<()> {
    let maps = config_maps(client);
    let listed = maps.list(&ListParams::default()).await?;
    let from = listed.metadata.resource_version.context("the list has no version")?;
    let mut expected = Vec::new();
    change(&maps, "before", &mut expected).await?;
    let mut seen = tokio::time::timeout(TIMEOUT, follow(&maps, &from, 2)).await??;
    change(&maps, "unseen", &mut expected).await?;
    restart(client).await?;
    change(&maps, "after", &mut expected).await?;
    let last = seen.last().context("nothing was seen")?.clone();
    seen.extend(tokio::time::timeout(TIMEOUT, follow(&maps, &last, 4)).await??);
    ensure!(seen == expected, "saw {seen:?}, expected {expected:?}");
    Ok(())
}

pub async fn a_watcher_goes_on_after_a_restart_without_listing_again(client: &Client) -> Result<()> {
    let maps = config_maps(client);
    let config = watcher::Config::default().labels("suite=kube-rs");
    let mut events = pin!(watcher::watcher(maps.clone(), config).default_backoff());
    let (mut lists, mut seen, mut expected) = (0, Vec::new(), Vec::new());
    let mut failures = 0;
    let mut restarted = false;
    let watching = async {
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => lists += 1,
                Ok(Event::InitApply(_)) => {}
                Ok(Event::InitDone) => change(&maps, "watched", &mut expected).await?,
                Ok(Event::Apply(object)) => seen.push(version(&object)?),
                Ok(Event::Delete(object)) => bail!("{} was deleted", object.name_any()),
                // The connection that went with the server.
                Err(_) => failures += 1,
            }
            if seen.len() == 2 && !restarted {
                restarted = true;
                restart(client).await?;
                change(&maps, "watched-again", &mut expected).await?;
            }
            if seen.len() == 4 {
                break;
            }
        }
        Ok(())
    };
    tokio::time::timeout(TIMEOUT, watching).await.context("the watcher did not go on")??;
    ensure!(seen == expected, "saw {seen:?}, expected {expected:?}");
    ensure!(lists == 1, "{lists} lists after {failures} failures");
    Ok(())
}

pub async fn a_streaming_list_ends_with_a_bookmark(client: &Client) -> Result<()> {
    let maps = config_maps(client);
    let config = watcher::Config::default().labels("suite=kube-rs").streaming_lists();
    let mut events = pin!(watcher::watcher(maps.clone(), config));
    let listing = async {
        let mut names = Vec::new();
        while let Some(event) = events.try_next().await? {
            match event {
                Event::InitApply(object) => names.push(object.name_any()),
                Event::InitDone => return Ok(names),
                Event::Init => {}
                other => bail!("{other:?} before the list was complete"),
            }
        }
        bail!("the watch ended")
    };
    let mut names = tokio::time::timeout(TIMEOUT, listing).await.context("no end of the list")??;
    names.sort_unstable();
    ensure!(names == ["after", "before", "unseen", "watched", "watched-again"], "{names:?}");
    Ok(())
}
