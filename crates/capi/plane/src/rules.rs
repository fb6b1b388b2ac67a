//! Defaulting and validation of requests: the same in process and behind a webhook.

use std::collections::BTreeSet;

use capstan_apiserver::status::Status;
use capstan_capi_types::admission::{self, AdmissionError, Features, FieldError, SecretUse};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, ClusterClass};
use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use capstan_controller::KindName;
use capstan_object::{Key, Kind, Object};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use crate::controllers::Group;
use crate::secrets::Author;
use crate::{class, secrets};

/// The subject of a request.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub group: &'a str,
    /// Kind of the resource, also if the body is its `Scale`.
    pub kind: &'a str,
    pub namespace: &'a str,
    /// Name, or generateName.
    pub name: &'a str,
}

/// Access to other objects for rules.
pub trait RelatedObjects: Send + Sync {
    /// An object in the version of `kind`.
    fn get<'a>(&'a self, kind: &'a Kind, key: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>>;

    /// An object of any kind; none if the kind is not served.
    fn find<'a>(&'a self, kind: &'a KindName, key: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>>;

    /// Objects of a kind with these labels, in a namespace or in all.
    fn list<'a>(
        &'a self,
        kind: &'a KindName,
        namespace: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>>;

    /// Whether whoever sent the request may read an object.
    fn may_get<'a>(&'a self, kind: &'a Kind, key: &'a Key) -> BoxFuture<'a, Result<bool, Status>>;
}

/// Defaulting and validation of kinds.
#[derive(Clone)]
pub struct Rules {
    features: Features,
    known: Vec<admission::Rules>,
}

impl Default for Rules {
    /// All kinds of Cluster API.
    fn default() -> Self {
        Self::for_groups(&Group::ALL.into())
    }
}

impl Rules {
    /// The kinds of groups of controllers.
    pub fn for_groups(groups: &BTreeSet<Group>) -> Self {
        let known = admission::all().into_iter();
        let known =
            known.filter(|rules| Group::of_kind(rules.kind.group).is_some_and(|it| groups.contains(&it)));
        Self { features: Features::default(), known: known.collect() }
    }

    /// Adds rules of other kinds, such as a provider's.
    #[must_use]
    pub fn with(mut self, others: impl IntoIterator<Item = admission::Rules>) -> Self {
        self.known.extend(others);
        self
    }

    /// The kinds with rules, in the version that objects must have.
    pub fn kinds(&self) -> Vec<Kind> {
        self.known.iter().map(|rules| rules.kind).collect()
    }

    pub(crate) fn kind_of(&self, group: &str, plural: &str) -> Option<Kind> {
        self.kinds().into_iter().find(|kind| (kind.group, kind.plural) == (group, plural))
    }

    fn of(&self, subject: Subject<'_>) -> Option<&admission::Rules> {
        let is_it =
            |rules: &&admission::Rules| (rules.kind.group, rules.kind.kind) == (subject.group, subject.kind);
        self.known.iter().find(is_it)
    }

    /// Applies defaults; returns whether anything changed.
    pub async fn apply_defaults(
        &self,
        subject: Subject<'_>,
        object: &mut Value,
        old: Option<&Value>,
        others: &dyn RelatedObjects,
    ) -> Result<bool, Status> {
        let Some(rules) = self.of(subject) else { return Ok(false) };
        let mut added = (rules.default)(object, old).map_err(|error| subject.refused(error))?;
        if subject.is::<Cluster>() && self.features.cluster_topology {
            // Boxed: other kinds do not pay for its state.
            added |= Box::pin(class::default_variables(subject, object, old, others)).await?;
        }
        Ok(added)
    }

    /// Validates an object, or the update from `old` to it. Returns warnings for the client.
    pub async fn validate(
        &self,
        subject: Subject<'_>,
        object: &Value,
        old: Option<&Value>,
        others: &dyn RelatedObjects,
    ) -> Result<Vec<String>, Status> {
        let Some(rules) = self.of(subject) else { return Ok(Vec::new()) };
        let result = (rules.validate)(object, old, &self.features);
        let mut errors = result.map_err(|error| subject.refused(error))?;
        let mut warnings = Vec::new();
        if old.is_none() && subject.is::<IPAddress>() {
            errors.extend(from_another_pool(subject, object, others).await?);
        }
        if subject.is::<Cluster>() && self.features.cluster_topology {
            let found = class::validate_cluster(subject, object, old, others, &mut warnings);
            errors.extend(Box::pin(found).await?);
        }
        if let Some(old) = old.filter(|_| subject.is::<ClusterClass>()) {
            errors.extend(Box::pin(class::validate_class(subject, object, old, others)).await?);
        }
        let uses = |object: &Value| (rules.secrets)(object).map_err(|error| subject.refused(error));
        let (new, before) = (uses(object)?, old.map(uses).transpose()?.unwrap_or_default());
        let author = Author::of(object);
        let template = match author {
            Author::Topology if !new.is_empty() => self.uses_of_template(object, others).await?,
            _ => Vec::new(),
        };
        errors.extend(secrets::forbidden(subject.namespace, &new, &before, &template, author, others).await?);
        match errors.as_slice() {
            [] => Ok(warnings),
            errors => Err(Status::invalid(subject.group, subject.kind, subject.name, errors)),
        }
    }

    /// The Secrets that the template of a topology's object names.
    async fn uses_of_template(
        &self,
        object: &Value,
        others: &dyn RelatedObjects,
    ) -> Result<Vec<SecretUse>, Status> {
        let Some((group, kind, key)) = secrets::template_of(object, others).await? else {
            return Ok(Vec::new());
        };
        let is_it = |rules: &&admission::Rules| (rules.kind.group, rules.kind.kind) == (&*group, &*kind);
        let Some(rules) = self.known.iter().find(is_it) else { return Ok(Vec::new()) };
        let template = others.get(&rules.kind, &key).await?;
        Ok(template.and_then(|template| (rules.secrets)(&template).ok()).unwrap_or_default())
    }

    /// Whether there are rules about the deletion of a kind.
    pub fn validates_deletion(&self, kind: &Kind) -> bool {
        *kind == ClusterClass::KIND && self.known.iter().any(|rules| rules.kind == *kind)
    }

    pub async fn validate_deletion(
        &self,
        subject: Subject<'_>,
        others: &dyn RelatedObjects,
    ) -> Result<(), Status> {
        match subject.is::<ClusterClass>() && self.of(subject).is_some() {
            true => Box::pin(class::validate_deletion(subject, others)).await,
            false => Ok(()),
        }
    }

    pub async fn validate_scale(
        &self,
        subject: Subject<'_>,
        scale: &Value,
        others: &dyn RelatedObjects,
    ) -> Result<(), &'static str> {
        if !subject.is::<KubeadmControlPlane>() {
            return Ok(());
        }
        let kind = KubeadmControlPlane::KIND;
        let key = Key::new(subject.namespace, subject.name);
        let Ok(Some(control_plane)) = others.get(&kind, &key).await else { return Ok(()) };
        let Ok(control_plane) = KubeadmControlPlane::deserialize(control_plane) else { return Ok(()) };
        let replicas = scale["spec"]["replicas"].as_i64().and_then(|n| i32::try_from(n).ok());
        let problem = admission::validate_scale(&control_plane, replicas.unwrap_or_default());
        problem.map_or(Ok(()), Err)
    }
}

/// An IPAddress whose claim references another pool.
async fn from_another_pool(
    subject: Subject<'_>,
    object: &Value,
    others: &dyn RelatedObjects,
) -> Result<Option<FieldError>, Status> {
    let Ok(address) = IPAddress::deserialize(object) else { return Ok(None) };
    let key = Key::new(subject.namespace, address.spec.claim_ref.name.as_str());
    let claim = others.get(&IPAddressClaim::KIND, &key).await?;
    let Some(Ok(claim)) = claim.map(IPAddressClaim::deserialize) else { return Ok(None) };
    Ok(admission::pool_differs_from_claim(&address, &claim))
}

impl Subject<'_> {
    fn is<T: Object>(self) -> bool {
        (self.group, self.kind) == (T::KIND.group, T::KIND.kind)
    }

    fn refused(self, error: AdmissionError) -> Status {
        match error {
            AdmissionError::Shape { .. } => Status::bad_request(error.to_string()),
            AdmissionError::Default(error) => Status::invalid(self.group, self.kind, self.name, &[error]),
        }
    }
}
