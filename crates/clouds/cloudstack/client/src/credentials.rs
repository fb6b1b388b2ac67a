//! Keys, and how they change while the client runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use capstan_cloud_http::{Secret, redact};

/// The key pair of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    api_key: Secret,
    secret_key: Secret,
}

impl Credentials {
    /// Both keys, as `registerUserKeys` gives them.
    pub fn new(api_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self { api_key: Secret::new(api_key), secret_key: Secret::new(secret_key) }
    }

    /// Names the user.
    pub fn api_key(&self) -> &str {
        self.api_key.expose()
    }

    /// Signs in the user's name.
    pub fn secret_key(&self) -> &str {
        self.secret_key.expose()
    }

    /// A text of somebody else's without these keys in it.
    pub(crate) fn redact(&self, text: &str) -> String {
        redact(text, [self.api_key(), self.secret_key()])
    }
}

/// Where the keys come from, asked anew for every request.
pub trait CredentialSource: Send + Sync {
    /// The keys as they are now.
    fn current(&self) -> Arc<Credentials>;
}

impl CredentialSource for Credentials {
    fn current(&self) -> Arc<Credentials> {
        Arc::new(self.clone())
    }
}

/// Keys that somebody replaces while requests are under way.
#[derive(Debug)]
pub struct Rotating(ArcSwap<Credentials>);

impl Rotating {
    /// Begins with these keys.
    pub fn new(credentials: Credentials) -> Self {
        Self(ArcSwap::from_pointee(credentials))
    }

    /// From now on these keys; requests already sent keep theirs.
    pub fn replace(&self, credentials: Credentials) {
        self.0.store(Arc::new(credentials));
    }
}

impl CredentialSource for Rotating {
    fn current(&self) -> Arc<Credentials> {
        self.0.load_full()
    }
}
