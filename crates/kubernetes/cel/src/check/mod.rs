//! Type checking: deduces the type of each expression and resolves overloads.

mod unify;
mod validate;

use std::sync::Arc;

use unify::{Substitution, collect_params, instantiate, most_general};

use crate::functions::{Function, FunctionTable, Overload};
use crate::limits::MAX_TYPE_SIZE;
use crate::syntax::ast::{Ast, Expr, ExprId, Literal, StructField};
use crate::syntax::source::{Issues, Location, Source};
use crate::types::{Kind, Type};

#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) ast: Ast,
    types: Vec<Type>,
    references: Vec<Reference>,
}

/// Target of a name or call.
#[derive(Debug, Clone, Default)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable, local or declared.
    Variable(Arc<str>),
    /// A type by its name.
    Type(Arc<str>),
    /// The matching overloads of a function.
    Overloads { function: &'static Function, indices: Vec<usize> },
    /// `a.?b`
    OptionalSelect,
}

impl Checked {
    pub(crate) fn type_of(&self, id: ExprId) -> &Type {
        &self.types[id as usize]
    }

    pub(crate) fn reference(&self, id: ExprId) -> &Reference {
        &self.references[id as usize]
    }

    /// The names of all variables used, including local ones.
    pub(crate) fn variables(&self) -> Vec<String> {
        let names: std::collections::BTreeSet<&str> = self
            .references
            .iter()
            .filter_map(|reference| match reference {
                Reference::Variable(name) => Some(&**name),
                _ => None,
            })
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

/// Checks the expression against declared variables. The result is usable only if there are no issues.
pub(crate) fn check(
    ast: Ast,
    source: &Source,
    variables: &[(Arc<str>, Type)],
    functions: &'static FunctionTable,
    patch_types: bool,
    issues: &mut Issues,
) -> Checked {
    let len = ast.len();
    let mut checker = Checker {
        ast,
        source,
        functions,
        issues,
        types: vec![Type::ERROR; len],
        references: vec![Reference::None; len],
        scopes: variables.to_vec(),
        patch_types,
        substitution: Substitution::default(),
        too_complex: false,
    };
    let root = checker.ast.root;
    checker.check(root);
    let mut types = std::mem::take(&mut checker.types);
    for t in &mut types {
        *t = checker.substitution.apply(t, true);
    }
    if checker.too_complex || checker.substitution.is_exhausted() {
        checker.issues.report(Location::NONE, "expression type is too complex");
    }
    let checked = Checked { ast: checker.ast, types, references: checker.references };
    if issues.is_empty() {
        validate::validate(&checked, source, issues);
    }
    checked
}

struct Checker<'s> {
    ast: Ast,
    source: &'s Source,
    functions: &'static FunctionTable,
    issues: &'s mut Issues,
    types: Vec<Type>,
    references: Vec<Reference>,
    /// Variables, innermost last.
    scopes: Vec<(Arc<str>, Type)>,
    /// Whether `Object` and `JSONPatch` can be constructed.
    patch_types: bool,
    substitution: Substitution,
    too_complex: bool,
}

impl Checker<'_> {
    fn error(&mut self, at: ExprId, message: String) {
        let location = self.source.location(self.ast.offset(at));
        self.issues.report(location, message);
    }

    fn set_type(&mut self, id: ExprId, t: Type) {
        if t.size() > MAX_TYPE_SIZE {
            self.too_complex = true;
            self.types[id as usize] = Type::ERROR;
            return;
        }
        self.types[id as usize] = t;
    }

    fn type_of(&self, id: ExprId) -> Type {
        self.types[id as usize].clone()
    }

    fn check(&mut self, id: ExprId) {
        match self.ast.get(id) {
            Expr::Literal(literal) => {
                let t = match literal {
                    Literal::Null => Type::NULL,
                    Literal::Bool(_) => Type::BOOL,
                    Literal::Int(_) => Type::INT,
                    Literal::Uint(_) => Type::UINT,
                    Literal::Double(_) => Type::DOUBLE,
                    Literal::String(_) => Type::STRING,
                    Literal::Bytes(_) => Type::BYTES,
                };
                self.set_type(id, t);
            }
            Expr::Ident(name) => {
                let name = name.clone();
                self.check_ident(id, &name);
            }
            Expr::Select { operand, field, test_only } => {
                let (operand, field, test_only) = (*operand, field.clone(), *test_only);
                self.check_select(id, operand, &field, test_only);
            }
            Expr::Call { .. } => self.check_call(id),
            Expr::List { .. } => self.check_list(id),
            Expr::Map { .. } => self.check_map(id),
            Expr::Struct { .. } => self.check_struct(id),
            Expr::Comprehension(_) => self.check_comprehension(id),
            Expr::Unspecified => self.set_type(id, Type::ERROR),
        }
    }

    /// Resolves a name: a variable, innermost first, or a type.
    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((name, t)) = self.scopes.iter().rev().find(|(known, _)| &**known == name) {
            return Some((t.clone(), Reference::Variable(name.clone())));
        }
        let named = type_by_name(name)?;
        Some((Type::type_of(named), Reference::Type(Arc::from(name))))
    }

    fn check_ident(&mut self, id: ExprId, name: &str) {
        match self.lookup(name) {
            Some((t, reference)) => {
                self.set_type(id, t);
                self.references[id as usize] = reference;
            }
            None => {
                self.set_type(id, Type::ERROR);
                self.error(id, undeclared(name));
            }
        }
    }

    fn check_select(&mut self, id: ExprId, operand: ExprId, field: &str, test_only: bool) {
        if !test_only
            && let Some(name) = self.ast.qualified_name(id)
            && let Some((t, reference)) = self.lookup(&name)
        {
            self.set_type(id, t);
            self.references[id as usize] = reference;
            self.ast.set(id, Expr::Ident(Arc::from(name)));
            return;
        }
        let selected = self.check_field(id, operand, field, false);
        let t = if test_only { Type::BOOL } else { self.substitution.apply(&selected, false) };
        self.set_type(id, t);
    }

    fn check_field(&mut self, id: ExprId, operand: ExprId, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.type_of(operand);
        let operand_type = self.substitution.apply(&operand_type, false);
        let (target, is_optional) = match operand_type.unwrap_optional() {
            Some(inner) => (inner.clone(), true),
            None => (operand_type, false),
        };
        let result = match &target.0 {
            Kind::Map(_) => target.params()[1].clone(),
            Kind::Struct(object) => {
                let found = object.decl.as_ref().and_then(|decl| match decl.shape() {
                    crate::decl::Shape::Object(fields) => {
                        let found = fields.field(field)?;
                        Some(Type::of_decl(found.decl(), &format!("{}.{field}", object.name)))
                    }
                    _ => None,
                });
                match found {
                    Some(t) => t,
                    None if self.patch_types && is_patch_type(&object.name) => Type::DYN,
                    None if object.decl.is_none() => {
                        let message = format!("unexpected failed resolution of '{}'", object.name);
                        self.error(id, message);
                        Type::ERROR
                    }
                    None => {
                        self.error(id, format!("undefined field '{field}'"));
                        Type::ERROR
                    }
                }
            }
            Kind::Var(_) => {
                self.substitution.assignable(&Type::DYN, &target);
                Type::DYN
            }
            _ => {
                if !target.is_dyn_or_error() {
                    self.error(id, format!("type '{target}' does not support field selection"));
                }
                Type::DYN
            }
        };
        if is_optional || optional { Type::optional(result) } else { result }
    }

    fn check_call(&mut self, id: ExprId) {
        let Expr::Call { function, target, args } = self.ast.get(id).clone() else { return };
        if &*function == "_?._" {
            return self.check_optional_select(id, &args);
        }
        for arg in &args {
            self.check(*arg);
        }
        let name = function.strip_prefix('.').unwrap_or(&function);
        let Some(target) = target else {
            match self.functions.get(name) {
                Some(function) => self.resolve(id, function, None, &args),
                None => {
                    self.error(id, undeclared(&function));
                    self.set_type(id, Type::ERROR);
                }
            }
            return;
        };
        // `a.b.c()` is the function `a.b.c` if there is one.
        if let Some(prefix) = self.ast.qualified_name(target) {
            let qualified = format!("{prefix}.{function}");
            if let Some(found) = self.functions.get(qualified.strip_prefix('.').unwrap_or(&qualified)) {
                self.ast.set(
                    id,
                    Expr::Call { function: Arc::from(found.name), target: None, args: args.clone() },
                );
                self.resolve(id, found, None, &args);
                return;
            }
        }
        self.check(target);
        match self.functions.get(name) {
            Some(function) => self.resolve(id, function, Some(target), &args),
            None => {
                self.set_type(id, Type::ERROR);
                self.error(id, undeclared(&function));
            }
        }
    }

    fn check_optional_select(&mut self, id: ExprId, args: &[ExprId]) {
        let [operand, field] = args else { return };
        let Some(Literal::String(field)) = self.ast.literal(*field).cloned() else { return };
        // The parser made the field a literal. It is checked so that it has a type.
        self.check(args[1]);
        let selected = self.check_field(id, *operand, &field, true);
        let t = self.substitution.apply(&selected, false);
        self.set_type(id, t);
        self.references[id as usize] = Reference::OptionalSelect;
    }

    fn resolve(&mut self, id: ExprId, function: &'static Function, target: Option<ExprId>, args: &[ExprId]) {
        let parts: Vec<ExprId> = target.iter().chain(args).copied().collect();
        let types: Vec<Type> = parts.iter().map(|part| self.type_of(*part)).collect();
        if matches!(function.name, "_&&_" | "_||_") {
            return self.resolve_logical(id, function, &parts, &types);
        }
        let mut result: Option<Type> = None;
        let mut indices = Vec::new();
        for (index, overload) in function.overloads.iter().enumerate() {
            if overload.member != target.is_some() || overload.args.len() != types.len() {
                continue;
            }
            let (wanted, produced) = self.instance(overload);
            if !self.substitution.assignable_all(&types, &wanted) {
                continue;
            }
            indices.push(index);
            let produced = self.substitution.apply(&produced, false);
            result = Some(match result {
                None => produced,
                Some(first) if first.is_dyn() || produced.equals(&first, false) => first,
                Some(_) => Type::DYN,
            });
        }
        match result {
            Some(t) => {
                self.set_type(id, t);
                self.references[id as usize] = Reference::Overloads { function, indices };
            }
            None => {
                let types: Vec<Type> = types.iter().map(|t| self.substitution.apply(t, true)).collect();
                let signature = signature(&types, target.is_some());
                let name = function.name;
                self.error(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
                self.set_type(id, Type::ERROR);
            }
        }
    }

    fn resolve_logical(&mut self, id: ExprId, function: &'static Function, parts: &[ExprId], types: &[Type]) {
        let mut fits = true;
        for (part, t) in parts.iter().zip(types) {
            if !self.substitution.assignable(t, &Type::BOOL) {
                self.error(*part, format!("expected type 'bool' but found '{t}'"));
                fits = false;
            }
        }
        if fits {
            self.set_type(id, Type::BOOL);
            self.references[id as usize] = Reference::Overloads { function, indices: vec![0] };
        } else {
            self.set_type(id, Type::ERROR);
        }
    }

    /// Argument and result types of an overload, with fresh variables for its parameters.
    fn instance(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        let mut names = Vec::new();
        collect_params(&overload.result, &mut names);
        for arg in &overload.args {
            collect_params(arg, &mut names);
        }
        if names.is_empty() {
            return (overload.args.clone(), overload.result.clone());
        }
        let names: Vec<(&'static str, Type)> =
            names.into_iter().map(|name| (name, self.substitution.fresh())).collect();
        let args = overload.args.iter().map(|arg| instantiate(arg, &names)).collect();
        (args, instantiate(&overload.result, &names))
    }

    /// The type of an element given with `?`, which must be optional.
    fn unwrap_element(&mut self, id: ExprId, t: Type) -> Type {
        if let Some(inner) = t.unwrap_optional() {
            return inner.clone();
        }
        if !t.is_dyn() {
            let wanted = Type::optional(t.clone());
            self.error(id, format!("expected type '{wanted}' but found '{t}'"));
        }
        t
    }

    /// The common type of two elements. A later check reports mixed types, with exceptions.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.substitution.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        Type::DYN
    }

    fn check_list(&mut self, id: ExprId) {
        let Expr::List { elements } = self.ast.get(id).clone() else { return };
        let mut joined = None;
        for element in elements {
            self.check(element.value);
            let mut t = self.type_of(element.value);
            if element.optional {
                t = self.unwrap_element(element.value, t);
            }
            joined = Some(self.join(joined, t));
        }
        let elem = joined.unwrap_or_else(|| self.substitution.fresh());
        self.set_type(id, Type::list(elem));
    }

    fn check_map(&mut self, id: ExprId) {
        let Expr::Map { entries } = self.ast.get(id).clone() else { return };
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(entry.key);
            let key = self.type_of(entry.key);
            keys = Some(self.join(keys, key));
            self.check(entry.value);
            let mut value = self.type_of(entry.value);
            if entry.optional {
                value = self.unwrap_element(entry.value, value);
            }
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.substitution.fresh());
        let value = values.unwrap_or_else(|| self.substitution.fresh());
        self.set_type(id, Type::map(key, value));
    }

    /// Only the types of patches can be instantiated, and only where there are patches: every other message literal
    /// is an error.
    fn check_struct(&mut self, id: ExprId) {
        let Expr::Struct { name, fields } = self.ast.get(id).clone() else { return };
        let constructed = name.strip_prefix('.').unwrap_or(&name);
        if self.patch_types && is_patch_type(constructed) {
            return self.check_patch_value(id, constructed, &fields);
        }
        self.set_type(id, Type::ERROR);
        match self.lookup(&name) {
            None => return self.error(id, undeclared(&name)),
            Some((t, _)) => {
                let message = match &t.0 {
                    Kind::Type(Some(_)) => format!("'{}' is not a message type", t.params()[0].name()),
                    _ => format!("'{}' is not a type", t.name()),
                };
                self.error(id, message);
            }
        }
        for field in fields {
            self.check(field.value);
            let location = self.source.location(field.offset);
            self.issues.report(location, format!("undefined field '{}'", field.name));
        }
    }

    /// `Object.spec{…}` or `JSONPatch{…}`. Fields of objects have any type.
    fn check_patch_value(&mut self, id: ExprId, name: &str, fields: &[StructField]) {
        for field in fields {
            self.check(field.value);
            let mut t = self.type_of(field.value);
            if field.optional {
                t = self.unwrap_element(field.value, t);
            }
            let wanted = match (name, &*field.name) {
                (JSON_PATCH, "op" | "path" | "from") => Type::STRING,
                (JSON_PATCH, "value") => Type::DYN,
                (JSON_PATCH, _) => {
                    let location = self.source.location(field.offset);
                    self.issues.report(location, format!("undefined field '{}'", field.name));
                    continue;
                }
                _ => Type::DYN,
            };
            if !self.substitution.assignable(&wanted, &t) {
                let location = self.source.location(field.offset);
                let message = format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{t}'",
                    field.name
                );
                self.issues.report(location, message);
            }
        }
        self.set_type(id, Type::library_object(name));
    }

    fn check_comprehension(&mut self, id: ExprId) {
        let Expr::Comprehension(fold) = self.ast.get(id).clone() else { return };
        self.check(fold.range);
        self.check(fold.init);
        let range = self.type_of(fold.range);
        let range = self.substitution.apply(&range, false);
        let accu = self.type_of(fold.init);
        let outer = self.scopes.len();
        self.scopes.push((fold.accu.clone(), accu.clone()));
        let (first, second) = match &range.0 {
            Kind::List(_) if fold.var2.is_some() => (Type::INT, range.params()[0].clone()),
            Kind::List(_) => (range.params()[0].clone(), Type::DYN),
            Kind::Map(_) => (range.params()[0].clone(), range.params()[1].clone()),
            Kind::Dyn | Kind::Error | Kind::Var(_) => {
                self.substitution.assignable(&Type::DYN, &range);
                (Type::DYN, Type::DYN)
            }
            _ => {
                self.error(
                    fold.range,
                    format!(
                        "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                    ),
                );
                (Type::ERROR, Type::ERROR)
            }
        };
        let inner = self.scopes.len();
        self.scopes.push((fold.var.clone(), first));
        if let Some(var2) = &fold.var2 {
            self.scopes.push((var2.clone(), second));
        }
        self.check(fold.condition);
        self.assert(fold.condition, &Type::BOOL);
        self.check(fold.step);
        self.assert(fold.step, &accu);
        self.scopes.truncate(inner);
        self.check(fold.result);
        self.scopes.truncate(outer);
        let result = self.type_of(fold.result);
        let result = self.substitution.apply(&result, false);
        self.set_type(id, result);
    }

    fn assert(&mut self, id: ExprId, wanted: &Type) {
        let found = self.type_of(id);
        if !self.substitution.assignable(wanted, &found) {
            self.error(id, format!("expected type '{wanted}' but found '{found}'"));
        }
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn signature(types: &[Type], is_member: bool) -> String {
    let (target, args) = match types {
        [target, args @ ..] if is_member => (format!("{target}."), args),
        _ => (String::new(), types),
    };
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    format!("{target}({})", args.join(", "))
}

/// The types expressions can name.
/// The type of JSON Patch operations in mutating expressions.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

/// `JSONPatch`, `Object`, and every field path below `Object`.
fn is_patch_type(name: &str) -> bool {
    name == JSON_PATCH || name == "Object" || name.starts_with("Object.")
}

fn type_by_name(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::BOOL,
        "bytes" => Type::BYTES,
        "double" => Type::DOUBLE,
        // In Kubernetes only the checker knows the short names: planning fails.
        "duration" => Type::DURATION,
        "timestamp" => Type::TIMESTAMP,
        "google.protobuf.Duration" => Type::DURATION,
        "int" => Type::INT,
        "list" => Type::list(Type::DYN),
        "map" => Type::map(Type::DYN, Type::DYN),
        "null_type" => Type::NULL,
        "string" => Type::STRING,
        "google.protobuf.Timestamp" => Type::TIMESTAMP,
        "type" => Type(Kind::Type(None)),
        "uint" => Type::UINT,
        "optional_type" => Type::opaque(crate::types::OPTIONAL, Vec::new()),
        "net.IP" => Type::opaque("net.IP", Vec::new()),
        "net.CIDR" => Type::opaque("net.CIDR", Vec::new()),
        _ => return None,
    })
}
