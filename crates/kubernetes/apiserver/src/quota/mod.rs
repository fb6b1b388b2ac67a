//! ResourceQuotas: rejects requests that would exceed the quotas of a namespace.
//!
//! Usage is counted in the store at the time of the request, never read from a quota's status, which
//! [`crate::controllers`] writes for users. In a namespace with quotas, requests that increase usage hold a lock from
//! count to commit, so that two of them cannot both take the rest. A namespace without quotas costs one lookup.

mod measure;
mod pods;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_builtin::quantity::Quantity;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

pub(crate) use measure::{Measure, Scopes};
pub(crate) use pods::total_of_containers;

use crate::admission::{AdmissionAttributes, Operation};
use crate::call::Call;
use crate::status::Result;

pub(crate) const BUCKET: &str = "/resourcequotas";

/// Quantities by name: `pods`, `requests.cpu`, `count/deployments.apps`.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// Locks per namespace for counting and taking quota.
#[derive(Default)]
pub(crate) struct QuotaLocks(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// The lock of one request.
pub(crate) type QuotaLock = OwnedMutexGuard<()>;

impl QuotaLocks {
    async fn take(&self, namespace: &str) -> QuotaLock {
        let lock = {
            let mut locks = self.0.lock();
            // Removes locks that no request holds or waits for.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(namespace.to_owned()).or_default().clone()
        };
        lock.lock_owned().await
    }
}

pub(crate) struct Quota {
    pub name: String,
    pub hard: Amounts,
    pub scopes: Scopes,
}

impl Quota {
    pub fn read(object: &Value) -> Self {
        Self {
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            hard: amounts(&object["spec"]["hard"]),
            scopes: Scopes::read(&object["spec"]),
        }
    }
}

/// Parses a resource list.
pub(crate) fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?).ok()?)))
        .collect()
}

/// Rejects a request that would exceed a quota. Otherwise holds the lock until the caller drops it, after the commit.
pub(crate) async fn admit(
    call: &Call,
    attributes: &AdmissionAttributes,
    lock: &mut Option<QuotaLock>,
) -> Result<()> {
    let store = &call.parts.store;
    let wanted = matches!(attributes.operation, Operation::Create | Operation::Update)
        && call.resource().namespaced
        && call.subresource().is_empty();
    if !wanted || store.snapshot(BUCKET).count("") == 0 {
        return Ok(());
    }
    let prefix = format!("{}/", attributes.namespace);
    if store.snapshot(BUCKET).range(&prefix, None).next().is_none() {
        return Ok(());
    }
    let (Some(measure), Some(object)) = (Measure::of(call.resource()), &attributes.object) else {
        return Ok(());
    };
    let now = call.parts.env.now();
    let old = attributes.old_object.as_deref();
    let before = old.map(|old| measure.usage(old, now)).unwrap_or_default();
    let more = increase(&measure.usage(object, now), &before);
    if more.is_empty() {
        return Ok(());
    }
    if lock.is_none() {
        *lock = Some(call.parts.quota_locks.take(&attributes.namespace).await);
    }
    for entry in store.snapshot(BUCKET).range(&prefix, None) {
        let Ok(quota) = serde_json::from_slice(&entry.value) else { continue };
        let quota = Quota::read(&quota);
        let limited: Amounts =
            quota.hard.iter().filter(|(name, _)| measure.counts(name)).map(clone).collect();
        if limited.is_empty() || !measure.in_scope(&quota.scopes, object) {
            continue;
        }
        measure
            .constraints(&limited, object)
            .map_err(|why| attributes.forbidden(format!("failed quota: {}: {why}", quota.name)))?;
        // An object that was out of scope before counts as new.
        let was_in_scope = old.is_none_or(|old| measure.in_scope(&quota.scopes, old));
        let whole = (!was_in_scope).then(|| measure.usage(object, now));
        let requested: Amounts = whole
            .as_ref()
            .unwrap_or(&more)
            .iter()
            .filter(|(name, amount)| limited.contains_key(*name) && !amount.is_zero())
            .map(clone)
            .collect();
        if requested.is_empty() {
            continue;
        }
        let used = measure.used(&call.parts, &attributes.namespace, &quota.scopes, requested.keys(), now);
        let exceeded: Vec<&String> = requested
            .iter()
            .filter(|(name, amount)| {
                let used = used.get(*name).map_or_else(|| (*amount).clone(), |used| used.plus(amount));
                limited.get(*name).is_some_and(|hard| used > *hard)
            })
            .map(|(name, _)| name)
            .collect();
        if !exceeded.is_empty() {
            return Err(attributes.forbidden(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota.name,
                listed(&requested, &exceeded),
                listed(&used, &exceeded),
                listed(&limited, &exceeded),
            )));
        }
    }
    Ok(())
}

fn clone((name, amount): (&String, &Quantity)) -> (String, Quantity) {
    (name.clone(), amount.clone())
}

/// The increase of usage.
fn increase(new: &Amounts, old: &Amounts) -> Amounts {
    let zero = Quantity::from_integer(0);
    new.iter()
        .map(|(name, amount)| (name.clone(), amount.minus(old.get(name).unwrap_or(&zero))))
        .filter(|(_, more)| !more.is_zero() && !more.is_negative())
        .collect()
}

fn listed(amounts: &Amounts, names: &[&String]) -> String {
    let zero = Quantity::from_integer(0);
    let shown: Vec<String> =
        names.iter().map(|name| format!("{name}={}", amounts.get(*name).unwrap_or(&zero))).collect();
    shown.join(",")
}
