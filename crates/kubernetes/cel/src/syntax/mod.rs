//! From text to a tree with macros expanded.

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

/// The name macros give the value a fold accumulates; no source text can spell it.
pub(crate) const ACCUMULATOR: &str = "@result";

/// Parses the source, reporting what is wrong with it.
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
