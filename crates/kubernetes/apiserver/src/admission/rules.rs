//! Rules of webhooks and policies: which requests they are about.

use serde_json::Value;

use crate::admission::{AdmissionAttributes, GroupVersionResource};

/// One entry of `rules` or `resourceRules`.
#[derive(Debug, Clone, Default)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
}

impl Rule {
    pub(super) fn from_json(rule: &Value) -> Self {
        let list = |field: &str| -> Vec<String> {
            let items = rule[field].as_array().into_iter().flatten();
            items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        Self {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources"),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }

    /// Whether the rule matches a request, treated as one for `resource`.
    pub(super) fn matches(&self, request: &AdmissionAttributes, resource: &GroupVersionResource) -> bool {
        let any = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
        self.scope_matches(request, resource)
            && any(&self.operations, request.operation.as_str())
            && any(&self.groups, &resource.group)
            && any(&self.versions, &resource.version)
            && self.resources.iter().any(|own| {
                let (own, subresource) = own.split_once('/').unwrap_or((own, ""));
                (own == "*" || own == resource.resource)
                    && (subresource == "*" || subresource == request.subresource)
            })
    }

    fn scope_matches(&self, request: &AdmissionAttributes, resource: &GroupVersionResource) -> bool {
        // Requests for a Namespace have its name as namespace, but Namespaces are cluster-scoped.
        let is_namespace =
            resource.group.is_empty() && resource.version == "v1" && resource.resource == "namespaces";
        let namespaced = !is_namespace && !request.namespace.is_empty();
        match self.scope.as_str() {
            "*" => true,
            "Namespaced" => namespaced,
            "Cluster" => !namespaced,
            _ => false,
        }
    }
}
