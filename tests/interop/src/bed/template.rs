//! Template variables, substituted as clusterctl does.

use anyhow::{Result, bail};
use regex::Regex;

/// Stands for an escaped `$` while variables are substituted.
const DOLLAR: &str = "\u{0}";

/// Substitutes `${NAME}`, `${NAME:=default}`, `${NAME=default}` and `${NAME:-default}`, where the default may have
/// variables too. `$$` is a dollar sign.
pub fn substituted(template: &str, value: impl Fn(&str) -> Option<String>) -> Result<String> {
    let pattern = Regex::new(r"\$\{(\w+)(?::?[=-]([^}$]*))?\}")?;
    let mut missing = Vec::new();
    let mut text = template.replace("$$", DOLLAR);
    // Innermost first.
    while pattern.is_match(&text) {
        let next = pattern.replace_all(&text, |found: &regex::Captures<'_>| {
            let default = || found.get(2).map(|default| default.as_str().to_owned());
            value(&found[1]).or_else(default).unwrap_or_else(|| {
                missing.push(found[1].to_owned());
                String::new()
            })
        });
        text = next.into_owned();
    }
    let text = text.replace(DOLLAR, "$");
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
        let text =
            substituted("${B:-${A}} $${A%.*} ${C:-[]}", |name| (name == "A").then(|| "1".into())).unwrap();
        assert_eq!(text, "1 ${A%.*} []");
        assert!(substituted("${D}", |_| None).unwrap_err().to_string().contains('D'));
    }
}
