//! Keys, and how they change while the client runs.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize, Serializer};

/// What stands in place of a secret wherever one might be seen.
const REDACTED: &str = "[redacted]";

/// Text that shows itself only to whoever asks for it by name.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

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
        let mut text = text.to_owned();
        for key in [self.api_key(), self.secret_key()] {
            if !key.is_empty() && text.contains(key) {
                text = text.replace(key, REDACTED);
            }
        }
        text
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
