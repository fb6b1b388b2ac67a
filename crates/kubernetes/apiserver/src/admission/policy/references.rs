//! Whether a user may refer to the parameters of a policy. The server reads them for every request, so that their
//! content could leak through messages to somebody who may not read them.

use capstan_schema::field::{FieldError, FieldErrors};
use serde_json::Value;

use crate::admission::GroupVersionKind;
use crate::auth::{Attributes, MASTERS};
use crate::call::Call;

/// Errors of a policy or binding whose author may not read the parameters. References that an update does not
/// change are not checked.
pub(crate) fn check(call: &Call, object: &Value, current: Option<&Value>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let resource = call.resource();
    if resource.group != "admissionregistration.k8s.io"
        || !call.subresource().is_empty()
        || call.user.in_group(MASTERS)
    {
        return errors;
    }
    let changed = |keys: &[&str]| {
        current.is_none_or(|current| keys.iter().any(|key| current["spec"][key] != object["spec"][key]))
    };
    match resource.kind.as_str() {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy"
            if object["spec"]["paramKind"].is_object() && changed(&["paramKind"]) =>
        {
            let kind = &object["spec"]["paramKind"];
            let attributes = attributes(call, Some(kind), "get", "*", "*");
            if !call.parts.authorizer.authorize(&attributes).allowed() {
                let text = |key: &str| kind[key].as_str().unwrap_or_default();
                let why = format!(
                    "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, \
                     apiVersion={})",
                    call.user.name,
                    text("kind"),
                    text("apiVersion")
                );
                errors.push(FieldError::forbidden("spec.paramKind", why));
            }
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding"
            if object["spec"]["paramRef"].is_object() && changed(&["paramRef", "policyName"]) =>
        {
            if let Some(why) = binding(call, &object["spec"]) {
                errors.push(FieldError::forbidden("spec.paramRef", why));
            }
        }
        _ => {}
    }
    errors
}

/// Why the author of a binding may not refer to its parameters.
fn binding(call: &Call, spec: &Value) -> Option<String> {
    let policies = call.resource().bucket.replace("policybindings", "policies");
    let policy_name = spec["policyName"].as_str().unwrap_or_default();
    let entry = call.parts.store.get(&policies, policy_name);
    let policy: Option<Value> = entry.and_then(|entry| serde_json::from_slice(&entry.value).ok());
    let kind = policy.as_ref().map(|policy| &policy["spec"]["paramKind"]).filter(|kind| kind.is_object());
    let text = |key: &str| spec["paramRef"][key].as_str().unwrap_or_default();
    let verb = if text("name").is_empty() { "list" } else { "get" };
    let attributes = attributes(call, kind, verb, text("namespace"), text("name"));
    if call.parts.authorizer.authorize(&attributes).allowed() {
        return None;
    }
    let user = &call.user.name;
    let unknown = "to determine minimum required permissions and user";
    let everything =
        format!("{user} does not have {verb:?} permission for all groups, versions and resources");
    Some(match (&policy, kind) {
        (None, _) => format!("unable to get policy {policy_name} {unknown} {everything}"),
        (Some(_), Some(kind)) if attributes.resource == "*" => {
            format!("unable to resolve paramKind {} {unknown} {everything}", GroupVersionKind::of(kind))
        }
        _ => format!("user {user} does not have {verb:?} permission on the object referenced by paramRef"),
    })
}

/// A question about parameters. What is not known is `*`, which only those have who have everything.
fn attributes(call: &Call, kind: Option<&Value>, verb: &str, namespace: &str, name: &str) -> Attributes {
    let (mut group, mut version, mut resource) = ("*".to_owned(), "*".to_owned(), "*".to_owned());
    if let Some(kind) = kind.map(GroupVersionKind::of) {
        if let Some(found) = call.registry.find_kind(&kind.group, &kind.kind) {
            resource = found.plural.clone();
        }
        (group, version) = (kind.group, kind.version);
    }
    Attributes {
        user: call.user.clone(),
        verb: verb.to_owned().into(),
        group,
        version,
        resource,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    }
}
