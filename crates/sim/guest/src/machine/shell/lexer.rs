//! Lexer: script to tokens.

use super::parser;
use super::syntax::{Change, Part, SyntaxError, Word};

/// Maximum nesting of scripts.
const DEPTH: usize = 24;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Word(Word),
    /// `&&`, `||`, `;;`, `;`, `|`, `&`, `(`, `)`.
    Sign(&'static str),
    Newline,
    /// `>` and similar; the target is the next word.
    Redirect {
        stream: Option<u32>,
        sign: &'static str,
    },
    /// A here-document.
    Here {
        stream: Option<u32>,
        document: usize,
    },
}

/// A script as tokens with their lines.
pub(super) struct Tokens {
    pub(super) tokens: Vec<(Token, usize)>,
    pub(super) documents: Vec<Word>,
    /// The error at which lexing stopped.
    pub(super) error: Option<SyntaxError>,
}

/// Lexes a script; `depth` is its nesting level.
pub(super) fn tokens(script: &str, line: usize, depth: usize) -> Tokens {
    let mut lexer = Lexer { text: script.chars().collect(), at: 0, line, depth, pending: Vec::new() };
    let mut out = Tokens { tokens: Vec::new(), documents: Vec::new(), error: None };
    if depth > DEPTH {
        out.error = Some(lexer.error("the script is nested too deeply"));
        return out;
    }
    loop {
        let line = lexer.line;
        match lexer.token(&mut out.documents) {
            Ok(Some(token)) => out.tokens.push((token, line)),
            Ok(None) => return out,
            Err(error) => {
                out.error = Some(error);
                return out;
            }
        }
    }
}

/// A here-document whose text starts on the next line.
struct Pending {
    document: usize,
    delimiter: String,
    strip_tabs: bool,
    literal: bool,
}

struct Lexer {
    text: Vec<char>,
    at: usize,
    line: usize,
    depth: usize,
    pending: Vec<Pending>,
}

const SIGNS: [&str; 8] = ["&&", "||", ";;", ";", "|", "&", "(", ")"];
const REDIRECTS: [&str; 11] = ["<<<", "<<-", "<<", "<&", "<", ">>", ">&", ">|", ">", "&>>", "&>"];

impl Lexer {
    fn error(&self, why: &str) -> SyntaxError {
        SyntaxError { line: self.line, why: why.to_owned() }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(n, c)| self.text.get(self.at + n) == Some(&c))
    }

    fn skip(&mut self, text: &str) -> bool {
        let there = self.looking_at(text);
        if there {
            self.at += text.chars().count();
        }
        there
    }

    fn token(&mut self, documents: &mut Vec<Word>) -> Result<Option<Token>, SyntaxError> {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\\') if self.looking_at("\\\n") => {
                    self.next();
                    self.next();
                }
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
        let Some(c) = self.peek() else {
            self.read_documents(documents)?;
            return Ok(None);
        };
        if c == '\n' {
            self.next();
            self.read_documents(documents)?;
            return Ok(Some(Token::Newline));
        }
        let digits = self.text[self.at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let stream: Option<u32> = match self.text.get(self.at + digits) {
            Some('<' | '>') if digits > 0 => {
                let number: String = self.text[self.at..self.at + digits].iter().collect();
                self.at += digits;
                number.parse().ok()
            }
            _ => None,
        };
        if let Some(sign) = REDIRECTS.into_iter().find(|sign| self.looking_at(sign)) {
            self.skip(sign);
            if sign == "<<" || sign == "<<-" {
                return self.here(stream, sign == "<<-", documents).map(Some);
            }
            return Ok(Some(Token::Redirect { stream, sign }));
        }
        if let Some(sign) = SIGNS.into_iter().find(|sign| self.looking_at(sign)) {
            self.skip(sign);
            return Ok(Some(Token::Sign(sign)));
        }
        self.word().map(|word| Some(Token::Word(word)))
    }

    fn here(
        &mut self,
        stream: Option<u32>,
        strip_tabs: bool,
        documents: &mut Vec<Word>,
    ) -> Result<Token, SyntaxError> {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let word = self.word()?;
        let mut delimiter = String::new();
        let mut literal = false;
        for part in &word {
            let Part::Text { text, quoted } = part else { return Err(self.error("a here-document's end")) };
            delimiter.push_str(text);
            literal |= quoted;
        }
        let document = documents.len();
        documents.push(Word::new());
        self.pending.push(Pending { document, delimiter, strip_tabs, literal });
        Ok(Token::Here { stream, document })
    }

    /// Reads the here-documents announced on the previous line.
    fn read_documents(&mut self, documents: &mut [Word]) -> Result<(), SyntaxError> {
        for pending in std::mem::take(&mut self.pending) {
            let first = self.line;
            let mut body = String::new();
            loop {
                let mut line = String::new();
                let ended = loop {
                    match self.next() {
                        Some('\n') => break false,
                        Some(c) => line.push(c),
                        None => break true,
                    }
                };
                let shown = if pending.strip_tabs { line.trim_start_matches('\t') } else { &line };
                if shown == pending.delimiter || (ended && line.is_empty()) {
                    break;
                }
                body.push_str(shown);
                body.push('\n');
                if ended {
                    break;
                }
            }
            let word = if pending.literal {
                vec![Part::Text { text: body, quoted: true }]
            } else {
                let mut inner = Self::within(&body, first, self.depth);
                inner.quoted(None)?
            };
            if let Some(document) = documents.get_mut(pending.document) {
                *document = word;
            }
        }
        Ok(())
    }

    fn within(text: &str, line: usize, depth: usize) -> Self {
        Self { text: text.chars().collect(), at: 0, line, depth: depth + 1, pending: Vec::new() }
    }

    /// An unquoted word.
    fn word(&mut self) -> Result<Word, SyntaxError> {
        let mut word = Word::new();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' => break,
                '\r' => self.at += 1,
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(c) => push(&mut word, c, true),
                        None => push(&mut word, '\\', true),
                    }
                }
                '\'' => {
                    self.at += 1;
                    let text = self.until('\'')?;
                    word.push(Part::Text { text, quoted: true });
                }
                '"' => {
                    self.at += 1;
                    let parts = self.quoted(Some('"'))?;
                    // Empty quotes are a word too.
                    word.push(Part::Text { text: String::new(), quoted: true });
                    word.extend(parts);
                }
                '$' if self.looking_at("$'") => {
                    self.at += 2;
                    let text = self.ansi()?;
                    word.push(Part::Text { text, quoted: true });
                }
                '$' | '`' => self.expansion(&mut word, false)?,
                c => {
                    self.next();
                    push(&mut word, c, false);
                }
            }
        }
        Ok(word)
    }

    /// Text in double quotes, or a here-document.
    fn quoted(&mut self, end: Option<char>) -> Result<Word, SyntaxError> {
        let mut word = Word::new();
        loop {
            match self.peek() {
                None if end.is_none() => return Ok(word),
                None => return Err(self.error("unexpected EOF while looking for matching `\"'")),
                Some(c) if Some(c) == end => {
                    self.at += 1;
                    return Ok(word);
                }
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => {
                            self.next();
                        }
                        Some(c) if matches!(c, '$' | '`' | '\\') || Some(c) == end => {
                            self.at += 1;
                            push(&mut word, c, true);
                        }
                        _ => push(&mut word, '\\', true),
                    }
                }
                Some('$' | '`') => self.expansion(&mut word, true)?,
                Some(c) => {
                    self.next();
                    push(&mut word, c, true);
                }
            }
        }
    }

    fn until(&mut self, end: char) -> Result<String, SyntaxError> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some(c) if c == end => return Ok(text),
                Some(c) => text.push(c),
                None => {
                    return Err(self.error(&format!("unexpected EOF while looking for matching `{end}'")));
                }
            }
        }
    }

    /// `$'…'` with its escapes.
    fn ansi(&mut self) -> Result<String, SyntaxError> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('\'') => return Ok(text),
                Some('\\') => match self.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(c) => text.push(c),
                    None => {}
                },
                Some(c) => text.push(c),
                None => return Err(self.error("unexpected EOF while looking for matching `''")),
            }
        }
    }

    /// `$name`, `${…}`, `$(…)`, `$((…))`, or a command in back quotes.
    fn expansion(&mut self, word: &mut Word, quoted: bool) -> Result<(), SyntaxError> {
        let line = self.line;
        if self.skip("`") {
            let mut text = String::new();
            loop {
                match self.next() {
                    Some('`') => break,
                    Some('\\') if matches!(self.peek(), Some('`' | '\\' | '$')) => text.extend(self.next()),
                    Some(c) => text.push(c),
                    None => return Err(self.error("unexpected EOF while looking for matching ``'")),
                }
            }
            word.push(Part::Output { list: parser::nested(&text, line, self.depth + 1)?, quoted });
            return Ok(());
        }
        self.at += 1;
        if self.skip("((") {
            let text = self.balanced('(', ')')?;
            if !self.skip(")") {
                return Err(self.error("unexpected EOF while looking for matching `)'"));
            }
            let expression = Self::within(&text, line, self.depth).quoted(None)?;
            word.push(Part::Arithmetic { expression });
            return Ok(());
        }
        if self.skip("(") {
            let text = self.balanced('(', ')')?;
            word.push(Part::Output { list: parser::nested(&text, line, self.depth + 1)?, quoted });
            return Ok(());
        }
        if self.skip("{") {
            let text = self.balanced('{', '}')?;
            word.push(self.parameter(&text, quoted)?);
            return Ok(());
        }
        let name: String = match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.text[self.at..].iter();
                rest.take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect()
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '?' | '#' | '@' | '*' | '$' | '!' | '-') => {
                c.to_string()
            }
            _ => {
                push(word, '$', quoted);
                return Ok(());
            }
        };
        self.at += name.chars().count();
        word.push(Part::Parameter { name, change: None, quoted });
        Ok(())
    }

    /// Text up to the closing delimiter, respecting quotes.
    fn balanced(&mut self, open: char, close: char) -> Result<String, SyntaxError> {
        let mut text = String::new();
        let mut depth = 1;
        let mut quote = None;
        while let Some(c) = self.next() {
            match (quote, c) {
                (_, '\\') if quote != Some('\'') => {
                    text.push(c);
                    text.extend(self.next());
                    continue;
                }
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, c) if c == open => depth += 1,
                (None, c) if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(text);
                    }
                }
                (None, _) => {}
            }
            text.push(c);
        }
        Err(self.error(&format!("unexpected EOF while looking for matching `{close}'")))
    }

    /// The inside of `${…}`.
    fn parameter(&self, text: &str, quoted: bool) -> Result<Part, SyntaxError> {
        let bad = || self.error(&format!("${{{text}}}: bad substitution"));
        let (text, length) = match text.strip_prefix('#') {
            Some(rest) if !rest.is_empty() => (rest, true),
            _ => (text, false),
        };
        let mut end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
        if end == 0 {
            end = text.chars().next().filter(|c| "?#@*$!-".contains(*c)).ok_or_else(bad)?.len_utf8();
        }
        let (name, rest) = text.split_at(end);
        let name = name.to_owned();
        let word = |text: &str| -> Result<Word, SyntaxError> {
            let mut lexer = Self::within(text, self.line, self.depth);
            if lexer.depth > DEPTH {
                return Err(lexer.error("the script is nested too deeply"));
            }
            if quoted { lexer.quoted(None) } else { lexer.words_joined() }
        };
        let change = if length {
            if !rest.is_empty() {
                return Err(bad());
            }
            Some(Change::Length)
        } else if rest.is_empty() {
            None
        } else {
            let or_empty = rest.starts_with(':');
            let sign = rest.trim_start_matches(':');
            Some(if let Some(text) = sign.strip_prefix('-') {
                Change::Default { or_empty, word: word(text)? }
            } else if let Some(text) = sign.strip_prefix('=') {
                Change::Assign { or_empty, word: word(text)? }
            } else if let Some(text) = sign.strip_prefix('+') {
                Change::Alternative { or_empty, word: word(text)? }
            } else if let Some(text) = sign.strip_prefix('?') {
                Change::Required { or_empty, word: word(text)? }
            } else if let Some(text) = rest.strip_prefix("##") {
                Change::WithoutPrefix { longest: true, pattern: word(text)? }
            } else if let Some(text) = rest.strip_prefix('#') {
                Change::WithoutPrefix { longest: false, pattern: word(text)? }
            } else if let Some(text) = rest.strip_prefix("%%") {
                Change::WithoutSuffix { longest: true, pattern: word(text)? }
            } else if let Some(text) = rest.strip_prefix('%') {
                Change::WithoutSuffix { longest: false, pattern: word(text)? }
            } else if let Some(text) = rest.strip_prefix('/') {
                let (text, all) = text.strip_prefix('/').map_or((text, false), |text| (text, true));
                let (pattern, with) = text.split_once('/').unwrap_or((text, ""));
                Change::Replace { all, pattern: word(pattern)?, with: word(with)? }
            } else {
                return Err(bad());
            })
        };
        Ok(Part::Parameter { name, change, quoted })
    }

    /// The whole text as one word, including blanks.
    fn words_joined(&mut self) -> Result<Word, SyntaxError> {
        let mut word = Word::new();
        while let Some(c) = self.peek() {
            let parts = self.word()?;
            if parts.is_empty() {
                self.next();
                push(&mut word, c, false);
            } else {
                word.extend(parts);
            }
        }
        Ok(word)
    }
}

/// Appends a character to the last part if it is text of the same kind.
fn push(word: &mut Word, c: char, quoted: bool) {
    match word.last_mut() {
        Some(Part::Text { text, quoted: held }) if *held == quoted => text.push(c),
        _ => word.push(Part::Text { text: c.to_string(), quoted }),
    }
}
