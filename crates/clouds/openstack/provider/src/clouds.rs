//! The clouds that objects name: credentials by Secret, projects by what the credentials lead to.
//!
//! ```text
//! identityRef ─┬─ Secret ──────────────────────────────┬─▶ clouds.yaml, cacert ─▶ Client ─▶ token ─▶ Project
//!              └─ OpenStackClusterIdentity ─ namespace? ─┘      │ watched: a new version replaces the client
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_controller::View;
use capstan_object::{Key, ObjectMeta, object};
use capstan_openstack_client::config::Clouds as CloudsYaml;
use capstan_openstack_client::{Client, Clock, Cloud, Https, HttpsOptions, Metrics, Policy, Transport};
use capstan_openstack_types::v1alpha1::OpenStackClusterIdentity;
use capstan_openstack_types::v1beta2::OpenStackIdentityReference;
use capstan_provider_kit::{Secret, SecretOutline};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::code;
use crate::error::CloudError;
use crate::project::{Access, Project};

/// Key of the settings in the Secret; CAPO's.
pub(crate) const CLOUDS_YAML: &str = "clouds.yaml";
/// Key of the authorities to trust in the Secret; CAPO's.
const CA: &str = "cacert";

/// How services are reached.
pub trait Connect: Send + Sync {
    fn transport(&self, cloud: &Cloud) -> Result<Arc<dyn Transport>, String>;

    /// The clock that tokens expire by.
    fn clock(&self) -> Clock {
        Arc::new(jiff::Timestamp::now)
    }
}

pub struct OverNetwork;

impl Connect for OverNetwork {
    fn transport(&self, cloud: &Cloud) -> Result<Arc<dyn Transport>, String> {
        let options = HttpsOptions { trust: cloud.trust.clone(), ..HttpsOptions::default() };
        Ok(Arc::new(Https::new(&options).map_err(|error| error.to_string())?))
    }
}

object!(Namespace, "" / "v1", "Namespace", "namespaces", Cluster);

/// The labels of a namespace decide whether it may use an OpenStackClusterIdentity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespace {
    pub metadata: ObjectMeta,
}

/// The clouds of a process. Clones are the same.
#[derive(Clone)]
pub struct Clouds(Arc<Inner>);

struct Inner {
    connect: Arc<dyn Connect>,
    held: Mutex<BTreeMap<Credentials, Held>>,
    /// By Keystone and region.
    metrics: Mutex<BTreeMap<(String, String), Arc<Metrics>>>,
    /// By Keystone, region and project.
    projects: Mutex<BTreeMap<(String, String, String), Arc<Project>>>,
}

/// Which credentials: the Secret, the cloud in it, and the region.
type Credentials = (Key, String, String);

struct Held {
    /// Version of the Secret.
    version: String,
    /// Kept also while Keystone rejects it: the client does not ask again at once, which would lock the user out.
    client: Client,
    /// Known once Keystone accepted the credentials.
    project: Option<Arc<Project>>,
}

impl Clouds {
    /// Clouds reached by `connect`.
    pub fn new(connect: Arc<dyn Connect>) -> Self {
        let (held, metrics, projects) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { connect, held, metrics, projects }))
    }

    /// What was asked of all clouds so far, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let all = self.0.metrics.lock();
        Metrics::render(
            all.iter().map(|((keystone, region), it)| ((keystone.as_str(), region.as_str()), &**it)),
        )
    }

    /// The cloud that an object of a namespace refers to.
    pub(crate) async fn access(
        &self,
        reference: &OpenStackIdentityReference,
        namespace: &str,
        view: &View,
    ) -> Result<Access, CloudError> {
        let secret = secret_of(reference, namespace, view)?;
        let outline = view.get::<SecretOutline>(&secret)?.ok_or_else(|| missing(&secret))?;
        let credentials = (secret, reference.cloud_name.clone(), reference.region.clone());
        let version = &outline.metadata.resource_version;
        let known = {
            let held = self.0.held.lock();
            let held = held.get(&credentials).filter(|held| held.version == *version);
            held.map(|held| (held.client.clone(), held.project.clone()))
        };
        let secret = &credentials.0;
        match known {
            Some((client, Some(project))) => return Ok(Access { client, project }),
            Some((client, None)) => {
                let access = self.project_of(client, reference, secret).await?;
                if let Some(held) = self.0.held.lock().get_mut(&credentials) {
                    held.project = Some(access.project.clone());
                }
                return Ok(access);
            }
            None => {}
        }
        let content = view.client().get::<Secret>(secret).await.map_err(|error| {
            CloudError::new(
                code::SECRET,
                "SecretUnreadable",
                format!("Secret {secret} cannot be read: {error}"),
            )
        })?;
        let content = content.ok_or_else(|| missing(secret))?;
        let client = self.client(reference, secret, &content)?;
        let version = content.metadata.resource_version;
        let opened = self.project_of(client.clone(), reference, secret).await;
        let project = opened.as_ref().ok().map(|access| access.project.clone());
        self.0.held.lock().insert(credentials, Held { version, client, project });
        opened
    }

    /// A client with the credentials in a Secret.
    pub(crate) async fn open(
        &self,
        reference: &OpenStackIdentityReference,
        secret: &Key,
        content: &Secret,
    ) -> Result<Access, CloudError> {
        self.project_of(self.client(reference, secret, content)?, reference, secret).await
    }

    fn client(
        &self,
        reference: &OpenStackIdentityReference,
        secret: &Key,
        content: &Secret,
    ) -> Result<Client, CloudError> {
        let cloud = settings(reference, secret, content)?;
        let transport = self.0.connect.transport(&cloud).map_err(|why| invalid(secret, &why))?;
        let of = (cloud.identity_url.to_string(), cloud.region.clone().unwrap_or_default());
        let metrics = self.0.metrics.lock().entry(of).or_default().clone();
        Ok(Client::counting(cloud, transport, Policy::default(), (self.0.connect.clock(), metrics)))
    }

    /// The project that credentials lead to.
    async fn project_of(
        &self,
        client: Client,
        reference: &OpenStackIdentityReference,
        secret: &Key,
    ) -> Result<Access, CloudError> {
        let keystone = client.cloud().identity_url.to_string();
        let region = client.cloud().region.clone().unwrap_or_default();
        let token = client.token().await.map_err(|error| {
            let cause = CloudError::of(&error);
            let message = format!("{} (cloud {} of Secret {secret})", cause.message, reference.cloud_name);
            CloudError { message, ..cause }
        })?;
        let project = token.project_id().map(str::to_owned).ok_or_else(|| {
            let cloud = &reference.cloud_name;
            invalid(secret, &format!("cloud {cloud} names no project: add project_id or project_name"))
        })?;
        let mut projects = self.0.projects.lock();
        let project = projects
            .entry((keystone, region, project.clone()))
            .or_insert_with(|| Arc::new(Project::new(project)))
            .clone();
        Ok(Access { client, project })
    }
}

fn invalid(secret: &Key, why: &str) -> CloudError {
    CloudError::new(code::SECRET, "SecretInvalid", format!("Secret {secret}: {why}"))
}

fn missing(secret: &Key) -> CloudError {
    let message = format!("there is no Secret {secret}: create it with the key clouds.yaml");
    CloudError::new(code::SECRET, "SecretMissing", message)
}

/// The Secret of a reference, if the namespace may use it.
fn secret_of(
    reference: &OpenStackIdentityReference,
    namespace: &str,
    view: &View,
) -> Result<Key, CloudError> {
    if reference.kind != "ClusterIdentity" {
        return Ok(Key::new(namespace, reference.name.as_str()));
    }
    let name = &reference.name;
    let wrong = |message: String| CloudError::new(code::IDENTITY, "IdentityNotAllowed", message);
    let identity = view
        .get::<OpenStackClusterIdentity>(&Key::new("", name.as_str()))?
        .ok_or_else(|| wrong(format!("there is no OpenStackClusterIdentity {name}: create it")))?;
    if let Some(selector) = &identity.spec.namespace_selector {
        let held = view.get::<Namespace>(&Key::new("", namespace))?;
        let labels = held.map(|held| held.metadata.labels.clone()).unwrap_or_default();
        let allowed = selector.matches(&labels).map_err(|error| {
            wrong(format!("spec.namespaceSelector of OpenStackClusterIdentity {name}: {error}"))
        })?;
        if !allowed {
            return Err(wrong(format!(
                "OpenStackClusterIdentity {name} does not allow namespace {namespace}: change its namespaceSelector or the \
                 labels of the namespace"
            )));
        }
    }
    let secret = &identity.spec.secret_ref;
    Ok(Key::new(secret.namespace.as_str(), secret.name.as_str()))
}

/// The settings of the named cloud. Files that they name are not read, and neither are environment variables.
fn settings(
    reference: &OpenStackIdentityReference,
    secret: &Key,
    content: &Secret,
) -> Result<Cloud, CloudError> {
    let text = content.text(CLOUDS_YAML).map_err(|error| invalid(secret, &error.to_string()))?;
    let region = Some(reference.region.as_str()).filter(|region| !region.is_empty());
    let cloud = CloudsYaml::parse(&text, None, None)
        .and_then(|clouds| clouds.cloud(Some(&reference.cloud_name), region))
        .map_err(|error| invalid(secret, &error.to_string()))?;
    // CAPO's scripts write an empty line for a cloud without an authority of its own.
    let blank = |pem: &&Vec<u8>| pem.iter().all(u8::is_ascii_whitespace);
    Ok(match content.data.get(CA).filter(|pem| !blank(pem)) {
        Some(pem) => cloud.with_ca(pem.clone()),
        None => cloud,
    })
}

#[cfg(test)]
mod tests {
    use capstan_openstack_client::Trust;

    use super::*;

    #[test]
    fn a_blank_authority_is_none_and_another_is_the_only_one() {
        let clouds = "clouds: {c: {auth: {auth_url: 'http://k/v3', user_id: u, password: p, project_id: x}}}";
        let trust = |authority: &str| {
            let data = [(CLOUDS_YAML, clouds), (CA, authority)];
            let data = data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).into();
            let reference = OpenStackIdentityReference {
                cloud_name: "c".to_owned(),
                ..OpenStackIdentityReference::default()
            };
            let secret = Secret { data, ..Secret::default() };
            settings(&reference, &Key::new("ns", "s"), &secret).expect("settings").trust
        };
        assert!(matches!(trust("\n"), Trust::System));
        assert!(matches!(trust("a certificate"), Trust::Bundle(_)));
    }
}
