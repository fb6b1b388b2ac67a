//! Creates the objects of a cluster on the server, locked. All of them, or none.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use capstan_controller::{Client, KindName, Patch};
use capstan_object::{Key, Scope};
use capstan_provider_kit::FrontEnd;
use http::{Method, Request, header};
use serde_json::{Map, Value, json};

use super::graph::Objects;
use super::record::{IMPORTED_FOR, Record, mark};
use super::refs::{Id, owners, text};
use super::remove::{Target, remove};
use crate::apply::title;
use crate::output::eprint_line;

/// Metadata that is kept.
const KEPT: [&str; 5] = ["name", "namespace", "labels", "annotations", "finalizers"];

/// An import into a server.
pub struct Import<'a> {
    pub client: &'a Client,
    pub source: &'a Objects,
    pub cluster: &'a Key,
    pub record: &'a Record,
    pub front_ends: &'a [&'a dyn FrontEnd],
}

/// What the server has, asked once.
#[derive(Default)]
struct Server {
    kinds: BTreeMap<(String, String), Option<KindName>>,
    namespaces: BTreeMap<String, bool>,
}

impl Server {
    async fn kind(&mut self, client: &Client, api: &str, kind: &str) -> Result<Option<KindName>> {
        let key = (api.to_owned(), kind.to_owned());
        if let Some(known) = self.kinds.get(&key) {
            return Ok(known.clone());
        }
        let served = match client.served(api, kind).await {
            Err(error) if error.is_not_found() => None,
            served => served?,
        };
        self.kinds.insert(key, served.clone());
        Ok(served)
    }

    async fn has_namespace(&mut self, client: &Client, name: &str) -> Result<bool> {
        if let Some(known) = self.namespaces.get(name) {
            return Ok(*known);
        }
        let kind =
            KindName { scope: Scope::Cluster, ..KindName::namespaced("", "v1", "Namespace", "namespaces") };
        let exists = client.get_raw(&kind, &Key::new("", name)).await?.is_some();
        self.namespaces.insert(name.to_owned(), exists);
        Ok(exists)
    }
}

/// An object to be created.
struct Planned {
    kind: KindName,
    body: Value,
    status: Value,
    /// Uid in the source.
    old_uid: String,
    /// `metadata.generation` in the source.
    old_generation: Option<i64>,
    /// It exists on the server with the same content, under this uid.
    reused: Option<String>,
}

impl Import<'_> {
    /// Validates the objects on the server, owners first, and creates them unless it is a dry run. Returns how many. The
    /// cluster can do without `manifests`.
    pub async fn run(&self, members: &[Value], manifests: &[Vec<Value>], dry_run: bool) -> Result<usize> {
        let mut server = Server::default();
        let mut planned = Vec::new();
        let mut refused = Vec::new();
        for object in members {
            match self.plan(object, &mut server).await {
                Ok(one) => planned.push(one),
                Err(error) => refused.push(format!("{error:#}")),
            }
        }
        if !refused.is_empty() {
            bail!("{}\nnothing was imported", refused.join("\n"));
        }
        for manifests in manifests {
            planned.extend(self.plan_manifests(manifests, &mut server).await);
        }
        let new = planned.iter().filter(|one| one.reused.is_none()).count();
        if dry_run {
            return Ok(new);
        }
        let mut created = Vec::new();
        let done = self.create(&planned, &mut created).await;
        if let Err(error) = done {
            // The cluster is locked, so nothing has acted on what was created so far.
            let undone = remove(self.client, &created).await;
            return Err(match undone {
                Ok(()) => error.context("nothing was imported"),
                Err(left) => error.context(format!(
                    "the import failed half-way, and its objects could not be removed ({left:#}): \
                     `capstan adopt --rollback {} -n {}` removes them",
                    self.cluster.name, self.cluster.namespace
                )),
            });
        }
        Ok(created.len())
    }

    /// What a cluster is generated from, all of it or nothing.
    async fn plan_manifests(&self, manifests: &[Value], server: &mut Server) -> Vec<Planned> {
        let mut planned = Vec::new();
        for manifest in manifests {
            match self.plan(manifest, server).await {
                Ok(one) => planned.push(one),
                Err(error) => {
                    let (name, api) = (&self.cluster.name, text(manifest, "apiVersion"));
                    eprint_line(&format!(
                        "cluster {name}: its objects of {api} are not imported; it is managed by those of Cluster API: {error:#}"
                    ));
                    return Vec::new();
                }
            }
        }
        planned
    }

    /// Finds the kind, compares with an existing object and validates on the server.
    async fn plan(&self, object: &Value, server: &mut Server) -> Result<Planned> {
        let title = title(object);
        let id = Id::of(object);
        let api = text(object, "apiVersion");
        let Some(kind) = server.kind(self.client, api, &id.kind).await? else {
            bail!("{title}: apiVersion: the server does not have the kind {} in {api}", id.kind);
        };
        let mut one = Planned {
            body: self.body(object)?,
            status: object["status"].clone(),
            old_uid: text(object, "metadata.uid").to_owned(),
            old_generation: object["metadata"]["generation"].as_i64(),
            reused: None,
            kind,
        };
        if let Some(existing) = self.client.get_raw(&one.kind, &id.key).await? {
            let existing: Value = existing.parse()?;
            let shared = is_shared(&id) || self.front_ends.iter().any(|it| it.is_shared(object));
            if !shared || content(&existing) != content(object) {
                bail!(
                    "{title}: metadata.name: an object of this name exists in namespace {}: rename or delete it if it is not needed",
                    id.key.namespace
                );
            }
            one.reused = Some(text(&existing, "metadata.uid").to_owned());
            return Ok(one);
        }
        // A namespace that does not exist yet is created by the import.
        if server.has_namespace(self.client, &id.key.namespace).await? {
            let validated = self.validate(&one.kind, &id.key, &one.body).await;
            validated.with_context(|| format!("{title} was refused"))?;
        }
        Ok(one)
    }

    async fn validate(&self, kind: &KindName, key: &Key, body: &Value) -> Result<()> {
        let path = format!("{}?fieldManager=capstan-cli&dryRun=All", kind.collection_path(&key.namespace));
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(Bytes::from(body.to_string()))?;
        self.client.exchange(request).await?;
        Ok(())
    }

    /// The object without what belongs to the source, marked, with the owner references of the source.
    fn body(&self, object: &Value) -> Result<Value> {
        let mut body = object.clone();
        mark(&mut body, self.cluster);
        if Id::of(object).is_cluster() {
            self.record.lock(&mut body)?;
        }
        let mut meta = Map::new();
        for field in KEPT {
            if let Some(value) = body["metadata"].get(field) {
                meta.insert(field.to_owned(), value.clone());
            }
        }
        body["metadata"] = Value::Object(meta);
        if let Some(body) = body.as_object_mut() {
            body.remove("status");
        }
        Ok(body)
    }

    async fn create(&self, planned: &[Planned], created: &mut Vec<Target>) -> Result<()> {
        let mut uids: BTreeMap<Id, String> = BTreeMap::new();
        let mut generations = Vec::new();
        for one in planned {
            let id = Id::of(&one.body);
            if let Some(uid) = &one.reused {
                self.share(&one.kind, &id.key).await?;
                uids.insert(id, uid.clone());
                continue;
            }
            let namespace = id.key.namespace.as_str();
            capstan_capi_plane::ensure_namespace(self.client, namespace).await?;
            let mut body = one.body.clone();
            let owners = self.owners(&one.old_uid, &id, &uids);
            if !owners.is_empty() {
                body["metadata"]["ownerReferences"] = owners.into();
            }
            let reply = self.client.create(&one.kind, namespace, &body).await;
            let reply: Value = reply.with_context(|| format!("{} was refused", title(&body)))?.parse()?;
            let uid = text(&reply, "metadata.uid").to_owned();
            uids.insert(id.clone(), uid.clone());
            created.push(Target { kind: one.kind.clone(), key: id.key, uid });
            generations.push((one, reply["metadata"]["generation"].as_i64()));
        }
        // Last, so that nobody sees a cluster as complete before all of it is there.
        for (one, generation) in generations {
            self.restore_status(one, generation).await?;
        }
        Ok(())
    }

    /// Lets an object that several clusters use outlive a rollback of any of them.
    async fn share(&self, kind: &KindName, key: &Key) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {IMPORTED_FOR: null}}}));
        self.client.patch(kind, key, None, &patch).await?;
        Ok(())
    }

    /// The owner references of an object with new uids. Owners that were not imported are dropped.
    fn owners(&self, old_uid: &str, id: &Id, uids: &BTreeMap<Id, String>) -> Vec<Value> {
        let Some(object) = self.source.get(id).filter(|it| text(it, "metadata.uid") == old_uid) else {
            return Vec::new();
        };
        let renewed = owners(object).filter_map(|owner| {
            let target = self.source.owner(owner, &id.key.namespace).map(Id::of);
            let Some(uid) = target.and_then(|target| uids.get(&target)) else {
                eprint_line(&format!(
                    "{}: owner {}/{} is not imported; the reference is dropped",
                    title(object),
                    text(owner, "kind"),
                    text(owner, "name")
                ));
                return None;
            };
            let mut owner = owner.clone();
            owner["uid"] = uid.as_str().into();
            Some(owner)
        });
        renewed.collect()
    }

    async fn restore_status(&self, one: &Planned, generation: Option<i64>) -> Result<()> {
        if !one.status.is_object() {
            return Ok(());
        }
        let mut status = one.status.clone();
        renew_generations(&mut status, one.old_generation, generation);
        let key = Id::of(&one.body).key;
        let patch = Patch::Merge(json!({ "status": status }));
        match self.client.patch(&one.kind, &key, Some("status"), &patch).await {
            // A kind without a status subresource got its status when it was created, or has none.
            Err(error) if error.is_not_found() => Ok(()),
            done => done.map(drop).with_context(|| format!("status of {} was refused", title(&one.body))),
        }
    }
}

/// Objects that several clusters may use. One that exists with the same content is used as it is.
fn is_shared(id: &Id) -> bool {
    matches!(id.kind.as_str(), "Secret" | "ConfigMap" | "ClusterClass" | "ClusterResourceSet")
        || id.kind.ends_with("Template")
}

/// What makes two shared objects the same.
fn content(object: &Value) -> [&Value; 2] {
    [&object["spec"], &object["data"]]
}

/// Makes `observedGeneration` that is current in the source current here, and drops others.
fn renew_generations(status: &mut Value, old: Option<i64>, new: Option<i64>) {
    match status {
        Value::Object(fields) => {
            if let Some(observed) = fields.get("observedGeneration").and_then(Value::as_i64) {
                match new.filter(|_| old == Some(observed)) {
                    Some(new) => fields.insert("observedGeneration".to_owned(), new.into()),
                    None => fields.remove("observedGeneration"),
                };
            }
            fields.values_mut().for_each(|inner| renew_generations(inner, old, new));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| renew_generations(inner, old, new)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_generations_stay_current_and_others_are_dropped() {
        let mut status = json!({"observedGeneration": 4, "conditions": [
            {"type": "Ready", "observedGeneration": 4}, {"type": "Old", "observedGeneration": 3}]});
        renew_generations(&mut status, Some(4), Some(1));
        let expected = json!({"observedGeneration": 1, "conditions": [
            {"type": "Ready", "observedGeneration": 1}, {"type": "Old"}]});
        assert_eq!(status, expected);
    }

    #[test]
    fn only_templates_and_plain_data_are_shared() {
        let id = |kind: &str| Id { group: String::new(), kind: kind.to_owned(), key: Key::new("n", "x") };
        for (kind, shared) in
            [("Secret", true), ("ExampleMachineTemplate", true), ("Machine", false), ("Cluster", false)]
        {
            assert_eq!(is_shared(&id(kind)), shared, "{kind}");
        }
    }
}
