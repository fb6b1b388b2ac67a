//! Splits text into tokens. The longest match wins; text that matches nothing is reported and skipped.

use super::source::Source;
use super::token::{Tok, Token};

/// Text that is not a token: start, end, and the error.
pub(crate) type Unreadable = (u32, u32, String);

/// All tokens of the source including the end of file, and the text that is no token.
pub(crate) fn tokenize(source: &Source) -> (Vec<Token>, Vec<Unreadable>) {
    let chars = source.chars();
    let mut tokens = Vec::new();
    let mut unreadable = Vec::new();
    let mut pos = 0;
    while pos < chars.len() {
        let scan = Scan { chars, start: pos };
        match scan.token() {
            Ok((Some(kind), len)) => {
                tokens.push(Token { kind, start: pos as u32, end: (pos + len) as u32 });
                pos += len;
            }
            Ok((None, len)) => pos += len,
            Err(reached) => {
                // The character that matched no rule is part of the message and of the skipped text.
                let end = (reached + 1).min(chars.len());
                let text: String = chars[pos..end].iter().collect();
                let message = format!("Syntax error: token recognition error at: '{text}'");
                unreadable.push((pos as u32, end.max(pos + 1) as u32, message));
                pos = end.max(pos + 1);
            }
        }
    }
    tokens.push(Token { kind: Tok::Eof, start: chars.len() as u32, end: chars.len() as u32 });
    (tokens, unreadable)
}

struct Scan<'s> {
    chars: &'s [char],
    start: usize,
}

/// A token (or skipped text) and its length, or the index of the character that ended the attempt.
type Scanned = Result<(Option<Tok>, usize), usize>;

impl Scan<'_> {
    fn at(&self, offset: usize) -> Option<char> {
        self.chars.get(self.start + offset).copied()
    }

    fn run(&self, from: usize, accept: impl Fn(char) -> bool) -> usize {
        let mut len = from;
        while self.at(len).is_some_and(&accept) {
            len += 1;
        }
        len
    }

    fn token(&self) -> Scanned {
        let Some(first) = self.at(0) else { return Err(self.start) };
        let second = self.at(1);
        let single = |kind| Ok((Some(kind), 1));
        match first {
            '\t' | ' ' | '\r' | '\n' | '\x0c' => {
                Ok((None, self.run(1, |c| matches!(c, '\t' | ' ' | '\r' | '\n' | '\x0c'))))
            }
            '/' if second == Some('/') => Ok((None, self.run(2, |c| c != '\n'))),
            '=' => self.pair('=', Tok::Equals),
            '&' => self.pair('&', Tok::And),
            '|' => self.pair('|', Tok::Or),
            '!' if second == Some('=') => Ok((Some(Tok::NotEquals), 2)),
            '<' if second == Some('=') => Ok((Some(Tok::LessEquals), 2)),
            '>' if second == Some('=') => Ok((Some(Tok::GreaterEquals), 2)),
            '!' => single(Tok::Exclam),
            '<' => single(Tok::Less),
            '>' => single(Tok::Greater),
            '[' => single(Tok::LBracket),
            ']' => single(Tok::RBracket),
            '{' => single(Tok::LBrace),
            '}' => single(Tok::RBrace),
            '(' => single(Tok::LParen),
            ')' => single(Tok::RParen),
            ',' => single(Tok::Comma),
            '-' => single(Tok::Minus),
            '?' => single(Tok::Question),
            ':' => single(Tok::Colon),
            '+' => single(Tok::Plus),
            '*' => single(Tok::Star),
            '/' => single(Tok::Slash),
            '%' => single(Tok::Percent),
            '.' if !second.is_some_and(|c| c.is_ascii_digit()) => single(Tok::Dot),
            '.' | '0'..='9' => Ok(self.number()),
            '"' | '\'' => self.string(0, false).map(|len| (Some(Tok::String), len)),
            '`' => self.escaped_identifier(),
            'a'..='z' | 'A'..='Z' | '_' => Ok(self.word()),
            _ => Err(self.start),
        }
    }

    fn pair(&self, second: char, kind: Tok) -> Scanned {
        if self.at(1) == Some(second) { Ok((Some(kind), 2)) } else { Err(self.start + 1) }
    }

    fn number(&self) -> (Option<Tok>, usize) {
        if self.at(0) == Some('0') && self.at(1) == Some('x') {
            let end = self.run(2, |c| c.is_ascii_hexdigit());
            if end > 2 {
                return match self.at(end) {
                    Some('u' | 'U') => (Some(Tok::Uint), end + 1),
                    _ => (Some(Tok::Int), end),
                };
            }
        }
        let digits = |from| self.run(from, |c| c.is_ascii_digit());
        let whole = digits(0);
        let mut end = whole;
        let mut kind = Tok::Int;
        if self.at(end) == Some('.') && self.at(end + 1).is_some_and(|c| c.is_ascii_digit()) {
            end = digits(end + 1);
            kind = Tok::Float;
        }
        if matches!(self.at(end), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.at(end + 1), Some('+' | '-')));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                return (Some(Tok::Float), exponent);
            }
        }
        if kind == Tok::Int && matches!(self.at(end), Some('u' | 'U')) {
            return (Some(Tok::Uint), end + 1);
        }
        (Some(kind), end)
    }

    fn word(&self) -> (Option<Tok>, usize) {
        let prefix = self.run(0, |c| matches!(c, 'b' | 'B' | 'r' | 'R'));
        if prefix <= 2 && matches!(self.at(prefix), Some('"' | '\'')) {
            let letters: Vec<char> =
                (0..prefix).filter_map(|i| self.at(i)).map(|c| c.to_ascii_lowercase()).collect();
            let kind = match letters.as_slice() {
                ['r'] => Some((Tok::String, true)),
                ['b'] => Some((Tok::Bytes, false)),
                ['b', 'r'] => Some((Tok::Bytes, true)),
                _ => None,
            };
            // A literal without its end leaves the prefix as an identifier.
            if let Some((kind, raw)) = kind
                && let Ok(len) = self.string(prefix, raw)
            {
                return (Some(kind), len);
            }
        }
        let len = self.run(0, |c| c.is_ascii_alphanumeric() || c == '_');
        let text: String = self.chars[self.start..self.start + len].iter().collect();
        let kind = match text.as_str() {
            "in" => Tok::In,
            "true" => Tok::True,
            "false" => Tok::False,
            "null" => Tok::Null,
            _ => Tok::Ident,
        };
        (Some(kind), len)
    }

    fn escaped_identifier(&self) -> Scanned {
        let end = self.run(1, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '));
        if end > 1 && self.at(end) == Some('`') {
            return Ok((Some(Tok::EscIdent), end + 1));
        }
        Err(self.start + end)
    }

    /// The length of a string literal whose quote is at `from`.
    fn string(&self, from: usize, raw: bool) -> Result<usize, usize> {
        let Some(quote) = self.at(from) else { return Err(self.start + from) };
        let triple = self.at(from + 1) == Some(quote) && self.at(from + 2) == Some(quote);
        if triple && let Some(len) = self.triple_quoted(from + 3, quote, raw) {
            return Ok(len);
        }
        let mut pos = from + 1;
        loop {
            match self.at(pos) {
                Some(c) if c == quote => return Ok(pos + 1),
                Some('\n' | '\r') | None => return Err(self.start + pos),
                Some('\\') if !raw => pos = self.escape(pos).map_err(|reached| self.start + reached)?,
                Some(_) => pos += 1,
            }
        }
    }

    fn triple_quoted(&self, from: usize, quote: char, raw: bool) -> Option<usize> {
        let mut pos = from;
        loop {
            let c = self.at(pos)?;
            if c == quote && self.at(pos + 1) == Some(quote) && self.at(pos + 2) == Some(quote) {
                return Some(pos + 3);
            }
            pos = if c == '\\' && !raw { self.escape(pos).ok()? } else { pos + 1 };
        }
    }

    /// The position after the escape sequence at `pos`, or where it becomes invalid.
    fn escape(&self, pos: usize) -> Result<usize, usize> {
        let hex = |count: usize| {
            for i in 0..count {
                if !self.at(pos + 2 + i).is_some_and(|c| c.is_ascii_hexdigit()) {
                    return Err(pos + 2 + i);
                }
            }
            Ok(pos + 2 + count)
        };
        match self.at(pos + 1) {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(pos + 2),
            Some('x' | 'X') => hex(2),
            Some('u') => hex(4),
            Some('U') => hex(8),
            Some('0'..='3') => {
                for i in [2, 3] {
                    if !self.at(pos + i).is_some_and(|c| ('0'..='7').contains(&c)) {
                        return Err(pos + i);
                    }
                }
                Ok(pos + 4)
            }
            _ => Err(pos + 1),
        }
    }
}
