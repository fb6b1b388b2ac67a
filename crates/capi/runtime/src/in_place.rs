//! The hooks with which a server updates machines in place. One server may have them; it is asked whether a change can be
//! made, and to make it.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::in_place::{AskError, Asking, Failure, Progress, Question, Updater};
use capstan_capi_types::runtime::Hook;
use capstan_controller::View;
use capstan_object::{Key, ObjectMeta};
use serde_json::Value;

use crate::extensions::{ExtensionError, Extensions, Reply};
use crate::registry::Registration;
use crate::retry::Retries;

/// Asks the server that updates machines, for one controller.
pub struct InPlaceUpdates {
    extensions: Arc<Extensions>,
    /// Objects of the controller whose question was not answered.
    retries: Retries,
}

impl InPlaceUpdates {
    pub fn new(extensions: Arc<Extensions>) -> Self {
        Self { extensions, retries: Retries::default() }
    }

    /// The handler of a hook; none if no server has it, or in a simulation.
    async fn handler(
        &self,
        view: &View,
        object_namespace: &str,
        hook: Hook,
    ) -> Result<Option<Registration>, ExtensionError> {
        let mut matching = self.extensions.matching(view, object_namespace, hook).await?;
        if matching.len() > 1 {
            let names: Vec<&str> = matching.iter().map(|it| it.handler.name.as_str()).collect();
            return Err(ExtensionError::Several { hook, handlers: names.join(",") });
        }
        Ok(matching.pop())
    }

    fn answered<T>(&self, object: &Key, answer: Result<T, ExtensionError>) -> Result<T, AskError> {
        match answer {
            Ok(answer) => {
                self.retries.succeeded(object);
                Ok(answer)
            }
            Err(ExtensionError::Api(error)) => Err(AskError::Observe(error.into())),
            Err(ExtensionError::Observe(error)) => Err(AskError::Observe(error)),
            Err(error) => {
                let again = self.retries.failed(object);
                Err(AskError::Failed(Failure { why: error.to_string(), again }))
            }
        }
    }

    async fn uncovered(
        &self,
        view: &View,
        object: &Key,
        hook: Hook,
        subject: &str,
        question: &Question,
    ) -> Result<Vec<String>, ExtensionError> {
        let handler = self.handler(view, &object.namespace, hook).await?;
        let handler = handler.ok_or(ExtensionError::NoHandler(hook))?;
        let uncovered = |reply: &Reply| {
            let response = reply.read::<Value>().map_err(|error| error.to_string())?;
            question.uncovered(&response)
        };
        self.extensions.checked(&handler, (subject, &question.request()), view.now(), uncovered).await
    }

    async fn progress(
        &self,
        view: &View,
        machine: &ObjectMeta,
        request: &Value,
    ) -> Result<Progress, ExtensionError> {
        // As lifecycle hooks pass.
        if self.extensions.is_simulated() {
            return Ok(Progress::Done);
        }
        let hook = Hook::UpdateMachine;
        let handler = self.handler(view, &machine.namespace, hook).await?;
        let handler = handler.ok_or(ExtensionError::NoHandler(hook))?;
        let handlers = std::slice::from_ref(&handler);
        let answer = self.extensions.call_unless_blocking(view, machine, handlers, hook, request).await?;
        Ok(match answer.is_blocking() {
            true => Progress::Going {
                again: Duration::from_secs(u64::from(answer.retry_after_seconds.unsigned_abs())),
                message: answer.message,
            },
            false => Progress::Done,
        })
    }
}

impl Updater for InPlaceUpdates {
    fn answers<'a>(&'a self, view: &'a View, object: &'a Key, hook: Hook) -> Asking<'a, bool> {
        Box::pin(async move {
            let handler = self.handler(view, &object.namespace, hook).await;
            // What the handler says decides whether the object is retried.
            match handler {
                Ok(Some(_)) => Ok(true),
                none_or_failed => self.answered(object, none_or_failed).map(|handler| handler.is_some()),
            }
        })
    }

    fn can_update<'a>(
        &'a self,
        view: &'a View,
        object: &'a Key,
        hook: Hook,
        subject: &'a str,
        question: &'a Question,
    ) -> Asking<'a, Vec<String>> {
        Box::pin(
            async move { self.answered(object, self.uncovered(view, object, hook, subject, question).await) },
        )
    }

    fn update<'a>(
        &'a self,
        view: &'a View,
        machine: &'a ObjectMeta,
        request: &'a Value,
    ) -> Asking<'a, Progress> {
        Box::pin(async move { self.answered(&machine.key(), self.progress(view, machine, request).await) })
    }

    fn waiting(&self) -> Vec<Key> {
        self.retries.waiting()
    }

    fn forget(&self, object: &Key) {
        self.retries.succeeded(object);
        self.extensions.forget(object);
    }
}
