//! Label selectors: matching, and as text for scale subresources and `kubectl get -l`.

use std::collections::BTreeMap;

use capstan_object::{LabelSelector, SelectorOperator};

/// An empty or invalid selector selects nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    !selector.is_empty() && selector.matches(labels).unwrap_or(false)
}

/// The selector as text, sorted by label.
pub fn text(selector: &LabelSelector) -> String {
    let exact = selector.match_labels.iter().map(|(key, value)| (key, format!("{key}={value}")));
    let others = selector.match_expressions.iter().filter_map(|requirement| {
        let key = &requirement.key;
        let mut values = requirement.values.clone();
        values.sort();
        let values = values.join(",");
        let text = match requirement.operator().ok()? {
            SelectorOperator::In => format!("{key} in ({values})"),
            SelectorOperator::NotIn => format!("{key} notin ({values})"),
            SelectorOperator::Exists => key.clone(),
            SelectorOperator::DoesNotExist => format!("!{key}"),
        };
        Some((key, text))
    });
    let mut requirements: Vec<_> = exact.chain(others).collect();
    requirements.sort_by_key(|(key, _)| *key);
    requirements.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use capstan_object::LabelSelectorRequirement;

    use super::*;

    #[test]
    fn a_selector_is_formatted_sorted_by_label() {
        let requirement = |key: &str, operator: &str, values: &[&str]| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let selector = LabelSelector {
            match_labels: [("b".to_owned(), "2".to_owned())].into(),
            match_expressions: vec![
                requirement("d", "DoesNotExist", &[]),
                requirement("c", "In", &["y", "x"]),
                requirement("a", "Exists", &[]),
            ],
        };
        assert_eq!(text(&selector), "a,b=2,c in (x,y),!d");
    }
}
