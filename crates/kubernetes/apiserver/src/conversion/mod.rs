//! Conversion of custom resources between versions, by the strategy of their CustomResourceDefinition.
//!
//! Strategy `None` only changes the `apiVersion`; `Webhook` calls an external program with many objects at a time.
//! In-process converters take precedence.

mod answer;
pub(crate) mod builtin;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_env::Env;
use http::StatusCode;
use serde_json::{Value, json};

use crate::admission::GroupVersionKind;
use crate::registry::api_version;
use crate::status::Status;
use crate::webhook_client::{ClientConfig, WebhookClient};

/// Timeout of a conversion webhook, as upstream.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a conversion failed, with upstream's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConversionError(pub String);

impl From<ConversionError> for Status {
    fn from(error: ConversionError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", error.0)
    }
}

/// An in-process converter of one kind.
pub trait Convert: Send + Sync {
    /// Converts the object to another version of its group.
    fn convert(&self, object: Value, version: &str) -> Result<Value, String>;
}

/// How objects of one CustomResourceDefinition are converted.
#[derive(Debug, Clone)]
pub struct Strategy {
    group: String,
    versions: Vec<String>,
    kind: String,
    webhook: Option<Webhook>,
}

#[derive(Debug, Clone)]
struct Webhook {
    client: Result<ClientConfig, String>,
    review_versions: Vec<String>,
}

impl Strategy {
    /// From the `spec` of a CustomResourceDefinition.
    pub fn from_spec(spec: &Value) -> Self {
        let texts = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conversion = &spec["conversion"];
        let webhook = &conversion["webhook"];
        Self {
            group: text(&spec["group"]),
            versions: spec["versions"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|version| text(&version["name"]))
                .collect(),
            kind: text(&spec["names"]["kind"]),
            webhook: (conversion["strategy"] == "Webhook").then(|| Webhook {
                client: ClientConfig::from_json(&webhook["clientConfig"]),
                review_versions: texts(&webhook["conversionReviewVersions"]),
            }),
        }
    }

    pub fn calls_webhook(&self) -> bool {
        self.webhook.is_some()
    }
}

pub struct Conversions {
    client: Arc<WebhookClient>,
    env: Env,
    /// By group and kind.
    compiled_in: HashMap<(String, String), Arc<dyn Convert>>,
}

impl Conversions {
    /// Without in-process converters.
    pub fn new(client: Arc<WebhookClient>, env: Env) -> Self {
        Self { client, env, compiled_in: HashMap::new() }
    }

    /// Adds an in-process converter of a kind.
    #[must_use]
    pub fn with_kind(mut self, group: &str, kind: &str, convert: Arc<dyn Convert>) -> Self {
        self.compiled_in.insert((group.to_owned(), kind.to_owned()), convert);
        self
    }

    pub async fn convert(
        &self,
        strategy: &Strategy,
        object: Value,
        version: &str,
    ) -> Result<Value, ConversionError> {
        let subject = GroupVersionKind::of(&object);
        let mut converted = self.run(strategy, vec![object], version, &subject, Batch::One).await?;
        converted.pop().ok_or_else(|| {
            ConversionError(format!("conversion webhook for {subject} failed, no objects returned"))
        })
    }

    /// Converts many objects, in one call if a webhook is needed. Errors name `list`, the kind of their list.
    pub async fn convert_list(
        &self,
        strategy: &Strategy,
        objects: Vec<Value>,
        version: &str,
        list: &GroupVersionKind,
    ) -> Result<Vec<Value>, ConversionError> {
        self.run(strategy, objects, version, list, Batch::List).await
    }

    async fn run(
        &self,
        strategy: &Strategy,
        mut objects: Vec<Value>,
        version: &str,
        subject: &GroupVersionKind,
        batch: Batch,
    ) -> Result<Vec<Value>, ConversionError> {
        let wanted = api_version(&strategy.group, version);
        strategy.check_versions(&objects, version, batch)?;
        // Indexes of the objects in another version.
        let others: Vec<usize> =
            (0..objects.len()).filter(|&i| objects[i]["apiVersion"] != *wanted).collect();
        if others.is_empty() {
            return Ok(objects);
        }
        if let Some(convert) = self.compiled_in.get(&(strategy.group.clone(), strategy.kind.clone())) {
            for i in others {
                objects[i] = convert.convert(objects[i].take(), version).map_err(|why| {
                    ConversionError(format!("conversion of {subject} to {wanted} failed: {why}"))
                })?;
            }
            return Ok(objects);
        }
        let webhook = match &strategy.webhook {
            // An object without content needs no conversion.
            Some(webhook) if batch == Batch::List || !is_bare(&objects[0]) => webhook,
            _ => {
                for i in others {
                    objects[i]["apiVersion"] = wanted.as_str().into();
                }
                return Ok(objects);
            }
        };
        let sent: Vec<&Value> = others.iter().map(|&i| &objects[i]).collect();
        let converted = self.ask(webhook, &sent, &wanted, subject).await?;
        if converted.len() != others.len() {
            return Err(ConversionError(format!(
                "conversion webhook for {subject} returned {} objects, expected {}",
                converted.len(),
                others.len()
            )));
        }
        for (n, (i, mut object)) in others.into_iter().zip(converted).enumerate() {
            answer::check(&objects[i], &object, &wanted)
                .map_err(|wrong| wrong.describe(subject, batch, n))
                .and_then(|()| {
                answer::restore_metadata(&objects[i], &mut object)
                    .map_err(|why| batch.invalid_metadata(subject, n, &why))
            })?;
            objects[i] = object;
        }
        Ok(objects)
    }

    async fn ask(
        &self,
        webhook: &Webhook,
        objects: &[&Value],
        wanted: &str,
        subject: &GroupVersionKind,
    ) -> Result<Vec<Value>, ConversionError> {
        let failed = |why: &str| ConversionError(format!("conversion webhook for {subject} failed: {why}"));
        let known = webhook.review_versions.iter().find(|v| matches!(v.as_str(), "v1" | "v1beta1"));
        let version =
            known.ok_or_else(|| ConversionError("no supported conversion review versions".into()))?;
        let client = webhook.client.as_ref().map_err(|why| failed(why))?;
        let uid = self.env.uuid();
        let review = json!({
            "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        let answer = self.client.post(client, &review, TIMEOUT).await;
        let answer = answer.map_err(|error| failed(error.reason()))?;
        answer::objects(version, &uid, answer).map_err(|why| failed(&why))
    }
}

impl Strategy {
    fn check_versions(&self, objects: &[Value], to: &str, batch: Batch) -> Result<(), ConversionError> {
        let invalid = |direction: &str, at: &str| {
            ConversionError(format!("request to convert CR {direction} an invalid group/version: {at}"))
        };
        if !self.versions.iter().any(|version| version == to) {
            return Err(invalid("to", &api_version(&self.group, to)));
        }
        for (index, object) in objects.iter().enumerate() {
            let kind = GroupVersionKind::of(object);
            if kind.group == self.group && self.versions.contains(&kind.version) {
                continue;
            }
            return Err(match batch {
                Batch::One => invalid("from", &kind.api_version()),
                Batch::List => ConversionError(format!(
                    "request to convert CR list failed, list index {index} has invalid group/version: {}",
                    kind.api_version()
                )),
            });
        }
        Ok(())
    }
}

/// Whether one object or a list is converted: the errors differ.
#[derive(Clone, Copy, PartialEq)]
enum Batch {
    One,
    List,
}

impl Batch {
    fn invalid_metadata(self, subject: &GroupVersionKind, index: usize, why: &str) -> ConversionError {
        ConversionError(match self {
            Self::One => format!("conversion webhook for {subject} returned invalid metadata: {why}"),
            Self::List => format!(
                "conversion webhook for {subject} returned invalid metadata in object at index {index}: {why}"
            ),
        })
    }
}

/// Whether an object has nothing but its kind.
fn is_bare(object: &Value) -> bool {
    object.as_object().is_some_and(|fields| {
        fields.len() == 2 && fields.contains_key("kind") && fields.contains_key("apiVersion")
    })
}
