//! AdmissionReview requests and responses.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_schema::bounded::cut;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::admission::{AdmissionAttributes, GroupVersionKind, GroupVersionResource};
use crate::auth::review::user_info;
use crate::status::{Cause, Details, Status};

/// Most warnings read from one response, and bytes of each: more cannot be sent on.
const MAX_WARNINGS: usize = 1_000;
const MAX_WARNING: usize = 32 * 1024;
/// Longest text of a rejection, in bytes.
const MAX_DENIAL: usize = 16 * 1024;
/// Most causes of a rejection that are passed on.
const MAX_CAUSES: usize = 100;

/// The request of a review without uid and objects, for `matchConditions`.
pub(in crate::admission) fn request(
    attributes: &AdmissionAttributes,
    resource: &GroupVersionResource,
    kind: &GroupVersionKind,
) -> Map<String, Value> {
    let gvk =
        |kind: &GroupVersionKind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let gvr = |resource: &GroupVersionResource| json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
    let mut request = Map::from_iter([
        ("kind".to_owned(), gvk(kind)),
        ("resource".to_owned(), gvr(resource)),
        ("requestKind".to_owned(), gvk(&attributes.kind)),
        ("requestResource".to_owned(), gvr(&attributes.resource)),
        ("operation".to_owned(), attributes.operation.as_str().into()),
        ("userInfo".to_owned(), user_info(&attributes.user)),
        ("dryRun".to_owned(), attributes.dry_run.into()),
        ("options".to_owned(), attributes.options.clone().unwrap_or_default()),
    ]);
    for (field, text) in [
        ("subResource", &attributes.subresource),
        ("requestSubResource", &attributes.subresource),
        ("name", &attributes.name),
        ("namespace", &attributes.namespace),
    ] {
        if !text.is_empty() {
            request.insert(field.into(), text.as_str().into());
        }
    }
    request
}

/// The complete review. Objects are borrowed and serialized once, to the wire.
#[derive(Serialize)]
pub(super) struct Question<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: String,
    request: QuestionRequest<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QuestionRequest<'a> {
    uid: &'a str,
    #[serde(flatten)]
    about: Map<String, Value>,
    object: Option<&'a Value>,
    old_object: Option<&'a Value>,
}

impl<'a> Question<'a> {
    pub(super) fn new(
        version: &str,
        uid: &'a str,
        about: Map<String, Value>,
        object: Option<&'a Value>,
        old_object: Option<&'a Value>,
    ) -> Self {
        Self {
            kind: "AdmissionReview",
            api_version: format!("admission.k8s.io/{version}"),
            request: QuestionRequest { uid, about, object, old_object },
        }
    }
}

/// The first version of AdmissionReview that the webhook accepts and we support.
pub(super) fn version(accepted: &[String]) -> Result<&str, String> {
    let known = accepted.iter().map(String::as_str).find(|version| matches!(*version, "v1" | "v1beta1"));
    known.ok_or_else(|| "webhook does not accept known AdmissionReview versions (v1, v1beta1)".into())
}

/// The decision of a webhook.
pub(super) struct AdmissionVerdict {
    pub(super) allowed: bool,
    /// `status` of the response.
    pub(super) result: Value,
    /// A JSON patch; empty if there is none.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) warnings: Vec<String>,
}

/// Why a response cannot be decoded. The error is the part after `failed to call webhook: `.
pub(super) fn unreadable(version: &str, answer: &Value) -> Option<String> {
    let got = GroupVersionKind::of(answer);
    if got.group == "admission.k8s.io" && got.kind == "AdmissionReview" && got.version != version {
        let (from, to) = (&got.version, version);
        return Some(format!(
            "converting ({from}.AdmissionReview) to ({to}.AdmissionReview): unknown conversion"
        ));
    }
    let found = match &answer["response"]["allowed"] {
        Value::Null | Value::Bool(_) => return None,
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Some(format!(
        "json: cannot unmarshal {found} into Go struct field AdmissionResponse.response.allowed of type bool"
    ))
}

/// Validates a response. The error is the part after `received invalid webhook response: `.
pub(super) fn validate_response(
    version: &str,
    uid: &str,
    mutating: bool,
    answer: &Value,
) -> Result<AdmissionVerdict, String> {
    let response = &answer["response"];
    if !response.is_object() {
        return Err("webhook response was absent".into());
    }
    let text = |field: &str| response[field].as_str().unwrap_or_default();
    let patch = STANDARD.decode(text("patch")).map_err(|error| error.to_string())?;
    let has_type = !response["patchType"].is_null();
    let mut patch_type = text("patchType").to_owned();
    if version == "v1" {
        if text("uid") != uid {
            return Err(format!("expected response.uid={uid:?}, got {:?}", text("uid")));
        }
        let expected = GroupVersionKind::new("admission.k8s.io", "v1", "AdmissionReview");
        let got = GroupVersionKind::of(answer);
        if got != expected {
            return Err(format!("expected webhook response of {expected}, got {got}"));
        }
        match (mutating, !patch.is_empty(), has_type) {
            (true, true, false) => {
                return Err("webhook returned response.patch but not response.patchType".into());
            }
            (true, false, true) => {
                return Err("webhook returned response.patchType but not response.patch".into());
            }
            (true, _, true) if patch_type.is_empty() => {
                return Err("webhook returned invalid response.patchType of \"\"".into());
            }
            (false, true, _) => return Err("validating webhook may not return response.patch".into()),
            (false, _, true) => return Err("validating webhook may not return response.patchType".into()),
            _ => {}
        }
    } else {
        // v1beta1 required neither uid nor patch type.
        patch_type = "JSONPatch".into();
    }
    Ok(AdmissionVerdict {
        allowed: response["allowed"].as_bool().unwrap_or_default(),
        result: response["status"].clone(),
        patch: if mutating { patch } else { Vec::new() },
        patch_type,
        warnings: response["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|warning| warning.as_str().map(|text| cut(text, MAX_WARNING)))
            .take(MAX_WARNINGS)
            .collect(),
    })
}

/// A rejection with the webhook's own code, reason and details.
pub(super) fn denial(webhook: &str, result: &Value) -> Status {
    let text = |value: &Value| cut(value.as_str().unwrap_or_default(), MAX_DENIAL);
    let denied = format!("admission webhook {webhook:?} denied the request");
    let reason = text(&result["reason"]);
    let message = match (text(&result["message"]).as_str(), reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    // A rejection never has a success code.
    let code = result["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
    let code = if code < 400 { 400 } else { code };
    let details = &result["details"];
    let causes = details["causes"].as_array().into_iter().flatten();
    let retry_after =
        details["retryAfterSeconds"].as_u64().and_then(|s| u32::try_from(s).ok()).unwrap_or_default();
    Status {
        code,
        reason: reason.into(),
        message,
        details: details.is_object().then(|| {
            Box::new(Details {
                name: text(&details["name"]),
                group: text(&details["group"]),
                kind: text(&details["kind"]),
                uid: text(&details["uid"]),
                causes: causes
                    .take(MAX_CAUSES)
                    .map(|cause| Cause {
                        reason: text(&cause["reason"]),
                        message: text(&cause["message"]),
                        field: text(&cause["field"]),
                    })
                    .collect(),
                retry_after_seconds: retry_after,
            })
        }),
        retry_after: (retry_after > 0).then_some(retry_after),
        continue_token: None,
    }
}
