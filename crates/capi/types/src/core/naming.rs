//! Names of machines from a template: the few actions of Go's templates that such names use.

use std::fmt;

/// A template that gives no name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameTemplateError {
    /// An action is not closed.
    Unclosed,
    /// An action is not a field such as `.cluster.name`.
    NotAField(String),
    /// There is no such field.
    UnknownField(String),
}

impl fmt::Display for NameTemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed => f.write_str("unclosed action"),
            Self::NotAField(action) => write!(f, "action {action:?} is not a field such as .cluster.name"),
            Self::UnknownField(field) => write!(f, "map has no entry for key {field:?}"),
        }
    }
}

impl std::error::Error for NameTemplateError {}

/// Fills in a template; `values` are fields by path, such as `cluster.name`.
pub fn render(template: &str, values: &[(&str, &str)]) -> Result<String, NameTemplateError> {
    let mut name = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (action, after) = after.split_once("}}").ok_or(NameTemplateError::Unclosed)?;
        // `{{-` and `-}}` eat the white space beside them.
        let (action, trim_before) = match action.strip_prefix("- ") {
            Some(action) => (action, true),
            None => (action, false),
        };
        let (action, trim_after) = match action.strip_suffix(" -") {
            Some(action) => (action, true),
            None => (action, false),
        };
        name.push_str(if trim_before { before.trim_end() } else { before });
        let field = action
            .trim()
            .strip_prefix('.')
            .ok_or_else(|| NameTemplateError::NotAField(action.trim().to_owned()))?;
        let value = values.iter().find(|(path, _)| *path == field);
        let (_, value) = value.ok_or_else(|| NameTemplateError::UnknownField(field.to_owned()))?;
        name.push_str(value);
        rest = if trim_after { after.trim_start() } else { after };
    }
    name.push_str(rest);
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_filled_in_and_anything_else_is_an_error() {
        let values = [("cluster.name", "one"), ("random", "x7k2p")];
        assert_eq!(render("{{ .cluster.name }}-{{.random}}", &values), Ok("one-x7k2p".to_owned()));
        assert_eq!(render("a {{- .random -}} b", &values), Ok("ax7k2pb".to_owned()));
        assert_eq!(render("plain", &values), Ok("plain".to_owned()));
        assert_eq!(render("{{ .random", &values), Err(NameTemplateError::Unclosed));
        assert_eq!(render("{{ .nope }}", &values), Err(NameTemplateError::UnknownField("nope".to_owned())));
        assert_eq!(render("{{ len }}", &values), Err(NameTemplateError::NotAField("len".to_owned())));
    }
}
