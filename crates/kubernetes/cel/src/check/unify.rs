//! Assignability with type variables.

use crate::types::{Kind, Type};

/// Limit of type comparisons per check. Type variables bound to types with variables can make unification
/// exponential. No handwritten expression comes near this limit.
const FUEL: u32 = 20_000_000;

/// Bindings of type variables.
#[derive(Debug, Default)]
pub(crate) struct Substitution {
    bound: Vec<Option<Type>>,
    /// Previous values of changed variables, to undo a failed attempt.
    trail: Vec<(u32, Option<Type>)>,
    used: u32,
}

impl Substitution {
    pub(crate) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type(Kind::Var(self.bound.len() as u32 - 1))
    }

    /// Whether the check exceeded its limit of comparisons.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used >= FUEL
    }

    fn find(&self, var: u32) -> Option<&Type> {
        self.bound[var as usize].as_ref()
    }

    fn bind(&mut self, var: u32, to: Type) {
        let old = self.bound[var as usize].replace(to);
        self.trail.push((var, old));
    }

    /// Whether all of `from` are assignable to `to`. Keeps the bindings if so.
    pub(crate) fn assignable_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.trail.clear();
        if self.all(from, to) && !self.is_exhausted() {
            return true;
        }
        while let Some((var, old)) = self.trail.pop() {
            self.bound[var as usize] = old;
        }
        false
    }

    /// Whether `from` is assignable to `to`.
    pub(crate) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.assignable_all(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    fn all(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.one(from, to))
    }

    fn one(&mut self, from: &Type, to: &Type) -> bool {
        if self.is_exhausted() {
            return false;
        }
        self.used += 1;
        if let Kind::Var(var) = to.0 {
            let (valid, has_sub) = self.substitutes(from, var);
            if valid {
                return true;
            }
            if has_sub {
                return false;
            }
        }
        if let Kind::Var(var) = from.0 {
            return self.substitutes(to, var).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (&from.0, &to.0) {
            (Kind::Null, _) => nullable(to),
            (_, Kind::Null) => nullable(from),
            (Kind::Type(_), other) => matches!(other, Kind::Type(_)),
            (Kind::List(_), Kind::List(_)) | (Kind::Map(_), Kind::Map(_)) => {
                self.all(from.params(), to.params())
            }
            (Kind::Opaque(a, _), Kind::Opaque(b, _)) => a == b && self.all(from.params(), to.params()),
            _ => from.equals(to, false),
        }
    }

    /// Whether the variable can be bound to `of`, and whether it was bound before.
    fn substitutes(&mut self, of: &Type, var: u32) -> (bool, bool) {
        if matches!(of.0, Kind::Var(other) if other == var) {
            return (true, true);
        }
        let Some(bound) = self.find(var).cloned() else {
            if self.occurs(var, of) {
                return (false, false);
            }
            self.bind(var, of.clone());
            return (true, false);
        };
        if of.same_kind(&bound) && of.equals(&bound, false) {
            return (true, true);
        }
        if !self.one(of, &bound) {
            return (false, true);
        }
        let general = most_general(of, &bound).clone();
        if !self.occurs(var, &general) {
            self.bind(var, general);
        }
        (true, true)
    }

    fn occurs(&mut self, var: u32, within: &Type) -> bool {
        if self.is_exhausted() {
            return true;
        }
        self.used += 1;
        match &within.0 {
            Kind::Var(other) if *other == var => true,
            Kind::Var(other) => match self.find(*other).cloned() {
                Some(bound) => self.occurs(var, &bound),
                None => false,
            },
            _ => within.params().iter().any(|param| self.occurs(var, param)),
        }
    }

    /// Replaces bound variables, and unbound ones by `dyn` if asked to.
    pub(crate) fn apply(&mut self, t: &Type, unbound_to_dyn: bool) -> Type {
        if self.is_exhausted() {
            return Type::ERROR;
        }
        self.used += 1;
        match &t.0 {
            Kind::Var(var) => match self.find(*var).cloned() {
                Some(bound) => self.apply(&bound, unbound_to_dyn),
                None if unbound_to_dyn => Type::DYN,
                None => t.clone(),
            },
            Kind::List(_) => Type::list(self.apply(&t.params()[0], unbound_to_dyn)),
            Kind::Map(_) => {
                let key = self.apply(&t.params()[0], unbound_to_dyn);
                Type::map(key, self.apply(&t.params()[1], unbound_to_dyn))
            }
            Kind::Type(Some(_)) => Type::type_of(self.apply(&t.params()[0], unbound_to_dyn)),
            Kind::Opaque(name, _) => {
                let params = t.params().iter().map(|param| self.apply(param, unbound_to_dyn)).collect();
                Type::opaque(name, params)
            }
            _ => t.clone(),
        }
    }
}

/// Null is assignable to object-like types, as in older type checkers.
fn nullable(t: &Type) -> bool {
    matches!(t.0, Kind::Null | Kind::Opaque(..) | Kind::Struct(_) | Kind::Duration | Kind::Timestamp)
}

/// The more general of two types that unify.
pub(crate) fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(a, b) { a } else { b }
}

fn is_equal_or_less_specific(a: &Type, b: &Type) -> bool {
    let open = |t: &Type| matches!(t.0, Kind::Dyn | Kind::Var(_) | Kind::Param(_));
    if open(a) {
        return true;
    }
    if open(b) || !a.same_kind(b) {
        return false;
    }
    match (&a.0, &b.0) {
        (Kind::Type(_), _) => true,
        (Kind::Opaque(x, _), Kind::Opaque(y, _)) if x != y => false,
        (Kind::List(_) | Kind::Map(_) | Kind::Opaque(..), _) => {
            a.params().len() == b.params().len()
                && a.params().iter().zip(b.params()).all(|(a, b)| is_equal_or_less_specific(a, b))
        }
        _ => a.equals(b, false),
    }
}

/// A declared type with its parameters replaced by variables.
pub(crate) fn instantiate(t: &Type, names: &[(&'static str, Type)]) -> Type {
    match &t.0 {
        Kind::Param(name) => {
            names.iter().find(|(known, _)| known == name).map_or_else(|| t.clone(), |(_, var)| var.clone())
        }
        Kind::List(_) => Type::list(instantiate(&t.params()[0], names)),
        Kind::Map(_) => Type::map(instantiate(&t.params()[0], names), instantiate(&t.params()[1], names)),
        Kind::Type(Some(_)) => Type::type_of(instantiate(&t.params()[0], names)),
        Kind::Opaque(name, _) => {
            Type::opaque(name, t.params().iter().map(|param| instantiate(param, names)).collect())
        }
        _ => t.clone(),
    }
}

/// Adds the names of the type parameters in `t`.
pub(crate) fn collect_params(t: &Type, names: &mut Vec<&'static str>) {
    if let Kind::Param(name) = t.0
        && !names.contains(&name)
    {
        names.push(name);
    }
    for param in t.params() {
        collect_params(param, names);
    }
}
