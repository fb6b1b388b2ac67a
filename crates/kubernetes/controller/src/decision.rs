//! The result of a decision: desired object, effects, events, waits.

use std::time::Duration;

use capstan_object::{Object, ObjectMeta};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::{Deletion, Patch, Propagation};
use crate::{Call, Code, Controller, KindName, Look, ObjectRef};

/// What to do for an object.
///
/// Carried out in this order: the own object's metadata and spec (finalizers added, never removed) together
/// with the journal entries of calls, the effects one by one until a required one fails, a new round if there
/// were effects; and once there is nothing left to do, the own object's status, and last what closes the journal
/// and takes finalizers away. A failed best-effort effect holds up neither the effects after it nor the
/// finalizers; the reconcile then ends as failed and is retried with back-off.
pub struct Decision<C: Controller> {
    /// The desired own object. Only differences from the observed one are written: metadata and spec in one patch, status
    /// in another, both with the observed resource version as precondition. Of conditions only those that the controller
    /// owns are written.
    pub object: C::Kind,
    /// What is to be done beside that, in order.
    pub effects: Vec<Planned<C::Call>>,
    /// Events to record. An event accompanies a change: if this decision changes nothing, none is
    /// recorded.
    pub notes: Vec<Note>,
    /// What the object waits for; reported in its conditions.
    pub waits: Vec<Wait>,
    /// Requeue after this time at the latest, even if nothing happens.
    pub look_again: Option<Duration>,
}

/// What a failed effect means for the rest of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing after it is done: later effects build on it.
    Required,
    /// The rest goes on: nothing depends on it. Upstream's counterpart is a phase whose error is aggregated with those
    /// of the other phases.
    BestEffort,
}

/// An effect, and the events to record about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned<K> {
    pub effect: Effect<K>,
    /// What its failure means for the rest.
    pub need: Need,
    /// Recorded as an event once the effect has happened.
    pub note: Option<Note>,
    /// Recorded as an event if the effect fails, with the error after its message. Conflicts are expected and not
    /// recorded.
    pub failure: Option<Note>,
}

impl<K> Planned<K> {
    fn new(effect: Effect<K>, need: Need, note: Option<Note>) -> Self {
        Self { effect, need, note, failure: None }
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<K> {
    /// Create an object. One of the same name with the same controlling owner counts as created.
    Create {
        kind: KindName,
        /// The object, with `apiVersion` and `kind`.
        body: Value,
    },
    /// Change an object or one of its subresources.
    Patch {
        target: ObjectRef,
        /// `status` and the like.
        subresource: Option<&'static str>,
        patch: Patch,
    },
    /// Ask for the deletion of an object. One that is gone counts as deleted.
    Delete { target: ObjectRef, deletion: Deletion },
    /// Call something outside the API.
    Call(K),
    /// An effect that cannot be encoded; carrying it out fails.
    Impossible {
        /// Summary of the intended effect.
        what: String,
        /// Why it cannot be.
        why: String,
    },
}

impl<K> Effect<K> {
    pub fn create<T: Object>(object: &T) -> Self {
        match capstan_object::to_value(object) {
            Ok(body) => Self::Create { kind: T::KIND.into(), body },
            Err(error) => Self::impossible("create", object, &error),
        }
    }

    /// Applies an object (server-side), taking fields over from other managers.
    pub fn apply<T: Object>(object: &T) -> Self {
        match capstan_object::to_value(object) {
            Ok(body) => Self::Patch {
                target: ObjectRef::to(object),
                subresource: None,
                patch: Patch::Apply { body, force: true },
            },
            Err(error) => Self::impossible("apply", object, &error),
        }
    }

    /// Merges a change into an object, but only into the version given by `seen`.
    pub fn merge_guarded(target: ObjectRef, seen: &ObjectMeta, mut change: Value) -> Self {
        change["metadata"]["resourceVersion"] = seen.resource_version.as_str().into();
        Self::Patch { target, subresource: None, patch: Patch::Merge(change) }
    }

    /// Merges a change into an object, whatever its version.
    pub fn merge(target: ObjectRef, change: Value) -> Self {
        Self::Patch { target, subresource: None, patch: Patch::Merge(change) }
    }

    /// Merges a change into the status of another controller's object, but only into the version given by `seen`.
    pub fn merge_status_guarded(target: ObjectRef, seen: &ObjectMeta, status: &Value) -> Self {
        let change = json!({"metadata": {"resourceVersion": seen.resource_version}, "status": status});
        Self::Patch { target, subresource: Some("status"), patch: Patch::Merge(change) }
    }

    /// Deletes an object by uid, and its dependents in the background.
    pub fn delete<T: Object>(object: &T) -> Self {
        Self::delete_seen(ObjectRef::to(object), object.metadata())
    }

    /// Deletes an object of any kind by uid.
    pub fn delete_seen(target: ObjectRef, seen: &ObjectMeta) -> Self {
        let deletion = Deletion {
            uid: Some(seen.uid.clone()),
            propagation: Some(Propagation::Background),
            ..Deletion::default()
        };
        Self::Delete { target, deletion }
    }

    fn impossible<T: Object>(verb: &str, object: &T, error: &serde_json::Error) -> Self {
        Self::Impossible { what: format!("{verb} {}", ObjectRef::to(object)), why: error.to_string() }
    }
}

impl<K: Call> Effect<K> {
    /// Summary of the effect, the same for a retry.
    pub fn summary(&self) -> String {
        match self {
            Self::Create { kind, body } => {
                let name = body["metadata"]["name"].as_str().unwrap_or("(generated)");
                format!("create {kind} {name}")
            }
            Self::Patch { target, subresource, patch } => match subresource {
                Some(subresource) => format!("{} {target}/{subresource}", patch.verb()),
                None => format!("{} {target}", patch.verb()),
            },
            Self::Delete { target, .. } => format!("delete {target}"),
            Self::Call(call) => call.summary(),
            Self::Impossible { what, .. } => what.clone(),
        }
    }
}

/// Whether an event reports a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    Normal,
    Warning,
}

/// An event about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether something is wrong.
    pub kind: NoteKind,
    /// Machine-readable reason.
    pub reason: String,
    /// What was being done, one word.
    pub action: String,
    /// Message for people.
    pub message: String,
    /// Another object it concerns.
    pub related: Option<ObjectRef>,
}

impl Note {
    /// An event of regular operation.
    pub fn normal(reason: &str, action: &str, message: impl Into<String>) -> Self {
        Self {
            kind: NoteKind::Normal,
            reason: reason.to_owned(),
            action: action.to_owned(),
            message: message.into(),
            related: None,
        }
    }

    /// An event that reports a problem.
    pub fn warning(reason: &str, action: &str, message: impl Into<String>) -> Self {
        Self { kind: NoteKind::Warning, ..Self::normal(reason, action, message) }
    }
}

/// Something that is waited for, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Machine-readable reason.
    pub reason: String,
    /// Message for people.
    pub what: String,
    /// Since when, if the object's own state shows it; otherwise the runtime records when it was first reported.
    pub since: Option<Timestamp>,
    /// The next attempt, if its time is known.
    pub next: Option<Timestamp>,
    /// The object waited for.
    pub object: Option<ObjectRef>,
    /// The error that is waited out.
    pub code: Option<Code>,
}

impl Wait {
    /// Waits for something.
    pub fn on(reason: &str, what: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            what: what.into(),
            since: None,
            next: None,
            object: None,
            code: None,
        }
    }

    /// Names the object waited for.
    #[must_use]
    pub fn object(mut self, object: ObjectRef) -> Self {
        self.object = Some(object);
        self
    }

    /// Says since when.
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Names the error that is waited out.
    #[must_use]
    pub fn code(mut self, code: Code) -> Self {
        self.code = Some(code);
        self
    }
}

impl<C: Controller> Decision<C> {
    /// A decision that changes nothing, to start from.
    pub fn rest(look: &Look<C>) -> Self {
        Self {
            object: C::Kind::clone(&look.object),
            effects: Vec::new(),
            notes: Vec::new(),
            waits: Vec::new(),
            look_again: None,
        }
    }

    /// Adds a required effect.
    pub fn then(&mut self, effect: Effect<C::Call>) -> &mut Self {
        self.effects.push(Planned::new(effect, Need::Required, None));
        self
    }

    /// Adds a required effect with an event.
    pub fn then_noting(&mut self, effect: Effect<C::Call>, note: Note) -> &mut Self {
        self.effects.push(Planned::new(effect, Need::Required, Some(note)));
        self
    }

    /// Adds a best-effort effect: the rest of the decision is carried out even if it fails.
    pub fn best_effort(&mut self, effect: Effect<C::Call>) -> &mut Self {
        self.effects.push(Planned::new(effect, Need::BestEffort, None));
        self
    }

    /// Adds a best-effort effect with an event that is recorded if it succeeds.
    pub fn best_effort_noting(&mut self, effect: Effect<C::Call>, note: Note) -> &mut Self {
        self.effects.push(Planned::new(effect, Need::BestEffort, Some(note)));
        self
    }

    /// Names the event to record if the last effect fails; the error follows its message.
    pub fn or_noting(&mut self, failure: Note) -> &mut Self {
        if let Some(last) = self.effects.last_mut() {
            last.failure = Some(failure);
        }
        self
    }

    /// Adds a call.
    pub fn call(&mut self, call: C::Call) -> &mut Self {
        self.then(Effect::Call(call))
    }

    /// Puts a finalizer on the own object; returns whether it was there already.
    pub fn add_finalizer(&mut self, name: &str) -> bool {
        let finalizers = &mut self.object.metadata_mut().finalizers;
        let had = finalizers.iter().any(|finalizer| finalizer == name);
        if !had {
            finalizers.push(name.to_owned());
        }
        had
    }

    /// Removes a finalizer from the own object, after everything else of this decision.
    pub fn remove_finalizer(&mut self, name: &str) -> &mut Self {
        self.object.metadata_mut().finalizers.retain(|finalizer| finalizer != name);
        self
    }

    /// Adds something that is waited for.
    pub fn wait(&mut self, wait: Wait) -> &mut Self {
        self.waits.push(wait);
        self
    }

    /// Records an event, if this decision changes anything.
    pub fn note(&mut self, note: Note) -> &mut Self {
        self.notes.push(note);
        self
    }

    /// Requeues after a time at the latest; the earliest of several counts.
    pub fn again_in(&mut self, time: Duration) -> &mut Self {
        self.look_again = Some(self.look_again.map_or(time, |before| before.min(time)));
        self
    }

    /// Requeues at a moment at the latest, or at once if it has passed.
    pub fn again_at(&mut self, now: Timestamp, moment: Timestamp) -> &mut Self {
        let left = Duration::try_from(moment.duration_since(now)).unwrap_or_default();
        self.again_in(left)
    }
}
