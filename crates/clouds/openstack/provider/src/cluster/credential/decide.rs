//! Decisions about the application credential of a cluster.

use std::collections::BTreeMap;

use capstan_capi_types::addons::cluster_resource_set::SECRET_TYPE;
use capstan_capi_types::core::label;
use capstan_controller::{Call as _, Effect, ObjectRef};
use capstan_object::{ObjectMeta, OwnerReference};
use capstan_provider_kit::{Secret, SecretOutline};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::current::{Current, NUMBER, SINCE, USER, is_ours};
use super::{CredentialState, Fresh, NEXT, Rotation, cloud_config, prefix, recorded, wanted};
use crate::cluster::call::{ClusterCall, CredentialOrder};
use crate::cluster::plan::{Decision, Plan};
use crate::{code, mark};

/// Keeps the credential of the cluster and its Secrets. Returns what is wrong with them.
pub(in crate::cluster) fn keep(plan: &Plan<'_>, decision: &mut Decision) -> Option<String> {
    let (object, state) = (plan.object(), &plan.state.credentials);
    let rotation = match wanted(&object.metadata) {
        Ok(Some(rotation)) => rotation,
        Ok(None) => {
            remove(plan, decision);
            return None;
        }
        Err(why) => return Some(format!("{}: {why}", code::REFUSED)),
    };
    if let Some(identity) = &state.forbidden_by {
        return Some(format!(
            "{}: OpenStackClusterIdentity {identity} does not allow application credentials for clusters: have annotation {} \
             set to true on it, or remove annotation {}",
            code::IDENTITY,
            super::ALLOWED,
            super::ROTATION
        ));
    }
    let secrets = [&state.secret, &state.resources];
    if let Some(theirs) = secrets.into_iter().flatten().find(|secret| !is_ours(object, secret)) {
        let name = &theirs.metadata.name;
        return Some(format!(
            "{}: Secret {name} has another owner: rename or delete it, or remove annotation {}",
            code::APPLICATION_CREDENTIAL,
            super::ROTATION
        ));
    }
    // Credentials of a Secret that is not complete are replaced like others: both Secrets get the same.
    let current = state.secret.as_deref().and_then(|secret| Current::of(object, secret));
    let numbers = state.held.keys().chain(current.as_ref().map(|current| &current.number)).copied();
    let next =
        numbers.max().map_or(1, |last| last.saturating_add(1)).max(recorded(&object.metadata).unwrap_or(1));
    decision.object.metadata.annotations.insert(NEXT.to_owned(), next.to_string());
    let last = current.as_ref().map_or(0, |current| current.number);
    let fresh = state.fresh.as_ref().filter(|fresh| fresh.number > last);
    if let Some(fresh) = fresh.filter(|fresh| state.held.contains_key(&fresh.number)) {
        write(plan, fresh, decision);
        return None;
    }
    // Their secrets were lost with the answer or the process.
    for held in state.held.range(last.saturating_add(1)..).map(|(_, held)| held) {
        decision.best_effort(Effect::Call(ClusterCall::DeleteCredential { id: held.id.clone() }));
    }
    let verdict = verdict(plan, rotation, current.as_ref());
    if let Some(current) = &current
        && plan.now().duration_since(current.since) >= rotation.grace()
    {
        for held in state.held.range(..current.number).map(|(_, held)| held) {
            decision.best_effort(Effect::Call(ClusterCall::DeleteCredential { id: held.id.clone() }));
        }
    }
    match verdict {
        CredentialVerdict::Good => None,
        CredentialVerdict::Revoked(why) => Some(why),
        CredentialVerdict::Due(why) => create(plan, rotation, next, decision).or(why),
    }
}

/// What becomes of the credential in use.
enum CredentialVerdict {
    Good,
    /// Somebody deleted it. Whether there is to be another is for people to say.
    Revoked(String),
    /// Another is made; perhaps the workload has no access meanwhile.
    Due(Option<String>),
}

fn verdict(plan: &Plan<'_>, rotation: Rotation, current: Option<&Current>) -> CredentialVerdict {
    let state = &plan.state.credentials;
    let Some(current) = current else { return CredentialVerdict::Due(None) };
    let resources = state.resources.as_deref();
    let same = resources.and_then(|secret| Current::of(plan.object(), secret));
    // Of another user's credentials nothing is known.
    if current.user != state.user || same.is_none_or(|same| same.number != current.number) {
        return CredentialVerdict::Due(None);
    }
    let name = super::secret_name(plan.cluster);
    let Some(held) = state.held.get(&current.number) else {
        return CredentialVerdict::Revoked(format!(
            "{}: the application credential in Secret {name} was deleted in Keystone: delete the Secret and another is made",
            code::APPLICATION_CREDENTIAL
        ));
    };
    if held.expires.is_some_and(|end| end <= plan.now()) {
        return CredentialVerdict::Due(Some(format!(
            "{}: the application credential in Secret {name} has expired: another is made with the credentials of identityRef",
            code::APPLICATION_CREDENTIAL
        )));
    }
    let old = match rotation {
        Rotation::Never => false,
        Rotation::Every(time) => plan.now().duration_since(current.since) >= time,
    };
    match old || held.roles != state.roles {
        true => CredentialVerdict::Due(None),
        false => CredentialVerdict::Good,
    }
}

/// Makes the next credential. Returns why there can be none.
fn create(plan: &Plan<'_>, rotation: Rotation, number: u64, decision: &mut Decision) -> Option<String> {
    let (object, state) = (plan.object(), &plan.state.credentials);
    if state.roles.is_empty() {
        return Some(format!(
            "{}: the credentials of identityRef have none of the roles {}: grant member, and load-balancer_member for load \
             balancers of Services",
            code::APPLICATION_CREDENTIAL,
            super::ROLES.join(", ")
        ));
    }
    let meta = &object.metadata;
    let expires = match rotation {
        Rotation::Never => None,
        // A rotation that fails is noticed before it ends.
        Rotation::Every(time) => plan.now().checked_add(time * 3).ok().map(hour),
    };
    let order = CredentialOrder {
        number,
        description: plan.description("workload"),
        roles: state.roles.clone(),
        expires,
    };
    let name = format!("{}{number}", prefix(&meta.namespace, plan.cluster, &mark::of(meta)));
    let call = ClusterCall::CreateCredential { name, order: Box::new(order) };
    let failure = plan.look.failures.iter().find(|failure| failure.effect == call.summary());
    let failure = failure.map(|failure| failure.error.to_string());
    decision.best_effort(Effect::Call(call));
    failure
}

/// A time as Keystone reads it, in full hours: a call that is decided again is the same call.
fn hour(time: Timestamp) -> String {
    let seconds = time.as_second();
    let full = Timestamp::from_second(seconds - seconds.rem_euclid(3600)).unwrap_or(time);
    full.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string()
}

/// Writes a credential into both Secrets, the one that is looked at last: if the process dies between, both are written
/// again or the credential is replaced.
fn write(plan: &Plan<'_>, fresh: &Fresh, decision: &mut Decision) {
    let state = &plan.state.credentials;
    let resources = (
        super::resources_name(plan.cluster),
        SECRET_TYPE,
        cloud_config::resources(&state.reach, fresh),
        state.resources.as_deref(),
    );
    let secret = (
        super::secret_name(plan.cluster),
        "Opaque",
        cloud_config::files(&state.reach, fresh),
        state.secret.as_deref(),
    );
    for (name, kind, data, held) in [resources, secret] {
        let wanted = secret_of(plan, fresh, (&name, kind), data);
        let effect = match held {
            None => Effect::create(&wanted),
            Some(held) => replaced(&wanted, held),
        };
        decision.best_effort(effect);
    }
}

fn secret_of(
    plan: &Plan<'_>,
    fresh: &Fresh,
    (name, kind): (&str, &str),
    data: BTreeMap<String, Vec<u8>>,
) -> Secret {
    let object = plan.object();
    let mut metadata = ObjectMeta::named(object.metadata.namespace.as_str(), name);
    metadata.labels.insert(label::CLUSTER_NAME.to_owned(), plan.cluster.to_owned());
    metadata.owner_references.push(OwnerReference::controlled_by(object));
    let user = plan.state.credentials.user.clone();
    let known = [(NUMBER, fresh.number.to_string()), (SINCE, plan.now().to_string()), (USER, user)];
    metadata.annotations.extend(known.map(|(key, value)| (key.to_owned(), value)));
    Secret { metadata, data, kind: kind.to_owned() }
}

/// The change of a Secret that makes it the wanted one. Its type never changes.
fn replaced(wanted: &Secret, held: &SecretOutline) -> Effect<ClusterCall> {
    let mut change = match capstan_object::to_value(wanted) {
        Ok(body) => {
            json!({"metadata": {"annotations": body["metadata"]["annotations"]}, "data": body["data"]})
        }
        Err(error) => {
            let what = format!("patch {}", ObjectRef::to(held));
            return Effect::Impossible { what, why: error.to_string() };
        }
    };
    // An authority that is no longer trusted goes.
    if !wanted.data.contains_key("cacert") {
        change["data"]["cacert"] = Value::Null;
    }
    Effect::merge_guarded(ObjectRef::to(held), &held.metadata, change)
}

/// Removes everything once the annotation is gone.
fn remove(plan: &Plan<'_>, decision: &mut Decision) {
    let state = &plan.state.credentials;
    for secret in [&state.secret, &state.resources].into_iter().flatten() {
        if is_ours(plan.object(), secret) && !secret.metadata.is_deleting() {
            decision.best_effort(Effect::delete(&**secret));
        }
    }
    for call in removal(state) {
        decision.best_effort(Effect::Call(call));
    }
}

/// The calls that delete all credentials of the cluster. Its Secrets go with their owner.
pub(in crate::cluster) fn removal(state: &CredentialState) -> Vec<ClusterCall> {
    state.held.values().map(|held| ClusterCall::DeleteCredential { id: held.id.clone() }).collect()
}
