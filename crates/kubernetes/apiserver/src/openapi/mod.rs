//! OpenAPI documents, for client-side validation and `kubectl explain`.
//!
//! Version 3 is an index and one document per group-version; version 2 is one document for all. A document is
//! rendered on its first request. Its hash in the index and in the entity tag is computed from the definitions, so
//! the index needs no rendering.

mod builtin;
mod custom;
mod describe;
mod gnostic;
mod names;
mod operations;
mod parameters;
mod render;
mod v2;
mod v3;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::discovery::{Document, hash};
use crate::registry::{CustomResource, Registry, Resource};

/// `Content-Type` of OpenAPI v2 as protobuf.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Changed whenever documents are rendered differently from the same definitions.
const RENDERING: &str = "1";

/// Encodings of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    /// gnostic's protobuf, under [`V2_PROTOBUF`].
    Protobuf,
}

#[derive(Debug, Default)]
pub struct OpenApi {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The registry that the rest was computed from.
    registry: Option<Arc<Registry>>,
    /// Hashes by path: `api/v1`, `apis/apps/v1`.
    hashes: BTreeMap<String, String>,
    index: Option<Arc<Document>>,
    /// Version 3, by path.
    documents: HashMap<String, Arc<Document>>,
    v2_json: Option<Arc<Document>>,
    v2_protobuf: Option<Arc<Document>>,
    /// Fingerprints of specs, by address while the definition exists.
    specs: HashMap<usize, (Weak<CustomResource>, String)>,
    /// Parts of version 2, by address of the definition and by version.
    parts: HashMap<(usize, String), Arc<v2::Part>>,
}

impl OpenApi {
    /// `/openapi/v3`: URLs of the documents of each group-version.
    pub fn v3_index(&self, registry: &Arc<Registry>) -> Arc<Document> {
        let mut state = self.state.lock();
        state.follow(registry);
        if state.index.is_none() {
            let paths: serde_json::Map<_, _> = state
                .hashes
                .iter()
                .map(|(path, hash)| (path.clone(), json!({ "serverRelativeURL": location(path, hash) })))
                .collect();
            state.index = Some(Document::shared(json!({ "paths": paths }).to_string().into()));
        }
        state.index.clone().unwrap_or_else(|| Document::shared(Vec::new()))
    }

    /// `/openapi/v3/<path>`; the path is `api/v1` or `apis/<group>/<version>`.
    pub fn v3(&self, registry: &Arc<Registry>, path: &str) -> Option<Arc<Document>> {
        let mut state = self.state.lock();
        state.follow(registry);
        if let Some(document) = state.documents.get(path) {
            return Some(document.clone());
        }
        let hash = state.hashes.get(path)?.clone();
        let (group, version) = group_version(path)?;
        let resources = registry.resources.get(&(group.to_owned(), version.to_owned()))?;
        let document = Document::named(&hash, || v3::document(group, version, resources).to_string().into());
        state.documents.insert(path.to_owned(), document.clone());
        Some(document)
    }

    /// `/openapi/v2`.
    pub fn v2(&self, registry: &Arc<Registry>, encoding: Encoding) -> Arc<Document> {
        let mut state = self.state.lock();
        state.follow(registry);
        let json = match &state.v2_json {
            Some(document) => document.clone(),
            None => {
                let all: Vec<&str> = state.hashes.values().map(String::as_str).collect();
                let name = hash(format!("v2 {}", all.concat()).as_bytes());
                let parts = state.parts(registry);
                let document = Document::named(&name, || v2::assemble(&parts));
                state.v2_json.insert(document).clone()
            }
        };
        match encoding {
            Encoding::Json => json,
            Encoding::Protobuf => state
                .v2_protobuf
                .get_or_insert_with(|| {
                    // The bytes were serialized as JSON just before.
                    let value = serde_json::from_slice(&json.body).unwrap_or_default();
                    Arc::new(Document { body: gnostic::encode(&value).into(), hash: json.hash.clone() })
                })
                .clone(),
        }
    }
}

impl State {
    /// Drops what a new registry does not share with the previous one.
    fn follow(&mut self, registry: &Arc<Registry>) {
        if self.registry.as_ref().is_some_and(|current| Arc::ptr_eq(current, registry)) {
            return;
        }
        self.specs.retain(|_, (custom, _)| custom.strong_count() > 0);
        let specs = &self.specs;
        self.parts.retain(|(address, _), _| specs.contains_key(address));
        let mut hashes = BTreeMap::new();
        for ((group, version), resources) in &registry.resources {
            let path = match group.as_str() {
                "" => format!("api/{version}"),
                group => format!("apis/{group}/{version}"),
            };
            let hash = self.hash(resources);
            if self.hashes.get(&path) != Some(&hash) {
                self.documents.remove(&path);
            }
            hashes.insert(path, hash);
        }
        self.documents.retain(|path, _| hashes.contains_key(path));
        if hashes != self.hashes {
            self.index = None;
            self.v2_json = None;
            self.v2_protobuf = None;
        }
        self.hashes = hashes;
        self.registry = Some(registry.clone());
    }

    /// The hash of the document of some resources.
    fn hash(&mut self, resources: &[Arc<Resource>]) -> String {
        let mut text = format!("{RENDERING}\n");
        for resource in resources {
            text += &format!("{} {} {}\n", resource.group, resource.version, resource.plural);
            if let Some(custom) = resource.custom() {
                let spec = self
                    .specs
                    .entry(address(custom))
                    .or_insert_with(|| (Arc::downgrade(custom), fingerprint(&custom.spec)));
                text += &spec.1;
            }
        }
        hash(text.as_bytes())
    }

    /// The parts of version 2: one for all built-in kinds, one for each version of a custom resource.
    fn parts(&mut self, registry: &Registry) -> Vec<Arc<v2::Part>> {
        let all: Vec<&Arc<Resource>> = registry.resources.values().flatten().collect();
        let mut parts = vec![v2::built_in(&all)];
        for resource in all {
            if let Some(custom) = resource.custom() {
                let key = (address(custom), resource.version.clone());
                let part = self.parts.entry(key).or_insert_with(|| Arc::new(v2::custom(resource, custom)));
                parts.push(part.clone());
            }
        }
        parts
    }
}

/// URL of a document of version 3, with its hash.
pub fn location(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

/// The encoding of version 2 for an `Accept` header, if any is acceptable.
pub fn accept_v2(header: Option<&str>) -> Option<Encoding> {
    crate::negotiation::first_accepted(
        header,
        &[
            ("application", "json", Encoding::Json),
            ("application", "com.github.proto-openapi.spec.v2.v1.0+protobuf", Encoding::Protobuf),
            ("application", "com.github.proto-openapi.spec.v2@v1.0+protobuf", Encoding::Protobuf),
        ],
    )
}

/// Whether an `Accept` header accepts version 3, which is only JSON.
pub fn accepts_v3(header: Option<&str>) -> bool {
    crate::negotiation::first_accepted(header, &[("application", "json", ())]).is_some()
}

fn group_version(path: &str) -> Option<(&str, &str)> {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => Some(("", *version)),
        ["apis", group, version] => Some((*group, *version)),
        _ => None,
    }
}

/// Fingerprint of a spec: two 64-bit hashes over the tree, megabytes in milliseconds.
fn fingerprint(spec: &Value) -> String {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, spec).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

/// The address of a definition: its identity while a weak reference to it is kept.
fn address(custom: &Arc<CustomResource>) -> usize {
    Arc::as_ptr(custom).addr()
}

#[cfg(test)]
mod tests;
