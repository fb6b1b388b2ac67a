//! Parses text into a tree with macros expanded.

pub(crate) mod ast;
mod lexer;
mod literal;
mod macros;
mod parser;
mod recover;
pub(crate) mod source;
mod token;

use ast::Ast;
use source::{Issues, Location, Source};

use crate::limits::EXPRESSION_SIZE_CODE_POINT_LIMIT;

/// The variable of a fold's accumulator in macros. It is not a valid identifier in source text.
pub(crate) const ACCUMULATOR: &str = "@result";

/// Parses the source and reports issues.
pub(crate) fn parse(source: &Source, issues: &mut Issues) -> Ast {
    let size = source.chars().len();
    if size > EXPRESSION_SIZE_CODE_POINT_LIMIT {
        issues.report(
            Location::NONE,
            format!(
                "expression code point size exceeds limit: size: {size}, limit {EXPRESSION_SIZE_CODE_POINT_LIMIT}"
            ),
        );
        return Ast::default();
    }
    parser::parse(source, issues)
}
