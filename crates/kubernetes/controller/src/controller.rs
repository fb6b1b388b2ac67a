//! What a controller is.

use std::fmt;
use std::sync::Arc;

use capstan_object::{Key, Object};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::code::catalogue;
use crate::{ApiError, Code, Decision, Intent, Look, View, Watches};

/// Observes objects of one kind and everything they depend on, decides what to do, and makes calls outside the API. The
/// runtime does the rest.
///
/// ```text
/// observe: own object + View ──▶ Seen        reads, may be slow, changes nothing
/// decide:  Look { object, seen, now, … } ──▶ Decision        pure: no I/O, no clock, no randomness
/// call:    one cloud or workload call ──▶ Outcome        makes no choices
/// resolve: an open intent ──▶ Resolution        the outcome of a call whose response was lost
/// ```
pub trait Controller: Send + Sync + Sized + 'static {
    /// The controller's name: in metrics, logs, events and as field manager.
    const NAME: &'static str;
    /// The kind that the controller reconciles.
    type Kind: Object + PartialEq;
    /// What it saw beside its own object.
    type Seen: Send + Sync;
    /// What it calls outside the API; [`NoCall`] for nothing.
    type Call: Call;

    /// Declares watches beside those of its own objects, the kinds it reads, and their indexes.
    fn watches(&self, watches: &mut Watches<Self::Kind>);

    /// The types of the conditions this controller writes on its own objects. Others are left as they are.
    fn conditions(&self) -> &[&'static str] {
        &[]
    }

    /// Why the object is paused, if it is. A decision is still made, so that status can report it; its effects are not
    /// carried out. The annotation in the runtime's options always pauses.
    fn paused(&self, object: &Self::Kind, view: &View) -> Result<Option<String>, ObserveError> {
        let _ = (object, view);
        Ok(None)
    }

    /// Reads everything the decision needs, once.
    fn observe(
        &self,
        object: &Arc<Self::Kind>,
        view: &View,
    ) -> impl Future<Output = Result<Self::Seen, ObserveError>> + Send;

    /// The decision. Must depend on nothing but `look` and the configuration in `self`, and must converge: once the desired
    /// state is reached, it has no effects.
    fn decide(&self, look: &Look<Self>) -> Decision<Self>;

    /// Makes one call for an object. The intent of a call that creates or destroys has been recorded.
    fn call(
        &self,
        call: &Self::Call,
        object: &Arc<Self::Kind>,
        view: &View,
    ) -> impl Future<Output = Outcome> + Send {
        let _ = (call, object, view);
        async { Outcome::failed(catalogue::CALL_UNSUPPORTED, format!("{} makes no calls", Self::NAME)) }
    }

    /// Looks up the outcome of a call whose response was lost: the process died, or the connection broke. Must
    /// not change anything.
    fn resolve(
        &self,
        intent: &Intent<Self::Call>,
        object: &Arc<Self::Kind>,
        view: &View,
    ) -> impl Future<Output = Result<Resolution, ObserveError>> + Send {
        let _ = (intent, object, view);
        async { Ok(Resolution::DidNotHappen) }
    }

    /// An object is gone: drop what is kept about it in memory.
    fn gone(&self, key: &Key) {
        let _ = key;
    }
}

/// A call outside the API: to a cloud, a workload cluster, a host. It is written into the journal, so it holds
/// no secrets: [`Controller::call`] reads those itself.
pub trait Call:
    Serialize + DeserializeOwned + Clone + PartialEq + fmt::Debug + Send + Sync + 'static
{
    /// The resource that the call concerns, the same for a retry: a deterministic name or tag in the cloud.
    fn idempotency_key(&self) -> String;

    /// The call creates or destroys something, so a lost response has to be resolved.
    fn journalled(&self) -> bool;

    /// Summary of the call without secrets, for traces, plans and events.
    fn summary(&self) -> String;
}

/// For a controller without calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum NoCall {}

impl Call for NoCall {
    fn idempotency_key(&self) -> String {
        match *self {}
    }

    fn journalled(&self) -> bool {
        match *self {}
    }

    fn summary(&self) -> String {
        match *self {}
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It happened, with its result, such as an id.
    Done(Value),
    /// It certainly did not happen.
    Failed(Error),
    /// It may have happened: the response was lost, late or invalid. It is looked up before anything else is done.
    Unknown(Error),
}

impl Outcome {
    /// It happened and has no result.
    pub fn done() -> Self {
        Self::Done(Value::Null)
    }

    /// It certainly did not happen.
    pub fn failed(code: Code, message: impl Into<String>) -> Self {
        Self::Failed(Error { code, message: message.into() })
    }

    /// It may have happened.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(Error { code: catalogue::CALL_UNKNOWN, message: message.into() })
    }
}

/// An error with its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    /// What happened, without secrets.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// Result of looking up an open intent.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    Happened(Value),
    /// It did not happen and will not.
    DidNotHappen,
    /// Not known yet. Nothing is done for the object until it is.
    NotYetKnown {
        /// What the look-up waits for, for the condition.
        reason: String,
    },
}

/// Why observing failed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A controller reads a kind that it did not declare.
    #[error("{0} are read but not watched: declare them in `watches`")]
    NotWatched(String),
    /// A controller reads an index that it did not declare.
    #[error("{kind} have no index {index:?}: declare it in `watches`")]
    NoIndex { kind: String, index: String },
    /// An object does not have the expected shape.
    #[error("{kind} {key} cannot be read: {why}")]
    Unreadable { kind: String, key: Key, why: String },
    /// The API server did not respond or refused the request.
    #[error("reading from the API server failed")]
    Api(#[from] ApiError),
    /// Something outside the API could not be read.
    #[error("{code}: {message}")]
    Outside {
        code: Code,
        /// What happened, without secrets.
        message: String,
    },
}

impl ObserveError {
    /// Something outside the API could not be read.
    pub fn outside(code: Code, message: impl Into<String>) -> Self {
        Self::Outside { code, message: message.into() }
    }
}
