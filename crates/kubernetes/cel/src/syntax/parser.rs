//! A recursive descent parser of CEL's grammar.

use std::sync::Arc;

use super::ast::{Ast, Expr, ExprId, ListElement, Literal, MapEntry, StructField};
use super::source::{Issues, Location, Source};
use super::token::{OPERAND, Tok, TokSet, Token};
use super::{lexer, literal};
use crate::escape::is_reserved;
use crate::limits::{MAX_NODES, MAX_RECURSION_DEPTH};

/// The parser cannot continue; the reason was reported.
#[derive(Debug)]
pub(super) struct Abort;

/// A position in the grammar, as the line of this parser.
pub(super) type Site = u32;

/// Why a grammar rule ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// A syntax error at a token that is not reported yet, and its position in the grammar.
    Syntax(Token, String, Site),
    Abort(Abort),
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

/// A grammar rule whose nesting is limited.
#[derive(Clone, Copy)]
enum Rule {
    Expr,
    Relation,
    Calc,
}

pub(super) struct Parser<'s> {
    pub(super) source: &'s Source,
    pub(super) issues: &'s mut Issues,
    pub(super) tokens: Vec<Token>,
    pub(super) unreadable: Vec<lexer::Unreadable>,
    pub(super) pos: usize,
    pub(super) ast: Ast,
    /// Nesting of operations below each node, which cel-go's tree walk limits.
    heights: Vec<u32>,
    depths: [u32; 3],
    /// The tokens that each caller expects after its rule.
    pub(super) follow: Vec<TokSet>,
    /// An error was reported and no token has matched since.
    pub(super) recovering: bool,
    /// Positions of rules that failed at one token without any match since.
    pub(super) failures: (usize, Vec<Site>),
    pub(super) attempts: usize,
    pub(super) reports: usize,
    /// Errors beyond syntax. Dropped if the rule they are in is not parsed to its end.
    findings: Vec<(u32, String)>,
}

const RELATIONS: TokSet = TokSet::of(&[
    Tok::Less,
    Tok::LessEquals,
    Tok::GreaterEquals,
    Tok::Greater,
    Tok::Equals,
    Tok::NotEquals,
    Tok::In,
]);
const CALCS: TokSet = TokSet::of(&[Tok::Star, Tok::Slash, Tok::Percent, Tok::Plus, Tok::Minus]);
const SUFFIXES: TokSet = TokSet::of(&[Tok::Dot, Tok::LBracket]);
/// Tokens that can follow a closing bracket.
const AFTER_OPERAND: TokSet =
    SUFFIXES.union(CALCS).union(RELATIONS).union(TokSet::of(&[Tok::And, Tok::Or, Tok::Question]));

pub(super) fn parse(source: &Source, issues: &mut Issues) -> Ast {
    let (tokens, unreadable) = lexer::tokenize(source);
    let mut parser = Parser {
        source,
        issues,
        tokens,
        unreadable,
        pos: 0,
        ast: Ast::default(),
        heights: Vec::new(),
        depths: [0; 3],
        follow: Vec::new(),
        recovering: false,
        failures: (0, Vec::new()),
        attempts: 0,
        reports: 0,
        findings: Vec::new(),
    };
    let root = parser.start();
    // The text after the point where the parser gave up was not checked.
    let reached = match root {
        Ok(_) => u32::MAX,
        Err(Abort) => parser.token().start,
    };
    let Parser { mut ast, findings, unreadable, .. } = parser;
    for (offset, _, message) in unreadable.into_iter().filter(|(offset, ..)| *offset <= reached) {
        issues.report(source.location(offset), message);
    }
    for (offset, message) in findings {
        issues.report(source.location(offset), message);
    }
    ast.root = match root {
        Ok(root) => root,
        Err(Abort) => ast.add(Expr::Unspecified, 0),
    };
    ast
}

impl Parser<'_> {
    fn start(&mut self) -> Result<ExprId, Abort> {
        let root = self.within(TokSet::of(&[Tok::Eof]), Self::expr)?;
        if let Err(stop) = self.expect(Tok::Eof, TokSet::EMPTY) {
            self.recover(stop)?;
        }
        Ok(root)
    }

    /// Runs a rule after which the caller expects `follow`.
    fn within<T>(
        &mut self,
        follow: TokSet,
        rule: impl FnOnce(&mut Self) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        self.follow.push(follow);
        let result = rule(self);
        self.follow.pop();
        result
    }

    fn nested<T>(
        &mut self,
        rule: Rule,
        body: impl FnOnce(&mut Self) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        self.depths[rule as usize] += 1;
        if self.depths[rule as usize] > MAX_RECURSION_DEPTH {
            self.issues.report(
                Location::NONE,
                format!("expression recursion limit exceeded: {MAX_RECURSION_DEPTH}"),
            );
            return Err(Abort);
        }
        let result = body(self);
        self.depths[rule as usize] -= 1;
        result
    }

    /// Tokens that can follow a closing bracket: an operator, or the rest of the innermost construct.
    fn expected_next(&self) -> TokSet {
        const ENDS: TokSet = TokSet::of(&[Tok::RParen, Tok::RBracket, Tok::RBrace, Tok::Colon, Tok::Eof]);
        let mut expected = AFTER_OPERAND;
        for follow in self.follow.iter().rev() {
            expected = expected.union(*follow);
            if follow.intersects(ENDS) {
                break;
            }
        }
        expected
    }

    /// Tokens that any of the callers expects.
    fn expected_later(&self) -> TokSet {
        self.follow.iter().copied().fold(TokSet::EMPTY, TokSet::union)
    }

    pub(super) fn add(&mut self, expr: Expr, offset: u32) -> Result<ExprId, Abort> {
        if self.ast.len() >= MAX_NODES {
            self.issues.report(Location::NONE, format!("expression exceeds {MAX_NODES} nodes"));
            return Err(Abort);
        }
        let id = self.ast.add(expr, offset);
        let below =
            self.ast.children(id).iter().map(|child| self.heights[*child as usize]).max().unwrap_or(0);
        let operation = match self.ast.get(id) {
            Expr::Select { .. } => true,
            Expr::Call { function, target, .. } => {
                target.is_some()
                    || matches!(
                        &**function,
                        "_?_:_"
                            | "_[_]"
                            | "_[?_]"
                            | "_?._"
                            | "_<_"
                            | "_<=_"
                            | "_>=_"
                            | "_>_"
                            | "_==_"
                            | "_!=_"
                            | "@in"
                            | "_*_"
                            | "_/_"
                            | "_%_"
                            | "_+_"
                            | "_-_"
                    )
            }
            _ => false,
        };
        let height = below + u32::from(operation);
        if height > MAX_RECURSION_DEPTH && operation {
            self.issues.report(Location::NONE, "max recursion depth exceeded");
            return Err(Abort);
        }
        self.heights.push(height);
        Ok(id)
    }

    /// Adds a node generated by a macro. It does not count as nesting.
    pub(super) fn add_generated(&mut self, expr: Expr, offset: u32) -> Result<ExprId, Abort> {
        if self.ast.len() >= MAX_NODES {
            self.issues.report(Location::NONE, format!("expression exceeds {MAX_NODES} nodes"));
            return Err(Abort);
        }
        let id = self.ast.add(expr, offset);
        let below =
            self.ast.children(id).iter().map(|child| self.heights[*child as usize]).max().unwrap_or(0);
        self.heights.push(below);
        Ok(id)
    }

    /// Reports an error in a part that was parsed.
    pub(super) fn report(&mut self, offset: u32, message: impl Into<String>) -> Result<ExprId, Abort> {
        self.findings.push((offset, message.into()));
        self.add(Expr::Unspecified, offset)
    }

    fn call(&mut self, function: &str, args: Vec<ExprId>, offset: u32) -> Result<ExprId, Abort> {
        self.add(Expr::Call { function: Arc::from(function), target: None, args }, offset)
    }

    fn expr(&mut self) -> Result<ExprId, Abort> {
        self.nested(Rule::Expr, |p| {
            let mut result = p.within(TokSet::of(&[Tok::Question]), Self::or)?;
            if p.kind() != Tok::Question {
                return Ok(result);
            }
            let op = p.consume();
            let body = |p: &mut Self, result: &mut ExprId| -> Result<(), Stop> {
                let truthy = p.within(TokSet::of(&[Tok::Colon]), Self::or)?;
                p.expect(Tok::Colon, OPERAND)?;
                let falsy = p.within(TokSet::EMPTY, Self::expr)?;
                *result = p.call("_?_:_", vec![*result, truthy, falsy], op.start)?;
                Ok(())
            };
            if let Err(stop) = body(p, &mut result) {
                p.recover(stop)?;
            }
            Ok(result)
        })
    }

    fn or(&mut self) -> Result<ExprId, Abort> {
        self.logical(Tok::Or, "_||_", Self::and)
    }

    fn and(&mut self) -> Result<ExprId, Abort> {
        self.logical(Tok::And, "_&&_", |p| p.relation())
    }

    /// A chain of one logical operator, as a balanced tree.
    fn logical(
        &mut self,
        op: Tok,
        function: &str,
        term: impl Fn(&mut Self) -> Result<ExprId, Abort>,
    ) -> Result<ExprId, Abort> {
        let follow = TokSet::of(&[op]);
        let mut terms = vec![self.within(follow, &term)?];
        let mut ops = Vec::new();
        while self.kind() == op {
            ops.push(self.consume().start);
            terms.push(self.within(follow, &term)?);
        }
        if ops.is_empty() {
            return Ok(terms[0]);
        }
        self.balance(function, &terms, &ops, 0, ops.len() - 1)
    }

    fn balance(
        &mut self,
        function: &str,
        terms: &[ExprId],
        ops: &[u32],
        low: usize,
        high: usize,
    ) -> Result<ExprId, Abort> {
        let mid = (low + high).div_ceil(2);
        let left = if mid == low { terms[mid] } else { self.balance(function, terms, ops, low, mid - 1)? };
        let right =
            if mid == high { terms[mid + 1] } else { self.balance(function, terms, ops, mid + 1, high)? };
        self.call(function, vec![left, right], ops[mid])
    }

    fn relation(&mut self) -> Result<ExprId, Abort> {
        self.nested(Rule::Relation, |p| {
            let mut left = p.within(RELATIONS, |p| p.calc(0))?;
            while RELATIONS.contains(p.kind()) {
                let op = p.consume();
                let function = match op.kind {
                    Tok::Less => "_<_",
                    Tok::LessEquals => "_<=_",
                    Tok::GreaterEquals => "_>=_",
                    Tok::Greater => "_>_",
                    Tok::Equals => "_==_",
                    Tok::NotEquals => "_!=_",
                    _ => "@in",
                };
                let right = p.nested(Rule::Relation, |p| p.within(RELATIONS, |p| p.calc(0)))?;
                left = p.call(function, vec![left, right], op.start)?;
            }
            Ok(left)
        })
    }

    fn calc(&mut self, min_precedence: u8) -> Result<ExprId, Abort> {
        self.nested(Rule::Calc, |p| {
            let mut left = p.within(CALCS, Self::unary)?;
            loop {
                let (function, precedence) = match p.kind() {
                    Tok::Star => ("_*_", 2),
                    Tok::Slash => ("_/_", 2),
                    Tok::Percent => ("_%_", 2),
                    Tok::Plus => ("_+_", 1),
                    Tok::Minus => ("_-_", 1),
                    _ => return Ok(left),
                };
                if precedence < min_precedence {
                    return Ok(left);
                }
                let op = p.consume();
                let right = p.within(CALCS, |p| p.calc(precedence + 1))?;
                left = p.call(function, vec![left, right], op.start)?;
            }
        })
    }

    fn unary(&mut self) -> Result<ExprId, Abort> {
        let start = self.token().start;
        let body = |p: &mut Self| -> Result<ExprId, Stop> {
            p.sync(OPERAND)?;
            let kind = p.kind();
            let (op, function) = match kind {
                Tok::Exclam => (Tok::Exclam, "!_"),
                Tok::Minus if !matches!(p.kind_after(1), Tok::Int | Tok::Float) => (Tok::Minus, "-_"),
                _ => return Ok(p.within(TokSet::EMPTY, Self::member)?),
            };
            if op == Tok::Minus && !OPERAND.contains(p.kind_after(1)) {
                return Err(p.no_viable_alternative(1));
            }
            if op == Tok::Minus && p.kind_after(1) == Tok::Exclam {
                return Err(p.no_viable_alternative(1));
            }
            let first = p.token().start;
            let mut count = 0;
            while p.kind() == op {
                p.consume();
                count += 1;
            }
            if op == Tok::Exclam && !OPERAND.contains(p.kind()) {
                p.report_unwanted(OPERAND)?;
                p.skip_to(OPERAND.union(p.expected_later()))?;
            }
            let operand = p.within(TokSet::EMPTY, Self::member)?;
            if count % 2 == 0 {
                return Ok(operand);
            }
            Ok(p.call(function, vec![operand], first)?)
        };
        match body(self) {
            Ok(id) => Ok(id),
            Err(stop) => {
                self.recover(stop)?;
                self.add(Expr::Unspecified, start)
            }
        }
    }

    fn member(&mut self) -> Result<ExprId, Abort> {
        let mut node = self.within(SUFFIXES, Self::primary)?;
        loop {
            let suffix = match self.kind() {
                Tok::Dot => self.selection(&mut node),
                Tok::LBracket => self.index(&mut node),
                _ => return Ok(node),
            };
            if let Err(stop) = suffix {
                self.recover(stop)?;
                return Ok(node);
            }
        }
    }

    fn selection(&mut self, node: &mut ExprId) -> Result<(), Stop> {
        match self.kind_after(1) {
            Tok::Ident if self.kind_after(2) == Tok::LParen => {
                self.consume();
                let name = self.consume();
                let function = self.text(name);
                let open = self.consume();
                let (args, end) = self.arguments()?;
                *node = self.call_or_macro(&function, Some(*node), args, open.start)?;
                end
            }
            Tok::Ident | Tok::EscIdent => {
                let dot = self.consume();
                let name = self.consume();
                let field = self.field_name(name)?;
                *node = self.add(Expr::Select { operand: *node, field, test_only: false }, dot.start)?;
                Ok(())
            }
            Tok::Question => {
                let dot = self.consume();
                self.consume();
                let expected = TokSet::of(&[Tok::Ident, Tok::EscIdent]);
                if let Err(stop) = self.sync(expected) {
                    let offset = self.token().start;
                    self.recover(stop)?;
                    self.report(offset, "unsupported ident kind")?;
                    return Ok(());
                }
                let name = self.consume();
                let field = self.field_name(name)?;
                let field = self.add(Expr::Literal(Literal::String(field)), name.start)?;
                *node = self.call("_?._", vec![*node, field], dot.start)?;
                Ok(())
            }
            _ => Err(self.no_viable_alternative(1)),
        }
    }

    /// A field name. Kubernetes does not enable quoted ones.
    fn field_name(&mut self, name: Token) -> Result<Arc<str>, Abort> {
        if name.kind == Tok::EscIdent {
            self.report(name.start, "unsupported syntax: '`'")?;
        }
        Ok(Arc::from(self.text(name)))
    }

    fn index(&mut self, node: &mut ExprId) -> Result<(), Stop> {
        let open = self.consume();
        self.sync(OPERAND.union(TokSet::of(&[Tok::Question])))?;
        let optional = self.kind() == Tok::Question;
        if optional {
            self.consume();
        }
        let index = self.within(TokSet::of(&[Tok::RBracket]), Self::expr)?;
        let function = if optional { "_[?_]" } else { "_[_]" };
        *node = self.call(function, vec![*node, index], open.start)?;
        let after = self.expected_next();
        self.expect(Tok::RBracket, after)?;
        Ok(())
    }

    /// Arguments after `(` up to and including `)`. The outer error ends the call before its arguments, the inner one
    /// after them.
    fn arguments(&mut self) -> Result<(Vec<ExprId>, Result<(), Stop>), Stop> {
        self.sync(OPERAND.union(TokSet::of(&[Tok::RParen])))?;
        let mut args = Vec::new();
        if self.kind() != Tok::RParen {
            self.follow.push(TokSet::of(&[Tok::RParen]));
            let list = self.expressions(&mut args);
            self.follow.pop();
            list?;
        }
        let after = self.expected_next();
        let end = self.expect(Tok::RParen, after).map(drop);
        Ok((args, end))
    }

    fn expressions(&mut self, args: &mut Vec<ExprId>) -> Result<(), Abort> {
        let follow = TokSet::of(&[Tok::Comma]);
        args.push(self.within(follow, Self::expr)?);
        while self.kind() == Tok::Comma {
            self.consume();
            args.push(self.within(follow, Self::expr)?);
        }
        Ok(())
    }

    fn primary(&mut self) -> Result<ExprId, Abort> {
        let start = self.token().start;
        let mut node = None;
        match self.primary_alternatives(&mut node) {
            Ok(()) => {}
            Err(stop) => self.recover(stop)?,
        }
        match node {
            Some(node) => Ok(node),
            None => self.add(Expr::Unspecified, start),
        }
    }

    fn primary_alternatives(&mut self, node: &mut Option<ExprId>) -> Result<(), Stop> {
        match self.kind() {
            Tok::Dot | Tok::Ident => self.name(node),
            Tok::LParen => {
                self.consume();
                *node = Some(self.within(TokSet::of(&[Tok::RParen]), Self::expr)?);
                let after = self.expected_next();
                self.expect(Tok::RParen, after)?;
                Ok(())
            }
            Tok::LBracket => self.list(node),
            Tok::LBrace => self.map(node),
            _ => {
                *node = Some(self.literal()?);
                Ok(())
            }
        }
    }

    fn name(&mut self, node: &mut Option<ExprId>) -> Result<(), Stop> {
        let leading = usize::from(self.kind() == Tok::Dot);
        if self.kind_after(leading) != Tok::Ident {
            return Err(self.no_viable_alternative(leading));
        }
        let mut last = leading;
        while self.kind_after(last + 1) == Tok::Dot && self.kind_after(last + 2) == Tok::Ident {
            last += 2;
        }
        if self.kind_after(last + 1) == Tok::LBrace {
            return self.message(last + 1, node);
        }
        let start = self.token().start;
        if leading == 1 {
            self.consume();
        }
        let ident = self.consume();
        let word = self.text(ident);
        let reserved = is_reserved(&word);
        let name = if leading == 1 { format!(".{word}") } else { word.clone() };
        if self.kind() == Tok::LParen {
            let open = self.consume();
            let (args, end) = self.arguments()?;
            *node = Some(if reserved {
                self.report(start, format!("reserved identifier: {word}"))?
            } else {
                self.call_or_macro(&name, None, args, open.start)?
            });
            return end;
        }
        *node = Some(if reserved {
            self.report(start, format!("reserved identifier: {word}"))?
        } else {
            self.add(Expr::Ident(Arc::from(name)), ident.start)?
        });
        Ok(())
    }

    fn message(&mut self, name_tokens: usize, node: &mut Option<ExprId>) -> Result<(), Stop> {
        let mut name = String::new();
        for _ in 0..name_tokens {
            let token = self.consume();
            name.push_str(&self.text(token));
        }
        let open = self.consume();
        let mut fields = Vec::new();
        let names = TokSet::of(&[Tok::Question, Tok::Ident, Tok::EscIdent]);
        let body = |p: &mut Self, fields: &mut Vec<StructField>| -> Result<(), Stop> {
            p.sync(names.union(TokSet::of(&[Tok::RBrace, Tok::Comma])))?;
            p.follow.push(TokSet::of(&[Tok::RBrace, Tok::Comma]));
            if let Err(stop) = p.fields(names, fields) {
                p.recover(stop)?;
            }
            p.follow.pop();
            p.close(Tok::RBrace)
        };
        let end = body(self, &mut fields);
        *node = Some(self.add(Expr::Struct { name: Arc::from(name), fields }, open.start)?);
        end
    }

    fn fields(&mut self, names: TokSet, fields: &mut Vec<StructField>) -> Result<(), Stop> {
        while names.contains(self.kind()) {
            let optional = self.kind() == Tok::Question;
            if optional {
                self.consume();
            }
            self.sync(TokSet::of(&[Tok::Ident, Tok::EscIdent]))?;
            let name = self.consume();
            let name = self.field_name(name)?;
            let colon = self.expect(Tok::Colon, OPERAND)?;
            let value = self.within(TokSet::of(&[Tok::Comma]), Self::expr)?;
            fields.push(StructField { name, value, optional, offset: colon.start });
            if self.kind() != Tok::Comma || !names.contains(self.kind_after(1)) {
                break;
            }
            self.consume();
        }
        Ok(())
    }

    /// An optional trailing comma and the closing bracket.
    fn close(&mut self, kind: Tok) -> Result<(), Stop> {
        self.sync(TokSet::of(&[kind, Tok::Comma]))?;
        if self.kind() == Tok::Comma {
            self.consume();
        }
        let after = self.expected_next();
        self.expect(kind, after)?;
        Ok(())
    }

    fn list(&mut self, node: &mut Option<ExprId>) -> Result<(), Stop> {
        let open = self.consume();
        let mut elements = Vec::new();
        let starts = OPERAND.union(TokSet::of(&[Tok::Question]));
        let body = |p: &mut Self, elements: &mut Vec<ListElement>| -> Result<(), Stop> {
            p.sync(starts.union(TokSet::of(&[Tok::RBracket, Tok::Comma])))?;
            p.follow.push(TokSet::of(&[Tok::RBracket, Tok::Comma]));
            let list = p.elements(starts, elements);
            p.follow.pop();
            list?;
            p.close(Tok::RBracket)
        };
        let end = body(self, &mut elements);
        *node = Some(self.add(Expr::List { elements }, open.start)?);
        end
    }

    fn elements(&mut self, starts: TokSet, elements: &mut Vec<ListElement>) -> Result<(), Abort> {
        while starts.contains(self.kind()) {
            let optional = self.kind() == Tok::Question;
            if optional {
                self.consume();
            }
            let value = self.within(TokSet::of(&[Tok::Comma]), Self::expr)?;
            elements.push(ListElement { value, optional });
            if self.kind() != Tok::Comma || !starts.contains(self.kind_after(1)) {
                break;
            }
            self.consume();
        }
        Ok(())
    }

    fn map(&mut self, node: &mut Option<ExprId>) -> Result<(), Stop> {
        let open = self.consume();
        let mut entries = Vec::new();
        let starts = OPERAND.union(TokSet::of(&[Tok::Question]));
        let body = |p: &mut Self, entries: &mut Vec<MapEntry>| -> Result<(), Stop> {
            p.sync(starts.union(TokSet::of(&[Tok::RBrace, Tok::Comma])))?;
            p.follow.push(TokSet::of(&[Tok::RBrace, Tok::Comma]));
            if let Err(stop) = p.entries(starts, entries) {
                p.recover(stop)?;
            }
            p.follow.pop();
            p.close(Tok::RBrace)
        };
        let end = body(self, &mut entries);
        *node = Some(self.add(Expr::Map { entries }, open.start)?);
        end
    }

    fn entries(&mut self, starts: TokSet, entries: &mut Vec<MapEntry>) -> Result<(), Stop> {
        while starts.contains(self.kind()) {
            let optional = self.kind() == Tok::Question;
            if optional {
                self.consume();
            }
            let findings = self.findings.len();
            let key = self.within(TokSet::of(&[Tok::Colon]), Self::expr)?;
            if let Err(stop) = self.expect(Tok::Colon, OPERAND) {
                self.findings.truncate(findings);
                return Err(stop);
            }
            let value = self.within(TokSet::of(&[Tok::Comma]), Self::expr)?;
            entries.push(MapEntry { key, value, optional });
            if self.kind() != Tok::Comma || !starts.contains(self.kind_after(1)) {
                break;
            }
            self.consume();
        }
        Ok(())
    }

    fn literal(&mut self) -> Result<ExprId, Stop> {
        let start = self.token().start;
        let negative = self.kind() == Tok::Minus;
        if negative {
            if !matches!(self.kind_after(1), Tok::Int | Tok::Float) {
                return Err(self.no_viable_alternative(1));
            }
            self.consume();
        }
        let token = self.token();
        let text: String = self.source.chars()[token.start as usize..token.end as usize].iter().collect();
        let value = match token.kind {
            Tok::True => Ok(Literal::Bool(true)),
            Tok::False => Ok(Literal::Bool(false)),
            Tok::Null => Ok(Literal::Null),
            Tok::Int => literal::int(&text, negative).ok_or("invalid int literal"),
            Tok::Uint => literal::uint(&text).ok_or("invalid uint literal"),
            Tok::Float => literal::double(&text, negative).ok_or("invalid double literal"),
            Tok::String => literal::string(&text),
            Tok::Bytes => literal::bytes(&text),
            _ => return Err(self.mismatch(OPERAND)),
        };
        self.consume();
        Ok(match value {
            Ok(value) => self.add(Expr::Literal(value), start)?,
            Err(message) => self.report(start, message)?,
        })
    }
}
