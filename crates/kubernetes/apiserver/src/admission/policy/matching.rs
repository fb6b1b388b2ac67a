//! `matchConstraints` and `matchResources`: which requests a policy or a binding is about.

use capstan_schema::selector::LabelSelector;
use serde_json::Value;

use crate::admission::rules::Rule;
use crate::admission::versioned_objects::VersionedObjects;
use crate::admission::{
    AdmissionAttributes, GroupVersionKind, GroupVersionResource, Representations, namespaces,
};
use crate::auth::ObjectSource;

pub(super) struct MatchResources {
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
    rules: Vec<NamedRule>,
    excluded: Vec<NamedRule>,
    /// Whether requests for other versions of the resources match.
    equivalents: bool,
}

/// A rule that may be about single objects.
struct NamedRule {
    rule: Rule,
    names: Vec<String>,
}

/// The resource and the kind as which a request matches.
pub(super) type Matched = (GroupVersionResource, GroupVersionKind);

impl MatchResources {
    pub(super) fn from_json(resources: &Value) -> Self {
        let selector = |key: &str| match &resources[key] {
            Value::Null => Ok(LabelSelector::everything()),
            selector => LabelSelector::from_object(selector).map_err(|error| error.to_string()),
        };
        let rules = |key: &str| {
            let rules = resources[key].as_array().into_iter().flatten();
            rules.map(NamedRule::from_json).collect()
        };
        Self {
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            equivalents: resources["matchPolicy"].as_str() != Some("Exact"),
        }
    }

    /// As what a request matches, or `None`. The error says why that is not known.
    pub(super) fn matches(
        &self,
        attributes: &AdmissionAttributes,
        objects: &VersionedObjects<'_>,
        representations: &dyn Representations,
        source: &dyn ObjectSource,
    ) -> Result<Option<Matched>, String> {
        // Rules first: they are cheap, and most requests match none.
        let matched = match self.rules.is_empty() {
            true => Some((attributes.resource.clone(), attributes.kind.clone())),
            false => self.matched_by(&self.rules, attributes, representations),
        };
        let Some(matched) = matched else { return Ok(None) };
        if self.matched_by(&self.excluded, attributes, representations).is_some() {
            return Ok(None);
        }
        let in_namespace = namespaces::selected(&self.namespaces, attributes, objects.object(), source);
        let selected = objects.selected(&self.objects);
        // If one selector does not match, an error of the other does not matter.
        if matches!(in_namespace, Ok(false)) || matches!(selected, Ok(false)) {
            return Ok(None);
        }
        in_namespace.and(selected).map_err(|status| status.message)?;
        Ok(Some(matched))
    }

    fn matched_by(
        &self,
        rules: &[NamedRule],
        attributes: &AdmissionAttributes,
        representations: &dyn Representations,
    ) -> Option<Matched> {
        let own = &attributes.resource;
        if rules.iter().any(|rule| rule.matches(attributes, own)) {
            return Some((own.clone(), attributes.kind.clone()));
        }
        if !self.equivalents || rules.is_empty() {
            return None;
        }
        let equivalents = representations.equivalents(own, &attributes.subresource);
        rules.iter().find_map(|rule| {
            let mut others = equivalents.iter().filter(|(resource, _)| resource != own);
            others.find(|(resource, _)| rule.matches(attributes, resource)).cloned()
        })
    }
}

impl NamedRule {
    fn from_json(rule: &Value) -> Self {
        let names = rule["resourceNames"].as_array().into_iter().flatten();
        Self {
            rule: Rule::from_json(rule),
            names: names.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        }
    }

    fn matches(&self, attributes: &AdmissionAttributes, resource: &GroupVersionResource) -> bool {
        self.rule.matches(attributes, resource)
            && (self.names.is_empty() || self.names.contains(&attributes.name))
    }
}
