//! The parts of a server, and how they are assembled.

use std::sync::Arc;

use arc_swap::ArcSwap;
use capstan_env::Env;
use capstan_pki::{Pki, PkiError};
use capstan_store::{Cipher, Store, Written};
use capstan_streams::PodStreams;
use serde_json::Value;

use crate::admission::lifecycle::NamespaceLifecycle;
use crate::admission::policy::Policies;
use crate::admission::webhook::Webhooks;
use crate::admission::{
    Admission, AuditAnnotations, CertificateSubjectRestriction, DefaultIngressClass,
    DefaultTolerationSeconds, LimitRanger, Priority, RuntimeClasses, ServiceAccountAdmission,
    SignerPermissions, Storage, TaintNodes, Warnings,
};
use crate::audit::Audit;
use crate::auth::rbac::Rbac;
use crate::auth::{
    AlwaysAllow, Attributes, Authenticator, Authorizer, ObjectSource, ServiceAccountTokens, StoredEntry,
    User, bucket,
};
use crate::call::Call;
use crate::config::Config;
use crate::controllers::{Committed, Follower};
use crate::conversion::Conversions;
use crate::crd::controller::Definitions;
use crate::digest::Digest;
use crate::discovery::Discovery;
use crate::flow_control::FlowControl;
use crate::front::Connections;
use crate::health::Startup;
use crate::http::options::Query;
use crate::memory::{BodyRoom, RequestMemory};
use crate::metrics::Metrics;
use crate::negotiation::{Accepted, Encoding, Shape};
use crate::openapi::OpenApi;
use crate::quota::QuotaLocks;
use crate::registry::{Registry, Resource, build};
use crate::route::Route;
use crate::services::ServiceAllocator;
use crate::status::Result;
use crate::watches::Watches;
use crate::webhook_client::WebhookClient;

/// All parts of a server. Created once at startup; read by requests and controllers.
pub(crate) struct ServerParts {
    pub store: Store<Digest>,
    pub registry: ArcSwap<Registry>,
    pub env: Env,
    pub authorizer: Arc<dyn Authorizer>,
    /// In execution order.
    pub admission: Vec<Arc<dyn Admission>>,
    pub conversions: Conversions,
    pub rbac: Arc<Rbac>,
    pub authenticator: Authenticator,
    /// Channels to the built-in controllers.
    pub followers: Vec<Follower>,
    pub definitions: Definitions,
    pub discovery: Discovery,
    pub openapi: OpenApi,
    /// PEM of the CA, for `kube-root-ca.crt`.
    pub root_ca: Arc<str>,
    /// Keys and certificates, for backups.
    pub pki: Arc<Pki>,
    /// The backend that runs Pods, if any.
    pub pods: Option<Arc<dyn PodStreams>>,
    pub metrics: Metrics,
    /// Open connections of a listener.
    pub connections: Arc<Connections>,
    pub flow_control: FlowControl,
    /// Room for large bodies that are being handled.
    pub body_room: BodyRoom,
    pub watches: Arc<Watches>,
    /// Records requests, if configured.
    pub audit: Option<Arc<Audit>>,
    /// Encrypts objects on disk, if configured.
    pub cipher: Option<Arc<dyn Cipher>>,
    /// Locks for counting and taking quota, per namespace.
    pub quota_locks: QuotaLocks,
    /// Addresses and ports of Services, if the server allocates them.
    pub services: Option<Arc<ServiceAllocator>>,
    /// Whether objects are completed as kube-apiserver's admission does, for which the system's priority classes are
    /// needed.
    pub pod_admission: bool,
    /// How far the start is.
    pub startup: Startup,
}

impl ServerParts {
    /// Assembles a server: the parts in their default order, with the given configuration.
    pub fn assemble(
        config: Config,
        store: Store<Digest>,
        pki: Arc<Pki>,
        followers: Vec<Follower>,
    ) -> Result<Self, PkiError> {
        let env = config.env;
        let objects: Arc<dyn ObjectSource> = Arc::new(StoredObjects(store.clone()));
        let rbac = Arc::new(Rbac::new(objects.clone()));
        let authorizer: Arc<dyn Authorizer> =
            if config.trust_everybody { Arc::new(AlwaysAllow) } else { rbac.clone() };
        let tokens = Arc::new(ServiceAccountTokens::new(
            pki.clone(),
            objects.clone(),
            env.clone(),
            ServiceAccountTokens::DEFAULT_ISSUER,
            Vec::new(),
        ));
        let client = Arc::new(WebhookClient::new(objects.clone(), env.clone()));
        let mut admission: Vec<Arc<dyn Admission>> =
            vec![NamespaceLifecycle::new(store.clone()), Arc::new(CertificateSubjectRestriction)];
        if config.pod_admission {
            admission.push(LimitRanger::new(objects.clone()));
            admission.push(ServiceAccountAdmission::new(objects.clone(), env.clone()));
            admission.push(Arc::new(TaintNodes));
            admission.push(Priority::new(objects.clone()));
            admission.push(Arc::new(DefaultTolerationSeconds));
            admission.push(Storage::new(objects.clone()));
            admission.push(RuntimeClasses::new(objects.clone()));
            admission.push(SignerPermissions::new(authorizer.clone()));
            admission.push(DefaultIngressClass::new(objects.clone()));
        }
        let mut conversions = Conversions::new(client.clone(), env.clone());
        for kinds in &config.kinds {
            admission.extend(kinds.admission(&objects, &authorizer));
            conversions = kinds.conversions(conversions, &objects);
        }
        admission.push(Arc::new(Policies::new(objects.clone(), authorizer.clone())));
        admission.push(Arc::new(Webhooks::new(client, objects.clone(), authorizer.clone(), env.clone())));
        let services = config.services.map(|range| ServiceAllocator::new(range, env.clone(), store.clone()));
        Ok(Self {
            registry: ArcSwap::new(build::empty()),
            authorizer,
            admission,
            conversions,
            rbac,
            authenticator: Authenticator::new(tokens, objects.clone(), env.clone()).with_oidc(config.oidc),
            followers,
            definitions: Definitions::default(),
            discovery: Discovery::default(),
            openapi: OpenApi::default(),
            root_ca: pki.ca_pem()?.into(),
            pki,
            pods: config.pods,
            metrics: Metrics::default(),
            connections: Arc::new(Connections::new(config.connections)),
            flow_control: FlowControl::new(config.in_flight, objects.clone()),
            body_room: BodyRoom::default(),
            watches: Arc::new(Watches::new(config.watches)),
            audit: config.audit,
            cipher: config.cipher,
            quota_locks: QuotaLocks::default(),
            services,
            pod_admission: config.pod_admission,
            startup: Startup::default(),
            store,
            env,
        })
    }

    /// Rejects with 403 unless the authorizer allows it.
    pub fn authorize(&self, attributes: &Attributes) -> Result<()> {
        let decision = self.authorizer.authorize(attributes);
        if decision.allowed() { Ok(()) } else { Err(crate::auth::forbidden(attributes, decision.reason())) }
    }

    /// Whether objects of a resource are confidential: Secrets, tokens, and what is encrypted on disk.
    pub fn is_confidential(&self, resource: &Resource) -> bool {
        &*resource.bucket == bucket::SECRETS
            || resource.group == "authentication.k8s.io"
            || self.cipher.as_ref().is_some_and(|cipher| cipher.covers(&resource.bucket))
    }

    /// Sends a change to the controllers.
    pub fn notify_controllers(&self, bucket: Arc<str>, key: Arc<str>, written: &Written<Digest>) {
        if let Some(services) = &self.services
            && &*bucket == bucket::SERVICES
        {
            services.follow(&key);
        }
        let digest = written.previous.as_ref().or(written.entry.as_ref()).map(|e| e.digest());
        let committed = Arc::new(Committed {
            bucket,
            key,
            gone: written.entry.is_none(),
            uid: digest.map(|d| d.uid.clone()).unwrap_or_default(),
            owners: written.previous.as_ref().map(|e| e.digest().owners.clone()).unwrap_or_default(),
        });
        for follower in &self.followers {
            follower.send(&committed);
        }
    }

    /// An internal request for one object.
    pub fn internal_call(
        self: &Arc<Self>,
        user: &str,
        resource: Arc<Resource>,
        namespace: &str,
        name: &str,
    ) -> Call {
        Call {
            parts: self.clone(),
            registry: self.registry.load_full(),
            route: Route::internal(resource, namespace, name),
            user: Arc::new(User::privileged(user)),
            query: Query::default(),
            user_agent: agent(user).into(),
            content_type: None,
            accepted: Accepted { encoding: Encoding::Json, shape: Shape::Whole, pretty: false },
            warnings: Warnings::default(),
            annotations: AuditAnnotations::default(),
            upgrade: None,
            memory: RequestMemory::default(),
        }
    }
}

/// The field manager of internal writes: the program that writes as this user in a cluster of several processes.
fn agent(user: &str) -> &'static str {
    if user == "system:apiserver" { "kube-apiserver" } else { "kube-controller-manager" }
}

/// Stored objects for authentication, authorization and webhooks.
struct StoredObjects(Store<Digest>);

impl ObjectSource for StoredObjects {
    fn get(&self, bucket: &str, key: &str) -> Option<Arc<Value>> {
        let entry = self.0.get(bucket, key)?;
        serde_json::from_slice(&entry.value).ok().map(Arc::new)
    }

    fn list(&self, bucket: &str) -> Vec<Arc<Value>> {
        let snapshot = self.0.snapshot(bucket);
        snapshot.range("", None).filter_map(|e| serde_json::from_slice(&e.value).ok()).map(Arc::new).collect()
    }

    fn visit(&self, bucket: &str, visit: &mut dyn FnMut(StoredEntry<'_>)) {
        for entry in self.0.snapshot(bucket).range("", None) {
            let parse = || serde_json::from_slice(&entry.value).ok().map(Arc::new);
            visit(StoredEntry { key: &entry.key, revision: entry.revision, parse: &parse });
        }
    }

    fn bucket_revision(&self, bucket: &str) -> u64 {
        self.0.bucket_revision(bucket)
    }
}
