//! Admission webhooks: external programs that change or reject objects.
//!
//! ```text
//! request ─► mutating webhooks, one after the other ─► (reinvocation, where later ones changed the object)
//!         ─► validating webhooks, in parallel
//! ```
//!
//! A webhook gets the object in a version that its rules name. Between two mutating webhooks the object stays in the
//! version of the last one and is converted only when the next needs another.

#[cfg(test)]
mod fuzz;
mod hooks;
#[cfg(test)]
mod identity_tests;
pub(super) mod review;
#[cfg(test)]
mod tests;

use std::cell::LazyCell;
use std::collections::HashSet;
use std::sync::Arc;

use capstan_env::Env;
use capstan_schema::memory;
use capstan_schema::patch::json::Patch;
use futures::future::{BoxFuture, join_all};
use hooks::{Hook, Hooks};
use serde_json::Value;

use super::policy::{RequestAuthorizer, RequestBudget, Subject};
use super::reinvocation::Reinvocation;
use super::versioned_objects::VersionedObjects;
use super::{
    Admission, AdmissionAttributes, GroupVersionKind, GroupVersionResource, Representations, namespaces,
};
use crate::auth::{Authorizer, ObjectSource, bucket};
use crate::status::{Result, Status};
use crate::webhook_client::WebhookClient;

/// Calls the webhooks that are configured in the store.
pub struct Webhooks {
    client: Arc<WebhookClient>,
    source: Arc<dyn ObjectSource>,
    authorizer: Arc<dyn Authorizer>,
    env: Env,
    mutating: Hooks,
    validating: Hooks,
}

/// A webhook to call, and the version of the object it needs.
struct Invocation<'a> {
    hook: &'a Hook,
    resource: GroupVersionResource,
    kind: GroupVersionKind,
}

/// Why a call did not accept the request.
enum Failure {
    /// The call failed. The failure policy decides.
    Calling(String),
    /// The webhook rejected the request, or the request fails whatever the policy.
    Refused(Status),
}

impl Webhooks {
    /// Reads configurations and namespaces from `source`. Conditions may ask `authorizer`.
    pub fn new(
        client: Arc<WebhookClient>,
        source: Arc<dyn ObjectSource>,
        authorizer: Arc<dyn Authorizer>,
        env: Env,
    ) -> Self {
        Self {
            client,
            source,
            authorizer,
            env,
            mutating: Hooks::new(bucket::MUTATING_WEBHOOKS),
            validating: Hooks::new(bucket::VALIDATING_WEBHOOKS),
        }
    }

    async fn run_mutating(
        &self,
        attributes: &mut AdmissionAttributes,
        representations: &dyn Representations,
    ) -> Result<()> {
        let hooks = self.mutating.current(&*self.source);
        let matching = matching(&hooks.1, attributes, representations);
        if matching.is_empty() {
            return Ok(());
        }
        let mut reinvocation = std::mem::take(&mut attributes.reinvocations.webhooks);
        // In the second pass, a webhook that was not called in the first is not called, even if it matches now.
        let only =
            attributes.reinvocations.second_pass.then(|| reinvocation.enter(attributes.object.as_ref()));
        let outcome = self
            .mutating_round(attributes, representations, &matching, &mut reinvocation, only.as_ref())
            .await;
        reinvocation.leave(attributes.object.as_ref());
        attributes.reinvocations.webhooks = reinvocation;
        outcome
    }

    async fn mutating_round(
        &self,
        attributes: &mut AdmissionAttributes,
        representations: &dyn Representations,
        matching: &[Invocation<'_>],
        reinvocation: &mut Reinvocation,
        only: Option<&HashSet<String>>,
    ) -> Result<()> {
        let mut form = VersionedObjects::taken_from(attributes);
        for invocation in matching {
            let hook = invocation.hook;
            if only.is_some_and(|only| !only.contains(&hook.id))
                || !self.wanted(invocation, attributes, &form, representations).await?
            {
                continue;
            }
            if form.kind != invocation.kind {
                form = form.converted(&invocation.kind, attributes, representations).await?;
            }
            let outcome = self.call_mutating(invocation, attributes, &mut form, representations).await;
            if matches!(outcome, Ok(true)) {
                reinvocation.record_change();
            }
            if hook.reinvoke {
                reinvocation.record_run(&hook.id);
            }
            outcome.map(|_| ()).or_else(|failure| hook.apply_failure_policy(failure))?;
        }
        form.give_back(attributes, representations).await
    }

    /// Returns whether the object changed.
    async fn call_mutating(
        &self,
        invocation: &Invocation<'_>,
        attributes: &AdmissionAttributes,
        form: &mut VersionedObjects<'_>,
        representations: &dyn Representations,
    ) -> Result<bool, Failure> {
        let hook = invocation.hook;
        let verdict = self.call(invocation, attributes, form, true).await?;
        if verdict.patch.is_empty() {
            return Ok(false);
        }
        let undecodable =
            |why: String| Failure::Calling(format!("received undecodable patch in webhook response: {why}"));
        let body = memory::from_slice(&verdict.patch, &representations.memory()).map_err(|error| {
            undecodable(match error.is_eof() {
                true => "unexpected end of JSON input".into(),
                false => error.to_string(),
            })
        })?;
        if body.as_array().is_some_and(Vec::is_empty) || body.is_null() {
            return Ok(false);
        }
        let patch = Patch::decode(body, false).map_err(|error| undecodable(error.to_string()))?;
        let internal = |why: String| Failure::Refused(Status::internal(why));
        let Some(object) = form.object() else {
            return Err(internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                hook.name
            )));
        };
        if verdict.patch_type != "JSONPatch" {
            return Err(Failure::Calling(format!("unsupported patch type {:?}", verdict.patch_type)));
        }
        let patched = patch
            .apply_within(object.clone(), representations.memory())
            .map_err(|error| internal(error.to_string()))?;
        let changed = patched != *object;
        let settled = representations.normalise(patched, &form.kind).map_err(|status| match status.code {
            422 => Failure::Refused(status),
            _ => internal(status.message),
        })?;
        form.replace(settled);
        Ok(changed)
    }

    async fn run_validating(
        &self,
        attributes: &AdmissionAttributes,
        representations: &dyn Representations,
    ) -> Result<()> {
        let hooks = self.validating.current(&*self.source);
        let matching = matching(&hooks.1, attributes, representations);
        // Each version of the object is converted once, before any call.
        let mut made = vec![VersionedObjects::of_request(attributes)];
        let mut calls: Vec<(&Invocation<'_>, usize)> = Vec::new();
        for invocation in &matching {
            if !self.wanted(invocation, attributes, &made[0], representations).await? {
                continue;
            }
            let position = match made.iter().position(|form| form.kind == invocation.kind) {
                Some(position) => position,
                None => {
                    made.push(made[0].converted(&invocation.kind, attributes, representations).await?);
                    made.len() - 1
                }
            };
            calls.push((invocation, position));
        }
        let made = &made;
        let outcomes = join_all(calls.iter().map(|(invocation, position)| async move {
            let outcome = self.call(invocation, attributes, &made[*position], false).await;
            outcome.map(|_| ()).or_else(|failure| invocation.hook.apply_failure_policy(failure))
        }))
        .await;
        // The first rejection in the order of configuration, not of completion.
        outcomes.into_iter().collect()
    }

    /// Calls a webhook. Returns a review result only if it allows the request.
    async fn call(
        &self,
        invocation: &Invocation<'_>,
        attributes: &AdmissionAttributes,
        form: &VersionedObjects<'_>,
        mutating: bool,
    ) -> Result<review::AdmissionVerdict, Failure> {
        let hook = invocation.hook;
        if attributes.dry_run {
            if hook.side_effects.is_none() {
                return Err(Failure::Calling("Webhook SideEffects is nil".into()));
            }
            if !hook.allows_dry_run() {
                let why = format!("admission webhook {:?} does not support dry run", hook.name);
                return Err(Failure::Refused(Status::bad_request(why)));
            }
        }
        let version = review::version(&hook.review_versions)
            .map_err(|why| Failure::Calling(format!("could not create admission objects: {why}")))?;
        let client = hook.client.as_ref();
        let client = client.map_err(|why| Failure::Calling(format!("could not get REST client: {why}")))?;
        let uid = self.env.uuid();
        let request = review::request(attributes, &invocation.resource, &invocation.kind);
        let question = review::Question::new(version, &uid, request, form.object(), form.old_object());
        let answer = self.client.post_within(client, &question, hook.timeout, memory::MAX_DECODED).await;
        let answer = answer.map_err(|error| Failure::Calling(error.to_string()))?;
        if let Some(why) = review::unreadable(version, &answer) {
            return Err(Failure::Calling(format!("failed to call webhook: {why}")));
        }
        let verdict = review::validate_response(version, &uid, mutating, &answer)
            .map_err(|why| Failure::Calling(format!("received invalid webhook response: {why}")))?;
        for warning in &verdict.warnings {
            attributes.warnings.add(warning);
        }
        match verdict.allowed {
            true => Ok(verdict),
            false => Err(Failure::Refused(review::denial(&hook.name, &verdict.result))),
        }
    }

    /// Whether a webhook with matching rules also matches by its selectors and conditions.
    async fn wanted(
        &self,
        invocation: &Invocation<'_>,
        attributes: &AdmissionAttributes,
        form: &VersionedObjects<'_>,
        representations: &dyn Representations,
    ) -> Result<bool> {
        let Invocation { hook, kind, .. } = invocation;
        let in_namespace = namespaces::selected(&hook.namespaces, attributes, form.object(), &*self.source);
        let object_selected = form.selected(&hook.objects);
        // If one selector does not match, an error of the other does not matter.
        if matches!(in_namespace, Ok(false)) || matches!(object_selected, Ok(false)) {
            return Ok(false);
        }
        in_namespace?;
        object_selected?;
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let converted = match form.kind == *kind {
            true => None,
            false => Some(form.converted(kind, attributes, representations).await?),
        };
        let seen = converted.as_ref().unwrap_or(form);
        let request = Value::Object(review::request(attributes, &attributes.resource, kind));
        let subject = Subject {
            object: seen.object().unwrap_or(&Value::Null),
            old_object: seen.old_object().unwrap_or(&Value::Null),
            request: &request,
            params: &Value::Null,
            namespace: &Value::Null,
            authorizer: RequestAuthorizer::of(attributes, &self.authorizer),
        };
        hook.conditions.hold(&subject, &mut RequestBudget::new()).map_err(|why| {
            let GroupVersionResource { group, resource, .. } = &attributes.resource;
            Status::forbidden(group, resource, &attributes.name, why)
        })
    }
}

impl Admission for Webhooks {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        representations: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.run_mutating(attributes, representations))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        representations: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.run_validating(attributes, representations))
    }
}

impl Hook {
    /// Applies the failure policy to a failed call.
    fn apply_failure_policy(&self, failure: Failure) -> Result<()> {
        match failure {
            Failure::Refused(status) => Err(status),
            Failure::Calling(why) if self.ignore_failure => {
                tracing::warn!(
                    webhook = self.name,
                    why,
                    "cannot call a webhook; ignored by its failure policy"
                );
                Ok(())
            }
            Failure::Calling(why) => {
                Err(Status::internal(format!("failed calling webhook {:?}: {why}", self.name)))
            }
        }
    }
}

/// The webhooks with matching rules, each with the version of the resource that its rules name: the request's own if
/// possible, else another served version.
fn matching<'a>(
    hooks: &'a [Hook],
    attributes: &AdmissionAttributes,
    representations: &dyn Representations,
) -> Vec<Invocation<'a>> {
    if hooks.is_empty() || is_exempt(attributes) {
        return Vec::new();
    }
    let equivalents =
        LazyCell::new(|| representations.equivalents(&attributes.resource, &attributes.subresource));
    let form = |hook: &Hook| {
        if hook.rules.iter().any(|rule| rule.matches(attributes, &attributes.resource)) {
            return Some((attributes.resource.clone(), attributes.kind.clone()));
        }
        if !hook.equivalents {
            return None;
        }
        // The first matching rule counts, whichever version it names.
        hook.rules.iter().find_map(|rule| {
            let mut others = equivalents.iter().filter(|(resource, _)| *resource != attributes.resource);
            others.find(|(resource, _)| rule.matches(attributes, resource)).cloned()
        })
    };
    hooks
        .iter()
        .filter_map(|hook| form(hook).map(|(resource, kind)| Invocation { hook, resource, kind }))
        .collect()
}

/// Webhook configurations themselves never pass through webhooks, or a broken one could not be fixed.
fn is_exempt(attributes: &AdmissionAttributes) -> bool {
    attributes.kind.group == "admissionregistration.k8s.io"
        && matches!(
            attributes.kind.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}
