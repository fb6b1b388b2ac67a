//! What a controller is.

use std::fmt;
use std::sync::Arc;

use capstan_object::{Key, Object};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::code::catalogue;
use crate::{ApiError, Code, Decision, Intent, Look, View, Watches};

/// Looks at objects of one kind and everything they depend on, decides what to do about them, and makes calls
/// outside the API. All the rest is the runtime's.
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
    /// What it reconciles.
    type Kind: Object + PartialEq;
    /// What it saw beside its own object.
    type Seen: Send + Sync;
    /// What it calls outside the API; [`NoCall`] for nothing.
    type Call: Call;

    /// Declares what wakes the controller beside its own objects, what it reads, and by which indexes.
    fn watches(&self, watches: &mut Watches<Self::Kind>);

    /// The types of the conditions this controller writes on its own objects. Others are left as they are.
    fn conditions(&self) -> &[&'static str] {
        &[]
    }

    /// Why nothing may be done about the object now, if so. The decision is still asked for, to say so in the
    /// object's status; its effects are not carried out. The annotation that the runtime is configured with
    /// always pauses.
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

    /// What is to be done. Must depend on nothing but `look` and `self`'s configuration, and must come to rest:
    /// once what it asked for is true, it asks for nothing.
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

    /// An object is gone: forget what is kept about it in memory.
    fn gone(&self, key: &Key) {
        let _ = key;
    }
}

/// A call outside the API: to a cloud, a workload cluster, a host. It is written into the journal, so it holds
/// no secrets: [`Controller::call`] reads those itself.
pub trait Call:
    Serialize + DeserializeOwned + Clone + PartialEq + fmt::Debug + Send + Sync + 'static
{
    /// Names the thing the call is about, the same for a retry of it: a deterministic name or tag in the cloud.
    fn idempotency_key(&self) -> String;

    /// The call creates or destroys something, so that losing its answer matters.
    fn journalled(&self) -> bool;

    /// What the call does, in a few words and without secrets, for traces, plans and events.
    fn summary(&self) -> String;
}

/// The calls of a controller that makes none.
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

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It happened; what is worth knowing of it, such as an id.
    Done(Value),
    /// It certainly did not happen.
    Failed(Error),
    /// It may have happened: the answer was lost, timed out or makes no sense. It is looked up before anything
    /// else is done.
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
    /// The code.
    pub code: Code,
    /// What happened, without secrets.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// What a look-up says about an open intent.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// It happened.
    Happened(Value),
    /// It did not happen and will not any more.
    DidNotHappen,
    /// It is not known yet: nothing is done about the object until it is.
    NotYetKnown {
        /// What the look-up waits for.
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
    NoIndex {
        /// Kind.
        kind: String,
        /// Index.
        index: String,
    },
    /// An object is there but not in the expected form.
    #[error("{kind} {key} cannot be read: {why}")]
    Unreadable {
        /// Kind.
        kind: String,
        /// Namespace and name.
        key: Key,
        /// What is wrong with it.
        why: String,
    },
    /// The API server did not answer or refused.
    #[error("reading from the API server failed")]
    Api(#[from] ApiError),
    /// Something outside the API could not be read.
    #[error("{code}: {message}")]
    Outside {
        /// The code.
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
