//! The interface to the extension server that updates machines.

use std::pin::Pin;
use std::time::Duration;

use capstan_capi_types::runtime::Hook;
use capstan_controller::{ObserveError, View};
use capstan_object::{Key, ObjectMeta};
use serde_json::Value;

use super::coverage::Question;

/// A call under way.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, AskError>> + Send + 'a>>;

/// Asks the extension server that updates machines. One instance belongs to one controller, for its retries.
pub trait Updater: Send + Sync {
    /// Whether a server answers a hook for objects of the namespace of `object`. More than one is an error.
    fn answers<'a>(&'a self, view: &'a View, object: &'a Key, hook: Hook) -> Asking<'a, bool>;

    /// Asks whether a change can be made in place, on behalf of `object`: the fields that the server leaves to a new
    /// machine, none if it can. The response to a question about the same `subject` is reused for some minutes.
    fn can_update<'a>(
        &'a self,
        view: &'a View,
        object: &'a Key,
        hook: Hook,
        subject: &'a str,
        question: &'a Question,
    ) -> Asking<'a, Vec<String>>;

    /// Has the server update a machine, or asks how far it is. A server that wants to be asked later is not called
    /// before.
    fn update<'a>(
        &'a self,
        view: &'a View,
        machine: &'a ObjectMeta,
        request: &'a Value,
    ) -> Asking<'a, Progress>;

    /// Objects of the controller whose last question was not answered.
    fn waiting(&self) -> Vec<Key>;

    /// Drops what is kept about an object.
    fn forget(&self, object: &Key);
}

/// How far the update of a machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Done,
    /// The server is asked again after this time.
    Going {
        again: Duration,
        message: String,
    },
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub why: String,
    /// When it is asked again.
    pub again: Duration,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The server failed, or there is none: reported and retried.
    #[error("{}", .0.why)]
    Failed(Failure),
    /// The API server did not answer.
    #[error(transparent)]
    Observe(#[from] ObserveError),
}
