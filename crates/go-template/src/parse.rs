//! From tokens to nodes.

use std::collections::BTreeMap;

use crate::TemplateError;
use crate::lex::{Located, Token, lex};

/// Nesting of blocks and parentheses.
const DEEPEST: usize = 100;

#[derive(Debug, Clone)]
pub struct Tree {
    pub root: Vec<Node>,
    /// Templates by name.
    pub defined: BTreeMap<String, Vec<Node>>,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub line: usize,
    pub kind: NodeKind,
}

#[derive(Debug, Clone)]
pub enum NodeKind {
    Text(String),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { name: String, data: Option<Pipe> },
    Break,
    Continue,
}

#[derive(Debug, Clone)]
pub struct Branch {
    pub pipe: Pipe,
    pub then: Vec<Node>,
    pub otherwise: Vec<Node>,
}

#[derive(Debug, Clone, Default)]
pub struct Pipe {
    /// Variables on the left of `:=` or `=`.
    pub variables: Vec<String>,
    pub assigns: bool,
    pub commands: Vec<Vec<Operand>>,
}

#[derive(Debug, Clone)]
pub enum Operand {
    Dot,
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// Fields of the dot.
    Field(Vec<String>),
    Variable(String, Vec<String>),
    Function(String),
    Pipe(Box<Pipe>, Vec<String>),
}

pub fn parse(text: &str) -> Result<Tree, TemplateError> {
    let mut parser = Parser { tokens: lex(text)?, at: 0, defined: BTreeMap::new(), depth: 0, loops: 0 };
    let (root, end) = parser.list()?;
    if let Some(end) = end {
        return Err(parser.failed(format!("unexpected {{{{{}}}}}", end.word())));
    }
    Ok(Tree { root, defined: parser.defined })
}

/// Action that ended a list of nodes.
enum End {
    Else,
    End,
}

impl End {
    fn word(&self) -> &'static str {
        match self {
            Self::Else => "else",
            Self::End => "end",
        }
    }
}

struct Parser {
    tokens: Vec<Located>,
    at: usize,
    defined: BTreeMap<String, Vec<Node>>,
    depth: usize,
    /// Loops around the current position.
    loops: usize,
}

impl Parser {
    fn line(&self) -> usize {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(0, |(_, line)| *line)
    }

    fn failed(&self, message: impl Into<String>) -> TemplateError {
        TemplateError::new(self.line(), message)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).map(|(token, _)| token.clone());
        self.at += 1;
        token
    }

    fn skip_space(&mut self) {
        while self.peek() == Some(&Token::Space) {
            self.at += 1;
        }
    }

    fn deeper(&mut self) -> Result<(), TemplateError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.failed(format!("blocks are nested more than {DEEPEST} deep")));
        }
        Ok(())
    }

    /// Nodes up to `else`, `end` or the end of the template. The rest of the action of an `else` is left.
    fn list(&mut self) -> Result<(Vec<Node>, Option<End>), TemplateError> {
        self.deeper()?;
        let mut nodes = Vec::new();
        let end = loop {
            let line = self.line();
            let kind = match self.next() {
                None => break None,
                Some(Token::Text(text)) => NodeKind::Text(text),
                Some(Token::Open) => {
                    self.skip_space();
                    let keyword = match self.peek() {
                        Some(Token::Word(word)) => word.clone(),
                        _ => String::new(),
                    };
                    match keyword.as_str() {
                        "end" => {
                            self.at += 1;
                            self.close("end")?;
                            break Some(End::End);
                        }
                        "else" => {
                            self.at += 1;
                            break Some(End::Else);
                        }
                        "define" => {
                            self.at += 1;
                            self.define()?;
                            continue;
                        }
                        _ => self.action(&keyword)?,
                    }
                }
                Some(token) => return Err(self.failed(format!("unexpected {token:?}"))),
            };
            nodes.push(Node { line, kind });
        };
        self.depth -= 1;
        Ok((nodes, end))
    }

    fn action(&mut self, keyword: &str) -> Result<NodeKind, TemplateError> {
        match keyword {
            "if" | "with" | "range" => {
                self.at += 1;
                self.branch(keyword)
            }
            "break" | "continue" => {
                self.at += 1;
                if self.loops == 0 {
                    return Err(self.failed(format!("{{{{{keyword}}}}} outside {{{{range}}}}")));
                }
                self.close(keyword)?;
                Ok(if keyword == "break" { NodeKind::Break } else { NodeKind::Continue })
            }
            "template" | "block" => {
                self.at += 1;
                let name = self.template_name(keyword)?;
                let data = self.pipe(&Token::Close)?;
                if keyword == "block" {
                    let body = self.body_to_end("block")?;
                    self.defined.entry(name.clone()).or_insert(body);
                }
                Ok(NodeKind::Template { name, data: Some(data).filter(|pipe| !pipe.commands.is_empty()) })
            }
            _ => {
                let pipe = self.pipe(&Token::Close)?;
                if pipe.commands.is_empty() {
                    return Err(self.failed("missing value for command"));
                }
                Ok(NodeKind::Action(pipe))
            }
        }
    }

    fn close(&mut self, after: &str) -> Result<(), TemplateError> {
        self.skip_space();
        match self.next() {
            Some(Token::Close) => Ok(()),
            _ => Err(self.failed(format!("unexpected text in {{{{{after}}}}}"))),
        }
    }

    fn template_name(&mut self, context: &str) -> Result<String, TemplateError> {
        self.skip_space();
        match self.next() {
            Some(Token::Quoted(name)) => Ok(name),
            _ => Err(self.failed(format!("{context} needs the name of a template"))),
        }
    }

    fn define(&mut self) -> Result<(), TemplateError> {
        let name = self.template_name("define")?;
        self.close("define")?;
        let body = self.body_to_end("define")?;
        self.defined.insert(name, body);
        Ok(())
    }

    fn body_to_end(&mut self, context: &str) -> Result<Vec<Node>, TemplateError> {
        match self.list()? {
            (body, Some(End::End)) => Ok(body),
            _ => Err(self.failed(format!("{context} is not ended"))),
        }
    }

    fn branch(&mut self, keyword: &str) -> Result<NodeKind, TemplateError> {
        let pipe = self.pipe(&Token::Close)?;
        if pipe.commands.is_empty() {
            return Err(self.failed(format!("missing value for {keyword}")));
        }
        let in_range = usize::from(keyword == "range");
        self.loops += in_range;
        let (then, end) = self.list()?;
        self.loops -= in_range;
        let otherwise = match end {
            None => return Err(self.failed(format!("{keyword} is not ended"))),
            Some(End::End) => Vec::new(),
            Some(End::Else) => self.otherwise(keyword)?,
        };
        let branch = Branch { pipe, then, otherwise };
        Ok(match keyword {
            "if" => NodeKind::If(branch),
            "with" => NodeKind::With(branch),
            _ => NodeKind::Range(branch),
        })
    }

    /// `else`, `else if …`, `else with …`.
    fn otherwise(&mut self, keyword: &str) -> Result<Vec<Node>, TemplateError> {
        self.skip_space();
        let line = self.line();
        match self.next() {
            Some(Token::Close) => self.body_to_end("else"),
            Some(Token::Word(word)) if word == keyword && keyword != "range" => {
                self.deeper()?;
                let kind = self.branch(keyword)?;
                self.depth -= 1;
                Ok(vec![Node { line, kind }])
            }
            _ => Err(self.failed(format!("unexpected text after else of {keyword}"))),
        }
    }

    /// A pipeline up to and including the token `end`.
    fn pipe(&mut self, end: &Token) -> Result<Pipe, TemplateError> {
        let mut pipe = self.declarations()?;
        loop {
            let command = self.command()?;
            let last = self.next();
            match (&last, command.is_empty()) {
                (Some(token), empty) if token == end => {
                    if empty && !(pipe.commands.is_empty() && pipe.variables.is_empty()) {
                        return Err(self.failed("missing value for command"));
                    }
                    if !empty {
                        pipe.commands.push(command);
                    }
                    return Ok(pipe);
                }
                (Some(Token::Pipe), false) => pipe.commands.push(command),
                (Some(Token::Pipe), true) => return Err(self.failed("missing value for command")),
                _ => return Err(self.failed("unexpected text in a pipeline")),
            }
        }
    }

    /// `$a :=`, `$a, $b :=` or `$a =` at the beginning of a pipeline.
    fn declarations(&mut self) -> Result<Pipe, TemplateError> {
        let begin = self.at;
        let mut variables = Vec::new();
        loop {
            self.skip_space();
            let Some(Token::Variable(name)) = self.peek().cloned() else { break };
            self.at += 1;
            variables.push(name);
            self.skip_space();
            match self.peek() {
                Some(Token::Comma) => self.at += 1,
                Some(token @ (Token::Declare | Token::Assign)) => {
                    let assigns = *token == Token::Assign;
                    self.at += 1;
                    if variables.len() > 2 {
                        return Err(self.failed("too many declarations"));
                    }
                    return Ok(Pipe { variables, assigns, commands: Vec::new() });
                }
                _ => break,
            }
        }
        self.at = begin;
        Ok(Pipe::default())
    }

    /// Operands up to a pipe or the end of the pipeline.
    fn command(&mut self) -> Result<Vec<Operand>, TemplateError> {
        let mut operands = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Err(self.failed("unclosed action")),
                Some(Token::Pipe | Token::Close | Token::RightParen) => return Ok(operands),
                _ => operands.push(self.operand()?),
            }
            match self.peek() {
                Some(Token::Space | Token::Pipe | Token::Close | Token::RightParen) | None => {}
                Some(token) => return Err(self.failed(format!("unexpected {token:?} after an operand"))),
            }
        }
    }

    fn fields(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(Token::Field(name)) = self.peek() {
            names.push(name.clone());
            self.at += 1;
        }
        names
    }

    fn operand(&mut self) -> Result<Operand, TemplateError> {
        Ok(match self.next() {
            Some(Token::Dot) => Operand::Dot,
            Some(Token::Quoted(text)) => Operand::Text(text),
            Some(Token::Int(number)) => Operand::Int(number),
            Some(Token::Float(number)) => Operand::Float(number),
            Some(Token::Field(name)) => {
                let mut names = vec![name];
                names.extend(self.fields());
                Operand::Field(names)
            }
            Some(Token::Variable(name)) => Operand::Variable(name, self.fields()),
            Some(Token::LeftParen) => {
                self.deeper()?;
                let pipe = self.pipe(&Token::RightParen)?;
                self.depth -= 1;
                if pipe.commands.is_empty() {
                    return Err(self.failed("missing value for parenthesized pipeline"));
                }
                Operand::Pipe(Box::new(pipe), self.fields())
            }
            Some(Token::Word(word)) => match word.as_str() {
                "true" | "false" => Operand::Bool(word == "true"),
                "nil" => Operand::Nil,
                name if crate::functions::is_known(name) => Operand::Function(word),
                name => return Err(self.failed(format!("function {name:?} not defined"))),
            },
            token => return Err(self.failed(format!("unexpected {token:?} in operand"))),
        })
    }
}
