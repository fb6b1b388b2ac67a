//! Tokens of a template.

use crate::TemplateError;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// Text outside actions.
    Text(String),
    /// `{{`
    Open,
    /// `}}`
    Close,
    /// White space between words: `.a .b` are two operands and `.a.b` is one.
    Space,
    Pipe,
    LeftParen,
    RightParen,
    Comma,
    /// `:=`
    Declare,
    /// `=`
    Assign,
    /// A name: a function or a keyword.
    Word(String),
    /// `.name`
    Field(String),
    /// `.`
    Dot,
    /// `$name`; `$` is the empty name.
    Variable(String),
    Quoted(String),
    Int(i64),
    Float(f64),
}

/// A token and the line it is on.
pub type Located = (Token, usize);

const WHITE: [char; 4] = [' ', '\t', '\r', '\n'];

pub fn lex(template: &str) -> Result<Vec<Located>, TemplateError> {
    let mut tokens = Vec::new();
    let mut rest = template;
    let mut line = 1;
    let mut trim_left = false;
    while let Some(start) = rest.find("{{") {
        let mut text = &rest[..start];
        let text_line = line;
        line += text.matches('\n').count();
        let mut inside = &rest[start + 2..];
        let trim = inside.starts_with('-') && inside[1..].starts_with(WHITE);
        if trim {
            inside = &inside[1..];
        }
        if trim_left {
            text = text.trim_start_matches(WHITE);
        }
        if trim {
            text = text.trim_end_matches(WHITE);
        }
        if !text.is_empty() {
            tokens.push((Token::Text(text.to_owned()), text_line));
        }
        let trimmed = inside.trim_start_matches(WHITE);
        if let Some(comment) = trimmed.strip_prefix("/*") {
            let end = comment.find("*/").ok_or_else(|| TemplateError::new(line, "unclosed comment"))?;
            let after = &comment[end + 2..];
            let (after, trims) = closing(after)
                .ok_or_else(|| TemplateError::new(line, "comment ends before closing delimiter"))?;
            line += inside[..inside.len() - after.len()].matches('\n').count();
            (rest, trim_left) = (after, trims);
            continue;
        }
        tokens.push((Token::Open, line));
        let mut action = Action { rest: inside, line, tokens: &mut tokens, depth: 0 };
        trim_left = action.run()?;
        (rest, line) = (action.rest, action.line);
    }
    let text = if trim_left { rest.trim_start_matches(WHITE) } else { rest };
    if !text.is_empty() {
        tokens.push((Token::Text(text.to_owned()), line));
    }
    Ok(tokens)
}

/// What follows the end of an action, and whether white space after it is trimmed.
fn closing(text: &str) -> Option<(&str, bool)> {
    if let Some(after) = text.strip_prefix("}}") {
        return Some((after, false));
    }
    let after = text.trim_start_matches(WHITE);
    (after.len() < text.len()).then(|| after.strip_prefix("-}}")).flatten().map(|after| (after, true))
}

struct Action<'t, 'o> {
    rest: &'t str,
    line: usize,
    tokens: &'o mut Vec<Located>,
    depth: usize,
}

impl Action<'_, '_> {
    fn push(&mut self, token: Token, length: usize) {
        self.tokens.push((token, self.line));
        self.line += self.rest[..length].matches('\n').count();
        self.rest = &self.rest[length..];
    }

    fn failed(&self, message: impl Into<String>) -> TemplateError {
        TemplateError::new(self.line, message)
    }

    /// Reads up to the end of the action; the answer is whether white space after it is trimmed.
    fn run(&mut self) -> Result<bool, TemplateError> {
        loop {
            if let Some((after, trims)) = closing(self.rest) {
                if self.depth > 0 {
                    return Err(self.failed("unclosed left paren"));
                }
                self.push(Token::Close, self.rest.len() - after.len());
                return Ok(trims);
            }
            let Some(first) = self.rest.chars().next() else { return Err(self.failed("unclosed action")) };
            match first {
                c if WHITE.contains(&c) => {
                    let length = self.rest.len() - self.rest.trim_start_matches(WHITE).len();
                    self.push(Token::Space, length);
                }
                '|' => self.push(Token::Pipe, 1),
                ',' => self.push(Token::Comma, 1),
                '(' => {
                    self.depth += 1;
                    self.push(Token::LeftParen, 1);
                }
                ')' => {
                    let left = self.depth.checked_sub(1);
                    self.depth = left.ok_or_else(|| self.failed("unexpected right paren"))?;
                    self.push(Token::RightParen, 1);
                }
                ':' if self.rest.starts_with(":=") => self.push(Token::Declare, 2),
                '=' => self.push(Token::Assign, 1),
                '"' => self.quoted()?,
                '`' => {
                    let end = self.rest[1..].find('`');
                    let end = end.ok_or_else(|| self.failed("unterminated raw quoted string"))?;
                    let text = self.rest[1..=end].to_owned();
                    self.push(Token::Quoted(text), end + 2);
                }
                '\'' => self.character()?,
                '.' if !self.rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    let name = name_of(&self.rest[1..]);
                    let length = name.len() + 1;
                    let token = if name.is_empty() { Token::Dot } else { Token::Field(name.to_owned()) };
                    self.push(token, length);
                }
                '$' => {
                    let name = name_of(&self.rest[1..]).to_owned();
                    let length = name.len() + 1;
                    self.push(Token::Variable(name), length);
                }
                c if c.is_ascii_digit() || matches!(c, '+' | '-' | '.') => self.number()?,
                c if c.is_alphabetic() || c == '_' => {
                    let name = name_of(self.rest).to_owned();
                    let length = name.len();
                    self.push(Token::Word(name), length);
                }
                c => return Err(self.failed(format!("unexpected {c:?} in an action"))),
            }
        }
    }

    fn quoted(&mut self) -> Result<(), TemplateError> {
        let mut out = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.push(Token::Quoted(out), at + 1);
                    return Ok(());
                }
                '\n' => break,
                '\\' => {
                    let escaped =
                        escape(&mut chars).ok_or_else(|| self.failed("unknown escape in a string"))?;
                    out.push(escaped);
                }
                c => out.push(c),
            }
        }
        Err(self.failed("unterminated quoted string"))
    }

    /// A character constant is its number.
    fn character(&mut self) -> Result<(), TemplateError> {
        let mut chars = self.rest.char_indices().skip(1);
        let value = match chars.next() {
            Some((_, '\\')) => escape(&mut chars),
            Some((_, c)) if c != '\'' => Some(c),
            _ => None,
        };
        match (value, chars.next()) {
            (Some(value), Some((at, '\''))) => {
                self.push(Token::Int(i64::from(u32::from(value))), at + 1);
                Ok(())
            }
            _ => Err(self.failed("malformed character constant")),
        }
    }

    fn number(&mut self) -> Result<(), TemplateError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let mut length = sign;
        let bytes = self.rest.as_bytes();
        let hexadecimal = self.rest[sign..].starts_with("0x");
        while let Some(byte) = bytes.get(length) {
            let exponent = !hexadecimal && length > sign && matches!(bytes[length - 1], b'e' | b'E');
            let part = byte.is_ascii_alphanumeric()
                || matches!(byte, b'.' | b'_')
                || (exponent && matches!(byte, b'+' | b'-'));
            if !part {
                break;
            }
            length += 1;
        }
        let text = self.rest[..length].replace('_', "");
        let token = match text[sign..].strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16)
                .ok()
                .map(|number| Token::Int(if text.starts_with('-') { -number } else { number })),
            None => match text.parse::<i64>() {
                Ok(number) => Some(Token::Int(number)),
                Err(_) => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Token::Float),
            },
        };
        let token = token.ok_or_else(|| self.failed(format!("bad number syntax: {text:?}")))?;
        self.push(token, length);
        Ok(())
    }
}

fn name_of(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// The character after a backslash.
fn escape(chars: &mut impl Iterator<Item = (usize, char)>) -> Option<char> {
    let (_, c) = chars.next()?;
    let digits = match c {
        'n' => return Some('\n'),
        't' => return Some('\t'),
        'r' => return Some('\r'),
        'a' => return Some('\u{7}'),
        'b' => return Some('\u{8}'),
        'f' => return Some('\u{c}'),
        'v' => return Some('\u{b}'),
        '"' | '\'' | '\\' => return Some(c),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let text: String = chars.take(digits).map(|(_, c)| c).collect();
    u32::from_str_radix(&text, 16).ok().and_then(char::from_u32)
}
