//! Authentication: client certificate, bearer token, or anonymous.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use capstan_env::Env;
use capstan_oidc::{Identity, Oidc};
use capstan_pki::{PeerIdentity, Subject};
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::tokens::{ServiceAccountTokens, TokenIdentity, check_bootstrap_token};
use super::{AUTHENTICATED, ObjectSource, UNAUTHENTICATED, User};
use crate::admission::Warnings;
use crate::status::{Result, Status};

const INVALID: &str = "invalid bearer token";

/// The client of a connection by its certificate.
#[derive(Debug)]
pub struct Peer {
    identity: PeerIdentity,
    /// The user that the certificate names: the same one for all requests of the connection.
    user: OnceLock<Arc<User>>,
}

impl Peer {
    pub fn new(identity: PeerIdentity) -> Self {
        Self { identity, user: OnceLock::new() }
    }

    /// The user at a moment; none if the certificate names none, an error if it cannot be trusted.
    fn user(&self, env: &Env) -> Result<Option<Arc<User>>, String> {
        let subject = self.identity.subject(env.now())?;
        Ok(subject.map(|subject| self.user.get_or_init(|| Arc::new(authenticated(user_of(subject)))).clone()))
    }
}

/// Authenticates requests.
pub struct Authenticator {
    tokens: Arc<ServiceAccountTokens>,
    source: Arc<dyn ObjectSource>,
    env: Env,
    /// Users of static tokens, by digest of the token.
    configured: HashMap<[u8; 32], User>,
    oidc: Option<Arc<Oidc>>,
    anonymous: bool,
}

impl Authenticator {
    /// Accepts ServiceAccount and bootstrap tokens. Requests without credentials are `system:anonymous`.
    pub fn new(tokens: Arc<ServiceAccountTokens>, source: Arc<dyn ObjectSource>, env: Env) -> Self {
        Self { tokens, source, env, configured: HashMap::new(), oidc: None, anonymous: true }
    }

    /// Adds a static token.
    #[must_use]
    pub fn with_token(mut self, token: &str, user: User) -> Self {
        self.configured.insert(Sha256::digest(token).into(), user);
        self
    }

    /// Accepts tokens of OpenID Connect issuers.
    #[must_use]
    pub fn with_oidc(mut self, oidc: Option<Arc<Oidc>>) -> Self {
        self.oidc = oidc;
        self
    }

    /// Fetches what [`Authenticator::authenticate`] needs to know of a request's token: keys of its issuer.
    pub async fn prepare(&self, headers: &HeaderMap) {
        if self.oidc.is_some()
            && let Some(token) = bearer_token(headers, &Warnings::default())
        {
            self.prepare_token(&token).await;
        }
    }

    /// The same for a token that [`Authenticator::check_token`] is about to check.
    pub async fn prepare_token(&self, token: &str) {
        if let Some(oidc) = &self.oidc {
            oidc.prepare(token).await;
        }
    }

    /// Rejects anonymous requests with 401.
    #[must_use]
    pub fn without_anonymous(mut self) -> Self {
        self.anonymous = false;
        self
    }

    pub fn tokens(&self) -> &Arc<ServiceAccountTokens> {
        &self.tokens
    }

    /// The user of a request. A certificate that names a user wins over a token. An invalid token is 401; without
    /// credentials the user is `system:anonymous`.
    pub fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: Option<&Peer>,
        warnings: &Warnings,
    ) -> Result<Arc<User>> {
        let mut failed = false;
        match peer.map(|peer| peer.user(&self.env)) {
            Some(Ok(Some(user))) => return Ok(user),
            Some(Err(error)) => {
                tracing::debug!(%error, "client certificate not accepted");
                failed = true;
            }
            Some(Ok(None)) | None => {}
        }
        if let Some(token) = bearer_token(headers, warnings) {
            match self.check_token(&token, self.tokens.audiences(), warnings) {
                Ok(identity) => return Ok(Arc::new(identity.user)),
                Err(error) => {
                    tracing::debug!(%error, "token not accepted");
                    failed = true;
                }
            }
        }
        if failed || !self.anonymous { Err(Status::unauthorized()) } else { Ok(Arc::new(User::anonymous())) }
    }

    /// The user of a token, for some audiences. The error text is shown by TokenReview.
    pub fn check_token(
        &self,
        token: &str,
        audiences: &[String],
        warnings: &Warnings,
    ) -> Result<TokenIdentity, String> {
        // Tokens without audiences are valid for the API only.
        let for_api = || -> Vec<String> {
            audiences.iter().filter(|a| self.tokens.audiences().contains(a)).cloned().collect()
        };
        let identity = |user: User| TokenIdentity { user: authenticated(user), audiences: for_api() };
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(user) = self.configured.get(&digest) {
            return Ok(identity(user.clone()));
        }
        match self.tokens.check(token, audiences, warnings) {
            Some(Ok(found)) => {
                return Ok(TokenIdentity { user: authenticated(found.user), ..found });
            }
            // Upstream has two authenticators for such a token, and both report an error.
            Some(Err(error)) => return Err(format!("[{INVALID}, {error}]")),
            None => {}
        }
        match self.oidc.as_ref().and_then(|oidc| oidc.check(token, self.env.now())) {
            Some(Ok(found)) => {
                let Identity { username, uid, groups, extra } = found;
                return Ok(identity(User { name: username, uid, groups, extra }));
            }
            Some(Err(error)) => return Err(format!("[{INVALID}, oidc: {error}]")),
            None => {}
        }
        match check_bootstrap_token(&*self.source, self.env.now(), token) {
            Some(user) => Ok(identity(user)),
            None => Err(INVALID.into()),
        }
    }
}

/// The user of a client certificate.
fn user_of(subject: &Subject) -> User {
    let mut user = User::new(&subject.name, &subject.groups);
    let id = format!("X509SHA256={}", subject.fingerprint);
    user.extra.insert("authentication.kubernetes.io/credential-id".into(), vec![id]);
    user
}

/// The bearer token of a request. As upstream, a malformed header counts as none.
fn bearer_token(headers: &HeaderMap, warnings: &Warnings) -> Option<Zeroizing<String>> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = value.splitn(3, ' ');
    let (scheme, token, rest) = (parts.next()?, parts.next()?, parts.next());
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    if token.is_empty() {
        if rest.is_some() {
            warnings.add(
                "the provided Authorization header contains extra space before the bearer token, and is ignored",
            );
        }
        return None;
    }
    Some(Zeroizing::new(token.to_owned()))
}

fn authenticated(mut user: User) -> User {
    if !user.in_group(AUTHENTICATED) && !user.in_group(UNAUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}
