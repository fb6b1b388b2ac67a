//! Which requests are recorded, and how much of them. The first rule that matches counts.

use serde::Deserialize;

use crate::{Level, Stage};

/// An `audit.k8s.io/v1` Policy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    api_version: String,
    kind: String,
    /// Accepted and ignored, as upstream does.
    #[serde(default)]
    metadata: serde_json::Value,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GroupResources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// Why a policy is refused. Names the field.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the policy is not valid YAML of kind Policy: {0}")]
    Syntax(String),
    #[error("{field}: {problem}")]
    Field { field: String, problem: &'static str },
}

/// A request, as rules match it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    pub user: &'a str,
    pub groups: &'a [String],
    pub verb: &'a str,
    pub is_resource: bool,
    pub namespace: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
    pub path: &'a str,
}

/// How a request is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    pub level: Level,
    omit_stages: Vec<Stage>,
    /// `metadata.managedFields` is left out of bodies.
    pub omit_managed_fields: bool,
}

impl Decision {
    pub fn records(&self, stage: Stage) -> bool {
        self.level > Level::None && !self.omit_stages.contains(&stage)
    }
}

impl Policy {
    /// Reads a policy file.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self =
            serde_saphyr::from_str(text).map_err(|error| PolicyError::Syntax(error.to_string()))?;
        policy.check()?;
        Ok(policy)
    }

    /// Everybody's writes and reads of everything but the traffic of controllers and health checks, without bodies.
    pub fn metadata() -> Self {
        let rule = Rule {
            level: Level::Metadata,
            users: Vec::new(),
            user_groups: Vec::new(),
            verbs: Vec::new(),
            resources: Vec::new(),
            namespaces: Vec::new(),
            non_resource_urls: Vec::new(),
            omit_stages: Vec::new(),
            omit_managed_fields: None,
        };
        let quiet = Rule {
            level: Level::None,
            non_resource_urls: ["/healthz*", "/livez*", "/readyz*", "/metrics", "/version"]
                .map(str::to_owned)
                .to_vec(),
            ..rule.clone()
        };
        Self {
            api_version: "audit.k8s.io/v1".to_owned(),
            kind: "Policy".to_owned(),
            metadata: serde_json::Value::Null,
            omit_stages: vec![Stage::RequestReceived],
            omit_managed_fields: false,
            rules: vec![quiet, rule],
        }
    }

    fn check(&self) -> Result<(), PolicyError> {
        let refused = |field: String, problem| Err(PolicyError::Field { field, problem });
        if self.api_version != "audit.k8s.io/v1" {
            return refused("apiVersion".to_owned(), "must be audit.k8s.io/v1");
        }
        if self.kind != "Policy" {
            return refused("kind".to_owned(), "must be Policy");
        }
        if self.rules.is_empty() {
            return refused("rules".to_owned(), "a policy without rules records nothing: add one");
        }
        for (at, rule) in self.rules.iter().enumerate() {
            let by_resource = !rule.resources.is_empty() || !rule.namespaces.is_empty();
            if by_resource && !rule.non_resource_urls.is_empty() {
                return refused(
                    format!("rules[{at}].nonResourceURLs"),
                    "rules cannot apply to both regular resources and non-resource URLs",
                );
            }
            for (nth, url) in rule.non_resource_urls.iter().enumerate() {
                let field = || format!("rules[{at}].nonResourceURLs[{nth}]");
                if url != "*" && !url.starts_with('/') {
                    return refused(field(), "must begin with / or be *");
                }
                if url.trim_end_matches('*').contains('*') || url.ends_with("**") {
                    return refused(field(), "* is allowed at the end only");
                }
            }
            for (nth, resources) in rule.resources.iter().enumerate() {
                if !resources.resource_names.is_empty() && resources.resources.is_empty() {
                    return refused(
                        format!("rules[{at}].resources[{nth}].resourceNames"),
                        "using resourceNames requires at least one resource",
                    );
                }
                if resources.group.contains('/') {
                    return refused(
                        format!("rules[{at}].resources[{nth}].group"),
                        "is a group without its version",
                    );
                }
            }
        }
        Ok(())
    }

    /// How a request is recorded; not at all if no rule matches.
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(request)) else {
            return Decision::default();
        };
        Decision {
            level: rule.level,
            omit_stages: self.omit_stages.iter().chain(&rule.omit_stages).copied().collect(),
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Rule {
    fn matches(&self, request: &Request<'_>) -> bool {
        let has = |list: &[String], text: &str| list.is_empty() || list.iter().any(|item| item == text);
        let grouped = self.user_groups.is_empty()
            || request.groups.iter().any(|group| self.user_groups.contains(group));
        if !(has(&self.users, request.user) && grouped && has(&self.verbs, request.verb)) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return request.is_resource
                && has(&self.namespaces, request.namespace)
                && (self.resources.is_empty() || self.resources.iter().any(|group| group.covers(request)));
        }
        if self.non_resource_urls.is_empty() {
            return true;
        }
        !request.is_resource && self.non_resource_urls.iter().any(|url| is_below(url, request.path))
    }
}

fn is_below(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    }
}

impl GroupResources {
    fn covers(&self, request: &Request<'_>) -> bool {
        if self.group != request.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.resource_names.is_empty() || self.resource_names.iter().any(|n| n == request.name);
        let of_resource = |pattern: &String| match pattern.split_once('/') {
            // Without a subresource, a resource stands for itself only.
            None => pattern == "*" || (request.subresource.is_empty() && pattern == request.resource),
            Some(("*", subresource)) => !request.subresource.is_empty() && subresource == request.subresource,
            Some((resource, "*")) => resource == request.resource,
            Some((resource, subresource)) => {
                (resource, subresource) == (request.resource, request.subresource)
            }
        };
        named && self.resources.iter().any(of_resource)
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
