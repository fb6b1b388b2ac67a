//! Recording of requests: who did what, with which outcome.
//!
//! ```text
//! received ─▶ identified: the policy decides ─▶ RequestReceived ─▶ … ─▶ answered ─▶ ResponseStarted, of a watch
//!                                                                         └──▶ ResponseComplete, when the body has ended
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ::http::{HeaderMap, header, request};
use capstan_audit::{
    AuditLog, Decision, Document, Event, Level, ObjectReference, Policy, Request, ResponseStatus, Stage,
    UserInfo, Webhook,
};
use capstan_env::Env;
use capstan_schema::bounded::cut_text;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::auth::User;
use crate::http::info::RequestInfo;
use crate::http::names;
use crate::reply::Reply;
use crate::status::Status;

/// Bytes of an `Audit-ID` that a client may choose.
const MAX_ID: usize = 64;
/// Bytes of a response that are recorded, as kube-apiserver limits an event in its batches: a longer one is left out.
const MAX_RESPONSE: u64 = 10 * 1024 * 1024;
/// Responses above this size are recorded by only so many requests at a time, since each is copied several times.
const LARGE_RESPONSE: u64 = 64 * 1024;
static RECORDING: Semaphore = Semaphore::const_new(4);
/// Set where the response was left out.
const TRUNCATED: &str = "audit.k8s.io/truncated";
/// Causes of an error on a confidential object that are recorded.
const MAX_CAUSES: usize = 16;
/// Bytes of a field's path in such an error.
const MAX_FIELD: usize = 256;
/// Bytes of a user agent that are recorded.
const MAX_USER_AGENT: usize = 1024;

/// What a server records, and where.
pub struct Audit {
    pub policy: Policy,
    pub log: Option<AuditLog>,
    pub webhook: Option<Webhook>,
}

/// The address that a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemoteAddress(pub IpAddr);

/// The id of a request: the client's, so that it can be followed through several servers, or a new one.
pub(crate) fn request_id(headers: &HeaderMap, env: &Env) -> String {
    let given = headers.get(&names::AUDIT_ID).and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    given.map_or_else(|| env.uuid(), |id| id.chars().take(MAX_ID).collect())
}

/// The record of one request.
pub(crate) struct Record {
    audit: Arc<Audit>,
    env: Env,
    decision: Decision,
    event: Event,
}

impl Record {
    pub fn new(audit: &Arc<Audit>, env: &Env, id: &str, head: &request::Parts, info: &RequestInfo) -> Self {
        let now = env.now();
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let event = Event {
            kind: Event::KIND,
            api_version: Event::API_VERSION,
            level: Level::None,
            audit_id: id.to_owned(),
            stage: Stage::RequestReceived,
            request_uri: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: info.verb.clone().into_owned(),
            user: UserInfo::default(),
            impersonated_user: None,
            source_ips: source_addresses(head),
            user_agent: text(header::USER_AGENT).chars().take(MAX_USER_AGENT).collect(),
            object_ref: info.is_resource.then(|| ObjectReference {
                resource: info.resource.clone(),
                namespace: info.namespace.clone(),
                name: info.name.clone(),
                api_group: info.group.clone(),
                api_version: info.version.clone(),
                subresource: info.subresource.clone(),
            }),
            response_status: None,
            request_object: None,
            response_object: None,
            request_received_timestamp: now,
            stage_timestamp: now,
            annotations: Default::default(),
        };
        Self { audit: audit.clone(), env: env.clone(), decision: Decision::default(), event }
    }

    /// The client is known: the policy decides what is recorded.
    pub async fn identified(&mut self, user: &User, info: &RequestInfo) {
        self.decide(user, info);
        self.record(Stage::RequestReceived).await;
    }

    fn decide(&mut self, user: &User, info: &RequestInfo) {
        self.decision = self.audit.policy.decide(&Request {
            user: &user.name,
            groups: &user.groups,
            verb: &info.verb,
            is_resource: info.is_resource,
            namespace: &info.namespace,
            group: &info.group,
            resource: &info.resource,
            subresource: &info.subresource,
            name: &info.name,
            path: &info.path,
        });
        self.event.level = self.decision.level;
        self.event.user = user_info(user);
    }

    /// The client could not be authenticated. Recorded as if nobody had sent the request.
    pub async fn not_authenticated(&mut self, info: &RequestInfo, status: &Status) {
        self.decide(&User::default(), info);
        self.event.response_status = Some(response_status(401, Some(status)));
        self.record(Stage::ResponseStarted).await;
        self.decision = Decision::default();
    }

    pub fn impersonates(&mut self, user: &User) {
        self.event.impersonated_user = Some(user_info(user));
    }

    pub fn authorized(&mut self, allowed: bool, reason: &str) {
        let decision = if allowed { "allow" } else { "forbid" };
        let annotations = &mut self.event.annotations;
        annotations.insert("authorization.k8s.io/decision".to_owned(), decision.to_owned());
        annotations.insert("authorization.k8s.io/reason".to_owned(), reason.to_owned());
    }

    /// Adds annotations of admission.
    pub fn annotate(&mut self, annotations: BTreeMap<String, String>) {
        self.event.annotations.extend(annotations);
    }

    /// Whether bodies of requests are recorded.
    pub fn wants_request(&self) -> bool {
        self.decision.level >= Level::Request
    }

    pub fn request_object(&mut self, object: Value) {
        self.event.request_object = Some((&self.without_managed_fields(object)).into());
    }

    fn without_managed_fields(&self, mut object: Value) -> Value {
        if self.decision.omit_managed_fields {
            let forget = |object: &mut Value| {
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("managedFields");
                }
            };
            forget(&mut object);
            if let Some(items) = object.get_mut("items").and_then(Value::as_array_mut) {
                items.iter_mut().for_each(forget);
            }
        }
        object
    }

    /// The response is ready. A watch is complete when its body has ended, everything else now.
    pub async fn answered(mut self, failure: Option<&Status>, reply: &mut Reply) {
        if self.decision.level == Level::None {
            return;
        }
        self.event.response_status = Some(response_status(reply.status().as_u16(), failure));
        if reply.body().is_long_running() {
            self.record(Stage::ResponseStarted).await;
            reply.body_mut().at_end(self);
            return;
        }
        let whole = self.decision.level >= Level::RequestResponse && is_json(reply.headers());
        let size = reply.body().known_size().filter(|_| whole);
        let turn = match size {
            Some(size) if size > LARGE_RESPONSE => RECORDING.acquire().await.ok(),
            _ => None,
        };
        if size.is_some_and(|size| size > MAX_RESPONSE) {
            self.event.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
        } else if size.is_some()
            && let Some(bytes) = reply.body().bytes()
        {
            self.event.response_object = Document::from_json(&bytes, self.decision.omit_managed_fields);
        }
        self.record(Stage::ResponseComplete).await;
        drop(turn);
    }

    async fn record(&mut self, stage: Stage) {
        if self.decision.records(stage) {
            self.event.stage = stage;
            self.event.stage_timestamp = self.env.now();
            if let Some(webhook) = &self.audit.webhook {
                webhook.record(&self.event);
            }
            if let Some(log) = &self.audit.log {
                log.record(&self.event).await;
            }
        }
    }
}

/// A long response has ended, or its client has gone.
impl crate::reply::AtEnd for Record {
    fn ended(mut self: Box<Self>) {
        // A runtime that is shutting down takes no more tasks; its watches end with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { self.record(Stage::ResponseComplete).await });
        }
    }
}

fn user_info(user: &User) -> UserInfo {
    UserInfo {
        username: user.name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
    }
}

fn response_status(code: u16, failure: Option<&Status>) -> ResponseStatus {
    let json = failure.map(Status::to_json).unwrap_or_default();
    let text = |field: &str| json[field].as_str().unwrap_or_default().to_owned();
    ResponseStatus {
        status: text("status"),
        message: text("message"),
        reason: text("reason"),
        code,
        ..ResponseStatus::default()
    }
}

/// An error on a confidential object, as it is recorded: its message may quote the object, so only the fields and what
/// is wrong with them are kept. The client gets the whole message, which is upstream's.
pub(crate) fn without_values(mut status: Status) -> Status {
    // Errors of other codes name the object and nothing in it.
    if !matches!(status.code, 400 | 422 | 500) {
        return status;
    }
    let causes = status.details.as_deref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let mut fields: Vec<String> = causes
        .iter()
        .take(MAX_CAUSES)
        .map(|cause| format!("{}: {}", cut_text(cause.field.clone(), MAX_FIELD), cause.reason))
        .collect();
    if let Some(more) = causes.len().checked_sub(MAX_CAUSES).filter(|more| *more > 0) {
        fields.push(format!("and {more} more"));
    }
    status.message = match fields.as_slice() {
        [] => "not recorded: the message may quote the object, which is confidential".to_owned(),
        fields => format!("{} (values are not recorded: the object is confidential)", fields.join(", ")),
    };
    status
}

/// Addresses as the client and proxies state them, then the one that is certain.
fn source_addresses(head: &request::Parts) -> Vec<String> {
    let stated = ["x-forwarded-for", "x-real-ip"].into_iter().filter_map(|name| head.headers.get(name));
    let stated = stated.filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
    let mut all: Vec<IpAddr> = stated.filter_map(|text| text.trim().parse().ok()).take(16).collect();
    all.extend(head.extensions.get::<RemoteAddress>().map(|address| address.0));
    all.dedup();
    all.iter().map(ToString::to_string).collect()
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

#[cfg(test)]
mod tests {
    use capstan_schema::field::FieldError;

    use super::*;

    #[test]
    fn what_is_recorded_of_an_error_on_a_secret_has_no_values() {
        let shown = r#"{"data":{"password":"aGlkZGVu"}}"#;
        let wrong = || FieldError::invalid("patch", shown, format!("cannot decode {shown}"));
        for (status, message) in [
            (
                Status::invalid("", "Secret", "s", [wrong()]),
                "patch: FieldValueInvalid (values are not recorded: the object is confidential)",
            ),
            (
                Status::bad_request(format!("Object 'Kind' is missing in '{shown}'")),
                "not recorded: the message may quote the object, which is confidential",
            ),
        ] {
            assert!(status.message.contains("aGlkZGVu"));
            let recorded = response_status(status.code, Some(&without_values(status)));
            assert_eq!(recorded.message, message);
        }
        let many = Status::invalid("", "Secret", "s", (0..20).map(|_| wrong()).collect::<Vec<_>>());
        assert!(without_values(many).message.contains("and 4 more"));
        let missing = Status::not_found("", "secrets", "s");
        assert_eq!(without_values(missing.clone()).message, missing.message);
    }
}
