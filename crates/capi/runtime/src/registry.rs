//! The handlers of all extension servers.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::annotation;
use capstan_capi_types::runtime::extension_config::condition;
use capstan_capi_types::runtime::hook::DEFAULT_TIMEOUT_SECONDS;
use capstan_capi_types::runtime::{ExtensionConfig, ExtensionHandler, FailurePolicy, Hook};

/// A handler and its server.
#[derive(Debug, Clone)]
pub struct Registration {
    pub config: Arc<ExtensionConfig>,
    pub handler: ExtensionHandler,
    pub hook: Hook,
}

impl Registration {
    pub fn timeout(&self) -> Duration {
        let seconds = match self.handler.timeout_seconds {
            0 => DEFAULT_TIMEOUT_SECONDS,
            seconds => seconds,
        };
        Duration::from_secs(seconds.try_into().unwrap_or_default())
    }

    pub fn ignores_failures(&self) -> bool {
        self.handler.failure_policy == Some(FailurePolicy::Ignore)
    }

    /// The handler's name on its server.
    pub fn own_name(&self) -> &str {
        let suffix = format!(".{}", self.config.metadata.name);
        self.handler.name.strip_suffix(&suffix).unwrap_or(&self.handler.name)
    }
}

/// Handlers by name. Those of a server that fails discovery stay until it succeeds again.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    all: Vec<Registration>,
    /// Servers that nobody has asked yet what they answer.
    undiscovered: Vec<Arc<ExtensionConfig>>,
}

impl Registry {
    pub fn of(configs: &[Arc<ExtensionConfig>]) -> Self {
        let mut registry = Self::default();
        for config in configs.iter().filter(|config| !config.metadata.is_deleting()) {
            let asked = config.status.conditions.iter().any(|it| it.kind == condition::DISCOVERED);
            if !asked && !config.metadata.annotations.contains_key(annotation::PAUSED) {
                registry.undiscovered.push(config.clone());
            }
            for handler in &config.status.handlers {
                let hook = &handler.request_hook;
                if let Some(hook) = Hook::find(&hook.api_version, &hook.hook) {
                    registry.all.push(Registration {
                        config: config.clone(),
                        handler: handler.clone(),
                        hook,
                    });
                }
            }
        }
        registry.all.sort_by(|a, b| a.handler.name.cmp(&b.handler.name));
        registry
    }

    pub fn get(&self, name: &str) -> Option<&Registration> {
        self.all.iter().find(|registration| registration.handler.name == name)
    }

    /// The handlers of a hook, by name.
    pub fn of_hook(&self, hook: Hook) -> impl Iterator<Item = &Registration> {
        self.all.iter().filter(move |registration| registration.hook == hook)
    }

    pub fn undiscovered(&self) -> &[Arc<ExtensionConfig>] {
        &self.undiscovered
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: serde_json::Value) -> Arc<ExtensionConfig> {
        Arc::new(serde_json::from_value(value).expect("a config"))
    }

    #[test]
    fn handlers_are_found_by_name_and_hook() {
        let handler = |name: &str, hook: &str| {
            json!({
                "name": name, "timeoutSeconds": 3, "failurePolicy": "Ignore",
                "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook},
            })
        };
        let discovered = json!([{
            "type": "Discovered", "status": "True", "reason": "Discovered", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        let registry = Registry::of(&[
            config(json!({
                "metadata": {"name": "z"},
                "status": {"conditions": discovered, "handlers": [
                    handler("b.z", "BeforeClusterCreate"),
                    handler("a.z", "BeforeClusterCreate"),
                    handler("c.z", "FromTheFuture"),
                ]},
            })),
            config(json!({"metadata": {"name": "new"}})),
        ]);
        let names: Vec<&str> =
            registry.of_hook(Hook::BeforeClusterCreate).map(|it| it.handler.name.as_str()).collect();
        assert_eq!(names, ["a.z", "b.z"]);
        let found = registry.get("b.z").expect("registered");
        assert_eq!((found.own_name(), found.timeout().as_secs(), found.ignores_failures()), ("b", 3, true));
        assert!(registry.get("c.z").is_none(), "a hook that is not known here is not called");
        assert_eq!(registry.undiscovered()[0].metadata.name, "new");
    }
}
