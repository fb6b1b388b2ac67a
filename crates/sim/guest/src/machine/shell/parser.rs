//! Parser: tokens to commands.

use std::sync::Arc;

use super::lexer::{self, Token, Tokens};
use super::syntax::{
    AndOr, Command, Connector, Form, List, Part, Pipeline, Redirect, SyntaxError, Target, Word,
};

/// Maximum nesting of commands.
const DEPTH: usize = 48;
/// Maximum length of a script.
const LONGEST: usize = 1024 * 1024;

/// Parses a script: its commands, and the error that ends it. Shells parse incrementally, so commands before an error
/// run.
pub(super) fn script(text: &str) -> (List, Option<SyntaxError>) {
    if text.len() > LONGEST {
        return (List::new(), Some(SyntaxError { line: 1, why: "the script is too long".to_owned() }));
    }
    Parser::new(lexer::tokens(text, 1, 0)).script()
}

/// A script within a word.
pub(super) fn nested(text: &str, line: usize, depth: usize) -> Result<List, SyntaxError> {
    match Parser::new(lexer::tokens(text, line, depth)).script() {
        (list, None) => Ok(list),
        (_, Some(error)) => Err(error),
    }
}

struct Parser {
    tokens: Tokens,
    at: usize,
    depth: usize,
}

/// Keywords that end a list of commands.
const ENDS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Parser {
    fn new(tokens: Tokens) -> Self {
        Self { tokens, at: 0, depth: 0 }
    }

    fn script(mut self) -> (List, Option<SyntaxError>) {
        let mut list = List::new();
        loop {
            self.skip_newlines();
            if self.at >= self.tokens.tokens.len() {
                return (list, self.tokens.error);
            }
            match self.and_or().and_then(|and_or| {
                self.separator()?;
                Ok(and_or)
            }) {
                Ok(and_or) => list.push(and_or),
                Err(error) => return (list, Some(error)),
            }
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.tokens.get(self.at).map(|(token, _)| token)
    }

    fn line(&self) -> usize {
        let held = self.tokens.tokens.get(self.at).or(self.tokens.tokens.last());
        held.map_or(1, |(_, line)| *line)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    /// The error at the current token: the lexer's if it stopped here.
    fn unexpected(&self) -> SyntaxError {
        let line = self.line();
        let near = match self.peek() {
            Some(Token::Word(word)) => plain(word).unwrap_or("word").to_owned(),
            Some(Token::Sign(sign) | Token::Redirect { sign, .. }) => (*sign).to_owned(),
            Some(Token::Here { .. }) => "<<".to_owned(),
            Some(Token::Newline) => "newline".to_owned(),
            None => {
                let end = SyntaxError { line, why: "syntax error: unexpected end of file".to_owned() };
                return self.tokens.error.clone().unwrap_or(end);
            }
        };
        SyntaxError { line, why: format!("syntax error near unexpected token `{near}'") }
    }

    fn skip_newlines(&mut self) {
        while self.peek() == Some(&Token::Newline) {
            self.at += 1;
        }
    }

    fn at_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(held)) if *held == sign)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let there = self.at_sign(sign);
        self.at += usize::from(there);
        there
    }

    /// The current word, if nothing in it is quoted.
    fn keyword(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => plain(word),
            _ => None,
        }
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let there = self.keyword() == Some(keyword);
        self.at += usize::from(there);
        there
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<(), SyntaxError> {
        if self.take_keyword(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The end of a command: `;`, a consumed `&`, a newline, or the end of the enclosing construct.
    fn separator(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            None if self.tokens.error.is_some() => Err(self.unexpected()),
            None => Ok(()),
            Some(Token::Sign(";") | Token::Newline) => {
                self.at += 1;
                Ok(())
            }
            Some(Token::Sign(")" | ";;")) => Ok(()),
            // After `&` the next command may follow directly.
            Some(_) if self.at > 0 && self.tokens.tokens[self.at - 1].0 == Token::Sign("&") => Ok(()),
            Some(_) => Err(self.unexpected()),
        }
    }

    /// Commands up to a keyword or operator that ends them, which is not consumed.
    fn list(&mut self) -> Result<List, SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(SyntaxError { line: self.line(), why: "the script is nested too deeply".to_owned() });
        }
        let mut list = List::new();
        loop {
            self.skip_newlines();
            let ends = self.keyword().is_some_and(|keyword| ENDS.contains(&keyword));
            if ends || self.peek().is_none() || self.at_sign(")") || self.at_sign(";;") {
                break;
            }
            list.push(self.and_or()?);
            self.separator()?;
        }
        self.depth -= 1;
        if list.is_empty() { Err(self.unexpected()) } else { Ok(list) }
    }

    fn and_or(&mut self) -> Result<AndOr, SyntaxError> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let joint = match self.peek() {
                Some(Token::Sign("&&")) => Connector::And,
                Some(Token::Sign("||")) => Connector::Or,
                _ => break,
            };
            self.at += 1;
            self.skip_newlines();
            rest.push((joint, self.pipeline()?));
        }
        let background = self.take_sign("&");
        Ok(AndOr { first, rest, background })
    }

    fn pipeline(&mut self) -> Result<Pipeline, SyntaxError> {
        let mut negated = false;
        while self.take_keyword("!") {
            negated = !negated;
        }
        let mut commands = vec![self.command()?];
        while self.take_sign("|") {
            self.skip_newlines();
            commands.push(self.command()?);
        }
        Ok(Pipeline { negated, commands })
    }

    fn command(&mut self) -> Result<Command, SyntaxError> {
        let line = self.line();
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(SyntaxError { line, why: "the script is nested too deeply".to_owned() });
        }
        let mut redirects = Vec::new();
        let form = match self.keyword() {
            Some("if") => self.conditional()?,
            Some(keyword @ ("while" | "until")) => {
                let until = keyword == "until";
                self.at += 1;
                let condition = self.list()?;
                Form::Loop { until, condition, body: self.body()? }
            }
            Some("for") => self.for_each()?,
            Some("case") => self.case()?,
            Some("{") => {
                self.at += 1;
                let list = self.list()?;
                self.expect_keyword("}")?;
                Form::Group(list)
            }
            Some("function") => {
                self.at += 1;
                let Some(name) = self.keyword().map(str::to_owned) else { return Err(self.unexpected()) };
                self.at += 1;
                if self.take_sign("(") && !self.take_sign(")") {
                    return Err(self.unexpected());
                }
                self.function(name)?
            }
            Some(keyword) if ENDS.contains(&keyword) => return Err(self.unexpected()),
            _ if self.at_sign("(") => {
                self.at += 1;
                let list = self.list()?;
                if !self.take_sign(")") {
                    return Err(self.unexpected());
                }
                Form::Subshell(list)
            }
            _ => self.simple(&mut redirects)?,
        };
        if !matches!(form, Form::Simple { .. } | Form::Function { .. }) {
            while let Some(redirect) = self.redirect()? {
                redirects.extend(redirect);
            }
        }
        self.depth -= 1;
        Ok(Command { form, redirects, line })
    }

    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> Result<Form, SyntaxError> {
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        loop {
            if let Some(more) = self.redirect()? {
                redirects.extend(more);
                continue;
            }
            // In `[[ … ]]` operators are words.
            let in_test = words.first().and_then(|word| plain(word)) == Some("[[")
                && words.last().and_then(|word| plain(word)) != Some("]]");
            match self.peek() {
                Some(Token::Word(word)) => {
                    let word = word.clone();
                    match assignment(&word).filter(|_| words.is_empty()) {
                        Some(assignment) => assignments.push(assignment),
                        None => words.push(word),
                    }
                    self.at += 1;
                }
                Some(Token::Sign(sign)) if in_test && matches!(*sign, "&&" | "||" | "(" | ")") => {
                    words.push(vec![Part::Text { text: (*sign).to_owned(), quoted: false }]);
                    self.at += 1;
                }
                Some(Token::Sign("(")) if words.len() == 1 && assignments.is_empty() => {
                    let name = plain(&words[0]).map(str::to_owned);
                    self.at += 1;
                    match name {
                        Some(name) if self.take_sign(")") => return self.function(name),
                        _ => return Err(self.unexpected()),
                    }
                }
                _ => break,
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Form::Simple { assignments, words })
    }

    fn function(&mut self, name: String) -> Result<Form, SyntaxError> {
        self.skip_newlines();
        let body = Arc::new(self.command()?);
        Ok(Form::Function { name, body })
    }

    fn redirect(&mut self) -> Result<Option<Vec<Redirect>>, SyntaxError> {
        match self.peek() {
            Some(Token::Here { stream, document }) => {
                let (stream, document) = (stream.unwrap_or(0), *document);
                self.at += 1;
                let text = self.tokens.documents.get(document).cloned().unwrap_or_default();
                Ok(Some(vec![Redirect { stream, target: Target::Text(text) }]))
            }
            Some(Token::Redirect { stream, sign }) => {
                let (stream, sign) = (*stream, *sign);
                self.at += 1;
                let Some(Token::Word(word)) = self.next() else {
                    self.at -= 1;
                    return Err(self.unexpected());
                };
                let input = stream.unwrap_or(0);
                let output = stream.unwrap_or(1);
                let both = |target: Target| {
                    let one = vec![Part::Text { text: "1".to_owned(), quoted: false }];
                    vec![
                        Redirect { stream: 1, target },
                        Redirect { stream: 2, target: Target::Duplicate(one) },
                    ]
                };
                Ok(Some(match sign {
                    "<" => vec![Redirect { stream: input, target: Target::Read(word) }],
                    "<<<" => {
                        let mut text = word;
                        text.push(Part::Text { text: "\n".to_owned(), quoted: true });
                        vec![Redirect { stream: input, target: Target::Text(text) }]
                    }
                    "<&" => vec![Redirect { stream: input, target: Target::Duplicate(word) }],
                    ">>" => vec![Redirect { stream: output, target: Target::Append(word) }],
                    ">&" => vec![Redirect { stream: output, target: Target::Duplicate(word) }],
                    "&>" => both(Target::Write(word)),
                    "&>>" => both(Target::Append(word)),
                    _ => vec![Redirect { stream: output, target: Target::Write(word) }],
                }))
            }
            _ => Ok(None),
        }
    }

    fn conditional(&mut self) -> Result<Form, SyntaxError> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        self.at += 1;
        loop {
            let condition = self.list()?;
            self.expect_keyword("then")?;
            branches.push((condition, self.list()?));
            if self.take_keyword("elif") {
                continue;
            }
            if self.take_keyword("else") {
                otherwise = Some(self.list()?);
            }
            self.expect_keyword("fi")?;
            return Ok(Form::If { branches, otherwise });
        }
    }

    fn body(&mut self) -> Result<List, SyntaxError> {
        self.expect_keyword("do")?;
        let body = self.list()?;
        self.expect_keyword("done")?;
        Ok(body)
    }

    fn for_each(&mut self) -> Result<Form, SyntaxError> {
        self.at += 1;
        let Some(name) = self.keyword().map(str::to_owned) else { return Err(self.unexpected()) };
        self.at += 1;
        self.skip_newlines();
        let mut words = None;
        if self.take_keyword("in") {
            let mut listed = Vec::new();
            while let Some(Token::Word(word)) = self.peek() {
                listed.push(word.clone());
                self.at += 1;
            }
            words = Some(listed);
        }
        self.take_sign(";");
        self.skip_newlines();
        Ok(Form::For { name, words, body: self.body()? })
    }

    fn case(&mut self) -> Result<Form, SyntaxError> {
        self.at += 1;
        let Some(Token::Word(word)) = self.next() else {
            self.at -= 1;
            return Err(self.unexpected());
        };
        self.skip_newlines();
        self.expect_keyword("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_newlines();
            if self.take_keyword("esac") {
                return Ok(Form::Case { word, arms });
            }
            self.take_sign("(");
            let mut patterns = Vec::new();
            loop {
                let Some(Token::Word(pattern)) = self.next() else {
                    self.at -= 1;
                    return Err(self.unexpected());
                };
                patterns.push(pattern);
                if !self.take_sign("|") {
                    break;
                }
            }
            if !self.take_sign(")") {
                return Err(self.unexpected());
            }
            self.skip_newlines();
            let empty = self.at_sign(";;") || self.keyword() == Some("esac");
            let list = if empty { List::new() } else { self.list()? };
            arms.push((patterns, list));
            if !self.take_sign(";;") && self.keyword() != Some("esac") {
                return Err(self.unexpected());
            }
        }
    }
}

/// The text of a word without quotes and expansions.
fn plain(word: &[Part]) -> Option<&str> {
    match word {
        [Part::Text { text, quoted: false }] => Some(text),
        _ => None,
    }
}

/// `name=value`, if the word is one.
fn assignment(word: &[Part]) -> Option<(String, Word)> {
    let Some(Part::Text { text, quoted: false }) = word.first() else { return None };
    let (name, value) = text.split_once('=')?;
    let mut chars = name.chars();
    let named = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !named {
        return None;
    }
    let mut parts = Word::new();
    if !value.is_empty() {
        parts.push(Part::Text { text: value.to_owned(), quoted: false });
    }
    parts.extend_from_slice(&word[1..]);
    Some((name.to_owned(), parts))
}
