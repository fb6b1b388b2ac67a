//! A watch that reconnects when a server ends it. kube-apiserver does so whenever a CustomResourceDefinition changes,
//! and after a timeout of its own of half an hour or more.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::api::{Api, Events};

#[derive(Debug)]
pub struct Follower {
    api: Api,
    collection: &'static str,
    /// Resource version of the last event.
    version: String,
    events: Option<Events>,
}

#[derive(Debug)]
pub enum FollowerEvent {
    /// One object was changed or deleted.
    Changed { kind: String, object: Value },
    /// Changes were missed. These are all current objects, by name.
    Everything(BTreeMap<String, Value>),
}

impl Follower {
    /// Follows a collection from now on.
    pub async fn new(api: &Api, collection: &'static str) -> Result<Self> {
        let version = version_of(&api.get(&format!("{collection}?limit=1")).await?.success()?)?;
        let mut follower = Self { api: api.clone(), collection, version, events: None };
        follower.open().await?;
        Ok(follower)
    }

    /// Waits for the next change. Cancel safe.
    pub async fn next(&mut self) -> Result<FollowerEvent> {
        loop {
            let Some(events) = &mut self.events else {
                if self.open().await.is_ok() {
                    continue;
                }
                return self.list().await;
            };
            let Ok(Some(mut event)) = events.next().await else {
                self.events = None;
                continue;
            };
            let object = event["object"].take();
            match event["type"].as_str().unwrap_or_default() {
                "ERROR" if object["code"] == 410 => return self.list().await,
                "ERROR" => bail!("the watch of {} failed: {object}", self.collection),
                kind => {
                    self.version = version_of(&object)?;
                    if kind != "BOOKMARK" {
                        return Ok(FollowerEvent::Changed { kind: kind.to_owned(), object });
                    }
                }
            }
        }
    }

    async fn open(&mut self) -> Result<()> {
        let Self { collection, version, .. } = self;
        let query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=86400";
        let path = format!("{collection}?{query}&resourceVersion={version}");
        self.events = Some(self.api.watch(&path).await?);
        Ok(())
    }

    /// Lists the collection and resumes from there.
    async fn list(&mut self) -> Result<FollowerEvent> {
        self.events = None;
        let mut list = self.api.get(self.collection).await?.success()?;
        self.version = version_of(&list)?;
        let Value::Array(items) = list["items"].take() else { bail!("the list has no items") };
        let named = |item: Value| Some((item["metadata"]["name"].as_str()?.to_owned(), item));
        Ok(FollowerEvent::Everything(items.into_iter().filter_map(named).collect()))
    }
}

fn version_of(object: &Value) -> Result<String> {
    let version = object["metadata"]["resourceVersion"].as_str();
    Ok(version.context("no resourceVersion")?.to_owned())
}
