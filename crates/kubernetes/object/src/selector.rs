//! `metav1.LabelSelector`.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A label selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LabelSelector {
    /// Labels with exactly these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Additional requirements; all must match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// A requirement on a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelSelectorRequirement {
    /// Label key.
    pub key: String,
    /// The operator; see [`SelectorOperator`].
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// Operators of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectorOperator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// An invalid requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorError(pub String);

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a valid label selector operator", self.0)
    }
}

impl std::error::Error for SelectorError {}

impl LabelSelector {
    /// An empty selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether labels match all requirements.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> Result<bool, SelectorError> {
        let mut all = self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        for requirement in &self.match_expressions {
            all &= requirement.matches(labels)?;
        }
        Ok(all)
    }
}

impl LabelSelectorRequirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> Result<bool, SelectorError> {
        let value = labels.get(&self.key);
        Ok(match self.operator()? {
            SelectorOperator::In => value.is_some_and(|value| self.values.contains(value)),
            SelectorOperator::NotIn => !value.is_some_and(|value| self.values.contains(value)),
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        })
    }

    pub fn operator(&self) -> Result<SelectorOperator, SelectorError> {
        match self.operator.as_str() {
            "In" => Ok(SelectorOperator::In),
            "NotIn" => Ok(SelectorOperator::NotIn),
            "Exists" => Ok(SelectorOperator::Exists),
            "DoesNotExist" => Ok(SelectorOperator::DoesNotExist),
            other => Err(SelectorError(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_match() {
        let labels = BTreeMap::from([("tier".to_owned(), "web".to_owned())]);
        for (operator, key, values, expected) in [
            ("In", "tier", vec!["web"], true),
            ("In", "zone", vec!["web"], false),
            ("NotIn", "tier", vec!["web"], false),
            ("NotIn", "zone", vec!["web"], true),
            ("Exists", "tier", vec![], true),
            ("DoesNotExist", "tier", vec![], false),
        ] {
            let requirement = LabelSelectorRequirement {
                key: key.to_owned(),
                operator: operator.to_owned(),
                values: values.into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(requirement.matches(&labels), Ok(expected), "{operator} {key}");
        }
    }

    #[test]
    fn an_unknown_operator_is_an_error_not_a_mismatch() {
        let requirement =
            LabelSelectorRequirement { key: "a".to_owned(), operator: "Near".to_owned(), values: vec![] };
        assert_eq!(requirement.matches(&BTreeMap::new()), Err(SelectorError("Near".to_owned())));
    }
}
