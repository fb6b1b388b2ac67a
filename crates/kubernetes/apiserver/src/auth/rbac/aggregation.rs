//! Aggregated ClusterRoles: their rules are collected from the ClusterRoles that their selectors match.

use std::collections::HashSet;
use std::sync::Arc;

use capstan_schema::selector::LabelSelector;
use serde_json::Value;

use super::policy::text;
use super::rule::PolicyRule;

/// The `rules` that an aggregated ClusterRole must have, if they differ from the current ones. `None` for a role
/// without aggregation, with invalid selectors, or with correct rules. The caller writes them with server-side apply
/// as `clusterrole-aggregation-controller`, as upstream's controller does.
pub fn aggregated_rules(role: &Value, cluster_roles: &[Arc<Value>]) -> Option<Value> {
    let selectors = role["aggregationRule"].as_object()?.get("clusterRoleSelectors");
    let selectors = selectors.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let name = |role: &Value| text(&role["metadata"]["name"]).to_owned();
    let own_name = name(role);

    let mut by_name: Vec<&Arc<Value>> =
        cluster_roles.iter().filter(|other| name(other) != own_name).collect();
    by_name.sort_by_key(|role| name(role));

    let mut rules: Vec<PolicyRule> = Vec::new();
    let mut known: HashSet<PolicyRule> = HashSet::new();
    for selector in selectors {
        let selector = LabelSelector::from_object(selector).ok()?;
        for other in &by_name {
            if !selector.matches_labels(other["metadata"]["labels"].as_object()) {
                continue;
            }
            for rule in PolicyRule::list_from_json(other) {
                if known.insert(rule.clone()) {
                    rules.push(rule);
                }
            }
        }
    }
    (rules != PolicyRule::list_from_json(role)).then(|| rules.iter().map(PolicyRule::to_json).collect())
}
