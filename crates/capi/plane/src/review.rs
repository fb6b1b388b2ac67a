//! The rules as webhooks: reviews in, reviews out.
//!
//! ```text
//! AdmissionReview  ── default, validate ──▶ allowed, with a patch │ rejected, with a Status
//! ConversionReview ── convert ──▶ objects in the requested version
//! ```
//!
//! Input comes from an API server, or from anyone who can reach the port: invalid input is an error, never a panic,
//! and nothing is written.

use capstan_apiserver::status::Status;
use capstan_capi_types::conversion::{ConversionError, Converter};
use capstan_controller::{Client, KindName, ListOptions};
use capstan_object::{Key, Kind, Scope};
use capstan_provider_kit::ProviderVersions;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::rules::{RelatedObjects, Rules, Subject};

/// Maximum objects per conversion; API servers send one page of a list at a time.
const MAX_OBJECTS: usize = 10_000;

/// The kind by which an API server reports what a user may do.
const ACCESS_REVIEW: Kind = Kind {
    group: "authorization.k8s.io",
    version: "v1",
    kind: "SubjectAccessReview",
    plural: "subjectaccessreviews",
    scope: Scope::Cluster,
};

/// The input is not a review.
#[derive(Debug, thiserror::Error)]
#[error("not a {0} of a supported version")]
pub struct NotAReview(&'static str);

pub struct Reviewer {
    rules: Rules,
    converter: Converter,
    providers: Vec<ProviderVersions>,
    client: Client,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    kind: Names,
    resource: Names,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    /// Who sent the request, as the API server authenticated them.
    #[serde(default)]
    user_info: UserInfo,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: Value,
}

#[derive(Deserialize)]
struct Names {
    group: String,
    version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    resource: String,
}

impl Request {
    fn read(review: Value) -> Result<Self, NotAReview> {
        let unknown = || NotAReview("AdmissionReview");
        if review["apiVersion"] != "admission.k8s.io/v1" || review["kind"] != "AdmissionReview" {
            return Err(unknown());
        }
        Self::deserialize(&review["request"]).map_err(|_| unknown())
    }

    fn subject(&self, kind: &Kind) -> Subject<'_> {
        let name = match self.name.as_str() {
            "" => self.object["metadata"]["generateName"].as_str().unwrap_or_default(),
            name => name,
        };
        Subject { group: kind.group, kind: kind.kind, namespace: &self.namespace, name }
    }

    /// Rejects an object in another version: the webhook configuration requests the one of the rules.
    fn in_version(&self, kind: &Kind) -> Result<(), Status> {
        if (&*self.kind.version, &*self.kind.kind) == (kind.version, kind.kind) {
            return Ok(());
        }
        Err(Status::bad_request(format!(
            "{} is validated in {}, not in {} {}",
            kind.kind, kind.version, self.kind.version, self.kind.kind
        )))
    }

    fn old(&self) -> Option<&Value> {
        (!self.old_object.is_null()).then_some(&self.old_object)
    }
}

impl Reviewer {
    /// `client` reads other objects that a rule needs.
    pub fn new(rules: Rules, converter: Converter, client: Client) -> Self {
        Self { rules, converter, providers: Vec::new(), client }
    }

    /// Adds conversions of a provider's kinds.
    #[must_use]
    pub fn converting(mut self, versions: impl IntoIterator<Item = ProviderVersions>) -> Self {
        self.providers.extend(versions);
        self
    }

    fn converted(&self, object: Value, version: &str) -> Result<Value, ConversionError> {
        match self.providers.iter().find(|provider| provider.know(&object)) {
            Some(provider) => (provider.convert)(object, version),
            None => self.converter.convert(object, version),
        }
    }

    /// The kind of a request, if there are rules for it and the request writes.
    fn kind_with_rules(&self, request: &Request) -> Option<Kind> {
        let written = matches!(request.operation.as_str(), "CREATE" | "UPDATE");
        self.rules.kind_of(&request.resource.group, &request.resource.resource).filter(|_| written)
    }

    /// Applies defaults: returns a review with a patch.
    pub async fn default(&self, review: Value) -> Result<Value, NotAReview> {
        let request = Request::read(review)?;
        let Some(kind) = self.kind_with_rules(&request).filter(|_| request.sub_resource.is_empty()) else {
            return Ok(answer(&request.uid, Ok(Answer::default())));
        };
        let result = self.patch(&request, &kind).await;
        Ok(answer(&request.uid, result.map(|patch| Answer { patch, ..Answer::default() })))
    }

    /// The changes that defaults make.
    async fn patch(&self, request: &Request, kind: &Kind) -> Result<Vec<Value>, Status> {
        request.in_version(kind)?;
        let others = Read { client: &self.client, user: &request.user_info };
        let mut object = request.object.clone();
        self.rules.apply_defaults(request.subject(kind), &mut object, request.old(), &others).await?;
        let mut patch = Vec::new();
        differences(&request.object, &object, "", &mut patch);
        Ok(patch)
    }

    pub async fn validate(&self, review: Value) -> Result<Value, NotAReview> {
        let request = Request::read(review)?;
        let result = self.verdict(&request).await;
        Ok(answer(&request.uid, result.map(|warnings| Answer { warnings, ..Answer::default() })))
    }

    /// Warnings about a request, or why it is rejected.
    async fn verdict(&self, request: &Request) -> Result<Vec<String>, Status> {
        let others = Read { client: &self.client, user: &request.user_info };
        if request.operation == "DELETE" && request.sub_resource.is_empty() {
            let kind = self.rules.kind_of(&request.resource.group, &request.resource.resource);
            let Some(kind) = kind else { return Ok(Vec::new()) };
            return self.rules.validate_deletion(request.subject(&kind), &others).await.map(|()| Vec::new());
        }
        let Some(kind) = self.kind_with_rules(request) else { return Ok(Vec::new()) };
        let subject = request.subject(&kind);
        match request.sub_resource.as_str() {
            "" => {
                request.in_version(&kind)?;
                self.rules.validate(subject, &request.object, request.old(), &others).await
            }
            "scale" => {
                let result = self.rules.validate_scale(subject, &request.object, &others).await;
                let result = result.map(|()| Vec::new());
                result.map_err(|why| Status::forbidden(kind.group, kind.plural, subject.name, why))
            }
            _ => Ok(Vec::new()),
        }
    }

    pub fn convert(&self, mut review: Value) -> Result<Value, NotAReview> {
        let unknown = || NotAReview("ConversionReview");
        if review["apiVersion"] != "apiextensions.k8s.io/v1" || review["kind"] != "ConversionReview" {
            return Err(unknown());
        }
        let request = review["request"].take();
        let (uid, wanted) = (&request["uid"], request["desiredAPIVersion"].as_str());
        let version = wanted.and_then(|wanted| wanted.rsplit('/').next()).ok_or_else(unknown)?;
        let objects = request["objects"].as_array().ok_or_else(unknown)?;
        if objects.len() > MAX_OBJECTS {
            return Err(unknown());
        }
        let converted: Result<Vec<Value>, _> =
            objects.iter().map(|object| self.converted(object.clone(), version)).collect();
        let response = match converted {
            Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
            Err(error) => json!({
                "uid": uid, "convertedObjects": [],
                "result": {"status": "Failure", "message": error.to_string()},
            }),
        };
        Ok(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response,
        }))
    }
}

/// What a review response says beside yes.
#[derive(Default)]
struct Answer {
    patch: Vec<Value>,
    warnings: Vec<String>,
}

/// A review response: allowed, with a patch and warnings if there are any, or rejected.
fn answer(uid: &str, result: Result<Answer, Status>) -> Value {
    let mut response = Map::from_iter([("uid".to_owned(), uid.into())]);
    response.insert("allowed".to_owned(), result.is_ok().into());
    match result {
        Ok(Answer { patch, warnings }) => {
            if !patch.is_empty() {
                response.insert("patchType".to_owned(), "JSONPatch".into());
                response.insert("patch".to_owned(), base64(&Value::Array(patch)).into());
            }
            if !warnings.is_empty() {
                response.insert("warnings".to_owned(), warnings.into());
            }
        }
        Err(status) => {
            response.insert("status".to_owned(), status.to_json());
        }
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

fn base64(value: &Value) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(value.to_string())
}

/// The JSON patch between two objects; lists are replaced as a whole.
fn differences(from: &Value, to: &Value, path: &str, patch: &mut Vec<Value>) {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        if from != to {
            patch.push(json!({"op": "replace", "path": path, "value": to}));
        }
        return;
    };
    for (key, value) in to {
        let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        match from.get(key) {
            Some(old) => differences(old, value, &path, patch),
            None => patch.push(json!({"op": "add", "path": path, "value": value})),
        }
    }
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        patch.push(json!({"op": "remove", "path": path}));
    }
}

/// Reads other objects from the API server.
struct Read<'r> {
    client: &'r Client,
    user: &'r UserInfo,
}

impl RelatedObjects for Read<'_> {
    fn get<'a>(&'a self, kind: &'a Kind, key: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        Box::pin(async move {
            let kind = KindName::from(*kind);
            self.find(&kind, key).await
        })
    }

    fn find<'a>(&'a self, kind: &'a KindName, key: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        Box::pin(async move {
            let reply = self.client.get_raw(kind, key).await;
            let parsed = reply.and_then(|reply| reply.map(|reply| reply.parse()).transpose());
            parsed.map_err(|error| Status::internal(format!("{kind} {key} cannot be read: {error}")))
        })
    }

    fn list<'a>(
        &'a self,
        kind: &'a KindName,
        namespace: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        Box::pin(async move {
            let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let options = ListOptions { labels: labels.join(","), ..ListOptions::default() };
            let found = self.client.list::<Value>(kind, namespace, &options).await;
            let found = found.map_err(|error| Status::internal(format!("{kind} cannot be listed: {error}")));
            found.map(|list| list.items)
        })
    }

    fn may_get<'a>(&'a self, kind: &'a Kind, key: &'a Key) -> BoxFuture<'a, Result<bool, Status>> {
        let UserInfo { username, uid, groups, extra } = self.user;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": username, "uid": uid, "groups": groups, "extra": extra,
                "resourceAttributes": {
                    "verb": "get", "group": kind.group, "version": kind.version, "resource": kind.plural,
                    "namespace": key.namespace, "name": key.name,
                },
            },
        });
        Box::pin(async move {
            let reply = self.client.create(&KindName::from(ACCESS_REVIEW), "", &review).await;
            let parsed: Result<Value, _> = reply.and_then(|reply| reply.parse());
            let review = parsed.map_err(|error| {
                Status::internal(format!("the rights of {username:?} cannot be read: {error}"))
            })?;
            Ok(review["status"]["allowed"] == true)
        })
    }
}
