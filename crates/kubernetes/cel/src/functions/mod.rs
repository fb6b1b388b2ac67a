//! Declarations of all functions and operators: names, overloads, implementations.

mod extensions;
mod kubernetes;
mod standard;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::error::EvalError;
use crate::eval::Meter;
use crate::types::{Kind, Type};
use crate::value::Value;

/// An implementation. Arguments are values, never errors.
pub(crate) type Implementation = for<'a> fn(&mut Meter, &[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// A function or operator.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
    /// One implementation for all overloads, for first arguments that pass the test.
    pub(crate) shared: Option<SharedImplementation>,
    /// Whether arguments are checked against the overload before it runs.
    pub(crate) guarded: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedImplementation {
    pub(crate) accepts: fn(&Value<'_>) -> bool,
    pub(crate) run: Implementation,
}

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) run: Option<Implementation>,
}

impl Overload {
    /// Whether values are valid arguments of this overload.
    pub(crate) fn accepts(&self, args: &[Value<'_>]) -> bool {
        self.args.len() == args.len() && self.args.iter().zip(args).all(|(t, value)| is_instance(t, value))
    }
}

/// Whether a value has a type. For lists and maps only the first element is checked.
fn is_instance(t: &Type, value: &Value<'_>) -> bool {
    match (&t.0, value) {
        (Kind::Dyn | Kind::Param(_) | Kind::Var(_), _) => true,
        (Kind::List(_), Value::List(list)) => match list.get(0) {
            Some(Ok(first)) => is_instance(&t.params()[0], &first),
            Some(Err(_)) => matches!(t.params()[0].0, Kind::Dyn | Kind::Param(_)),
            None => true,
        },
        (Kind::Map(_), Value::Map(map)) => match map.keys().first() {
            Some(key) => {
                let value = map.find(key);
                is_instance(&t.params()[0], key)
                    && value.is_ok_and(|value| value.is_none_or(|value| is_instance(&t.params()[1], &value)))
            }
            None => true,
        },
        _ => t.name() == value.type_name(),
    }
}

/// All functions by name.
#[derive(Debug, Default)]
pub(crate) struct FunctionTable {
    functions: HashMap<&'static str, Function>,
}

impl FunctionTable {
    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    fn function(&mut self, name: &'static str) -> &mut Function {
        self.functions.entry(name).or_insert_with(|| Function {
            name,
            overloads: Vec::new(),
            shared: None,
            guarded: true,
        })
    }

    /// Declares a global overload.
    fn global(
        &mut self,
        name: &'static str,
        id: &'static str,
        args: impl Into<Vec<Type>>,
        result: Type,
        run: impl Into<Option<Implementation>>,
    ) {
        let overload = Overload { id, member: false, args: args.into(), result, run: run.into() };
        self.function(name).overloads.push(overload);
    }

    /// Declares an overload called on its first argument.
    fn member(
        &mut self,
        name: &'static str,
        id: &'static str,
        args: impl Into<Vec<Type>>,
        result: Type,
        run: impl Into<Option<Implementation>>,
    ) {
        let overload = Overload { id, member: true, args: args.into(), result, run: run.into() };
        self.function(name).overloads.push(overload);
    }

    /// Gives all overloads of a function one implementation.
    fn shared(&mut self, name: &'static str, accepts: fn(&Value<'_>) -> bool, run: Implementation) {
        self.function(name).shared = Some(SharedImplementation { accepts, run });
    }

    fn unguarded(&mut self, name: &'static str) {
        self.function(name).guarded = false;
    }
}

fn param(name: &'static str) -> Type {
    Type(Kind::Param(name))
}

/// The functions of Kubernetes' environment, in the order in which its libraries are loaded: where an
/// argument is dynamic, the order of overloads decides.
pub(crate) fn kubernetes() -> &'static FunctionTable {
    static TABLE: LazyLock<FunctionTable> = LazyLock::new(declared);
    &TABLE
}

/// The same with the functions that only mutating expressions have.
pub(crate) fn mutating() -> &'static FunctionTable {
    static TABLE: LazyLock<FunctionTable> = LazyLock::new(|| {
        let mut table = declared();
        kubernetes::declare_patches(&mut table);
        table
    });
    &TABLE
}

fn declared() -> FunctionTable {
    let mut table = FunctionTable::default();
    standard::declare(&mut table);
    kubernetes::declare_base(&mut table);
    extensions::declare_optional(&mut table);
    kubernetes::declare_quantity(&mut table);
    extensions::declare_strings(&mut table);
    extensions::declare_sets(&mut table);
    kubernetes::declare_network(&mut table);
    kubernetes::declare_format(&mut table);
    kubernetes::declare_selectors(&mut table);
    extensions::declare_two_variable(&mut table);
    kubernetes::declare_semver(&mut table);
    extensions::declare_lists(&mut table);
    table
}
