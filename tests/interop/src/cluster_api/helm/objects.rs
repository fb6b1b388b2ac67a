//! Objects of manifests, by kind and name.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bed::install;

pub type Objects = BTreeMap<String, Value>;

pub fn objects(text: &str) -> Result<Objects> {
    let named = install::documents(text)?.into_iter().map(|document| {
        let kind = document["kind"].as_str().context("an object without a kind")?;
        let name = document["metadata"]["name"].as_str().context("an object without a name")?;
        Ok((format!("{kind}/{name}"), document))
    });
    named.collect()
}
