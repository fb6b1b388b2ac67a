//! Label selectors: `a in (b,c),!d,e!=f`, and `LabelSelector` objects.

use std::fmt;

use serde_json::{Map, Value};

use super::SelectorError;
use crate::field::{FieldError, FieldErrors};
use crate::golang::quote;
use crate::meta;
use crate::path::Path;

/// A conjunction of requirements, or a selector that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector {
    /// `None` matches nothing.
    requirements: Option<Vec<Requirement>>,
}

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Label key.
    pub key: String,
    /// Operator of the requirement.
    pub operator: Operator,
    /// Values; their number depends on the operator.
    pub values: Vec<String>,
}

/// Operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `k in (v)`
    In,
    /// `k notin (v)`
    NotIn,
    /// `k=v`
    Equals,
    /// `k==v`
    DoubleEquals,
    /// `k!=v`
    NotEquals,
    /// `k>1`
    GreaterThan,
    /// `k<1`
    LessThan,
    /// `k`
    Exists,
    /// `!k`
    DoesNotExist,
}

impl Requirement {
    /// A requirement with validated key and values. Paths of errors start with `path`.
    pub fn new(
        key: &str,
        operator: Operator,
        values: Vec<String>,
        path: &Path<'_>,
    ) -> Result<Self, SelectorError> {
        let mut errors = Vec::new();
        errors.extend(key_error(key, &path.field("key")));
        let values_path = path.field("values");
        let mut shape = |detail: &str| errors.push(FieldError::invalid(values_path, values.clone(), detail));
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                shape("for 'in', 'notin' operators, values set can't be empty");
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
                shape("exact-match compatibility requires one single value");
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                shape("values set must be empty for exists and does not exist");
            }
            Operator::GreaterThan | Operator::LessThan => {
                if values.len() != 1 {
                    shape("for 'Gt', 'Lt' operators, exactly one value is required");
                }
                for (index, value) in values.iter().enumerate() {
                    if value.parse::<i64>().is_err() {
                        errors.push(FieldError::invalid(
                            values_path.index(index),
                            value.as_str(),
                            "for 'Gt', 'Lt' operators, the value must be an integer",
                        ));
                    }
                }
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let wrong = meta::label_value(value);
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(
                    values_path.index(index).key(key),
                    value.as_str(),
                    wrong.join("; "),
                ));
            }
        }
        match errors.as_slice() {
            [] => Ok(Self { key: key.into(), operator, values }),
            [one] => Err(SelectorError(one.to_string())),
            many => {
                let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
                Err(SelectorError(format!("[{}]", texts.join(", "))))
            }
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|v| v == value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let [bound] = self.values.as_slice() else { return false };
                let (Some(Ok(value)), Ok(bound)) = (value.map(str::parse::<i64>), bound.parse::<i64>())
                else {
                    return false;
                };
                if self.operator == Operator::GreaterThan { value > bound } else { value < bound }
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.clone();
        values.sort_unstable();
        let values = values.join(",");
        let key = &self.key;
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

impl LabelSelector {
    /// Matches everything.
    pub fn everything() -> Self {
        Self { requirements: Some(Vec::new()) }
    }

    /// Matches nothing.
    pub fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Matches what meets all requirements.
    pub fn all_of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements: Some(requirements) }
    }

    /// Parses the text form.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Ok(Self::all_of(Parser::new(text).parse()?))
    }

    /// The selector of a `LabelSelector` object: null matches nothing, an empty one everything.
    pub fn from_object(object: &Value) -> Result<Self, SelectorError> {
        let Value::Object(object) = object else { return Ok(Self::nothing()) };
        let mut requirements = Vec::new();
        for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let values = vec![value.as_str().unwrap_or_default().to_owned()];
            requirements.push(Requirement::new(key, Operator::Equals, values, &Path::ROOT)?);
        }
        for expression in object.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let (key, operator, values) = expression_parts(expression);
            let operator = match operator {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(SelectorError(format!(
                        "{} is not a valid label selector operator",
                        quote(other)
                    )));
                }
            };
            let values = values.into_iter().map(str::to_owned).collect();
            requirements.push(Requirement::new(key, operator, values, &Path::ROOT)?);
        }
        Ok(Self::all_of(requirements))
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// The requirements, or `None` if nothing matches.
    pub fn requirements(&self) -> Option<&[Requirement]> {
        self.requirements.as_deref()
    }

    /// Whether labels match, given a lookup function.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        match &self.requirements {
            Some(requirements) => requirements.iter().all(|r| r.matches(lookup(&r.key))),
            None => false,
        }
    }

    /// Whether the labels of an object match.
    pub fn matches_labels(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }

    /// The selector as `kubectl` prints it.
    pub fn pretty(&self) -> String {
        let text = self.to_string();
        if text.is_empty() { "<none>".into() } else { text }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().flatten().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

fn expression_parts(expression: &Value) -> (&str, &str, Vec<&str>) {
    let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or_default();
    let values = expression.get("values").and_then(Value::as_array);
    (text("key"), text("operator"), values.into_iter().flatten().filter_map(Value::as_str).collect())
}

/// Validates a `LabelSelector` object.
pub fn validate(selector: &Value, path: &Path<'_>) -> FieldErrors {
    let mut out = meta::validate_labels(selector.get("matchLabels"), &path.field("matchLabels"));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    let list = path.field("matchExpressions");
    for (index, expression) in expressions.into_iter().flatten().enumerate() {
        let path = list.index(index);
        let (key, operator, values) = expression_parts(expression);
        let values_path = path.field("values");
        match operator {
            "In" | "NotIn" if values.is_empty() => out.push(FieldError::required(
                values_path,
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => out.push(FieldError::forbidden(
                values_path,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                out.push(FieldError::invalid(path.field("operator"), other, "not a valid selector operator"));
            }
        }
        for message in meta::qualified_name(key) {
            out.push(FieldError::invalid(path.field("key"), key, message));
        }
        for (index, value) in values.iter().enumerate() {
            for message in meta::label_value(value) {
                out.push(FieldError::invalid(values_path.index(index), *value, message));
            }
        }
    }
    out
}

fn key_error(key: &str, path: &Path<'_>) -> Option<FieldError> {
    let wrong = meta::qualified_name(key);
    (!wrong.is_empty()).then(|| FieldError::invalid(path, key, wrong.join("; ")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Close,
    Open,
    Comma,
    Not,
    Binary(Operator, &'a str),
    Identifier(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::End => "",
            Self::Close => ")",
            Self::Open => "(",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Binary(_, text) | Self::Identifier(text) => text,
        }
    }

    /// As a key or value, the words `in` and `notin` are ordinary identifiers.
    fn as_value(self) -> Self {
        match self {
            Self::Binary(Operator::In | Operator::NotIn, text) => Self::Identifier(text),
            other => other,
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    const SYMBOLS: [(&str, Token<'static>); 9] = [
        ("==", Token::Binary(Operator::DoubleEquals, "==")),
        ("!=", Token::Binary(Operator::NotEquals, "!=")),
        ("=", Token::Binary(Operator::Equals, "=")),
        (">", Token::Binary(Operator::GreaterThan, ">")),
        ("<", Token::Binary(Operator::LessThan, "<")),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
    ];
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    // A NUL byte ends upstream's lexer.
    let mut rest = text.split('\0').next().unwrap_or_default();
    let mut out = Vec::new();
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return out;
        }
        if let Some((symbol, token)) = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            out.push(*token);
            rest = &rest[symbol.len()..];
            continue;
        }
        let special = |c: char| is_space(c) || matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
        let (word, after) = rest.split_at(rest.find(special).unwrap_or(rest.len()));
        out.push(match word {
            "in" => Token::Binary(Operator::In, word),
            "notin" => Token::Binary(Operator::NotIn, word),
            _ => Token::Identifier(word),
        });
        rest = after;
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { tokens: tokens(text), position: 0 }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn parse(mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut out = Vec::new();
        loop {
            match self.peek().as_value() {
                Token::Identifier(_) | Token::Not => {
                    let requirement = self.requirement().map_err(|SelectorError(error)| {
                        SelectorError(format!("unable to parse requirement: {error}"))
                    })?;
                    out.push(requirement);
                    match self.next().as_value() {
                        Token::End => return Ok(out),
                        Token::Comma => {
                            let after = self.peek().as_value();
                            if !matches!(after, Token::Identifier(_) | Token::Not) {
                                return Err(found(after, "expected: identifier after ','"));
                            }
                        }
                        other => return Err(found(other, "expected: ',' or 'end of string'")),
                    }
                }
                Token::End => return Ok(out),
                other => return Err(found(other, "expected: !, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut token = self.next().as_value();
        let negated = token == Token::Not;
        if negated {
            token = self.next().as_value();
        }
        let Token::Identifier(key) = token else { return Err(found(token, "expected: identifier")) };
        if let Some(error) = key_error(key, &Path::ROOT) {
            return Err(SelectorError(error.to_string()));
        }
        let root = Path::ROOT;
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new(), &root);
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new(), &root);
        }
        let Token::Binary(operator, _) = self.peek() else {
            return Err(found(self.next(), "expected: in, notin, =, ==, !=, gt, lt"));
        };
        self.position += 1;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        values.sort_unstable();
        values.dedup();
        Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect(), &root)
    }

    fn values(&mut self) -> Result<Vec<&'a str>, SelectorError> {
        let open = self.next().as_value();
        if open != Token::Open {
            return Err(SelectorError(format!("found '{}' expected: '('", open.text())));
        }
        match self.peek().as_value() {
            Token::Identifier(_) | Token::Comma => {
                let values = self.identifiers()?;
                // The next token is the closing parenthesis: the list ends nowhere else.
                self.position += 1;
                Ok(values)
            }
            Token::Close => {
                self.position += 1;
                Ok(vec![""])
            }
            other => Err(found(other, "expected: ',', ')' or identifier")),
        }
    }

    fn identifiers(&mut self) -> Result<Vec<&'a str>, SelectorError> {
        let mut out = Vec::new();
        loop {
            match self.next().as_value() {
                Token::Identifier(value) => {
                    out.push(value);
                    match self.peek().as_value() {
                        Token::Comma => {}
                        Token::Close => return Ok(out),
                        other => return Err(found(other, "expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if out.is_empty() {
                        out.push("");
                    }
                    match self.peek().as_value() {
                        Token::Close => {
                            out.push("");
                            return Ok(out);
                        }
                        Token::Comma => out.push(""),
                        _ => {}
                    }
                }
                other => return Err(found(other, "expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<&'a str, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok("");
        }
        match self.next().as_value() {
            Token::Identifier(value) => Ok(value),
            other => Err(found(other, "expected: identifier")),
        }
    }
}

fn found(token: Token<'_>, expected: &str) -> SelectorError {
    SelectorError(format!("found '{}', {expected}", token.text()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_parse_and_print() {
        for (text, printed) in [
            ("", ""),
            ("x=a,y=b,z=c", "x=a,y=b,z=c"),
            ("x!=a,y==b", "x!=a,y==b"),
            ("b, a in (d,c) , !e", "a in (c,d),b,!e"),
            ("x notin (,a,)", "x notin (,a)"),
            ("x in ()", "x in ()"),
            ("x=", "x="),
            ("in in (in,notin)", "in in (in,notin)"),
            ("a>1,b<2", "a>1,b<2"),
            ("foo.bar/Baz", "foo.bar/Baz"),
        ] {
            assert_eq!(LabelSelector::parse(text).expect(text).to_string(), printed);
        }
    }

    #[test]
    fn errors_have_upstreams_texts() {
        let key = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                   an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                   validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        for (text, error) in [
            ("x=a||y=b", "unable to parse requirement: values[0][x]: Invalid value: \"a||y\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned()),
            ("a,", "found '', expected: identifier after ','".into()),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".into()),
            ("!", "unable to parse requirement: found '', expected: identifier".into()),
            (",a", "found ',', expected: !, identifier, or 'end of string'".into()),
            ("a in b", "unable to parse requirement: found 'b' expected: '('".into()),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".into()),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".into()),
            ("a=b c", "found 'c', expected: ',' or 'end of string'".into()),
            ("a>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer".into()),
            ("-a", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {key}")),
            ("a=(", "unable to parse requirement: found '(', expected: identifier".into()),
        ] {
            assert_eq!(LabelSelector::parse(text).expect_err(text).to_string(), error);
        }
    }

    #[test]
    fn requirements_match_labels() {
        let labels = json!({"a": "b", "n": "5"});
        let labels = labels.as_object();
        for (selector, matches) in [
            ("", true),
            ("a", true),
            ("!a", false),
            ("!z", true),
            ("a=b", true),
            ("a!=b", false),
            ("z!=b", true),
            ("a in (b,c)", true),
            ("a notin (b,c)", false),
            ("z notin (b)", true),
            ("n>4,n<6", true),
            ("a>4", false),
            ("z=", false),
        ] {
            assert_eq!(
                LabelSelector::parse(selector).expect(selector).matches_labels(labels),
                matches,
                "{selector}"
            );
        }
    }

    #[test]
    fn objects_become_selectors() {
        let selector = LabelSelector::from_object(&json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}],
        }));
        assert_eq!(selector.expect("valid").pretty(), "a in (x,y),b=1");
        assert_eq!(LabelSelector::from_object(&json!({})), Ok(LabelSelector::everything()));
        assert_eq!(LabelSelector::from_object(&Value::Null), Ok(LabelSelector::nothing()));
        assert!(!LabelSelector::nothing().matches_labels(None));
        assert_eq!(
            LabelSelector::from_object(&json!({"matchExpressions": [{"key": "a", "operator": "X"}]})),
            Err(SelectorError("\"X\" is not a valid label selector operator".into()))
        );
    }

    #[test]
    fn objects_are_validated_by_field() {
        let errors: Vec<String> = validate(
            &json!({"matchExpressions": [
                {"key": "a", "operator": "In"}, {"key": "b", "operator": "Exists", "values": ["c"]},
                {"key": "", "operator": "in"},
            ]}),
            &Path::at("spec.selector"),
        )
        .iter()
        .map(|e| e.to_string().chars().take(90).collect())
        .collect();
        assert_eq!(
            errors,
            [
                "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator",
                "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` ",
                "spec.selector.matchExpressions[2].operator: Invalid value: \"in\": not a valid selector oper",
                "spec.selector.matchExpressions[2].key: Invalid value: \"\": name part must be non-empty",
                "spec.selector.matchExpressions[2].key: Invalid value: \"\": name part must consist of alphan",
            ]
        );
    }
}
