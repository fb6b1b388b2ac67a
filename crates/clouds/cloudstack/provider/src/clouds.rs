//! The clouds that failure domains name: one endpoint per management server, one set of keys per Secret.
//!
//! ```text
//! acsEndpoint ─▶ Secret {api-url, api-key, secret-key, verify-ssl} ─▶ Endpoint ─▶ Client ─▶ Access {client, owner}
//!                   │ watched: a new version replaces the keys
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_cloudstack_client::commands::{ListAccounts, ListProjects, Owner, Scope};
use capstan_cloudstack_client::{
    Client, Clock, Credentials, Endpoint, Https, HttpsOptions, Limits, Rotating, Transport, Trust,
    render_metrics,
};
use capstan_cloudstack_types::v1beta3::{CloudStackFailureDomainSpec, SecretReference};
use capstan_controller::View;
use capstan_object::Key;
use capstan_provider_kit::{Secret, SecretOutline};
use parking_lot::Mutex;

use crate::account_cache::AccountCache;
use crate::code;
use crate::error::CloudError;
use crate::named::named;

/// How servers are reached.
pub trait Connect: Send + Sync {
    /// A way to the server of a URL; `trust` says whose certificates are believed.
    fn transport(&self, url: &str, trust: Trust) -> Result<Arc<dyn Transport>, String>;

    /// The clock that signatures expire by.
    fn clock(&self) -> Clock {
        Arc::new(jiff::Timestamp::now)
    }
}

pub struct OverNetwork;

impl Connect for OverNetwork {
    fn transport(&self, _: &str, trust: Trust) -> Result<Arc<dyn Transport>, String> {
        let options = HttpsOptions { trust, ..HttpsOptions::default() };
        Ok(Arc::new(Https::new(&options).map_err(|error| error.to_string())?))
    }
}

/// The clouds of a process. Clones are the same.
#[derive(Clone)]
pub struct Clouds(Arc<Inner>);

struct Inner {
    connect: Arc<dyn Connect>,
    endpoints: Mutex<BTreeMap<(String, bool), Arc<Endpoint>>>,
    held: Mutex<BTreeMap<Key, Held>>,
}

/// What is held for a Secret.
#[derive(Clone)]
struct Held {
    /// Version of the Secret that the keys are from.
    version: String,
    /// URL of the server, and whether its certificate is verified.
    location: (String, bool),
    keys: Arc<Rotating>,
    client: Client,
    tenants: Arc<Mutex<BTreeMap<Tenancy, Tenant>>>,
}

/// For whom a failure domain works, in the manifest's words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tenancy {
    pub account: String,
    pub domain: String,
    pub project: String,
}

impl Tenancy {
    pub fn of(domain: &CloudStackFailureDomainSpec) -> Self {
        Self {
            account: domain.account.clone(),
            domain: domain.domain.clone(),
            project: domain.project.clone(),
        }
    }
}

#[derive(Clone)]
struct Tenant {
    owner: Owner,
    cache: Arc<AccountCache>,
}

/// The cloud, as one failure domain sees it.
#[derive(Clone)]
pub(crate) struct Access {
    pub client: Client,
    /// For whom things are made.
    pub owner: Owner,
    pub cache: Arc<AccountCache>,
    /// Where the keys are from.
    pub secret: Key,
}

impl Access {
    /// Whose things are listed.
    pub fn scope(&self) -> Scope {
        Scope::of(self.owner.clone())
    }

    /// What an error means.
    pub fn explain(&self, error: &capstan_cloudstack_client::Error) -> CloudError {
        CloudError::of(error, &self.secret)
    }
}

/// The Secret that a reference names.
pub(crate) fn secret_of(reference: &SecretReference) -> Key {
    Key::new(reference.namespace.as_str(), reference.name.as_str())
}

impl Clouds {
    /// Clouds reached by `connect`.
    pub fn new(connect: Arc<dyn Connect>) -> Self {
        Self(Arc::new(Inner { connect, endpoints: Mutex::default(), held: Mutex::default() }))
    }

    /// How servers are reached.
    pub(crate) fn connect(&self) -> Arc<dyn Connect> {
        self.0.connect.clone()
    }

    /// What was asked of all servers so far, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let endpoints = self.0.endpoints.lock();
        let urls: Vec<String> = endpoints.values().map(|endpoint| endpoint.url()).collect();
        render_metrics(
            urls.iter().map(String::as_str).zip(endpoints.values().map(|endpoint| &**endpoint.metrics())),
        )
    }

    /// Requests sent so far, over all servers.
    pub fn requests(&self) -> u64 {
        self.0.endpoints.lock().values().map(|endpoint| endpoint.metrics().all_calls()).sum()
    }

    /// The cloud of a failure domain.
    pub(crate) async fn access(
        &self,
        domain: &CloudStackFailureDomainSpec,
        view: &View,
    ) -> Result<Access, CloudError> {
        let secret = secret_of(&domain.acs_endpoint);
        let held = self.held(&secret, view).await?;
        let tenancy = Tenancy::of(domain);
        let known = held.tenants.lock().get(&tenancy).cloned();
        let tenant = match known {
            Some(tenant) => tenant,
            None => {
                let owner = owner(&held.client, &tenancy, &secret).await?;
                let fresh = Tenant { owner, cache: Arc::default() };
                held.tenants.lock().entry(tenancy).or_insert(fresh).clone()
            }
        };
        Ok(Access { client: held.client, owner: tenant.owner, cache: tenant.cache, secret })
    }

    /// A client of a failure domain's cloud, whose things it lists, and the URL it calls. For front ends, which only ask.
    pub async fn asking(
        &self,
        domain: &CloudStackFailureDomainSpec,
        view: &View,
    ) -> Result<(Client, Scope, String), CloudError> {
        let access = self.access(domain, view).await?;
        let url = self.held(&access.secret, view).await?.location.0;
        let scope = access.scope();
        Ok((access.client, scope, url))
    }

    /// A client with the keys of a Secret, and for whom a failure domain works. Nothing is held.
    pub(crate) async fn open(
        &self,
        domain: &CloudStackFailureDomainSpec,
        content: &Secret,
    ) -> Result<(Client, Owner), CloudError> {
        let secret = secret_of(&domain.acs_endpoint);
        let (url, keys, verify) = parse(content, &secret)?;
        let client = Client::new(self.endpoint(&(url, verify), &secret)?, Arc::new(Rotating::new(keys)));
        let tenancy = Tenancy::of(domain);
        let owner = owner(&client, &tenancy, &secret).await?;
        Ok((client, owner))
    }

    /// What is held for a Secret, with its keys of this moment.
    async fn held(&self, secret: &Key, view: &View) -> Result<Held, CloudError> {
        let missing = || {
            let message = format!(
                "there is no Secret {secret}: make it with the fields api-url, api-key and secret-key, or correct acsEndpoint"
            );
            CloudError::new(code::SECRET, "SecretMissing", message)
        };
        let outline = view.get::<SecretOutline>(secret)?.ok_or_else(missing)?;
        let version = &outline.metadata.resource_version;
        if let Some(held) = self.0.held.lock().get(secret).filter(|held| held.version == *version) {
            return Ok(held.clone());
        }
        let read = view.client().get::<Secret>(secret).await;
        let read = read.map_err(|error| {
            CloudError::new(
                code::SECRET,
                "SecretUnreadable",
                format!("Secret {secret} cannot be read: {error}"),
            )
        })?;
        let content = read.ok_or_else(missing)?;
        let (url, keys, verify) = parse(&content, secret)?;
        let location = (url, verify);
        let endpoint = self.endpoint(&location, secret)?;
        let mut all = self.0.held.lock();
        match all.get_mut(secret).filter(|held| held.location == location) {
            Some(held) => {
                held.keys.replace(keys);
                held.version = content.metadata.resource_version;
                // Other keys may be another account's.
                held.tenants = Arc::default();
                Ok(held.clone())
            }
            None => {
                let keys = Arc::new(Rotating::new(keys));
                let client = Client::new(endpoint, keys.clone());
                let version = content.metadata.resource_version;
                let held = Held { version, location, keys, client, tenants: Arc::default() };
                all.insert(secret.clone(), held.clone());
                Ok(held)
            }
        }
    }

    fn endpoint(&self, location: &(String, bool), secret: &Key) -> Result<Arc<Endpoint>, CloudError> {
        let mut endpoints = self.0.endpoints.lock();
        if let Some(endpoint) = endpoints.get(location) {
            return Ok(endpoint.clone());
        }
        let (url, verify) = location;
        let wrong = |why: String| {
            CloudError::new(code::SECRET, "SecretInvalid", format!("field api-url of Secret {secret}: {why}"))
        };
        let trust = if *verify { Trust::System } else { Trust::Anyone };
        let transport = self.0.connect.transport(url, trust).map_err(wrong)?;
        let endpoint =
            Endpoint::new(url, transport, Limits::default()).map_err(|error| wrong(error.to_string()))?;
        let endpoint = Arc::new(endpoint.with_clock(self.0.connect.clock()));
        endpoints.insert(location.clone(), endpoint.clone());
        Ok(endpoint)
    }
}

/// URL, keys, and whether certificates are checked, as CAPC reads them: only `false` means no.
fn parse(content: &Secret, secret: &Key) -> Result<(String, Credentials, bool), CloudError> {
    let field = |name: &str| {
        let text = content.data.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(|| {
            let message = format!("Secret {secret} has no text in its field {name}: fill it in");
            CloudError::new(code::SECRET, "SecretIncomplete", message)
        })
    };
    let keys = Credentials::new(field("api-key")?, field("secret-key")?);
    let verify = content.data.get("verify-ssl").is_none_or(|value| value.trim_ascii() != b"false");
    Ok((field("api-url")?, keys, verify))
}

/// For whom things are made. Asks nothing that an ordinary user may not ask.
async fn owner(client: &Client, tenancy: &Tenancy, secret: &Key) -> Result<Owner, CloudError> {
    let explain = |error: capstan_cloudstack_client::Error| CloudError::of(&error, secret);
    let not_found = |what: String| CloudError::new(code::NOT_FOUND, "NotFound", what);
    if !tenancy.project.is_empty() {
        let question = ListProjects { name: Some(tenancy.project.clone()), ..ListProjects::default() };
        let found = client.list(&question).await.map_err(explain)?;
        let project =
            named(&found, &tenancy.project, |project| Some(project.name.as_str())).into_iter().next();
        return project.map(|project| Owner::project(project.id.clone())).ok_or_else(|| {
            not_found(format!(
                "there is no project {:?} that the user of Secret {secret} is in: correct project of the failure domain",
                tenancy.project
            ))
        });
    }
    if tenancy.account.is_empty() {
        return Ok(Owner::default());
    }
    let name = Some(tenancy.account.clone());
    let question = ListAccounts { name, listall: Some(true), ..ListAccounts::default() };
    let found = client.list(&question).await.map_err(explain)?;
    let wanted = path(&tenancy.domain);
    let mut fitting = found.into_iter().filter(|account| {
        let domain = account.domainpath.as_deref().or(account.domain.as_deref()).unwrap_or_default();
        account.name == tenancy.account && (tenancy.domain.is_empty() || path(domain) == wanted)
    });
    let shown = match tenancy.domain.as_str() {
        "" => format!("account {:?}", tenancy.account),
        domain => format!("account {:?} in domain {domain:?}", tenancy.account),
    };
    let Some(account) = fitting.next() else {
        let mend = "correct account and domain of the failure domain";
        return Err(not_found(format!("could not find {shown} with the keys of Secret {secret}: {mend}")));
    };
    if fitting.next().is_some() {
        let message = format!("there is more than one {shown}: name its domain in the failure domain");
        return Err(CloudError::new(code::AMBIGUOUS, "Ambiguous", message));
    }
    match account.domainid {
        Some(domain) => Ok(Owner::account(account.name, domain)),
        None => Ok(Owner::default()),
    }
}

/// A path of domains without its root, however it is written.
fn path(text: &str) -> &str {
    let text = text.trim_matches('/');
    match text.strip_prefix("ROOT") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(fields: &[(&str, &str)]) -> Secret {
        let data = fields.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        Secret { data: data.collect(), ..Secret::default() }
    }

    #[test]
    fn keys_are_read_as_capc_reads_them_and_what_is_missing_is_named() {
        let key = Key::new("default", "keys");
        let whole = [("api-url", "https://cloud/client/api\n"), ("api-key", "a"), ("secret-key", "s")];
        let (url, keys, verify) = parse(&secret(&whole), &key).expect("complete");
        assert_eq!((url.as_str(), keys.api_key(), keys.secret_key()), ("https://cloud/client/api", "a", "s"));
        assert!(verify);
        for (value, verified) in [("false", false), ("true", true), ("no", true)] {
            let mut fields = whole.to_vec();
            fields.push(("verify-ssl", value));
            assert_eq!(parse(&secret(&fields), &key).expect("complete").2, verified, "{value}");
        }
        for missing in ["api-url", "api-key", "secret-key"] {
            let fields: Vec<_> = whole.into_iter().filter(|(name, _)| *name != missing).collect();
            let cause = parse(&secret(&fields), &key).expect_err("incomplete");
            assert_eq!(cause.code, code::SECRET);
            assert_eq!(
                cause.message,
                format!("Secret default/keys has no text in its field {missing}: fill it in")
            );
        }
    }

    #[test]
    fn domains_are_compared_without_their_root() {
        for (text, bare) in [
            ("ROOT/a/b", "a/b"),
            ("/a/b", "a/b"),
            ("a/b", "a/b"),
            ("ROOT", ""),
            ("/", ""),
            ("ROOTS/a", "ROOTS/a"),
        ] {
            assert_eq!(path(text), bare, "{text}");
        }
    }
}
