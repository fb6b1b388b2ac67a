//! Template variables, substituted as clusterctl does.

use anyhow::{Result, bail};
use regex::Regex;

/// Substitutes `${NAME}`, `${NAME:=default}` and `${NAME=default}`.
pub fn substituted(template: &str, value: impl Fn(&str) -> Option<String>) -> Result<String> {
    let pattern = Regex::new(r"\$\{(\w+)(?::?=([^}]*))?\}")?;
    let mut missing = Vec::new();
    let text = pattern.replace_all(template, |found: &regex::Captures<'_>| {
        value(&found[1]).or_else(|| found.get(2).map(|default| default.as_str().to_owned())).unwrap_or_else(
            || {
                missing.push(found[1].to_owned());
                String::new()
            },
        )
    });
    let text = text.into_owned();
    if !missing.is_empty() {
        bail!("the template has variables without a value: {}", missing.join(", "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_variables_have_values_or_defaults() {
        let text =
            substituted("a: ${A}\nb: ${B:=[\"x\"]}\nc: ${C=3}\n", |name| (name == "A").then(|| "1".into()))
                .unwrap();
        assert_eq!(text, "a: 1\nb: [\"x\"]\nc: 3\n");
        assert!(substituted("${D}", |_| None).unwrap_err().to_string().contains('D'));
    }
}
