//! The Common Expression Language as Kubernetes uses it: parser, type checker, cost model, evaluator.
//!
//! ```text
//!  text ──syntax──▶ tree ──check──▶ typed tree ──eval::plan──▶ Program ──evaluate──▶ Value
//!                                     │      ▲                    ▲
//!                                     │   DeclType (schema)    Activation (JSON)
//!                                     └──cost::estimate──▶ CostRange
//! ```
//!
//! Behaviour, messages and cost numbers are those of cel-go with the options and libraries of Kubernetes
//! 1.36 for `x-kubernetes-validations`. Expressions come from clients: parsing, checking and evaluating are
//! bounded in time, memory and stack.

#![warn(missing_docs)]

mod budget;
mod check;
mod cost;
mod decl;
mod env;
mod error;
mod escape;
mod eval;
mod functions;
mod library;
pub mod limits;
mod program;
pub mod rfc3339;
mod stack;
mod syntax;
mod types;
mod value;

pub use budget::Budget;
pub use cost::CostRange;
pub use decl::{DeclType, Field, ListKind};
pub use env::Env;
pub use error::{CompileError, EvalError};
pub use escape::{escape, is_reserved, unescape};
pub use library::Opaque;
pub use library::authorization::{AccessAuthorizer, AccessDecision, AccessQuestion, AccessSubject};
pub use library::regex::compile as compile_regex;
pub use program::{Activation, ComputedVariables, Program};
pub use stack::run as run_with_stack;
pub use types::Type;
pub use value::{List, Map, Text, Timestamp, Value};
