//! What a server is made of, and the steps every verb takes: reading an entry in the version asked for, admission,
//! committing.

use std::sync::Arc;

use ::http::StatusCode;
use arc_swap::ArcSwap;
use bytes::Bytes;
use capstan_schema::bounded::Texts;
use capstan_store::{Entry, Stamped, Store, Write, WriteError, Written};
use serde_json::Value;

use crate::admission::lifecycle::NamespaceLifecycle;
use crate::admission::webhook::Webhooks;
use crate::admission::{Admission, AdmissionAttributes, GroupVersionKind, Warnings};
use crate::auth::rbac::Rbac;
use crate::auth::{
    AlwaysAllow, Attributes, Authenticator, Authorizer, ObjectSource, ServiceAccountTokens, User,
};
use crate::call::Call;
use crate::config::Config;
use crate::controllers::Follower;
use crate::conversion::Conversions;
use crate::crd::controller::Definitions;
use crate::digest::Digest;
use crate::discovery::Discovery;
use crate::env::Env;
use crate::forms::Forms;
use crate::http::options::Query;
use crate::metrics::Metrics;
use crate::negotiation::{Accepted, Encoding, Shape};
use crate::object::{self, OwnerRef};
use crate::openapi::OpenApi;
use crate::pki::{Pki, PkiError};
use crate::portforward::PodStreams;
use crate::quota::{self, Turns};
use crate::registry::{CustomResource, Origin, Registry, Resource, build};
use crate::route::Route;
use crate::spelling::{self, Spelling};
use crate::status::{Result, Status};
use crate::strategy;
use crate::verbs::Answer;
use crate::webhook_client::WebhookClient;

/// Largest stored object.
pub const MAX_OBJECT: usize = 3 * 1024 * 1024 / 2;

/// A change that was committed, as the controllers inside the server hear of it.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    /// Where it happened.
    pub bucket: Arc<str>,
    /// To what.
    pub key: Arc<str>,
    /// The object is gone.
    pub gone: bool,
    /// Its uid.
    pub uid: Box<str>,
    /// Whom it belonged to before the change.
    pub owners: Box<[OwnerRef]>,
}

/// Everything a server is made of. Made once at the start; requests and controllers read it.
pub(crate) struct ServerParts {
    pub store: Store<Digest>,
    pub registry: ArcSwap<Registry>,
    pub env: Env,
    pub authorizer: Arc<dyn Authorizer>,
    /// In the order in which they run.
    pub admission: Vec<Arc<dyn Admission>>,
    pub conversions: Conversions,
    pub rbac: Arc<Rbac>,
    pub authenticator: Authenticator,
    /// Controllers that follow every change.
    pub followers: Vec<Follower>,
    pub definitions: Definitions,
    pub discovery: Discovery,
    pub openapi: OpenApi,
    /// PEM of the authority clients trust, for `kube-root-ca.crt`.
    pub root_ca: Arc<str>,
    /// Keys and certificates, for backups.
    pub pki: Arc<Pki>,
    /// Whoever runs Pods, if anybody does.
    pub pods: Option<Arc<dyn PodStreams>>,
    pub metrics: Metrics,
    /// Who may take of which namespace's quotas.
    pub turns: Turns,
}

impl ServerParts {
    /// Puts a server together: the parts in their usual order, with what its owner chose.
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
        let mut admission: Vec<Arc<dyn Admission>> = vec![NamespaceLifecycle::new(store.clone())];
        let mut conversions = Conversions::new(client.clone(), env.clone());
        for kinds in &config.kinds {
            admission.extend(kinds.admission(&objects));
            conversions = kinds.conversions(conversions, &objects);
        }
        admission.push(Arc::new(Webhooks::new(client, objects.clone(), env.clone())));
        Ok(Self {
            registry: ArcSwap::new(build::empty()),
            authorizer,
            admission,
            conversions,
            rbac,
            authenticator: Authenticator::new(tokens, objects, env.clone()),
            followers,
            definitions: Definitions::default(),
            discovery: Discovery::default(),
            openapi: OpenApi::default(),
            root_ca: pki.ca_pem()?.into(),
            pki,
            pods: config.pods,
            metrics: Metrics::default(),
            turns: Turns::default(),
            store,
            env,
        })
    }

    /// The object of an entry in the version of the request, pruned and defaulted by its schema.
    pub async fn load(&self, call: &Call, entry: &Entry<Digest>) -> Result<Value> {
        let value: Value = serde_json::from_slice(&entry.value)
            .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))?;
        self.in_version(call.resource(), value, entry).await
    }

    /// An object of a custom resource in another version.
    pub async fn convert(&self, resource: &Resource, object: Value, version: &str) -> Result<Value> {
        match &resource.behaviour {
            Some(behaviour) => Ok(self.conversions.convert(&behaviour.conversion, object, version).await?),
            None => Ok(spelling::in_version(object, version)),
        }
    }

    async fn in_version(&self, resource: &Resource, value: Value, entry: &Entry<Digest>) -> Result<Value> {
        match &resource.origin {
            Origin::BuiltIn => Ok(match Spelling::of(resource) {
                Some(spelling) => spelling.served(value),
                None => value,
            }),
            Origin::Custom(custom) => {
                let stored_here = *entry.digest().api_version == *resource.api_version();
                if stored_here && is_settled(entry, custom) {
                    return Ok(value);
                }
                if !stored_here {
                    return self.read_back(resource, value).await;
                }
                let mut settled = value.clone();
                strategy::settle(resource, &mut settled, &mut Texts::default()).map_err(Status::internal)?;
                if settled == value {
                    entry.digest().settle(custom.schema_epoch);
                }
                Ok(settled)
            }
        }
    }

    /// An object from the store in another version than it is stored in: defaulted as stored, converted,
    /// and without what the other version does not know.
    async fn read_back(&self, resource: &Resource, mut stored: Value) -> Result<Value> {
        self.settle_as_stored(resource, &mut stored)?;
        let mut value = self.convert(resource, stored, &resource.version).await?;
        strategy::prune(resource, &mut value)?;
        Ok(value)
    }

    fn settle_as_stored(&self, resource: &Resource, stored: &mut Value) -> Result<()> {
        let registry = self.registry.load();
        let version = stored["apiVersion"].as_str().and_then(|v| v.rsplit('/').next()).unwrap_or_default();
        match registry.find(&resource.group, version, &resource.plural) {
            Some(storage) => {
                strategy::settle(storage, stored, &mut Texts::default()).map_err(Status::internal)
            }
            None => Ok(()),
        }
    }

    /// The bytes of an entry in the version of the request.
    pub async fn render(&self, call: &Call, entry: &Arc<Entry<Digest>>) -> Result<Bytes> {
        if let Some(bytes) = ready(call.resource(), entry) {
            return Ok(bytes);
        }
        let value = self.load(call, entry).await?;
        Ok(self.remember(call.resource(), entry, &value))
    }

    /// [`ServerParts::render`] for many entries, converting those that need it in one go.
    pub async fn render_all(&self, call: &Call, entries: &[Arc<Entry<Digest>>]) -> Result<Vec<Bytes>> {
        let mut rendered: Vec<Option<Bytes>> = entries.iter().map(|e| ready(call.resource(), e)).collect();
        let open: Vec<usize> = (0..entries.len()).filter(|i| rendered[*i].is_none()).collect();
        let foreign = call.resource().behaviour.as_ref().filter(|_| {
            open.iter().any(|i| *entries[*i].digest().api_version != *call.resource().api_version())
        });
        if let Some(behaviour) = foreign {
            let mut values = Vec::with_capacity(open.len());
            for i in &open {
                let mut value: Value = serde_json::from_slice(&entries[*i].value)
                    .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))?;
                self.settle_as_stored(call.resource(), &mut value)?;
                values.push(value);
            }
            let list = GroupVersionKind::new(
                call.resource().group.as_str(),
                call.resource().version.as_str(),
                call.resource().list_kind.as_str(),
            );
            let version = &call.resource().version;
            let converted =
                self.conversions.convert_list(&behaviour.conversion, values, version, &list).await?;
            for (i, mut value) in open.into_iter().zip(converted) {
                strategy::prune(call.resource(), &mut value)?;
                rendered[i] = Some(self.remember(call.resource(), &entries[i], &value));
            }
        } else {
            for i in open {
                rendered[i] = Some(self.render(call, &entries[i]).await?);
            }
        }
        Ok(rendered.into_iter().flatten().collect())
    }

    fn remember(&self, resource: &Resource, entry: &Entry<Digest>, value: &Value) -> Bytes {
        let Some(custom) = resource.custom() else { return value.to_string().into() };
        if is_settled(entry, custom) && *entry.digest().api_version == *resource.api_version() {
            return entry.value.clone();
        }
        let bytes: Bytes = value.to_string().into();
        entry.digest().set_rendering(&resource.version, custom.schema_epoch, bytes.clone());
        bytes
    }

    /// Bytes of an object, such as the last state of a deleted one, in the version of the request.
    pub async fn render_bytes(&self, call: &Call, entry: &Entry<Digest>, bytes: Bytes) -> Result<Bytes> {
        let as_stored = match &call.resource().origin {
            Origin::BuiltIn => Spelling::of(call.resource()).is_none(),
            Origin::Custom(_) => *entry.digest().api_version == *call.resource().api_version(),
        };
        if as_stored {
            return Ok(bytes);
        }
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|e| Status::internal(format!("a stored object cannot be read: {e}")))?;
        Ok(self.in_version(call.resource(), value, entry).await?.to_string().into())
    }

    /// Runs mutating admission.
    pub async fn mutate(&self, call: &Call, mut attributes: AdmissionAttributes) -> Result<Value> {
        let forms = Forms { parts: self, call };
        for admission in &self.admission {
            admission.mutate(&mut attributes, &forms).await?;
        }
        attributes.object.ok_or_else(|| Status::internal("admission took the object away"))
    }

    /// Runs validating admission.
    pub async fn validate(&self, call: &Call, attributes: &AdmissionAttributes) -> Result<()> {
        let forms = Forms { parts: self, call };
        for admission in &self.admission {
            admission.validate(attributes, &forms).await?;
        }
        // Last, as upstream: what is counted here is what is stored.
        quota::admit(call, attributes).await
    }

    /// Runs all admission for a delete, which changes no object.
    pub async fn admit_delete(&self, call: &Call, mut attributes: AdmissionAttributes) -> Result<()> {
        let forms = Forms { parts: self, call };
        for admission in &self.admission {
            admission.mutate(&mut attributes, &forms).await?;
        }
        for admission in &self.admission {
            admission.validate(&attributes, &forms).await?;
        }
        Ok(())
    }

    /// Asks the authorizer.
    pub fn authorize(&self, attributes: &Attributes) -> Result<()> {
        let decision = self.authorizer.authorize(attributes);
        if decision.allowed() { Ok(()) } else { Err(crate::auth::forbidden(attributes, decision.reason())) }
    }

    /// Converts an object to its storage version and commits it. A lost race is a `Conflict`.
    pub async fn commit(
        &self,
        call: &Call,
        object: Value,
        write: impl FnOnce(Stamped) -> Write,
    ) -> Result<Written<Digest>> {
        let resource = call.resource();
        let stored = self.storage_form(resource, object).await?;
        let mut value = object::stamped(stored);
        if let Origin::Custom(custom) = &resource.origin
            && resource.version == resource.storage_version
        {
            // Known before anybody sees the object: watchers are told of it sooner than its writer.
            value.mark = custom.schema_epoch;
        }
        let size = value.head.len() + value.tail.len();
        if size > MAX_OBJECT {
            return Err(Status::too_large(format!(
                "Request entity too large: the object has {size} bytes, the limit is {MAX_OBJECT}"
            )));
        }
        let write = write(value);
        let (bucket, key) = match &write {
            Write::Put { bucket, key, .. } | Write::Delete { bucket, key, .. } => {
                (bucket.clone(), key.clone())
            }
        };
        let written = self.store.write(write).await.map_err(|error| match error {
            WriteError::Conflict { .. } => call.conflict(crate::verbs::update::STALE),
            other => {
                tracing::error!(error = %other, "a write failed");
                Status::unavailable(format!("the object could not be stored: {other}"))
            }
        })?;
        self.tell(bucket, key, &written);
        Ok(written)
    }

    fn tell(&self, bucket: Arc<str>, key: Arc<str>, written: &Written<Digest>) {
        let digest = written.previous.as_ref().or(written.entry.as_ref()).map(|e| e.digest());
        let committed = Arc::new(Committed {
            bucket,
            key,
            gone: written.entry.is_none(),
            uid: digest.map(|d| d.uid.clone()).unwrap_or_default(),
            owners: written.previous.as_ref().map(|e| e.digest().owners.clone()).unwrap_or_default(),
        });
        for follower in &self.followers {
            follower.tell(&committed);
        }
    }

    /// A request of the server itself to one object.
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
            user: User::privileged(user),
            query: Query::default(),
            user_agent: agent(user).into(),
            content_type: None,
            accepted: Accepted { encoding: Encoding::Json, shape: Shape::Whole, pretty: false },
            warnings: Warnings::default(),
            upgrade: None,
            turn: Default::default(),
        }
    }

    async fn storage_form(&self, resource: &Resource, object: Value) -> Result<Value> {
        match &resource.origin {
            Origin::BuiltIn => Ok(match Spelling::of(resource) {
                Some(spelling) => spelling.stored(object),
                None => object,
            }),
            Origin::Custom(_) if resource.version != resource.storage_version => {
                let mut stored = self.convert(resource, object, &resource.storage_version).await?;
                // What the storage version does not know is lost here and now, not on the way back.
                let registry = self.registry.load();
                let (group, version) = (&resource.group, &resource.storage_version);
                if let Some(storage) = registry.find(group, version, &resource.plural) {
                    strategy::prune(storage, &mut stored)?;
                }
                Ok(stored)
            }
            _ => Ok(object),
        }
    }
}

/// The program that, in a cluster of several processes, writes as this user: it becomes the manager of
/// the fields it sets.
fn agent(user: &str) -> &'static str {
    if user == "system:apiserver" { "kube-apiserver" } else { "kube-controller-manager" }
}

/// Whether the stored bytes are pruned and defaulted as the schema of now does it.
fn is_settled(entry: &Entry<Digest>, custom: &CustomResource) -> bool {
    entry.mark == custom.schema_epoch || entry.digest().is_settled(custom.schema_epoch)
}

/// The bytes of an entry if they can be sent as they are.
fn ready(resource: &Resource, entry: &Entry<Digest>) -> Option<Bytes> {
    match &resource.origin {
        Origin::BuiltIn => Spelling::of(resource).is_none().then(|| entry.value.clone()),
        Origin::Custom(custom) => {
            let digest = entry.digest();
            if *digest.api_version == *resource.api_version() && is_settled(entry, custom) {
                return Some(entry.value.clone());
            }
            digest.rendering(&resource.version, custom.schema_epoch)
        }
    }
}

impl Call {
    /// The answer to a write: the object as it is now stored, in the version of the request.
    pub async fn answer(&self, code: StatusCode, written: Written<Digest>) -> Result<Answer> {
        let Some(entry) = &written.entry else { return Err(Status::internal("nothing was written")) };
        let bytes = self.parts.render(self, entry).await?;
        Ok(Answer::Object { code, bytes })
    }

    /// The answer to a write that was only tried: the object as it would come back from the store.
    pub async fn preview(&self, code: StatusCode, object: Value) -> Result<Answer> {
        let resource = self.resource();
        if resource.version == resource.storage_version || Spelling::of(resource).is_some() {
            return Ok(Answer::object(code, &object));
        }
        let stored = self.parts.storage_form(resource, object).await?;
        let object = self.parts.read_back(resource, stored).await?;
        Ok(Answer::object(code, &object))
    }
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

    fn bucket_revision(&self, bucket: &str) -> u64 {
        self.0.bucket_revision(bucket)
    }
}
