//! The rules as a webhook: reviews in, reviews out.
//!
//! ```text
//! AdmissionReview  ── default, validate ──▶ allowed, with a patch │ refused, with a Status
//! ConversionReview ── convert ──▶ objects in the version asked for
//! ```
//!
//! Everything that comes in was sent by an API server, and by whoever else reaches the port: what is not a review is
//! an error, never a panic, and nothing is written.

use capstan_apiserver::status::Status;
use capstan_capi_types::conversion::{ConversionError, Converter};
use capstan_controller::Client;
use capstan_object::{Key, Kind};
use capstan_provider_kit::ProviderVersions;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::rules::{Others, Rules, Subject};

/// Most objects one conversion may ask for; API servers send a page of a list at a time.
const MOST_OBJECTS: usize = 10_000;

/// Why something is no review.
#[derive(Debug, thiserror::Error)]
#[error("this is no {0} of a version known here")]
pub struct NoReview(&'static str);

/// Answers reviews.
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
    fn read(review: Value) -> Result<Self, NoReview> {
        let unknown = || NoReview("AdmissionReview");
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

    /// Refuses an object in another version: the configuration asks for the one of the rules.
    fn in_version(&self, kind: &Kind) -> Result<(), Status> {
        if (&*self.kind.version, &*self.kind.kind) == (kind.version, kind.kind) {
            return Ok(());
        }
        Err(Status::bad_request(format!(
            "{} is judged in {}, not in {} {}",
            kind.kind, kind.version, self.kind.version, self.kind.kind
        )))
    }

    fn old(&self) -> Option<&Value> {
        (!self.old_object.is_null()).then_some(&self.old_object)
    }
}

impl Reviewer {
    /// Judges by `rules`, converts by `converter`, and reads what a rule asks for beside the object with `client`.
    pub fn new(rules: Rules, converter: Converter, client: Client) -> Self {
        Self { rules, converter, providers: Vec::new(), client }
    }

    /// Converts a provider's kinds too.
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

    /// The kind that is judged, if there are rules for it and something is written.
    fn judged(&self, request: &Request) -> Option<Kind> {
        let written = matches!(request.operation.as_str(), "CREATE" | "UPDATE");
        self.rules.kind_of(&request.resource.group, &request.resource.resource).filter(|_| written)
    }

    /// Fills in defaults: a review with a patch.
    pub fn default(&self, review: Value) -> Result<Value, NoReview> {
        let request = Request::read(review)?;
        let Some(kind) = self.judged(&request).filter(|_| request.sub_resource.is_empty()) else {
            return Ok(answer(&request.uid, Ok(None)));
        };
        let verdict = request.in_version(&kind).and_then(|()| {
            let mut object = request.object.clone();
            self.rules.fill_in(request.subject(&kind), &mut object, request.old())?;
            let mut patch = Vec::new();
            differences(&request.object, &object, "", &mut patch);
            Ok(Some(patch).filter(|patch| !patch.is_empty()))
        });
        Ok(answer(&request.uid, verdict))
    }

    /// Lets a request pass or refuses it.
    pub async fn validate(&self, review: Value) -> Result<Value, NoReview> {
        let request = Request::read(review)?;
        let Some(kind) = self.judged(&request) else { return Ok(answer(&request.uid, Ok(None))) };
        let subject = request.subject(&kind);
        let others = Read(&self.client);
        let verdict = match request.sub_resource.as_str() {
            "" => match request.in_version(&kind) {
                Ok(()) => self.rules.validate(subject, &request.object, request.old(), &others).await,
                Err(status) => Err(status),
            },
            "scale" => {
                let verdict = self.rules.validate_scale(subject, &request.object, &others).await;
                verdict.map_err(|why| Status::forbidden(kind.group, kind.plural, subject.name, why))
            }
            _ => Ok(()),
        };
        Ok(answer(&request.uid, verdict.map(|()| None)))
    }

    /// Converts the objects of a review.
    pub fn convert(&self, mut review: Value) -> Result<Value, NoReview> {
        let unknown = || NoReview("ConversionReview");
        if review["apiVersion"] != "apiextensions.k8s.io/v1" || review["kind"] != "ConversionReview" {
            return Err(unknown());
        }
        let request = review["request"].take();
        let (uid, wanted) = (&request["uid"], request["desiredAPIVersion"].as_str());
        let version = wanted.and_then(|wanted| wanted.rsplit('/').next()).ok_or_else(unknown)?;
        let objects = request["objects"].as_array().ok_or_else(unknown)?;
        if objects.len() > MOST_OBJECTS {
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

/// A review with a verdict: allowed, with a patch if there is one, or refused.
fn answer(uid: &str, verdict: Result<Option<Vec<Value>>, Status>) -> Value {
    let mut response = Map::from_iter([("uid".to_owned(), uid.into())]);
    response.insert("allowed".to_owned(), verdict.is_ok().into());
    match verdict {
        Ok(None) => {}
        Ok(Some(patch)) => {
            response.insert("patchType".to_owned(), "JSONPatch".into());
            response.insert("patch".to_owned(), base64(&Value::Array(patch)).into());
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

/// The JSON patch from one object to another that has more or other fields; lists are replaced as a whole.
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

/// Other objects, read from the API server.
struct Read<'a>(&'a Client);

impl Others for Read<'_> {
    fn get<'a>(&'a self, kind: &'a Kind, key: &'a Key) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        Box::pin(async move {
            let reply = self.0.get_raw(&(*kind).into(), key).await;
            let parsed = reply.and_then(|reply| reply.map(|reply| reply.parse()).transpose());
            parsed.map_err(|error| Status::internal(format!("{} {key} cannot be read: {error}", kind.plural)))
        })
    }
}
