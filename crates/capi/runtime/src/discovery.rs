//! What a server reports about itself.

use std::collections::BTreeSet;

use capstan_capi_types::runtime::hook::{DEFAULT_TIMEOUT_SECONDS, DiscoveryResponse, MOST_TIMEOUT_SECONDS};
use capstan_capi_types::runtime::{ExtensionHandler, Hook};
use capstan_schema::meta;

/// Most handlers of one server.
const MOST: usize = 512;

/// The handlers in a discovery response, or everything that is wrong with it.
pub fn handlers(config: &str, response: &DiscoveryResponse) -> Result<Vec<ExtensionHandler>, String> {
    if response.handlers.len() > MOST {
        return Err(format!("the server has {} handlers, more than {MOST}", response.handlers.len()));
    }
    let (mut names, mut handlers, mut errors) = (BTreeSet::new(), Vec::new(), Vec::new());
    for handler in &response.handlers {
        let name = handler.name.as_str();
        if !names.insert(name) {
            errors.push(format!("duplicate name for handler {name} found"));
        }
        let problems = meta::dns1123_label(name);
        if !problems.is_empty() {
            errors.push(format!("handler name {name} is not valid: [{}]", problems.join(" ")));
        }
        let timeout = handler.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(0..=MOST_TIMEOUT_SECONDS).contains(&timeout) {
            errors.push(format!(
                "handler {name} timeoutSeconds {timeout} must be between 0 and {MOST_TIMEOUT_SECONDS}"
            ));
        }
        if handler.policy().is_none() {
            let policy = handler.failure_policy.as_deref().unwrap_or_default();
            errors.push(format!("handler {name} failurePolicy {policy} must equal \"Ignore\" or \"Fail\""));
        }
        let hook = &handler.request_hook;
        if Hook::find(&hook.api_version, &hook.hook).is_none_or(|hook| hook == Hook::Discovery) {
            errors.push(format!(
                "handler {name} requestHook {}/{} is not in the Runtime SDK catalog",
                hook.api_version, hook.hook
            ));
        }
        handlers.push(ExtensionHandler {
            name: format!("{name}.{config}"),
            request_hook: hook.clone(),
            timeout_seconds: timeout,
            failure_policy: handler.policy(),
        });
    }
    match errors.is_empty() {
        true => Ok(handlers),
        false => Err(errors.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(handler: Value) -> Result<Vec<ExtensionHandler>, String> {
        let mut all = json!({
            "name": "one",
            "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "GeneratePatches"},
        });
        let given = handler.as_object().cloned().unwrap_or_default();
        all.as_object_mut().expect("an object").extend(given);
        let response = serde_json::from_value(json!({"handlers": [all]})).expect("a response");
        handlers("ext", &response)
    }

    #[test]
    fn defaults_are_set_and_names_are_unique_across_servers() {
        let handler = &found(json!({})).expect("valid")[0];
        assert_eq!((handler.name.as_str(), handler.timeout_seconds), ("one.ext", 10));
        assert_eq!(handler.failure_policy.map(|policy| policy.as_str()), Some("Fail"));
    }

    #[test]
    fn what_upstream_rejects_is_rejected() {
        for (handler, problem) in [
            (json!({"name": "One"}), "handler name One is not valid"),
            (json!({"timeoutSeconds": 31}), "timeoutSeconds 31 must be between 0 and 30"),
            (json!({"failurePolicy": "Maybe"}), "failurePolicy Maybe must equal"),
            (json!({"requestHook": {"apiVersion": "a/b", "hook": "X"}}), "a/b/X is not in the Runtime SDK"),
        ] {
            let error = found(handler).expect_err(problem);
            assert!(error.contains(problem), "{error}");
        }
        let twice = json!({"handlers": [
            {"name": "a", "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "UpdateMachine"}},
            {"name": "a", "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "UpdateMachine"}},
        ]});
        let twice = serde_json::from_value(twice).expect("a response");
        assert_eq!(handlers("ext", &twice), Err("duplicate name for handler a found".to_owned()));
    }
}
