//! Compiles expressions.

use std::sync::Arc;

use crate::check;
use crate::cost;
use crate::decl::DeclType;
use crate::error::CompileError;
use crate::eval;
use crate::functions;
use crate::program::Program;
use crate::stack;
use crate::syntax;
use crate::syntax::source::{Issues, Source};
use crate::types::Type;

/// Number of nesting characters for which the current thread's stack is sufficient.
const SHALLOW: usize = 48;

/// The environment of expressions: declared variables, and the functions of Kubernetes 1.36.
#[derive(Debug, Clone, Default)]
pub struct Env {
    variables: Vec<(Arc<str>, DeclType, Type)>,
    patch_types: bool,
}

impl Env {
    /// An environment with the functions of Kubernetes and without variables.
    #[must_use]
    pub fn kubernetes() -> Self {
        Self::default()
    }

    /// Declares a variable.
    ///
    /// Variables declared with the same type (clones of one [`DeclType`]) can be compared with each other. The cost
    /// estimate takes sizes for all of them from the type of the first variable: `self`, with rules.
    #[must_use]
    pub fn with_variable(mut self, name: &str, decl: DeclType) -> Self {
        use crate::decl::Shape;
        let root = match decl.shape() {
            Shape::Optional(inner) => inner.clone(),
            _ => decl.clone(),
        };
        let owner = self.variables.iter().find(|(_, known, _)| match known.shape() {
            Shape::Optional(inner) => inner.same(&root),
            _ => known.same(&root),
        });
        let type_name = format!("{}Type", owner.map_or(name, |(owner, ..)| owner));
        let t = Type::of_decl(&decl, &type_name);
        self.variables.push((Arc::from(name), decl, t));
        self
    }

    /// Declares `authorizer` and `authorizer.requestResource`.
    #[must_use]
    pub fn with_authorizer(mut self) -> Self {
        for (name, object) in [("authorizer", "Authorizer"), ("authorizer.requestResource", "ResourceCheck")]
        {
            let t = Type::library_object(&format!("kubernetes.authorization.{object}"));
            self.variables.push((Arc::from(name), DeclType::dynamic(), t));
        }
        self
    }

    /// Allows `Object{…}` and `JSONPatch{…}`, and declares the functions of patches.
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.patch_types = true;
        self
    }

    /// Declares a variable whose value is the result of another expression; `None` if that does not compile.
    #[must_use]
    pub fn with_result(mut self, name: &str, output: Option<&Type>) -> Self {
        let t = output.map_or(Type::DYN, Type::composed);
        self.variables.push((Arc::from(name), DeclType::dynamic(), t));
        self
    }

    /// Parses, checks and plans an expression.
    ///
    /// # Errors
    /// [`CompileError::Issues`] if it is not valid, [`CompileError::Program`] if a constant in it cannot be
    /// computed.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        let nesting = source.bytes().filter(|b| matches!(b, b'(' | b'[' | b'{' | b'?' | b'.')).count();
        stack::run(nesting > SHALLOW, || self.compile_here(source))
            .unwrap_or_else(|error| Err(CompileError::Program(error.to_string())))
    }

    fn compile_here(&self, text: &str) -> Result<Program, CompileError> {
        let source = Source::new(text);
        let mut issues = Issues::default();
        let ast = syntax::parse(&source, &mut issues);
        if !issues.is_empty() {
            return Err(CompileError::Issues(issues.display(&source)));
        }
        let depth = ast.depth();
        let variables: Vec<(Arc<str>, Type)> =
            self.variables.iter().map(|(name, _, t)| (name.clone(), t.clone())).collect();
        let functions = if self.patch_types { functions::mutating() } else { functions::kubernetes() };
        let checked = check::check(ast, &source, &variables, functions, self.patch_types, &mut issues);
        if !issues.is_empty() {
            return Err(CompileError::Issues(issues.display(&source)));
        }
        let plan = eval::plan(&checked).map_err(CompileError::Program)?;
        let root = self.variables.first().map(|(_, decl, _)| match decl.shape() {
            crate::decl::Shape::Optional(inner) => inner,
            _ => decl,
        });
        let estimate = cost::estimate(&checked, root);
        Ok(Program::new(plan, &checked, estimate, depth))
    }
}
