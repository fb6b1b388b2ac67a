//! Parses paths.

use serde_json::Value;

use super::{End, Filter, JsonPathError, Path, Slice, Step};

/// Nesting limit of filters. Each level takes a stack frame.
const MAX_NESTING: usize = 16;

fn error<T>(text: impl Into<String>) -> Result<T, JsonPathError> {
    Err(JsonPathError(text.into()))
}

pub fn parse(text: &str, depth: usize) -> Result<Path, JsonPathError> {
    if depth > MAX_NESTING {
        return error("filters are nested too deeply");
    }
    let mut parser = Parser { rest: text, steps: Vec::new(), depth };
    while parser.step()? {}
    Ok(Path { steps: parser.steps })
}

struct Parser<'a> {
    rest: &'a str,
    steps: Vec<Step>,
    depth: usize,
}

fn is_end_of_line(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

fn is_terminator(c: char) -> bool {
    is_end_of_line(c) || matches!(c, ' ' | '\t' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'a> Parser<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Parses one step; false at the end.
    fn step(&mut self) -> Result<bool, JsonPathError> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            self.rest = rest;
            self.filter()?;
            return Ok(true);
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            if self.steps.last() == Some(&Step::Recursive) {
                return error("invalid multiple recursive descent");
            }
            self.rest = rest;
            self.steps.push(Step::Recursive);
            if self.rest.starts_with(is_alphanumeric) {
                self.field();
            }
            return Ok(true);
        }
        let Some(c) = self.rest.chars().next() else { return Ok(false) };
        match c {
            // Text after a closing brace is not part of the path.
            '}' => return Ok(false),
            ' ' | '@' | '$' => _ = self.take(1),
            '[' => self.array()?,
            '"' | '\'' => self.quoted(c)?,
            '.' => {
                self.take(1);
                self.field();
            }
            c if matches!(c, '+' | '-') || c.is_ascii_digit() => self.number()?,
            c if is_alphanumeric(c) => {
                let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
                let word = self.take(end);
                self.steps.push(match word {
                    "true" => Step::Literal(Value::Bool(true)),
                    "false" => Step::Literal(Value::Bool(false)),
                    word => Step::Identifier(word.into()),
                });
            }
            c if is_end_of_line(c) => return error("unclosed action"),
            c => {
                let code = c as u32;
                return error(format!("unrecognized character in action: U+{code:04X} '{c}'"));
            }
        }
        Ok(true)
    }

    fn field(&mut self) {
        let (mut end, mut escaped) = (self.rest.len(), false);
        for (index, c) in self.rest.char_indices() {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if is_terminator(c) {
                end = index;
                break;
            }
        }
        let name = self.take(end);
        self.steps.push(if name == "*" { Step::Wildcard } else { Step::Field(name.replace('\\', "")) });
    }

    fn number(&mut self) -> Result<(), JsonPathError> {
        let digits = self.rest[1..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |end| end + 1));
        let number = text.parse::<i64>().map(Value::from);
        let number = number.ok().or_else(|| text.parse::<f64>().ok().map(Value::from));
        self.steps
            .push(Step::Literal(number.map_or_else(|| error(format!("cannot parse number {text}")), Ok)?));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), JsonPathError> {
        let bytes = self.rest.as_bytes();
        let line = self.rest.find('\n').unwrap_or(self.rest.len());
        let end = (1..line).find(|&i| bytes[i] == quote as u8 && bytes[i - 1] != b'\\');
        let Some(end) = end else { return error("unterminated quoted string") };
        let text = self.take(end + 1);
        let inner = &text[1..text.len() - 1];
        match unquote(inner) {
            Some(text) => self.steps.push(Step::Literal(text.into())),
            None => return error(format!("unquote string {text} error invalid syntax")),
        }
        Ok(())
    }

    fn array(&mut self) -> Result<(), JsonPathError> {
        let line = self.rest.find('\n').unwrap_or(self.rest.len());
        let Some(end) = self.rest[..line].find(']') else { return error("unterminated array") };
        let text = &self.take(end + 1)[1..end];
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let parts =
                text.split(',').map(|part| parse(&format!("[{}]", part.trim_matches(' ')), self.depth + 1));
            let union = parts.collect::<Result<Vec<_>, _>>()?;
            self.steps.push(Step::Union(union));
            return Ok(());
        }
        if let Some(key) =
            text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).filter(|t| !t.contains('\''))
        {
            self.steps.extend(parse(&format!(".{key}"), self.depth + 1)?.steps);
            return Ok(());
        }
        self.steps.push(Step::Slice(slice(text)?));
        Ok(())
    }

    fn filter(&mut self) -> Result<(), JsonPathError> {
        let bytes = self.rest.as_bytes();
        let mut quote = None;
        let mut closed = false;
        let mut end = None;
        for (index, c) in self.rest.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' => match quote {
                    None => quote = Some(c),
                    Some(open) => closed |= open == c && bytes[index - 1] != b'\\',
                },
                ')' if quote.is_some() == closed => {
                    end = Some(index);
                    break;
                }
                _ => {}
            }
        }
        let Some(end) = end else { return error("unterminated filter") };
        let text = self.take(end);
        self.take(1);
        if !self.rest.starts_with(']') {
            return error("unclosed array expect ]");
        }
        self.take(1);
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let filter = match text.find(is_operator).filter(|&at| at > 0) {
            Some(at) => {
                let (left, rest) = text.split_at(at);
                let operator = rest.find(|c| !is_operator(c)).unwrap_or(rest.len());
                // The right side must not be empty, even if it takes part of the operator.
                let operator = if operator == rest.len() { operator - 1 } else { operator };
                let (operator, right) = rest.split_at(operator);
                let comparison = Some((operator.to_owned(), parse(right, self.depth + 1)?));
                Filter { left: parse(left, self.depth + 1)?, comparison }
            }
            None => Filter { left: parse(text, self.depth + 1)?, comparison: None },
        };
        self.steps.push(Step::Filter(filter));
        Ok(())
    }
}

fn slice(text: &str) -> Result<Slice, JsonPathError> {
    let invalid = || JsonPathError(format!("invalid array index {text}"));
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| -> Result<Option<i64>, JsonPathError> {
        let digits = part.strip_prefix('-').unwrap_or(part);
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        match part {
            "" => Ok(None),
            _ => part
                .parse()
                .map(Some)
                .map_err(|_| JsonPathError(format!("array index {part} is not a number"))),
        }
    };
    if parts.len() > 3 {
        return Err(invalid());
    }
    let start = number(parts[0])?;
    let end = match parts.get(1) {
        None => End::One,
        Some(part) => number(part)?.map_or(End::Length, End::At),
    };
    let step = parts.get(2).map_or(Ok(None), |part| number(part))?;
    Ok(Slice { start, end, step })
}

fn unquote(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            out.push(c);
            continue;
        }
        let escape = rest.chars().next()?;
        rest = &rest[escape.len_utf8()..];
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        out.push(match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' => escape,
            'x' | 'u' | 'U' => char::from_u32(u32::from_str_radix(rest.get(..digits)?, 16).ok()?)?,
            _ => return None,
        });
        rest = &rest[digits..];
    }
    Some(out)
}
