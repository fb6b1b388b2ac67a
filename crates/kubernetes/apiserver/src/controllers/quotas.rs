//! Maintains the status of ResourceQuotas: limits and usage.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::keyed::{Keyed, Progress};
use crate::call::Call;
use crate::controllers::Committed;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::pipeline::{Change, Step, change};
use crate::quota::{Amounts, BUCKET, Measure, Quota, amounts};
use crate::status::Result;

const USER: &str = "system:serviceaccount:kube-system:resourcequota-controller";

/// Reconciles the quotas of a namespace.
pub(crate) struct Quotas;

impl Keyed for Quotas {
    const WORK: &'static str = "computing the quota usage of a namespace";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        with_quotas(parts)
    }

    fn on_change(&self, parts: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        if *change.bucket == *crate::crd::controller::BUCKET {
            // A quota may name a resource that is served only now.
            dirty.extend(with_quotas(parts));
        } else if let Some((namespace, _)) = change.key.split_once('/') {
            let quotas = parts.store.snapshot(BUCKET);
            if quotas.count("") > 0 && quotas.range(&format!("{namespace}/"), None).next().is_some() {
                dirty.insert(namespace.to_owned());
            }
        }
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, namespace: &str) -> Result<Progress> {
        count(parts, namespace).await?;
        Ok(Progress::Done)
    }
}

fn with_quotas(parts: &ServerParts) -> BTreeSet<String> {
    let snapshot = parts.store.snapshot(BUCKET);
    let keys = snapshot.range("", None).map(|entry| entry.key.clone());
    keys.filter_map(|key| key.split_once('/').map(|(namespace, _)| namespace.to_owned())).collect()
}

/// Computes the usage of every quota of a namespace.
async fn count(parts: &Arc<ServerParts>, namespace: &str) -> Result<()> {
    let registry = parts.registry.load_full();
    let Some(resource) = registry.find("", "v1", "resourcequotas") else { return Ok(()) };
    for entry in parts.store.snapshot(BUCKET).range(&format!("{namespace}/"), None) {
        let Ok(object) = serde_json::from_slice::<Value>(&entry.value) else { continue };
        if !differs(&object, &used(parts, namespace, &Quota::read(&object))) {
            continue;
        }
        let call = parts.internal_call(USER, resource.clone(), namespace, object.name()).on("status");
        match change(&call, &Count, &WriteOptions::default(), WriteKind::Update).await {
            Err(status) if status.reason != "NotFound" => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

/// Usage of each known resource.
fn used(parts: &ServerParts, namespace: &str, quota: &Quota) -> Amounts {
    let registry = parts.registry.load();
    let mut measures: Vec<(Measure, Vec<String>)> = Vec::new();
    for name in quota.hard.keys() {
        let Some(measure) = Measure::knowing(name, &registry) else { continue };
        match measures.iter_mut().find(|(known, _)| *known == measure) {
            Some((_, names)) => names.push(name.clone()),
            None => measures.push((measure, vec![name.clone()])),
        }
    }
    let now = parts.env.now();
    let counted = measures
        .iter()
        .map(|(measure, names)| measure.used(parts, namespace, &quota.scopes, names.iter(), now));
    counted.flatten().collect()
}

fn differs(quota: &Value, used: &Amounts) -> bool {
    let status = &quota["status"];
    let said = |field: &str| status.get(field).is_some_and(Value::is_object).then(|| amounts(&status[field]));
    said("hard").as_ref() != Some(&amounts(&quota["spec"]["hard"]))
        || said("used").unwrap_or_default() != *used
}

struct Count;

impl Change for Count {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let used = used(&call.parts, call.namespace(), &Quota::read(current));
        if !differs(current, &used) {
            return Ok(Step::Edit(current.clone()));
        }
        let mut object = current.clone();
        let used: Map<String, Value> =
            used.into_iter().map(|(name, amount)| (name, amount.to_string().into())).collect();
        object["status"]["hard"] = current["spec"]["hard"].clone();
        if used.is_empty() {
            // Nothing that this quota limits is known here.
            if let Some(status) = object["status"].as_object_mut() {
                status.remove("used");
            }
        } else {
            object["status"]["used"] = used.into();
        }
        Ok(Step::Write { object, manager: call.manager("") })
    }
}
