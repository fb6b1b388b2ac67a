//! Carries out a decision: one effect after another, until a required one fails.

use capstan_object::Object;
use jiff::Timestamp;
use serde_json::json;
use tracing::Instrument;

use super::{Reconcile, ReconcileError, journal};
use crate::client::{ApiError, EffectOf, GateVerdict};
use crate::code::catalogue;
use crate::controller::Error;
use crate::trace;
use crate::writer::Created;
use crate::{Call, Controller, Decision, Effect, Look, Need, ObjectRef, Outcome, Planned, Resolution};

/// Why an effect failed.
enum EffectError {
    Failed(Error),
    /// It may have happened.
    Unknown(Error),
}

impl From<ApiError> for EffectError {
    fn from(error: ApiError) -> Self {
        let code = match &error {
            ApiError::Transport(_) => catalogue::API_UNREACHABLE,
            ApiError::Limit(exceeded) => exceeded.code,
            error if error.is_conflict() => catalogue::API_CONFLICT,
            ApiError::Encode(_) => catalogue::ENCODE,
            _ => catalogue::API_REFUSED,
        };
        // A write whose response was lost can be repeated: names are deterministic and patches are idempotent, so
        // nothing has to be looked up.
        Self::Failed(Error { code, message: super::chain(&error) })
    }
}

/// Why an object was not changed. An object that is gone counts as a conflict, which is expected.
fn not_patched(error: ApiError) -> EffectError {
    match error.is_not_found() {
        true => EffectError::Failed(Error { code: catalogue::API_CONFLICT, message: super::chain(&error) }),
        false => error.into(),
    }
}

impl<C: Controller> Reconcile<'_, C> {
    /// Writes the own object with the intents of all calls, then carries out the effects.
    pub(super) async fn act(&mut self, look: &Look<C>, decision: Decision<C>) -> Result<(), ReconcileError> {
        let change = self.change(look, &decision)?;
        let mut main = change.main.unwrap_or_else(|| json!({}));
        let mut intents = journal::open::<C>(&look.object)?;
        let mut journalled = false;
        for planned in &decision.effects {
            if let Effect::Call(call) = &planned.effect
                && call.journalled()
            {
                // A retry of a call is a new intent; the outcome of the old one is known.
                intents.retain(|intent| intent.call != *call);
                self.memory.concluded.retain(|concluded| concluded.call != *call);
                intents.push(journal::intent(call, look.now));
                journalled = true;
            }
        }
        if journalled {
            // Intents of calls that ended are removed by the same write: this decision has seen their results.
            intents.retain(|intent| !self.memory.is_concluded(&intent.call));
            let value = journal::value(&intents).map_err(ReconcileError::Encode)?;
            main["metadata"]["annotations"][journal::annotation::<C>()] = value;
        }
        if main.as_object().is_some_and(|main| !main.is_empty()) {
            main["metadata"]["resourceVersion"] = look.object.metadata().resource_version.as_str().into();
            self.write_own(None, main).await?;
        }
        let mut planned = decision.effects.into_iter();
        while let Some(step) = planned.next() {
            let span = trace::effect(|| step.effect.summary());
            match self.carry_out(look, &step.effect).instrument(span.clone()).await {
                Ok(()) => {
                    self.changed = true;
                    self.memory.succeeded(&step.effect);
                    self.notes.extend(step.note);
                }
                Err(error) => {
                    let (EffectError::Failed(why) | EffectError::Unknown(why)) = &error;
                    trace::failed(&span, || why.to_string());
                    let required = step.need == Need::Required;
                    self.note_failure(step, error, look.now);
                    if required {
                        // The calls after it were not made, although the journal has their intents.
                        for rest in planned.by_ref() {
                            self.conclude_failed(&rest.effect);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Records a failed effect. That of a required one fails the reconcile, others are only reported.
    fn note_failure(&mut self, step: Planned<C::Call>, error: EffectError, now: Timestamp) {
        let error = match error {
            EffectError::Failed(error) => {
                self.conclude_failed(&step.effect);
                error
            }
            EffectError::Unknown(error) => {
                self.unheard = true;
                error
            }
        };
        if let Some(mut note) = step.failure
            && error.code != catalogue::API_CONFLICT
        {
            note.message = format!("{}: {error}", note.message);
            self.notes.push(note);
        }
        let what = format!("{}: {error}", step.effect.summary());
        let failure = match error.code == catalogue::API_CONFLICT {
            true => ReconcileError::Conflict(what),
            false => ReconcileError::Effect(what),
        };
        match step.need {
            Need::Required => self.failed = Some(failure),
            Need::BestEffort => {
                tracing::debug!(
                    controller = C::NAME, key = %self.key, error = %failure,
                    "a best-effort effect failed; the others continue"
                );
                self.given_up.push((step.effect.summary(), failure));
            }
        }
        self.memory.failed(&step.effect, error, now);
    }

    fn conclude_failed(&mut self, effect: &Effect<C::Call>) {
        if let Effect::Call(call) = effect {
            self.memory.conclude(call, None);
        }
    }

    async fn carry_out(&mut self, look: &Look<C>, effect: &Effect<C::Call>) -> Result<(), EffectError> {
        match effect {
            Effect::Create { kind, body } => {
                let namespace = body["metadata"]["namespace"].as_str().unwrap_or_default();
                match self.tenant.writer.create(kind, namespace, body).await? {
                    Created::Ours => Ok(()),
                    Created::Taken => Err(EffectError::Failed(Error {
                        code: catalogue::NAME_TAKEN,
                        message: format!("{} exists and is not ours", effect.summary()),
                    })),
                }
            }
            Effect::Patch { target, subresource, patch } => {
                let patched = self.tenant.writer.patch(&target.kind, &target.key, *subresource, patch).await;
                patched.map(drop).map_err(not_patched)
            }
            Effect::Delete { target, deletion } => {
                Ok(self.tenant.writer.delete(&target.kind, &target.key, deletion).await?)
            }
            Effect::Call(call) => self.make_call(look, call).await,
            Effect::Impossible { why, .. } => {
                Err(EffectError::Failed(Error { code: catalogue::ENCODE, message: why.clone() }))
            }
        }
    }

    async fn make_call(&mut self, look: &Look<C>, call: &C::Call) -> Result<(), EffectError> {
        let tenant = self.tenant;
        let object = ObjectRef::to(&*look.object);
        let summary = call.summary();
        let idempotency_key = call.idempotency_key();
        let described = EffectOf::Call {
            object: &object,
            summary: &summary,
            key: &idempotency_key,
            journalled: call.journalled(),
        };
        let gate = tenant.writer.client.gate();
        if let Some(gate) = gate
            && let GateVerdict::Fail(error) = gate.before(C::NAME, &described).await
        {
            return Err(EffectError::Failed(Error {
                code: catalogue::CALL_UNKNOWN,
                message: super::chain(&error),
            }));
        }
        let view = tenant.view(self.key);
        let limit = tenant.shared.options.call_timeout;
        let made = tokio::time::timeout(limit, tenant.controller.call(call, &look.object, &view));
        let mut outcome = match made.await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::unknown(format!("no answer within {limit:?}")),
        };
        if let Some(gate) = gate {
            let refused = match &outcome {
                Outcome::Done(_) => None,
                Outcome::Failed(error) | Outcome::Unknown(error) => {
                    Some(ApiError::Request(error.to_string()))
                }
            };
            let result = refused.as_ref().map_or(Ok(&b""[..]), Err);
            if let GateVerdict::Fail(error) = gate.after(C::NAME, &described, result).await {
                outcome = Outcome::unknown(super::chain(&error));
            }
        }
        match outcome {
            Outcome::Done(result) => {
                self.memory.conclude(call, Some(result));
                Ok(())
            }
            Outcome::Failed(error) => Err(EffectError::Failed(error)),
            Outcome::Unknown(error) => Err(EffectError::Unknown(error)),
        }
    }
}

impl Resolution {
    /// It happened and has no result.
    pub fn happened() -> Self {
        Self::Happened(serde_json::Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_gone_before_it_is_changed_is_no_refusal() {
        for (code, reason, expected) in [
            (404, "NotFound", catalogue::API_CONFLICT),
            (409, "Conflict", catalogue::API_CONFLICT),
            (403, "Forbidden", catalogue::API_REFUSED),
        ] {
            let EffectError::Failed(error) = not_patched(ApiError::status(code, reason, "words")) else {
                panic!("{reason} is known not to have happened");
            };
            assert_eq!((error.code, error.message.as_str()), (expected, "words"), "{reason}");
        }
    }
}
