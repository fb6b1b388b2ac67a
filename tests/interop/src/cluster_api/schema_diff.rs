//! `cargo xtask schema-diff`: compares our CRDs of Cluster API and of the CloudStack and OpenStack providers with those
//! in the upstream modules.
//!
//! Everything except descriptions is compared: fields, types, required fields, bounds, enums, patterns, formats, list
//! types and keys, rules, defaults, columns, subresources, names, versions. A difference is either fixed or listed
//! with its reason in `tests/schema-diff/explained.yaml`. An explanation without a difference fails too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::peers::catalog::{CAPC, CAPC_MODULE, CAPO, CAPO_MODULE, CLUSTER_API, CLUSTER_API_MODULE};
use crate::peers::module_dir;

#[derive(Debug, Args)]
pub struct Options {
    /// Only kinds whose definition's name contains this text
    #[arg(long)]
    only: Option<String>,
}

/// The path of an explanation why upstream has no such definition.
const ONLY_OURS: &str = "only ours";

/// An intended difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Explanation {
    /// CRD name, or `*` for all.
    definition: String,
    /// Path, or a prefix of it.
    path: String,
    reason: String,
}

impl Explanation {
    fn covers(&self, definition: &str, path: &str) -> bool {
        (self.definition == "*" || self.definition == definition)
            && path.strip_prefix(self.path.as_str()).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(['.', ' ']) || self.path.ends_with('.')
            })
    }
}

pub fn run(options: &Options) -> Result<()> {
    let folders = upstream_folders()?;
    let path = crate::cargo::root().join("tests/schema-diff/explained.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let explanations: Vec<Explanation> =
        serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
    let mut used = BTreeSet::new();
    let (mut definitions, mut places, mut unexplained, mut explained) = (0, 0, 0, 0);
    let ours = capstan_capi_types::definitions::definitions().into_iter();
    let providers = [
        capstan_cloudstack_types::definitions::definitions(),
        capstan_openstack_types::definitions::definitions(),
    ];
    for ours in ours.chain(providers.into_iter().flatten()) {
        let name = ours["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if options.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let Some(theirs) = upstream(&folders, &name)? else {
            let only_ours = |it: &Explanation| it.definition == name && it.path == ONLY_OURS;
            match explanations.iter().position(only_ours) {
                Some(at) => {
                    used.insert(at);
                    explained += 1;
                }
                None => bail!("upstream has no {name}"),
            }
            continue;
        };
        let (ours, theirs) = (places_of(&ours), places_of(&theirs));
        definitions += 1;
        places += theirs.len();
        for (path, what) in differences(&ours, &theirs) {
            match explanations.iter().position(|explanation| explanation.covers(&name, &path)) {
                Some(at) => {
                    used.insert(at);
                    explained += 1;
                }
                None => {
                    unexplained += 1;
                    println!("{name} {path}: {what}");
                }
            }
        }
    }
    println!(
        "schema-diff: {definitions} definitions, {places} places compared with Cluster API {CLUSTER_API}, CAPC \
         {CAPC} and CAPO {CAPO}, {explained} differences explained, {unexplained} not"
    );
    if options.only.is_none() {
        for (at, explanation) in explanations.iter().enumerate() {
            if !used.contains(&at) {
                bail!(
                    "unused explanation: {} {} ({})",
                    explanation.definition,
                    explanation.path,
                    explanation.reason.trim()
                );
            }
        }
    }
    if definitions == 0 {
        bail!("no definition was compared");
    }
    if unexplained > 0 {
        bail!("{unexplained} differences are not explained");
    }
    Ok(())
}

fn upstream_folders() -> Result<Vec<PathBuf>> {
    let module = module_dir(CLUSTER_API_MODULE, &format!("v{CLUSTER_API}"))?;
    let mut folders = ["core", "bootstrap/kubeadm", "controlplane/kubeadm", "cmd/clusterctl"]
        .map(|part| module.join(part).join("config/crd/bases"))
        .to_vec();
    for (module, version) in [(CAPC_MODULE, CAPC), (CAPO_MODULE, CAPO)] {
        folders.push(module_dir(module, &format!("v{version}"))?.join("config/crd/bases"));
    }
    Ok(folders)
}

/// Upstream's CRD, from the file that its generator names after group and plural; `None` if there is none.
fn upstream(folders: &[PathBuf], name: &str) -> Result<Option<Value>> {
    let (plural, group) = name.split_once('.').with_context(|| format!("{name} is not the name of a CRD"))?;
    let file = format!("{group}_{plural}.yaml");
    let Some(path) = folders.iter().map(|folder| folder.join(&file)).find(|path| path.exists()) else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let options = serde_saphyr::options! { budget: None };
    serde_saphyr::from_str_with_options(&text, options).map(Some).with_context(|| path.display().to_string())
}

/// Flattens a CRD: `v1beta2 .spec.paused type` → `"boolean"`.
fn places_of(definition: &Value) -> BTreeMap<String, String> {
    let mut places = BTreeMap::new();
    let spec = &definition["spec"];
    places.insert("group".to_owned(), spec["group"].to_string());
    places.insert("scope".to_owned(), spec["scope"].to_string());
    for (key, value) in spec["names"].as_object().into_iter().flatten() {
        places.insert(format!("names {key}"), value.to_string());
    }
    for version in spec["versions"].as_array().into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        for key in ["served", "storage", "deprecated", "deprecationWarning"] {
            places.insert(format!("{name} {key}"), version[key].to_string());
        }
        for subresource in ["status", "scale"] {
            if let Some(value) = version["subresources"].get(subresource) {
                places.insert(format!("{name} subresource {subresource}"), value.to_string());
            }
        }
        for (at, column) in version["additionalPrinterColumns"].as_array().into_iter().flatten().enumerate() {
            let mut column = column.clone();
            if let Some(column) = column.as_object_mut() {
                column.remove("description");
            }
            places.insert(format!("{name} column {at}"), column.to_string());
        }
        walk(&version["schema"]["openAPIV3Schema"], &format!("{name} "), &mut places);
    }
    places
}

fn walk(schema: &Value, path: &str, places: &mut BTreeMap<String, String>) {
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "description" => {}
            "properties" => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    let path = format!("{path}.{name}");
                    places.insert(path.clone(), "there".to_owned());
                    walk(property, &path, places);
                }
            }
            "items" => walk(value, &format!("{path}[]"), places),
            "additionalProperties" => walk(value, &format!("{path}{{}}"), places),
            "required" | "enum" => {
                let mut words: Vec<String> =
                    value.as_array().into_iter().flatten().map(Value::to_string).collect();
                words.sort();
                places.insert(format!("{path} {key}"), words.join(" "));
            }
            _ => {
                places.insert(format!("{path} {key}"), value.to_string());
            }
        }
    }
}

/// Differences. What is below a missing field is not reported again.
fn differences(ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut missing: Option<String> = None;
    for path in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        if missing.as_ref().is_some_and(|above| below(above, path)) {
            continue;
        }
        let what = match (ours.get(path), theirs.get(path)) {
            (Some(ours), Some(theirs)) if ours == theirs => continue,
            (Some(ours), Some(theirs)) => format!("{ours} here, {theirs} upstream"),
            (Some(ours), None) => format!("only here: {ours}"),
            (None, Some(theirs)) => format!("only upstream: {theirs}"),
            (None, None) => continue,
        };
        if ours.get(path).or(theirs.get(path)).is_some_and(|there| there == "there") {
            missing = Some(path.clone());
        }
        found.push((path.clone(), what));
    }
    found
}

fn below(above: &str, path: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with(['.', ' ', '[', '{']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(schema: Value) -> Value {
        json!({ "spec": { "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": schema } }] } })
    }

    #[test]
    fn bounds_and_missing_fields_are_reported_once() {
        let theirs = places_of(&definition(json!({ "properties": {
            "a": { "type": "string", "maxLength": 3, "description": "theirs" },
            "b": { "type": "object", "properties": { "c": { "type": "string" } } },
        } })));
        let ours = places_of(&definition(json!({ "properties": {
            "a": { "type": "string", "maxLength": 4, "description": "ours" },
        } })));
        assert_eq!(
            differences(&ours, &theirs),
            [
                ("v1 .a maxLength".to_owned(), "4 here, 3 upstream".to_owned()),
                ("v1 .b".to_owned(), "only upstream: there".to_owned()),
            ]
        );
    }

    #[test]
    fn an_explanation_covers_its_path_and_everything_below() {
        let explanation =
            Explanation { definition: "*".to_owned(), path: "v1 .spec.a".to_owned(), reason: String::new() };
        assert!(explanation.covers("x", "v1 .spec.a"));
        assert!(explanation.covers("x", "v1 .spec.a maxLength"));
        assert!(explanation.covers("x", "v1 .spec.a.b"));
        assert!(!explanation.covers("x", "v1 .spec.ab"));
    }
}
