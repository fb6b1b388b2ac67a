//! Who asks, and for what: the body of a request for a token.

use serde_json::{Value, json};

use capstan_cloud_http::Secret;

/// A domain, by id or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainRef {
    /// By id, such as `default`.
    Id(String),
    /// By name, such as `Default`.
    Name(String),
}

/// A user, by id or by name. Names are unique within a domain only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserRef {
    /// By id.
    Id(String),
    /// By name in a domain.
    Name(String, DomainRef),
}

/// A project, by id or by name. Names are unique within a domain only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectRef {
    /// By id.
    Id(String),
    /// By name in a domain.
    Name(String, DomainRef),
}

/// What a token is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// Keystone chooses the user's default project, if there is one.
    #[default]
    Default,
    /// A project.
    Project(ProjectRef),
    /// A domain.
    Domain(DomainRef),
    /// The whole cloud.
    System,
    /// What somebody else entrusted to the user: the id of the trust.
    Trust(String),
}

/// How to prove who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user's password.
    Password {
        /// Who.
        user: UserRef,
        /// The password.
        password: Secret,
        /// What for.
        scope: Scope,
    },
    /// A secret made for a program. It knows its project: Keystone refuses a scope beside it.
    ApplicationCredential {
        /// The credential's id.
        id: String,
        /// Secret of the credentials.
        secret: Secret,
    },
    /// The same by name, which is unique within a user only.
    NamedApplicationCredential {
        /// Whose.
        user: UserRef,
        /// The credential's name.
        name: String,
        /// Secret of the credentials.
        secret: Secret,
    },
    /// A token. When it ends, there is no other.
    Token {
        /// The token.
        token: Secret,
        /// What for; a token of an application credential has its scope already.
        scope: Scope,
    },
}

impl DomainRef {
    fn body(&self) -> Value {
        match self {
            Self::Id(id) => json!({ "id": id }),
            Self::Name(name) => json!({ "name": name }),
        }
    }
}

impl UserRef {
    fn body(&self) -> Value {
        match self {
            Self::Id(id) => json!({ "id": id }),
            Self::Name(name, domain) => json!({ "name": name, "domain": domain.body() }),
        }
    }
}

impl Scope {
    fn body(&self) -> Option<Value> {
        Some(match self {
            Self::Default => return None,
            Self::Project(ProjectRef::Id(id)) => json!({ "project": { "id": id } }),
            Self::Project(ProjectRef::Name(name, domain)) => {
                json!({ "project": { "name": name, "domain": domain.body() } })
            }
            Self::Domain(domain) => json!({ "domain": domain.body() }),
            Self::System => json!({ "system": { "all": true } }),
            Self::Trust(id) => json!({ "OS-TRUST:trust": { "id": id } }),
        })
    }
}

impl Credentials {
    /// The body of `POST /v3/auth/tokens`. It holds the secret.
    pub(crate) fn body(&self) -> Value {
        let (identity, scope) = match self {
            Self::Password { user, password, scope } => {
                let mut user = user.body();
                user["password"] = password.expose().into();
                (json!({ "methods": ["password"], "password": { "user": user } }), scope.body())
            }
            Self::ApplicationCredential { id, secret } => {
                let credential = json!({ "id": id, "secret": secret.expose() });
                (json!({ "methods": ["application_credential"], "application_credential": credential }), None)
            }
            Self::NamedApplicationCredential { user, name, secret } => {
                let credential = json!({ "name": name, "user": user.body(), "secret": secret.expose() });
                (json!({ "methods": ["application_credential"], "application_credential": credential }), None)
            }
            Self::Token { token, scope } => {
                (json!({ "methods": ["token"], "token": { "id": token.expose() } }), scope.body())
            }
        };
        let mut auth = json!({ "identity": identity });
        if let Some(scope) = scope {
            auth["scope"] = scope;
        }
        json!({ "auth": auth })
    }

    /// What must not appear in anybody's text.
    pub(crate) fn secret(&self) -> &Secret {
        match self {
            Self::Password { password, .. } => password,
            Self::ApplicationCredential { secret, .. } | Self::NamedApplicationCredential { secret, .. } => {
                secret
            }
            Self::Token { token, .. } => token,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_the_body_that_keystone_reads() {
        let alice = || UserRef::Name("alice".to_owned(), DomainRef::Name("Default".to_owned()));
        let project = ProjectRef::Name("p1".to_owned(), DomainRef::Id("default".to_owned()));
        let secret = || Secret::new("s3cret");
        let password = |scope| Credentials::Password { user: alice(), password: secret(), scope };
        let user = json!({ "name": "alice", "domain": { "name": "Default" } });
        let with_password = json!({ "name": "alice", "domain": { "name": "Default" }, "password": "s3cret" });
        let identity = json!({ "methods": ["password"], "password": { "user": with_password } });
        let table = [
            (
                password(Scope::Project(project)),
                json!({ "identity": identity, "scope": { "project": { "name": "p1", "domain": { "id": "default" } } } }),
            ),
            (password(Scope::Default), json!({ "identity": identity })),
            (
                password(Scope::Domain(DomainRef::Id("d".to_owned()))),
                json!({ "identity": identity, "scope": { "domain": { "id": "d" } } }),
            ),
            (
                password(Scope::System),
                json!({ "identity": identity, "scope": { "system": { "all": true } } }),
            ),
            (
                password(Scope::Trust("t".to_owned())),
                json!({ "identity": identity, "scope": { "OS-TRUST:trust": { "id": "t" } } }),
            ),
            (
                Credentials::ApplicationCredential { id: "i".to_owned(), secret: secret() },
                json!({ "identity": {
                    "methods": ["application_credential"],
                    "application_credential": { "id": "i", "secret": "s3cret" },
                } }),
            ),
            (
                Credentials::NamedApplicationCredential {
                    user: alice(),
                    name: "n".to_owned(),
                    secret: secret(),
                },
                json!({ "identity": {
                    "methods": ["application_credential"],
                    "application_credential": { "name": "n", "user": user, "secret": "s3cret" },
                } }),
            ),
            (
                Credentials::Token { token: secret(), scope: Scope::Project(ProjectRef::Id("p".to_owned())) },
                json!({
                    "identity": { "methods": ["token"], "token": { "id": "s3cret" } },
                    "scope": { "project": { "id": "p" } },
                }),
            ),
        ];
        for (credentials, auth) in table {
            assert_eq!(credentials.body(), json!({ "auth": auth }));
            assert!(!format!("{credentials:?}").contains("s3cret"));
        }
    }
}
