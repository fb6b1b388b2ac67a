//! The parameters of a binding.

use serde_json::Value;

use super::compiled::ParamRef;
use crate::admission::{AdmissionAttributes, GroupVersionKind, Representations};

/// Most parameters of one binding that one request is evaluated with.
const MAX_PARAMS: usize = 1_000;

/// The objects to evaluate a policy with, null if it has none. Empty if a binding refers to nothing and allows that.
/// The error is a failure of the configuration.
pub(super) async fn collect(
    kind: Option<&GroupVersionKind>,
    reference: Option<&ParamRef>,
    attributes: &AdmissionAttributes,
    representations: &dyn Representations,
) -> Result<Vec<Value>, String> {
    let (Some(kind), Some(reference)) = (kind, reference) else { return Ok(vec![Value::Null]) };
    let Some(namespaced) = representations.is_namespaced(kind) else {
        return Err(format!("paramKind kind `{kind}` not known"));
    };
    let namespace = match (namespaced, reference.namespace.as_str()) {
        (false, "") => "",
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into());
        }
        (true, "") if attributes.namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .into(),
            );
        }
        (true, "") => &attributes.namespace,
        (true, namespace) => namespace,
    };
    let name = Some(reference.name.as_str()).filter(|name| !name.is_empty());
    let mut params = representations.objects(kind, namespace, name).await.map_err(|status| status.message)?;
    match (name, &reference.selector) {
        (Some(_), Some(_)) => {
            return Err("paramRef.name and paramRef.selector are mutually exclusive".into());
        }
        (Some(_), None) => {}
        (None, Some(selector)) => {
            let selector = selector.as_ref().map_err(Clone::clone)?;
            params.retain(|param| selector.matches_labels(param["metadata"]["labels"].as_object()));
        }
        (None, None) => return Err("one of name or selector must be provided".into()),
    }
    if params.len() > MAX_PARAMS {
        let found = params.len();
        return Err(format!(
            "paramRef.selector selects {found} objects, the limit is {MAX_PARAMS}: select fewer"
        ));
    }
    if params.is_empty() && reference.deny_if_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(params)
}
