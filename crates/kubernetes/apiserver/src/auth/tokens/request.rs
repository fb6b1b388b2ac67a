//! The TokenRequest API: `serviceaccounts/<name>/token`.

use capstan_schema::field::FieldError;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::bound::{Bindings, Reference};
use super::{ServiceAccountTokens, uid};
use crate::admission::GroupVersionKind;
use crate::auth::{bucket, key};
use crate::status::{Result, Status};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const DEFAULT_SECONDS: i64 = 3600;
const LEAST_SECONDS: i64 = 600;
const MOST_SECONDS: i64 = 1 << 32;
/// The lifetime that kubelets request for pods that did not choose one. Such tokens are valid for a year, for
/// programs that never reload the token.
const INJECTED_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

impl ServiceAccountTokens {
    /// Sets the lifetime, which the client then owns as if it had named it.
    pub fn default_request(request: &mut Value) {
        if request["spec"].is_object() && request["spec"]["expirationSeconds"].is_null() {
            request["spec"]["expirationSeconds"] = DEFAULT_SECONDS.into();
        }
    }

    /// Prepares a request for admission: sets metadata, audiences and lifetime, clears the status, validates.
    pub fn prepare_request(&self, namespace: &str, name: &str, request: &mut Value) -> Result<()> {
        for (field, own, what) in [
            ("name", name, "must match the service account name if specified"),
            ("namespace", namespace, "must match the service account namespace if specified"),
        ] {
            let given = request["metadata"][field].as_str().unwrap_or_default();
            if !given.is_empty() && given != own {
                let error = FieldError::invalid(format!("metadata.{field}"), given, what);
                return Err(Status::invalid(GROUP, KIND, name, [error]));
            }
        }
        let account = self
            .source
            .get(bucket::SERVICE_ACCOUNTS, &key(namespace, name))
            .ok_or_else(|| Status::not_found("", "serviceaccounts", name))?;
        let given_uid = request["metadata"]["uid"].as_str().unwrap_or_default();
        if !given_uid.is_empty() && given_uid != uid(&account) {
            let why = format!(
                "the UID in the token request ({given_uid}) does not match the UID of the service account ({})",
                uid(&account)
            );
            return Err(Status::conflict(GROUP, KIND, name, why));
        }
        if !request["metadata"].is_object() {
            request["metadata"] = Value::Object(Map::new());
        }
        request["metadata"]["name"] = name.into();
        request["metadata"]["namespace"] = namespace.into();
        request["metadata"]["uid"] = uid(&account).into();
        request["metadata"]["creationTimestamp"] = self.env.now_rfc3339().into();
        if !request["spec"].is_object() {
            request["spec"] = Value::Object(Map::new());
        }
        let spec = &mut request["spec"];
        if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
            spec["audiences"] = self.audiences.clone().into();
        }
        if spec["expirationSeconds"].is_null() {
            spec["expirationSeconds"] = DEFAULT_SECONDS.into();
        }
        if spec.get("boundObjectRef").is_none() {
            spec["boundObjectRef"] = Value::Null;
        }
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or_default();
        request["status"] = json!({"token": "", "expirationTimestamp": null});
        let too = match seconds {
            ..LEAST_SECONDS => "may not specify a duration less than 10 minutes",
            LEAST_SECONDS..=MOST_SECONDS => return Ok(()),
            _ => "may not specify a duration larger than 2^32 seconds",
        };
        let error = FieldError::invalid("spec.expirationSeconds", seconds, too);
        Err(Status::invalid(GROUP, KIND, "", [error]))
    }

    /// Adds a token to a prepared request.
    pub fn grant_request(&self, mut request: Value) -> Result<Value> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&request["metadata"]["namespace"]), text(&request["metadata"]["name"]));
        let account = self
            .source
            .get(bucket::SERVICE_ACCOUNTS, &key(&namespace, &name))
            .ok_or_else(|| Status::not_found("", "serviceaccounts", &name))?;
        let bindings = self.bindings(&namespace, &name, &request["spec"]["boundObjectRef"])?;
        let audiences: Vec<String> =
            request["spec"]["audiences"].as_array().into_iter().flatten().map(text).collect();
        let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);

        let for_us = audiences.iter().all(|audience| self.audiences.contains(audience));
        let extended = bindings.pod.is_some() && seconds == INJECTED_SECONDS && for_us;
        let (lifetime, warn_after) = match extended {
            true => (EXTENDED_SECONDS, Some(seconds)),
            false => (seconds, None),
        };
        let ends = self.env.now() + SignedDuration::from_secs(seconds);
        let token = self
            .issue(&account, &bindings, &audiences, lifetime, warn_after)
            .map_err(|error| Status::internal(format!("failed to generate token: {error}")))?;
        request["status"] = json!({
            "token": token,
            "expirationTimestamp": ends.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        });
        Ok(request)
    }

    fn bindings(&self, namespace: &str, account: &str, reference: &Value) -> Result<Bindings> {
        if !reference.is_object() {
            return Ok(Bindings::default());
        }
        let kind = GroupVersionKind::of(reference);
        let name = reference["name"].as_str().unwrap_or_default();
        let (bucket, key, resource) = match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Pod") => (bucket::PODS, key(namespace, name), "pods"),
            ("", "Secret") => (bucket::SECRETS, key(namespace, name), "secrets"),
            ("", "Node") => (bucket::NODES, name.to_owned(), "nodes"),
            _ => return Err(Status::bad_request(format!("cannot bind token to object of type {kind}"))),
        };
        let object = self.source.get(bucket, &key).ok_or_else(|| Status::not_found("", resource, name))?;
        let mut bindings = Bindings::default();
        let bound = Some(Reference::to(&object));
        match resource {
            "pods" => {
                let runs_as = object["spec"]["serviceAccountName"].as_str().unwrap_or_default();
                if runs_as != account {
                    return Err(Status::bad_request(format!(
                        "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                    )));
                }
                bindings.pod = bound;
                if let Some(node) = object["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
                    let stored = self.source.get(bucket::NODES, node);
                    let named = Reference { name: node.to_owned(), uid: String::new() };
                    bindings.node = Some(stored.map_or(named, |node| Reference::to(&node)));
                }
            }
            "secrets" => bindings.secret = bound,
            _ => bindings.node = bound,
        }
        let wanted = reference["uid"].as_str().unwrap_or_default();
        if !wanted.is_empty() && wanted != uid(&object) {
            let why = format!(
                "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(Status::conflict("", &kind.kind, name, why));
        }
        Ok(bindings)
    }
}
