//! The subset of Go's `text/template` that files of a KubeadmConfig need: one variable, `.controlPlane.version`.
//!
//! Text, `{{ .field.field }}`, string literals, comments, `-` trimming, `if`/`else if`/`else`/`end`, `with`, and
//! the functions `eq ne lt le gt ge and or not print`. Anything else is an error.

/// Maximum size of a rendered file.
const LIMIT: usize = 1 << 20;

/// Variables of a template.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    version: Option<String>,
}

impl Data {
    /// `.controlPlane` exists only if its version is known.
    pub(super) fn with_control_plane(version: Option<String>) -> Self {
        Self { version }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Nothing,
    Root,
    ControlPlane,
    Text(String),
    Bool(bool),
}

impl Value {
    fn holds(&self, data: &Data) -> bool {
        match self {
            Self::Nothing => false,
            Self::Root => data.version.is_some(),
            Self::ControlPlane => true,
            Self::Text(text) => !text.is_empty(),
            Self::Bool(value) => *value,
        }
    }

    fn print(&self, data: &Data) -> String {
        let version = data.version.as_deref().unwrap_or_default();
        match self {
            Self::Nothing => "<no value>".to_owned(),
            Self::Root if version.is_empty() => "map[]".to_owned(),
            Self::Root => format!("map[controlPlane:map[version:{version}]]"),
            Self::ControlPlane => format!("map[version:{version}]"),
            Self::Text(text) => text.clone(),
            Self::Bool(value) => value.to_string(),
        }
    }
}

enum Node {
    Text(String),
    Print(Expression),
    Choice { with: bool, condition: Expression, then: Vec<Node>, otherwise: Vec<Node> },
}

#[derive(Debug)]
enum Expression {
    Path(Vec<String>),
    Literal(String),
    Bool(bool),
    Call(String, Vec<Expression>),
}

pub(super) fn render(template: &str, data: &Data) -> Result<String, String> {
    let mut pieces = split(template)?.into_iter();
    let (nodes, end) = parse(&mut pieces, false)?;
    if let Some(word) = end {
        return Err(format!("unexpected {{{{ {word} }}}}"));
    }
    let mut out = String::new();
    write(&nodes, data, &Value::Root, &mut out)?;
    Ok(out)
}

enum Piece {
    Text(String),
    Action(String),
}

fn split(template: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    let mut trim_left = false;
    while let Some(start) = rest.find("{{") {
        let mut text = &rest[..start];
        let inside = &rest[start + 2..];
        let (inside, trim) = match inside.strip_prefix('-') {
            Some(after) if after.starts_with([' ', '\t', '\n', '\r']) => (after, true),
            _ => (inside, false),
        };
        if trim_left {
            text = text.trim_start();
        }
        if trim {
            text = text.trim_end();
        }
        pieces.push(Piece::Text(text.to_owned()));
        let end = action_end(inside).ok_or("an action is not closed")?;
        let mut action = &inside[..end];
        rest = &inside[end + 2..];
        trim_left = action.ends_with(" -") || action.ends_with("\n-") || action.ends_with("\t-");
        if trim_left {
            action = &action[..action.len() - 1];
        }
        let action = action.trim();
        if !(action.starts_with("/*") && action.ends_with("*/")) {
            pieces.push(Piece::Action(action.to_owned()));
        }
    }
    pieces.push(Piece::Text(if trim_left { rest.trim_start() } else { rest }.to_owned()));
    Ok(pieces)
}

/// Finds the end of an action; braces inside quotes do not close it.
fn action_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut index = 0;
    while index < bytes.len() {
        match (quote, bytes[index]) {
            (Some(b'"'), b'\\') => index += 1,
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, byte @ (b'"' | b'`')) => quote = Some(byte),
            (None, b'}') if bytes.get(index + 1) == Some(&b'}') => return Some(index),
            (None, _) => {}
        }
        index += 1;
    }
    None
}

/// Nodes up to the terminator: `else …` or `end` inside a branch, end of input at the top level.
fn parse(
    pieces: &mut std::vec::IntoIter<Piece>,
    inside: bool,
) -> Result<(Vec<Node>, Option<String>), String> {
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        let action = match piece {
            Piece::Text(text) => {
                nodes.push(Node::Text(text));
                continue;
            }
            Piece::Action(action) => action,
        };
        let word = action.split_whitespace().next().unwrap_or_default();
        match word {
            "end" | "else" => return Ok((nodes, Some(action))),
            "if" | "with" => nodes.push(choice(pieces, word == "with", &action[word.len()..])?),
            "range" | "define" | "template" | "block" | "break" | "continue" => {
                return Err(format!("{word} is not supported"));
            }
            _ => nodes.push(Node::Print(expression(&action)?)),
        }
    }
    if inside { Err("unterminated if".to_owned()) } else { Ok((nodes, None)) }
}

fn choice(pieces: &mut std::vec::IntoIter<Piece>, with: bool, condition: &str) -> Result<Node, String> {
    let condition = expression(condition)?;
    let (then, end) = parse(pieces, true)?;
    let end = end.unwrap_or_default();
    let otherwise = match end.strip_prefix("else").map(str::trim) {
        None => Vec::new(),
        Some("") => {
            let (nodes, end) = parse(pieces, true)?;
            if end.as_deref() != Some("end") {
                return Err("else is not followed by end".to_owned());
            }
            nodes
        }
        Some(chained) => match chained.split_once(char::is_whitespace) {
            Some((word @ ("if" | "with"), condition)) => vec![choice(pieces, word == "with", condition)?],
            _ => return Err(format!("unexpected else {chained}")),
        },
    };
    Ok(Node::Choice { with, condition, then, otherwise })
}

fn expression(text: &str) -> Result<Expression, String> {
    let mut tokens = tokens(text)?.into_iter().peekable();
    let parsed = call(&mut tokens)?;
    match tokens.next() {
        None => Ok(parsed),
        Some(token) => Err(format!("unexpected {token:?}")),
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Open,
    Close,
    Word(String),
    Quoted(String),
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        match c {
            c if c.is_whitespace() => {
                chars.next();
            }
            '(' | ')' => {
                chars.next();
                tokens.push(if c == '(' { Token::Open } else { Token::Close });
            }
            '"' | '`' => {
                chars.next();
                tokens.push(Token::Quoted(quoted(&mut chars, c)?));
            }
            '|' | '$' | ':' | '=' | ',' => return Err(format!("{c} is not supported")),
            _ => {
                let mut word = String::new();
                while let Some(&c) = chars.peek()
                    && !c.is_whitespace()
                    && !matches!(c, '(' | ')' | '"' | '`' | '|')
                {
                    word.push(c);
                    chars.next();
                }
                tokens.push(Token::Word(word));
            }
        }
    }
    Ok(tokens)
}

fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char) -> Result<String, String> {
    let mut out = String::new();
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => return Ok(out),
            '\\' if quote == '"' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(c @ ('"' | '\\')) => out.push(c),
                _ => return Err("an escape is not supported".to_owned()),
            },
            c => out.push(c),
        }
    }
    Err("a string is not closed".to_owned())
}

type Tokens = std::iter::Peekable<std::vec::IntoIter<Token>>;

fn call(tokens: &mut Tokens) -> Result<Expression, String> {
    let first = operand(tokens)?;
    let Expression::Call(name, mut arguments) = first else { return Ok(first) };
    while tokens.peek().is_some_and(|token| *token != Token::Close) {
        arguments.push(match operand(tokens)? {
            Expression::Call(name, arguments) if arguments.is_empty() => {
                return Err(format!("function {name} needs parentheses here"));
            }
            operand => operand,
        });
    }
    Ok(Expression::Call(name, arguments))
}

fn operand(tokens: &mut Tokens) -> Result<Expression, String> {
    match tokens.next() {
        Some(Token::Open) => {
            let inner = call(tokens)?;
            match tokens.next() {
                Some(Token::Close) => Ok(inner),
                _ => Err("a parenthesis is not closed".to_owned()),
            }
        }
        Some(Token::Quoted(text)) => Ok(Expression::Literal(text)),
        Some(Token::Word(word)) => match word.as_str() {
            "true" | "false" => Ok(Expression::Bool(word == "true")),
            "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "and" | "or" | "not" | "print" => {
                Ok(Expression::Call(word, Vec::new()))
            }
            path if path.starts_with('.') => {
                let names: Vec<String> = path[1..].split('.').map(str::to_owned).collect();
                match names.as_slice() {
                    [only] if only.is_empty() => Ok(Expression::Path(Vec::new())),
                    names if names.iter().any(String::is_empty) => Err(format!("bad path {path}")),
                    _ => Ok(Expression::Path(names)),
                }
            }
            other => Err(format!("{other:?} is not supported")),
        },
        Some(token) => Err(format!("unexpected {token:?}")),
        None => Err("an action is empty".to_owned()),
    }
}

fn write(nodes: &[Node], data: &Data, dot: &Value, out: &mut String) -> Result<(), String> {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Print(expression) => out.push_str(&evaluate(expression, data, dot)?.print(data)),
            Node::Choice { with, condition, then, otherwise } => {
                let value = evaluate(condition, data, dot)?;
                if value.holds(data) {
                    write(then, data, if *with { &value } else { dot }, out)?;
                } else {
                    write(otherwise, data, dot, out)?;
                }
            }
        }
        if out.len() > LIMIT {
            return Err(format!("the result is longer than {LIMIT} bytes"));
        }
    }
    Ok(())
}

fn evaluate(expression: &Expression, data: &Data, dot: &Value) -> Result<Value, String> {
    match expression {
        Expression::Literal(text) => Ok(Value::Text(text.clone())),
        Expression::Bool(value) => Ok(Value::Bool(*value)),
        Expression::Path(names) => {
            names.iter().try_fold(dot.clone(), |value, name| field(&value, name, data))
        }
        Expression::Call(name, arguments) => {
            let values: Vec<Value> =
                arguments.iter().map(|argument| evaluate(argument, data, dot)).collect::<Result<_, _>>()?;
            function(name, &values, data)
        }
    }
}

fn field(value: &Value, name: &str, data: &Data) -> Result<Value, String> {
    match (value, name) {
        (Value::Root, "controlPlane") if data.version.is_some() => Ok(Value::ControlPlane),
        (Value::ControlPlane, "version") => Ok(Value::Text(data.version.clone().unwrap_or_default())),
        (Value::Root | Value::ControlPlane, _) => Ok(Value::Nothing),
        (Value::Nothing, _) => Err(format!("nil has no field {name}")),
        _ => Err(format!("text has no field {name}")),
    }
}

fn function(name: &str, values: &[Value], data: &Data) -> Result<Value, String> {
    let wrong = || format!("{name} is given {} values", values.len());
    match (name, values) {
        ("not", [value]) => Ok(Value::Bool(!value.holds(data))),
        ("and", [.., last]) => Ok(values.iter().find(|value| !value.holds(data)).unwrap_or(last).clone()),
        ("or", [.., last]) => Ok(values.iter().find(|value| value.holds(data)).unwrap_or(last).clone()),
        ("print", _) => Ok(Value::Text(values.iter().map(|value| value.print(data)).collect())),
        ("eq", [first, others @ ..]) if !others.is_empty() => Ok(Value::Bool(others.contains(first))),
        ("ne", [a, b]) => Ok(Value::Bool(a != b)),
        ("lt" | "le" | "gt" | "ge", [Value::Text(a), Value::Text(b)]) => Ok(Value::Bool(match name {
            "lt" => a < b,
            "le" => a <= b,
            "gt" => a > b,
            _ => a >= b,
        })),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_render_as_in_go() {
        let known = Data::with_control_plane(Some("v1.35.0".to_owned()));
        for (template, expected) in [
            ("plain", "plain"),
            ("a {{ .controlPlane.version }} b", "a v1.35.0 b"),
            ("a\n  {{- .controlPlane.version -}}  \n b", "av1.35.0b"),
            ("{{/* a comment */}}x", "x"),
            ("{{ if .controlPlane }}yes{{ else }}no{{ end }}", "yes"),
            (
                "{{ if eq .controlPlane.version \"v1.34.0\" }}a{{ else if eq .controlPlane.version \"v1.35.0\" }}b{{ else }}c{{ end }}",
                "b",
            ),
            ("{{ with .controlPlane }}{{ .version }}{{ end }}", "v1.35.0"),
            ("{{ if and .controlPlane (ge .controlPlane.version \"v1.30\") }}new{{ end }}", "new"),
            ("{{ if not (or false .missing) }}x{{ end }}", "x"),
            ("{{ print \"{{\" `}}` }}", "{{}}"),
            ("{{ .missing }}", "<no value>"),
            ("{{ . }}", "map[controlPlane:map[version:v1.35.0]]"),
            ("{{ \"a\\tb\" }}", "a\tb"),
            ("{{ if true }}1{{ if false }}2{{ else }}3{{ end }}4{{ end }}", "134"),
        ] {
            assert_eq!(render(template, &known).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn unsupported_templates_are_rejected() {
        let unknown = Data::default();
        for (template, message) in [
            ("{{ range .x }}{{ end }}", "range is not supported"),
            ("{{ .x | printf }}", "| is not supported"),
            ("{{ $a }}", "$ is not supported"),
            ("{{ printf \"%s\" }}", "\"printf\" is not supported"),
            ("{{ if .x }}", "unterminated if"),
            ("{{ end }}", "unexpected {{ end }}"),
            ("{{ .x", "an action is not closed"),
            ("{{ }}", "an action is empty"),
            ("{{ .controlPlane.version }}", "nil has no field version"),
            ("{{ lt \"a\" }}", "lt is given 1 values"),
        ] {
            assert_eq!(render(template, &unknown).expect_err(template), message, "{template}");
        }
    }

    #[test]
    fn the_size_of_a_rendered_file_is_limited() {
        let long = "x".repeat(LIMIT + 1);
        assert!(render(&long, &Data::default()).expect_err("too long").contains("longer than"));
    }
}
