//! One reconcile: observe, decide, act, until there is nothing left to do.
//!
//! ```text
//!            ┌────────────────────────────────────────────────────────────────────┐
//!            ▼                                                                    │
//!  open intents resolved ─▶ observe ─▶ decide ─┬─ effects ─▶ own object + intents ─▶ effects, one by one
//!                                              │
//!                                              └─ none, or a required one failed ─▶ status ─▶ journal closed, finalizers go
//! ```
//!
//! Status is therefore written once, with the result of the reconcile and not after each step.

pub(crate) mod act;
mod error;
mod failing;
pub(crate) mod journal;
pub(crate) mod memory;
pub(crate) mod own;
pub(crate) mod settled;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capstan_object::{Key, Object};
use futures::FutureExt;
use serde_json::{Value, json};
use tracing::Instrument;

use crate::client::Patch;
use crate::code::catalogue;
use crate::metrics::Ending;
use crate::runtime::Tenant;
use crate::trace;
use crate::{Controller, Decision, KindName, Look, Need, Note, ObjectRef, Resolution, View, Wait};
pub(crate) use error::{ReconcileError, chain};
use failing::Reported;
use memory::ObjectMemory;
use own::OwnChange;

/// Maximum of rounds of effects in one reconcile. More is a loop, not progress.
const MAX_ROUNDS: u32 = 12;

/// One reconcile of one object.
pub(crate) struct Reconcile<'a, C: Controller> {
    pub tenant: &'a Tenant<C>,
    pub key: &'a Key,
    pub memory: ObjectMemory<C::Call>,
    /// Something was written or called.
    changed: bool,
    failed: Option<ReconcileError>,
    /// Summaries of best-effort effects that failed. They are not retried in this reconcile.
    given_up: Vec<(String, ReconcileError)>,
    /// A call was made whose outcome is unknown.
    unheard: bool,
    /// Summaries of all effects that were wanted in this reconcile.
    wanted: BTreeSet<String>,
    notes: Vec<Note>,
}

impl<'a, C: Controller> Reconcile<'a, C> {
    pub fn new(tenant: &'a Tenant<C>, key: &'a Key) -> Self {
        Self {
            memory: tenant.memory.take(key),
            tenant,
            key,
            changed: false,
            failed: None,
            given_up: Vec::new(),
            unheard: false,
            wanted: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// Runs to the end; returns how it ended and when to requeue.
    pub async fn run(mut self) -> Result<(Ending, Option<Duration>), ReconcileError> {
        let span = trace::reconcile(C::NAME, C::Kind::KIND.kind, self.key);
        let result = self.rounds().instrument(span.clone()).await;
        if let Ok((_, Some(after))) = &result {
            span.record("requeue_after_ms", u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        }
        match &result {
            Ok(_) => self.memory.failing = None,
            Err(error) => {
                trace::failed(&span, || chain(error));
                if let Some(code) = error.code() {
                    let wait = Wait::on(code.id(), chain(error)).code(code);
                    self.memory.wait_for(vec![wait], self.tenant.shared.env.now());
                }
                if let Some(reported) = Reported::of(error) {
                    // Rare, and large: reconciles that succeed need not have room for it.
                    Box::pin(failing::failed(self.tenant, self.key, &mut self.memory, reported)).await;
                }
            }
        }
        self.tenant.memory.put(self.key, self.memory);
        result
    }

    async fn rounds(&mut self) -> Result<(Ending, Option<Duration>), ReconcileError> {
        for round in 0.. {
            let Some(object) = self.tenant.cache.get(self.key)? else {
                self.tenant.controller.gone(self.key);
                self.tenant.external.forget(self.key);
                self.memory = ObjectMemory::default();
                return Ok((Ending::Success, None));
            };
            // Objects that it owns or depends on requeue it, also if another process reconciles them.
            if !self.tenant.shared.options.selects(object.metadata()) {
                self.memory = ObjectMemory::default();
                return Ok((Ending::Success, None));
            }
            let view = self.tenant.view(self.key);
            // A call with unknown outcome is resolved by the next reconcile. So is everything after a required effect
            // has failed.
            if self.failed.is_none() && !self.unheard {
                self.resolve(&object, &view).await?;
            }
            let look = self.look(object, &view).await?;
            let mut decision = self.tenant.controller.decide(&look);
            self.report_reads(&look, &view);
            if look.paused.is_some() && !decision.effects.is_empty() {
                tracing::warn!(controller = C::NAME, key = %self.key, "effects on a paused object are not carried out");
                decision.effects.clear();
            }
            self.wanted.extend(decision.effects.iter().map(|planned| planned.effect.summary()));
            decision.effects.retain(|planned| {
                let summary = planned.effect.summary();
                planned.need == Need::Required || !self.given_up.iter().any(|(known, _)| *known == summary)
            });
            if decision.effects.is_empty() || self.failed.is_some() || round >= MAX_ROUNDS {
                let unsettled = !decision.effects.is_empty() && self.failed.is_none();
                return self.finish(&look, decision, unsettled).await;
            }
            self.act(&look, decision).await?;
        }
        Ok((Ending::Success, None))
    }

    /// Resolves calls whose outcome is unknown.
    async fn resolve(&mut self, object: &Arc<C::Kind>, view: &View) -> Result<(), ReconcileError> {
        for intent in journal::open::<C>(object)? {
            if self.memory.is_concluded(&intent.call) {
                continue;
            }
            match self.tenant.controller.resolve(&intent, object, view).await? {
                Resolution::Happened(result) => self.memory.conclude(&intent.call, Some(result)),
                Resolution::DidNotHappen => self.memory.conclude(&intent.call, None),
                Resolution::NotYetKnown { reason } => {
                    return Err(ReconcileError::Unresolved(format!("{:?}: {reason}", intent.key)));
                }
            }
        }
        Ok(())
    }

    async fn look(&self, object: Arc<C::Kind>, view: &View) -> Result<Look<C>, ReconcileError> {
        let controller = &self.tenant.controller;
        let options = &self.tenant.shared.options;
        let annotated = options
            .pause_annotation
            .as_ref()
            .filter(|name| object.metadata().annotations.contains_key(*name))
            .map(|name| format!("annotation {name} is set"));
        let paused = match annotated {
            Some(why) => Some(why),
            None => controller.paused(&object, view)?,
        };
        let observed =
            tokio::time::timeout(options.observe_timeout, Box::pin(controller.observe(&object, view)));
        let seen = observed
            .instrument(trace::observe())
            .await
            .map_err(|_| ReconcileError::Slow(options.observe_timeout))??;
        Ok(Look {
            object,
            seen,
            now: view.now,
            paused,
            failures: self.memory.failures.clone(),
            concluded: self.memory.concluded.clone(),
        })
    }

    /// Reports to the gate which versions the decision read.
    fn report_reads(&self, look: &Look<C>, view: &View) {
        if let (Some(gate), Some(read)) = (view.client.gate(), &view.read) {
            let mut read = read.lock().clone();
            let own = look.object.metadata();
            read.push((KindName::of::<C::Kind>(), own.key(), crate::cache::version(own)));
            gate.decided(C::NAME, &ObjectRef::to(&*look.object), &read);
        }
    }

    /// The end of a reconcile: writes status, then closes the journal and removes finalizers.
    async fn finish(
        &mut self,
        look: &Look<C>,
        decision: Decision<C>,
        unsettled: bool,
    ) -> Result<(Ending, Option<Duration>), ReconcileError> {
        // Not earlier: a decision that gives up on a failed effect must not be followed by one that has no record of the
        // failure and tries again.
        self.memory.keep_failures_of(&self.wanted);
        let change = self.change(look, &decision)?;
        let mut version = look.object.metadata().resource_version.clone();
        if let Some(status) = change.status {
            let body = json!({"metadata": {"resourceVersion": version}, "status": status});
            version = self.write_own(Some("status"), body).await?;
        }
        let open = journal::open::<C>(&look.object)?;
        let left: Vec<_> =
            open.iter().filter(|intent| !self.memory.is_concluded(&intent.call)).cloned().collect();
        let mut main = change.main.unwrap_or_else(|| json!({}));
        if left.len() < open.len() {
            let value = journal::value(&left).map_err(ReconcileError::Encode)?;
            main["metadata"]["annotations"][journal::annotation::<C>()] = value;
        }
        let not_settled = unsettled.then(|| self.not_settled(&decision));
        let mark = not_settled.as_ref().map(|what| format!("{}: {what}", catalogue::NOT_SETTLED));
        // Of a reconcile that keeps failing, the mark stays.
        let failed = self.failed.is_some() || !self.given_up.is_empty();
        if (!failed || mark.is_some())
            && let Some((name, value)) =
                settled::change(C::NAME, look.object.metadata(), mark.as_deref(), look.now)
        {
            main["metadata"]["annotations"][name] = value.into();
        }
        let mut gone = false;
        if let Some(finalizers) = change.finalizers
            && left.is_empty()
            && decision.effects.is_empty()
        {
            gone = finalizers.as_array().is_some_and(Vec::is_empty) && look.object.metadata().is_deleting();
            main["metadata"]["finalizers"] = finalizers;
        }
        if main.as_object().is_some_and(|main| !main.is_empty()) {
            main["metadata"]["resourceVersion"] = version.into();
            self.write_own(None, main).await?;
        }
        self.memory.concluded.clear();
        self.memory.wait_for(decision.waits, look.now);
        if self.changed {
            self.notes.extend(decision.notes);
        }
        if let Some(what) = &not_settled {
            self.notes.push(Note::warning("NotSettled", "Reconcile", what.as_str()));
        }
        if !self.notes.is_empty() && !gone {
            let notes = std::mem::take(&mut self.notes);
            self.tenant
                .shared
                .recorder
                .record(C::NAME, &ObjectRef::to(&*look.object), look.object.metadata(), notes)
                .await;
        }
        if let Some(failed) = self.failure() {
            return Err(failed);
        }
        if let Some(what) = not_settled {
            return Err(ReconcileError::NotSettled(what));
        }
        let ending = if decision.look_again.is_some() { Ending::RequeueAfter } else { Ending::Success };
        Ok((ending, decision.look_again))
    }

    /// The object, and the effects that were decided again after the last round.
    fn not_settled(&self, decision: &Decision<C>) -> String {
        let effects: BTreeSet<String> =
            decision.effects.iter().map(|planned| planned.effect.summary()).collect();
        let effects: Vec<String> = effects.into_iter().collect();
        format!(
            "controller {} does not settle on {} {}: after {MAX_ROUNDS} rounds it still decides to {}",
            C::NAME,
            C::Kind::KIND.kind,
            self.key,
            effects.join(", ")
        )
    }

    /// All failures of this reconcile in one error.
    fn failure(&mut self) -> Option<ReconcileError> {
        let given_up = self.given_up.drain(..).map(|(_, failure)| failure);
        let mut failures: Vec<ReconcileError> = given_up.chain(self.failed.take()).collect();
        if failures.len() < 2 {
            return failures.pop();
        }
        let conflict = failures.iter().all(ReconcileError::is_conflict);
        let texts: Vec<String> = failures
            .iter()
            .map(|failure| match failure {
                ReconcileError::Effect(text) | ReconcileError::Conflict(text) => text.clone(),
                failure => chain(failure),
            })
            .collect();
        let texts = texts.join("; ");
        Some(if conflict { ReconcileError::Conflict(texts) } else { ReconcileError::Effect(texts) })
    }

    fn change(&self, look: &Look<C>, decision: &Decision<C>) -> Result<OwnChange, ReconcileError> {
        // Most reconciles change nothing. A comparison is cheaper than two encodings.
        if decision.object == *look.object {
            return Ok(OwnChange::default());
        }
        let seen = serde_json::to_value(&*look.object).map_err(ReconcileError::Encode)?;
        let wanted = serde_json::to_value(&decision.object).map_err(ReconcileError::Encode)?;
        Ok(OwnChange::between(&seen, &wanted, self.tenant.controller.conditions()))
    }

    /// Patches the own object; returns its new version.
    async fn write_own(&mut self, subresource: Option<&str>, body: Value) -> Result<String, ReconcileError> {
        let kind = KindName::of::<C::Kind>();
        let patch = Patch::Merge(body);
        let span = trace::write(subresource);
        let written = self.tenant.writer.patch(&kind, self.key, subresource, &patch);
        let version = written.instrument(span.clone()).await;
        if let Err(error) = &version {
            trace::failed(&span, || chain(error));
        }
        self.changed = true;
        let version = version.map_err(ReconcileError::Write)?;
        if let Ok(version) = version.parse() {
            self.tenant.queue.wrote(self.key, version);
        }
        Ok(version)
    }
}

/// Runs one reconcile. A panic of a controller affects only the object it reconciles.
pub(crate) async fn run<C: Controller>(tenant: &Tenant<C>, key: &Key) -> (Ending, Option<Duration>) {
    let reconcile = std::panic::AssertUnwindSafe(Reconcile::new(tenant, key).run());
    match reconcile.catch_unwind().await {
        Ok(Ok(ending)) => ending,
        Ok(Err(error)) => {
            if error.is_conflict() {
                tracing::debug!(controller = C::NAME, %key, error = chain(&error), "conflict; requeueing");
            } else {
                tracing::warn!(controller = C::NAME, %key, error = chain(&error), "reconcile failed");
            }
            let ending = match error {
                ReconcileError::NotSettled(_) => Ending::NotSettled,
                _ => Ending::Error,
            };
            (ending, None)
        }
        Err(_) => {
            tracing::error!(controller = C::NAME, %key, "the controller panicked");
            let mut memory = tenant.memory.take(key);
            Box::pin(failing::failed(tenant, key, &mut memory, Reported::panic())).await;
            tenant.memory.put(key, memory);
            (Ending::Panic, None)
        }
    }
}
