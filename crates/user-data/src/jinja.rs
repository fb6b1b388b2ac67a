//! The part of Jinja that user data is written with: `{{ ds.meta_data.local_hostname }}`, filters, comments.
//!
//! Statements (`{% … %}`) are refused: what they would leave out cannot be guessed.

use serde_json::Value;

use super::Metadata;

/// Renders a template; the warnings name variables that do not exist, which cloud-init fills with a mark.
pub(super) fn render(template: &str, metadata: &Metadata) -> Result<(String, Vec<String>), String> {
    let mut out = String::with_capacity(template.len());
    let mut missing: Vec<String> = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min() {
        out.push_str(&rest[..start]);
        let line = line_of(template, rest, start);
        let (open, after) = rest[start..].split_at(2);
        let close = match open {
            "{{" => "}}",
            "{#" => "#}",
            _ => return Err(format!("line {line}: statements are not supported")),
        };
        let end = find_close(after, close).ok_or_else(|| format!("line {line}: {open} has no {close}"))?;
        if open == "{{" {
            let text = &after[..end];
            // `{{-` and `-}}` take the space around them away.
            if text.starts_with('-') {
                out.truncate(out.trim_end().len());
            }
            let trim_after = text.ends_with('-');
            let text = text.strip_prefix('-').unwrap_or(text);
            let text = text.strip_suffix('-').unwrap_or(text);
            let value =
                evaluate(text, metadata, &mut missing).map_err(|why| format!("line {line}: {why}"))?;
            out.push_str(&value);
            rest = &after[end + 2..];
            if trim_after {
                rest = rest.trim_start();
            }
        } else {
            rest = &after[end + 2..];
        }
    }
    out.push_str(rest);
    let mut warnings = Vec::new();
    if !missing.is_empty() {
        missing.dedup();
        let names: Vec<String> = missing.iter().map(|name| format!("'{name}'")).collect();
        warnings.push(format!(
            "templater.py[WARNING]: Could not render jinja template variables in the user data: {}",
            names.join(", ")
        ));
    }
    Ok((out, warnings))
}

fn line_of(template: &str, rest: &str, start: usize) -> usize {
    let consumed = template.len() - rest.len() + start;
    template.as_bytes()[..consumed].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Where an expression ends: texts in it may hold braces.
fn find_close(text: &str, close: &str) -> Option<usize> {
    if close == "#}" {
        return text.find(close);
    }
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if text[at..].starts_with(close) => return Some(at),
            None => {}
        }
    }
    None
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number(String),
    Sign(char),
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut run = |test: fn(char) -> bool| {
            let mut end = at + c.len_utf8();
            while let Some((next, c)) = chars.next_if(|(_, c)| test(*c)) {
                end = next + c.len_utf8();
            }
            text[at..end].to_owned()
        };
        match c {
            c if c.is_whitespace() => {}
            '\'' | '"' => {
                let mut literal = String::new();
                loop {
                    match chars.next() {
                        Some((_, next)) if next == c => break,
                        Some((_, next)) => literal.push(next),
                        None => return Err("a text does not end".to_owned()),
                    }
                }
                out.push(Token::Text(literal));
            }
            c if c.is_ascii_digit() => out.push(Token::Number(run(|c| c.is_ascii_digit()))),
            c if c.is_alphabetic() || c == '_' => {
                out.push(Token::Name(run(|c| c.is_alphanumeric() || c == '_')));
            }
            '.' | '[' | ']' | '(' | ')' | ',' | '|' | '~' => out.push(Token::Sign(c)),
            _ => return Err("an expression that the simulator does not support".to_owned()),
        }
    }
    Ok(out)
}

/// A variable or text with its filters.
fn evaluate(text: &str, metadata: &Metadata, missing: &mut Vec<String>) -> Result<String, String> {
    let unknown = || "an expression that the simulator does not support".to_owned();
    let tokens = tokens(text)?;
    let mut at = 0;
    let mut next = || {
        at += 1;
        tokens.get(at - 1).cloned()
    };
    let mut path = Vec::new();
    let mut value: Option<String>;
    let mut token;
    match next().ok_or_else(unknown)? {
        Token::Text(text) | Token::Number(text) => {
            value = Some(text);
            token = next();
        }
        Token::Name(name) => {
            path.push(name);
            loop {
                token = next();
                match token {
                    Some(Token::Sign('.')) => match next() {
                        Some(Token::Name(name) | Token::Number(name)) => path.push(name),
                        _ => return Err(unknown()),
                    },
                    Some(Token::Sign('[')) => match (next(), next()) {
                        (Some(Token::Text(name) | Token::Number(name)), Some(Token::Sign(']'))) => {
                            path.push(name)
                        }
                        _ => return Err(unknown()),
                    },
                    _ => break,
                }
            }
            value = metadata.lookup(&path).map(shown);
        }
        Token::Sign(_) => return Err(unknown()),
    }
    while let Some(sign) = token {
        if sign != Token::Sign('|') {
            return Err(unknown());
        }
        let Some(Token::Name(filter)) = next() else { return Err(unknown()) };
        let mut arguments = Vec::new();
        token = next();
        if token == Some(Token::Sign('(')) {
            loop {
                match next() {
                    Some(Token::Text(text) | Token::Number(text)) => arguments.push(text),
                    Some(Token::Sign(',')) => {}
                    Some(Token::Sign(')')) => break,
                    _ => return Err(unknown()),
                }
            }
            token = next();
        }
        const FILTERS: [&str; 7] = ["default", "d", "lower", "upper", "trim", "string", "replace"];
        if !FILTERS.contains(&filter.as_str()) {
            return Err(format!("a filter {filter} that the simulator does not support"));
        }
        value = match (filter.as_str(), value, arguments.as_slice()) {
            ("default" | "d", None, [default]) => Some(default.clone()),
            ("default" | "d", value, _) => value,
            (_, None, _) => None,
            ("lower", Some(value), []) => Some(value.to_lowercase()),
            ("upper", Some(value), []) => Some(value.to_uppercase()),
            ("trim", Some(value), []) => Some(value.trim().to_owned()),
            ("string", value, []) => value,
            ("replace", Some(value), [from, to]) => Some(value.replace(from.as_str(), to)),
            _ => return Err(format!("a filter {filter} with arguments that it does not take")),
        };
    }
    Ok(value.unwrap_or_else(|| {
        let name = path.join(".");
        let mark = format!("CI_MISSING_JINJA_VAR/{}", path.last().map_or("", String::as_str));
        missing.push(name);
        mark
    }))
}

/// A value as Jinja prints it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(template: &str) -> Result<String, String> {
        render(template, &Metadata::of_test()).map(|(text, _)| text)
    }

    #[test]
    fn variables_are_filled_in() {
        for (template, text) in [
            ("plain {text} }}", "plain {text} }}"),
            ("{{ ds.meta_data.instance_id }}", "i-1"),
            ("a {{ds.meta_data['local_hostname']}} b", "a Node-1 b"),
            ("{{ ds.meta_data[\"hostname\"] }}:{{ ds.meta_data.port }}", "node-1:7"),
            ("{{ v1.local_hostname }}/{{ local_hostname }}", "node-1/node-1"),
            ("cloudstack:///'{{ ds.meta_data.instance_id }}'", "cloudstack:///'i-1'"),
            ("{{ ds.meta_data.local_hostname | lower }}", "node-1"),
            ("{{ ds.meta_data.zone | default('z1') | upper }}", "Z1"),
            ("{{ ds.meta_data.hostname | replace('-', '}}') }}", "node}}1"),
            ("a{# {{ nothing }} #}b", "ab"),
            ("a {{- ' b ' -}} c", "a b c"),
            ("{{ ds.meta_data.none }}", "None"),
        ] {
            assert_eq!(rendered(template), Ok(text.to_owned()), "{template}");
        }
    }

    #[test]
    fn a_missing_variable_is_marked_and_warned_of() {
        let (text, warnings) = render("x {{ ds.meta_data.zone }}", &Metadata::of_test()).expect("rendered");
        assert_eq!(text, "x CI_MISSING_JINJA_VAR/zone");
        assert!(warnings[0].contains("'ds.meta_data.zone'"), "{warnings:?}");
    }

    #[test]
    fn what_the_simulator_does_not_know_is_an_error_with_its_line() {
        for template in
            ["\n{{ a", "\n{% if a %}", "\n{{ a + b }}", "\n{{ a | tojson }}", "\n{{ }}", "\n{{ 'a }}"]
        {
            let why = rendered(template).expect_err(template);
            assert!(why.starts_with("line 2: "), "{why}");
        }
    }
}
