//! Variables of cluster templates: `${NAME}`, `${NAME:=default}` and `${NAME:-default}`, as clusterctl reads them.

use std::collections::BTreeMap;

/// A variable and its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// `None` if a value is required.
    pub default: Option<String>,
}

/// The variables of a template, by name.
pub fn variables(template: &str) -> Result<Vec<Variable>, String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for piece in pieces(template)? {
        if let Piece::Variable(variable) = piece {
            let default = found.entry(variable.name).or_default();
            *default = default.take().or(variable.default);
        }
    }
    Ok(found.into_iter().map(|(name, default)| Variable { name, default }).collect())
}

/// The template with values in place of its variables. The error names all variables that have none.
pub fn rendered(template: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut text = String::with_capacity(template.len());
    let mut missing: Vec<String> = Vec::new();
    for piece in pieces(template)? {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Variable(Variable { name, default }) => {
                // As in a shell, an empty value is none where there is a default.
                let given = value(&name).filter(|text| !text.is_empty() || default.is_none());
                match given.or(default) {
                    Some(value) => text.push_str(&value),
                    None if missing.contains(&name) => {}
                    None => missing.push(name),
                }
            }
        }
    }
    match missing.is_empty() {
        true => Ok(text),
        false => Err(format!(
            "no value for {}: use --set NAME=VALUE, or set it in the environment",
            missing.join(", ")
        )),
    }
}

enum Piece<'a> {
    Text(&'a str),
    Variable(Variable),
}

fn pieces(template: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, after) =
            after.split_once('}').ok_or_else(|| "the template has a ${ without a }".to_owned())?;
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, operator) = inner.split_at(end);
        let default = match operator {
            "" => None,
            _ => match operator
                .strip_prefix(":=")
                .or(operator.strip_prefix(":-"))
                .or(operator.strip_prefix('='))
            {
                Some(default) => Some(default.to_owned()),
                None => return Err(format!("the template has ${{{inner}}}, which is not supported")),
            },
        };
        if name.is_empty() {
            return Err(format!("the template has ${{{inner}}}, which names no variable"));
        }
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Variable(Variable { name: name.to_owned(), default }));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_replace_variables_and_defaults_fill_in() {
        let template = "a: ${A}, b: ${B:=two}, c: ${C:-}, again: ${A}";
        let value = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "B" => Some(String::new()),
            _ => None,
        };
        assert_eq!(rendered(template, value).as_deref(), Ok("a: one, b: two, c: , again: one"));
        let missing = rendered("${A} ${X} ${Y} ${X}", value).expect_err("no values");
        assert!(missing.starts_with("no value for X, Y:"), "{missing}");
        for wrong in ["${A", "${A/b}", "${}"] {
            assert!(rendered(wrong, value).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_templates_of_all_providers_can_be_rendered() {
        for plugin in crate::providers() {
            for flavor in plugin.provider.flavors() {
                let text =
                    rendered(flavor.template, |name| Some(format!("x{}", name.len()))).expect("rendered");
                let objects = crate::apply::read(&text).expect("objects");
                assert!(objects.iter().any(|object| object["kind"] == "Cluster"), "{}", flavor.name);
                let found = variables(flavor.template).expect("variables");
                assert!(found.iter().any(|it| it.name == "CLUSTER_NAME" && it.default.is_none()));
            }
        }
    }
}
