//! Accepts the names of CustomResourceDefinitions, serves and establishes them, and deletes the objects of
//! terminating ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::CLEANUP_FINALIZER;
use crate::call::Call;
use crate::controllers::Committed;
use crate::controllers::keyed::{Keyed, Progress};
use crate::http::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::registry::{Resource, build};
use crate::status::Result;
use crate::verbs::delete::delete_object;

pub(crate) const BUCKET: &str = crate::auth::bucket::DEFINITIONS;
const USER: &str = "system:apiserver";

/// The served definitions.
#[derive(Default)]
pub(crate) struct Definitions {
    known: Mutex<BTreeMap<String, Known>>,
    epochs: std::sync::atomic::AtomicU64,
    /// Held while a definition is established but not yet served.
    establishing: tokio::sync::RwLock<()>,
}

struct Known {
    uid: String,
    generation: i64,
    terminating: bool,
    group: String,
    names: Vec<String>,
    kinds: Vec<String>,
    resources: Vec<Arc<Resource>>,
}

impl Definitions {
    /// Waits until every established definition is served.
    pub async fn served(&self) {
        drop(self.establishing.read().await);
    }

    /// Compiles a definition if it is new or changed. Returns whether the served definitions changed.
    fn update(&self, crd: &Value) -> bool {
        let name = crd.name().to_owned();
        let terminating = is_terminating(crd);
        let mut known = self.known.lock();
        if let Some(before) = known.get(&name)
            && before.uid == crd.uid()
            && before.generation == crd.generation()
            && before.terminating == terminating
        {
            return false;
        }
        // Epochs are unique in the process, so that a rendering of an older schema is never taken for a current one.
        let epoch = self.epochs.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let (names, kinds) = claimed(crd);
        let learned = Known {
            uid: crd.uid().to_owned(),
            generation: crd.generation(),
            terminating,
            group: crd["spec"]["group"].as_str().unwrap_or_default().to_owned(),
            names,
            kinds,
            resources: build::custom(crd, epoch),
        };
        known.insert(name, learned);
        true
    }

    fn forget(&self, name: &str) -> bool {
        self.known.lock().remove(name).is_some()
    }

    fn serves(&self, name: &str) -> bool {
        self.known.lock().contains_key(name)
    }

    fn resources(&self) -> Vec<Arc<Resource>> {
        self.known.lock().values().flat_map(|k| k.resources.iter().cloned()).collect()
    }

    /// The first name that another definition of the group has.
    fn judge(&self, crd: &Value) -> NamesVerdict {
        let known = self.known.lock();
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let others: Vec<&Known> = known
            .iter()
            .filter(|(name, k)| name.as_str() != crd.name() && k.group == group)
            .map(|(_, k)| k)
            .collect();
        let names = &crd["spec"]["names"];
        let taken = |name: &str| others.iter().any(|k| k.names.iter().any(|n| n == name));
        let kind_taken = |kind: &str| others.iter().any(|k| k.kinds.iter().any(|n| n == kind));
        let mut accepted = match &crd["status"]["acceptedNames"] {
            Value::Object(accepted) => accepted.clone(),
            _ => Map::new(),
        };
        let mut conflict = None;
        for (field, reason) in [
            ("plural", "PluralConflict"),
            ("singular", "SingularConflict"),
            ("shortNames", "ShortNamesConflict"),
            ("kind", "KindConflict"),
            ("listKind", "ListKindConflict"),
        ] {
            let wanted: Vec<&str> = match &names[field] {
                Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            let is_kind = field.to_ascii_lowercase().ends_with("kind");
            // The last conflict is the one that is reported.
            match wanted.iter().find(|name| if is_kind { kind_taken(name) } else { taken(name) }) {
                Some(name) => conflict = Some((reason, (*name).to_owned())),
                None => accept(&mut accepted, field, &names[field]),
            }
        }
        accept(&mut accepted, "categories", &names["categories"]);
        NamesVerdict { accepted, conflict }
    }
}

/// Names that a definition is accepted with.
struct NamesVerdict {
    accepted: Map<String, Value>,
    /// The reason, and the name that another definition has.
    conflict: Option<(&'static str, String)>,
}

fn accept(accepted: &mut Map<String, Value>, field: &str, name: &Value) {
    if name.is_null() {
        accepted.remove(field);
    } else {
        accepted.insert(field.to_owned(), name.clone());
    }
}

fn claimed(crd: &Value) -> (Vec<String>, Vec<String>) {
    let names = &crd["spec"]["names"];
    let text = |key: &str| names[key].as_str().unwrap_or_default().to_owned();
    let mut all = vec![text("plural"), text("singular")];
    let short = names["shortNames"].as_array().cloned().unwrap_or_default();
    all.extend(short.iter().filter_map(Value::as_str).map(str::to_owned));
    (all, vec![text("kind"), text("listKind")])
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    crd["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == kind)
}

fn has_condition(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|c| c["status"] == "True")
}

fn is_terminating(crd: &Value) -> bool {
    crd.is_terminating() || has_condition(crd, "Terminating")
}

fn publish(parts: &ServerParts) {
    let generation = parts.registry.load().generation + 1;
    let resources = parts.definitions.resources();
    parts.registry.store(Arc::new(build::build(&resources, generation)));
}

fn read(parts: &ServerParts, name: &str) -> Option<Value> {
    let entry = parts.store.get(BUCKET, name)?;
    serde_json::from_slice(&entry.value).ok()
}

/// Serves the established definitions in the store. Runs before the first request.
pub(crate) fn load(parts: &ServerParts) {
    let mut changed = false;
    for entry in parts.store.snapshot(BUCKET).range("", None) {
        let Ok(crd) = serde_json::from_slice::<Value>(&entry.value) else { continue };
        if has_condition(&crd, "Established") {
            changed |= parts.definitions.update(&crd);
        }
    }
    if changed {
        publish(parts);
    }
}

/// Reconciles definitions, and tracks those whose objects are being deleted.
#[derive(Default)]
pub(crate) struct DefinitionController {
    emptying: BTreeMap<String, String>,
}

impl Keyed for DefinitionController {
    const WORK: &'static str = "reconciling a CustomResourceDefinition";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        parts.store.snapshot(BUCKET).range("", None).map(|e| e.key.to_string()).collect()
    }

    fn on_change(&self, _: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        if *change.bucket == *BUCKET {
            dirty.insert(change.key.to_string());
        } else if change.gone
            && let Some(name) = self.emptying.get(&*change.bucket)
        {
            dirty.insert(name.clone());
        }
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, name: &str) -> Result<Progress> {
        Ok(match reconcile(parts, name).await? {
            Stage::Done => Progress::Done,
            Stage::Emptying(bucket) => {
                self.emptying.insert(bucket, name.to_owned());
                Progress::Waiting
            }
        })
    }
}

enum Stage {
    Done,
    Emptying(String),
}

async fn reconcile(parts: &Arc<ServerParts>, name: &str) -> Result<Stage> {
    let Some(crd) = read(parts, name) else {
        if parts.definitions.forget(name) {
            publish(parts);
            // Another definition may wait for its names.
            for entry in parts.store.snapshot(BUCKET).range("", None) {
                let Ok(other) = serde_json::from_slice::<Value>(&entry.value) else { continue };
                if !has_condition(&other, "Established") {
                    Box::pin(reconcile(parts, &entry.key)).await?;
                }
            }
        }
        return Ok(Stage::Done);
    };
    if crd.is_terminating() {
        if parts.definitions.serves(name) && parts.definitions.update(&crd) {
            publish(parts);
        }
        return empty(parts, name, &crd).await;
    }
    let verdict = parts.definitions.judge(&crd);
    let learned = verdict.conflict.is_none() && parts.definitions.update(&crd);
    if learned && !has_condition(&crd, "Established") {
        // Discovery lists it only once it is Established, so that clients who discover it can update it without a
        // conflict. Clients that see Established and request it meanwhile wait.
        let _establishing = parts.definitions.establishing.write().await;
        if let Err(status) = edit_status(parts, name, Edit::Names(verdict)).await {
            parts.definitions.forget(name);
            return Err(status);
        }
        publish(parts);
        return Ok(Stage::Done);
    }
    if learned {
        publish(parts);
    }
    edit_status(parts, name, Edit::Names(verdict)).await?;
    Ok(Stage::Done)
}

/// Deletes the objects of a terminating definition, and removes its finalizer when none is left.
async fn empty(parts: &Arc<ServerParts>, name: &str, crd: &Value) -> Result<Stage> {
    if !crd.finalizers().iter().any(|f| f == CLEANUP_FINALIZER) {
        return Ok(Stage::Done);
    }
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let bucket = format!("{group}/{plural}");
    let registry = parts.registry.load_full();
    let resource = registry.find_bucket(&bucket).cloned();
    if let Some(resource) = resource {
        for entry in parts.store.snapshot(&bucket).range("", None) {
            if entry.digest().terminating {
                continue;
            }
            let (namespace, object) = entry.key.split_once('/').unwrap_or(("", &entry.key));
            let call = parts.internal_call(USER, resource.clone(), namespace, object);
            match delete_object(&call, &entry.key, &DeleteOptions::default()).await {
                Err(status) if status.reason != "NotFound" => return Err(status),
                _ => {}
            }
        }
        let left = parts.store.snapshot(&bucket).count("");
        if left > 0 {
            edit_status(parts, name, Edit::InProgress(left)).await?;
            return Ok(Stage::Emptying(bucket));
        }
    }
    let Some(resource) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return Ok(Stage::Done);
    };
    let call = parts.internal_call(USER, resource.clone(), "", name);
    match change(&call, &Edit::LetGo, &WriteOptions::default(), WriteKind::Update).await {
        Err(status) if status.reason != "NotFound" => Err(status),
        _ => Ok(Stage::Done),
    }
}

async fn edit_status(parts: &Arc<ServerParts>, name: &str, edit: Edit) -> Result<()> {
    let registry = parts.registry.load_full();
    let Some(resource) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return Ok(());
    };
    let call = parts.internal_call(USER, resource.clone(), "", name).on("status");
    match change(&call, &edit, &WriteOptions::default(), WriteKind::Update).await {
        Err(status) if status.reason != "NotFound" => Err(status),
        _ => Ok(()),
    }
}

enum Edit {
    /// The names are accepted, or one conflicts.
    Names(NamesVerdict),
    /// Number of objects left.
    InProgress(usize),
    /// No object is left.
    LetGo,
}

impl Change for Edit {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let mut crd = current.clone();
        let now = call.parts.env.now_rfc3339();
        match self {
            Self::Names(NamesVerdict { conflict: None, .. }) => {
                crd["status"]["acceptedNames"] = crd["spec"]["names"].clone();
                set_condition(&mut crd, &now, "NamesAccepted", "True", "NoConflicts", "no conflicts found");
                set_condition(
                    &mut crd,
                    &now,
                    "Established",
                    "True",
                    "InitialNamesAccepted",
                    "the initial names have been accepted",
                );
            }
            Self::Names(NamesVerdict { accepted, conflict: Some((reason, name)) }) => {
                crd["status"]["acceptedNames"] = accepted.clone().into();
                let message = format!("{name:?} is already in use");
                set_condition(&mut crd, &now, "NamesAccepted", "False", reason, &message);
                if !has_condition(current, "Established") {
                    let message = "not all names are accepted";
                    set_condition(&mut crd, &now, "Established", "False", "NotAccepted", message);
                }
            }
            Self::InProgress(left) => {
                let message = format!("CustomResource deletion is in progress, {left} left");
                set_condition(&mut crd, &now, "Terminating", "True", "InstanceDeletionInProgress", &message);
            }
            Self::LetGo => {
                let kept: Vec<String> =
                    crd.finalizers().into_iter().filter(|f| f != CLEANUP_FINALIZER).collect();
                crd.set_meta("finalizers", json!(kept));
            }
        }
        Ok(Step::Write { object: crd, manager: call.manager("") })
    }
}

pub(crate) fn set_condition(
    crd: &mut Value,
    now: &str,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) {
    let before = condition(crd, kind);
    // The transition time only changes with the status.
    let time = before.filter(|c| c["status"] == status).map(|c| c["lastTransitionTime"].clone());
    let mut new = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": time.unwrap_or_else(|| now.into()),
    });
    if let Some(observed) = before.and_then(|c| c.get("observedGeneration")) {
        new["observedGeneration"] = observed.clone();
    }
    let conditions = &mut crd["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(all) => match all.iter_mut().find(|c| c["type"] == kind) {
            Some(slot) => *slot = new,
            None => all.push(new),
        },
        None => *conditions = json!([new]),
    }
}
