//! The token: got once for all requests, replaced before it ends and after a 401.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use capstan_cloud_http::Secret;
use http::Method;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::auth::Credentials;
use crate::client::{Body, Call, Client};
use crate::error::{Class, Effect, Error, ErrorKind, Refusal};
use crate::service::Service;
use crate::token::{Token, TokenBody};

/// What all requests of a client share of its token.
#[derive(Default)]
pub(crate) struct Session {
    current: ArcSwapOption<Token>,
    /// Held while a token is asked for, so that one request does it for all.
    renewal: Mutex<Option<RefusedAt>>,
    /// Keystone failed while the token was still good; until then the token is used as it is.
    held_off: parking_lot::Mutex<Option<Instant>>,
}

/// When Keystone refused the credentials, and what it said.
struct RefusedAt {
    until: Instant,
    refusal: Refusal,
}

impl Client {
    /// The token in use; a new one if there is none or it ends soon. While Keystone is down, the old one serves to its
    /// end.
    pub async fn token(&self) -> Result<Arc<Token>, Error> {
        let session = &self.inner.session;
        let is_good =
            |token: &Arc<Token>| !token.is_due((self.inner.clock)(), self.inner.policy.renew_before);
        if let Some(token) = session.current.load_full().filter(is_good) {
            return Ok(token);
        }
        let is_usable = |token: &Arc<Token>| !token.is_due((self.inner.clock)(), Duration::ZERO);
        let is_held_off = || session.held_off.lock().is_some_and(|until| until > Instant::now());
        if let Some(token) = session.current.load_full().filter(is_usable).filter(|_| is_held_off()) {
            return Ok(token);
        }
        let mut refused = session.renewal.lock().await;
        // Somebody else got it, or failed, while this one waited.
        let current = session.current.load_full();
        if let Some(token) =
            current.clone().filter(|token| is_good(token) || is_usable(token) && is_held_off())
        {
            return Ok(token);
        }
        match (self.authenticate(&mut refused).await, current.filter(is_usable)) {
            (Err(error), Some(token)) if error.is_retryable() => {
                tracing::warn!(%error, "the token cannot be renewed yet");
                *session.held_off.lock() = Some(Instant::now() + self.inner.policy.refusal_pause);
                Ok(token)
            }
            (outcome, _) => outcome,
        }
    }

    /// Another token than this one, which a service refused.
    pub(crate) async fn another_token(&self, refused_token: &Arc<Token>) -> Result<Arc<Token>, Error> {
        let session = &self.inner.session;
        let mut refused = session.renewal.lock().await;
        if let Some(token) = session.current.load_full().filter(|token| token.value != refused_token.value) {
            return Ok(token);
        }
        self.authenticate(&mut refused).await
    }

    async fn authenticate(&self, refused: &mut Option<RefusedAt>) -> Result<Arc<Token>, Error> {
        let credentials = &self.inner.cloud.credentials;
        let call = Call {
            service: Service::Identity,
            method: Method::POST,
            path: "auth/tokens".to_owned(),
            query: Vec::new(),
            body: Body::Json(Bytes::from(credentials.body().to_string())),
            wanted: None,
            // A second token is of no harm.
            effect: Effect::Read,
        };
        if let Some(before) = &*refused {
            let again_in = before.until.saturating_duration_since(Instant::now());
            if !again_in.is_zero() {
                let kind = ErrorKind::RefusedBefore { refusal: before.refusal.clone(), again_in };
                return Err(call.error(kind));
            }
        }
        if self.is_over(credentials) {
            return Err(call.error(ErrorKind::TokenExpired));
        }
        let token = match self.ask_for_token(&call).await {
            Ok(token) => Arc::new(token),
            Err(error) => {
                if let (Class::Credentials, Some(refusal)) = (error.class(), error.refusal()) {
                    let until = Instant::now() + self.inner.policy.refusal_pause;
                    *refused = Some(RefusedAt { until, refusal: refusal.clone() });
                }
                return Err(error);
            }
        };
        *refused = None;
        self.inner.session.current.store(Some(token.clone()));
        Ok(token)
    }

    /// A token that was given ends with the one that was got for it.
    fn is_over(&self, credentials: &Credentials) -> bool {
        let now = (self.inner.clock)();
        let ended = |token: Arc<Token>| token.is_due(now, Duration::ZERO);
        matches!(credentials, Credentials::Token { .. })
            && self.inner.session.current.load_full().is_some_and(ended)
    }

    async fn ask_for_token(&self, call: &Call) -> Result<Token, Error> {
        let url = call.url(&self.inner.cloud.identity_url);
        let reply = self.send_with(call, &url, None, None).await.map_err(credentials_refused)?;
        let unreadable = |why: String| {
            call.error(ErrorKind::Unreadable { status: reply.status, why: crate::fault::tidy(&why) })
        };
        let value = reply.headers.get("x-subject-token").and_then(|value| value.to_str().ok());
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return Err(unreadable("there is no X-Subject-Token; auth_url must be Keystone's".to_owned()));
        };
        let body: TokenBody =
            serde_json::from_slice(&reply.body).map_err(|error| unreadable(error.to_string()))?;
        Ok(Token { value: Secret::new(value), description: body.token })
    }
}

/// Keystone says 404 of an application credential that was deleted and of a token that is none.
fn credentials_refused(mut error: Error) -> Error {
    if let ErrorKind::Refused(refusal) = &mut *error.kind
        && matches!(refusal.class, Class::NotFound | Class::Permission)
    {
        refusal.class = Class::Credentials;
    }
    error
}
