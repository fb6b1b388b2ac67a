//! Webhook configurations, decoded once per change.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use capstan_schema::selector::LabelSelector;
use parking_lot::Mutex;
use serde_json::Value;

use crate::admission::conditions::Conditions;
use crate::admission::rules::Rule;
use crate::auth::ObjectSource;
use crate::webhook_client::ClientConfig;

/// One webhook of one configuration.
pub(super) struct Hook {
    /// Name of the webhook in messages.
    pub(super) name: String,
    /// Unique across configurations.
    pub(super) id: String,
    pub(super) client: Result<ClientConfig, String>,
    pub(super) rules: Vec<Rule>,
    pub(super) namespaces: Result<LabelSelector, String>,
    pub(super) objects: Result<LabelSelector, String>,
    /// Whether it is also called for other versions of its resources.
    pub(super) equivalents: bool,
    /// Whether a failed call does not reject the request.
    pub(super) ignore_failure: bool,
    pub(super) side_effects: Option<String>,
    pub(super) timeout: Duration,
    pub(super) review_versions: Vec<String>,
    /// Whether it is called again when a later webhook changed the object.
    pub(super) reinvoke: bool,
    pub(super) conditions: Conditions,
}

impl Hook {
    fn from_json(configuration: &str, hook: &Value, position: usize) -> Self {
        let text = |field: &str| hook[field].as_str();
        let name = text("name").unwrap_or_default().to_owned();
        let selector = |field: &str| match &hook[field] {
            Value::Null => Ok(LabelSelector::everything()),
            selector => LabelSelector::from_object(selector).map_err(|error| error.to_string()),
        };
        let list = |field: &str| hook[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let ignore_failure = text("failurePolicy") == Some("Ignore");
        Self {
            id: format!("{configuration}/{name}/{position}"),
            client: ClientConfig::from_json(&hook["clientConfig"]),
            rules: list("rules").iter().map(Rule::from_json).collect(),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            equivalents: text("matchPolicy") != Some("Exact"),
            ignore_failure,
            side_effects: text("sideEffects").map(str::to_owned),
            timeout: Duration::from_secs(hook["timeoutSeconds"].as_u64().unwrap_or(10)),
            review_versions: list("admissionReviewVersions")
                .iter()
                .filter_map(|version| version.as_str().map(str::to_owned))
                .collect(),
            reinvoke: text("reinvocationPolicy") == Some("IfNeeded"),
            conditions: Conditions::compile(list("matchConditions"), false, ignore_failure),
            name,
        }
    }

    /// Whether the webhook declares that it has no side effects on a dry run.
    pub(super) fn allows_dry_run(&self) -> bool {
        matches!(self.side_effects.as_deref(), Some("None" | "NoneOnDryRun"))
    }
}

/// The webhooks of one kind of configuration in call order: by configuration name, then as listed.
pub(super) struct Hooks {
    bucket: &'static str,
    current: ArcSwapOption<(u64, Vec<Hook>)>,
    reading: Mutex<()>,
}

impl Hooks {
    pub(super) fn new(bucket: &'static str) -> Self {
        Self { bucket, current: ArcSwapOption::empty(), reading: Mutex::new(()) }
    }

    /// The currently stored webhooks.
    pub(super) fn current(&self, source: &dyn ObjectSource) -> Arc<(u64, Vec<Hook>)> {
        // Read before the objects: a write in between makes the list look outdated, never current.
        let fresh = || {
            let revision = source.bucket_revision(self.bucket);
            let current = self.current.load_full().filter(|current| current.0 == revision);
            current.ok_or(revision)
        };
        if let Ok(current) = fresh() {
            return current;
        }
        let _reading = self.reading.lock();
        let revision = match fresh() {
            Ok(current) => return current,
            Err(revision) => revision,
        };
        let mut configurations = source.list(self.bucket);
        let name =
            |configuration: &Value| configuration["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        configurations.sort_by_key(|configuration| name(configuration));
        let mut hooks = Vec::new();
        for configuration in &configurations {
            let listed = configuration["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
            for (position, hook) in listed.iter().enumerate() {
                hooks.push(Hook::from_json(&name(configuration), hook, position));
            }
        }
        let current = Arc::new((revision, hooks));
        self.current.store(Some(current.clone()));
        current
    }
}
