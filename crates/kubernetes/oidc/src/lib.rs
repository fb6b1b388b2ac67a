//! Users from OpenID Connect issuers, configured as `apiserver.config.k8s.io/v1` AuthenticationConfiguration.
//!
//! ```text
//! token ──▶ issuer of `iss` ──▶ signature, by the issuer's published keys ──▶ expiry, audience, claim rules
//!                                    ▲                                            └─▶ user by claims or CEL, user rules
//!                     discovery ─▶ JWKS, fetched when a token needs a key that is not known
//! ```
//!
//! A token of another issuer is nobody's here: other ways to authenticate are tried.

mod config;
#[cfg(test)]
mod fuzz;
mod issuer;
mod keys;
mod mapping;
mod token;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use config::ConfigError;
use issuer::Issuer;
pub use token::Token;

/// A user, as the claims of a token describe them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub username: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The configured issuers.
pub struct Oidc {
    issuers: Vec<Issuer>,
}

impl Oidc {
    /// Reads an AuthenticationConfiguration. Nothing is fetched yet.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Ok(Self { issuers: config::parse(text)? })
    }

    /// URLs of the issuers.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(Issuer::url)
    }

    fn issuer_of<'t>(&self, text: &'t str) -> Option<(&Issuer, Token<'t>)> {
        let token = Token::parse(text)?;
        let issuer = self.issuers.iter().find(|issuer| issuer.url() == token.issuer())?;
        Some((issuer, token))
    }

    /// Fetches the keys of a token's issuer, if they are not known. Call it before [`Oidc::check`].
    pub async fn prepare(&self, token: &str) {
        if let Some((issuer, token)) = self.issuer_of(token) {
            issuer.fetch_key(&token).await;
        }
    }

    /// The user of a token; `None` if it is of no configured issuer. The error contains nothing of the token.
    pub fn check(&self, token: &str, now: Timestamp) -> Option<Result<Identity, String>> {
        let (issuer, token) = self.issuer_of(token)?;
        Some(issuer.check(token, now))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]
mod tests;
