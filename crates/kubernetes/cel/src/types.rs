//! Types in the checker.

use std::fmt;
use std::sync::Arc;

use crate::decl::{DeclType, Shape};

/// The static type of an expression.
#[derive(Clone, Debug)]
pub struct Type(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    /// The result of an error that was reported.
    Error,
    List(Arc<Params>),
    Map(Arc<Params>),
    /// The type of a type; any type without a parameter.
    Type(Option<Arc<Params>>),
    Opaque(&'static str, Arc<Params>),
    Struct(Arc<Struct>),
    /// A type parameter of a declaration.
    Param(&'static str),
    /// A fresh variable for a type parameter.
    Var(u32),
}

/// Type parameters with the size of the whole type, which is limited.
#[derive(Debug)]
pub(crate) struct Params {
    pub(crate) types: Vec<Type>,
    size: u32,
}

/// An object type: one of the declared ones, or an opaque object of a library.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) name: Arc<str>,
    pub(crate) decl: Option<DeclType>,
}

pub(crate) const OPTIONAL: &str = "optional_type";

fn params(types: Vec<Type>) -> Arc<Params> {
    let size = types.iter().map(Type::size).fold(1u32, u32::saturating_add);
    Arc::new(Params { types, size })
}

impl Type {
    pub(crate) const DYN: Self = Self(Kind::Dyn);
    pub(crate) const NULL: Self = Self(Kind::Null);
    pub(crate) const BOOL: Self = Self(Kind::Bool);
    pub(crate) const INT: Self = Self(Kind::Int);
    pub(crate) const UINT: Self = Self(Kind::Uint);
    pub(crate) const DOUBLE: Self = Self(Kind::Double);
    pub(crate) const STRING: Self = Self(Kind::String);
    pub(crate) const BYTES: Self = Self(Kind::Bytes);
    pub(crate) const TIMESTAMP: Self = Self(Kind::Timestamp);
    pub(crate) const DURATION: Self = Self(Kind::Duration);
    pub(crate) const ERROR: Self = Self(Kind::Error);

    pub(crate) fn list(elem: Self) -> Self {
        Self(Kind::List(params(vec![elem])))
    }

    pub(crate) fn map(key: Self, value: Self) -> Self {
        Self(Kind::Map(params(vec![key, value])))
    }

    pub(crate) fn type_of(of: Self) -> Self {
        Self(Kind::Type(Some(params(vec![of]))))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::opaque(OPTIONAL, vec![of])
    }

    pub(crate) fn opaque(name: &'static str, types: Vec<Self>) -> Self {
        Self(Kind::Opaque(name, params(types)))
    }

    pub(crate) fn library_object(name: &str) -> Self {
        Self(Kind::Struct(Arc::new(Struct { name: Arc::from(name), decl: None })))
    }

    /// Converts a declared type. Unnamed objects are named `name`, nested ones get a name below it.
    pub(crate) fn of_decl(decl: &DeclType, name: &str) -> Self {
        match decl.shape() {
            Shape::Dyn | Shape::IntOrString | Shape::Preserved => Self::DYN,
            Shape::Null => Self::NULL,
            Shape::Bool => Self::BOOL,
            Shape::Int => Self::INT,
            Shape::Uint => Self::UINT,
            Shape::Double => Self::DOUBLE,
            Shape::String => Self::STRING,
            Shape::Bytes => Self::BYTES,
            Shape::Date | Shape::DateTime => Self::TIMESTAMP,
            Shape::Duration => Self::DURATION,
            Shape::List { elem, .. } => Self::list(Self::of_decl(elem, &format!("{name}.@idx"))),
            Shape::Map { value } => Self::map(Self::STRING, Self::of_decl(value, &format!("{name}.@elem"))),
            Shape::Optional(inner) => Self::optional(Self::of_decl(inner, name)),
            Shape::Object(object) => {
                let name = object.name.clone().unwrap_or_else(|| Arc::from(name));
                Self(Kind::Struct(Arc::new(Struct { name, decl: Some(decl.clone()) })))
            }
        }
    }

    /// Whether this is exactly `bool`, as Kubernetes requires of rules.
    #[must_use]
    pub fn is_bool(&self) -> bool {
        matches!(self.0, Kind::Bool)
    }

    /// Whether this is exactly `string`, as Kubernetes requires of message expressions.
    #[must_use]
    pub fn is_string(&self) -> bool {
        matches!(self.0, Kind::String)
    }

    /// The name of the type as Go prints it, which messages about the result of an expression contain.
    #[must_use]
    pub fn declared_name(&self) -> String {
        let params: Vec<String> = self.params().iter().map(Self::declared_name).collect();
        if params.is_empty() {
            return self.name().to_owned();
        }
        format!("{}({})", self.name(), params.join(", "))
    }

    /// Whether this is exactly `null_type`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.0, Kind::Null)
    }

    /// What other expressions know of a value of this type: objects and types of libraries are dynamic.
    pub(crate) fn composed(&self) -> Self {
        match &self.0 {
            Kind::List(_) => Self::list(self.params()[0].composed()),
            Kind::Map(_) => Self::map(self.params()[0].composed(), self.params()[1].composed()),
            Kind::Bool
            | Kind::Bytes
            | Kind::Double
            | Kind::Duration
            | Kind::Int
            | Kind::Null
            | Kind::String
            | Kind::Timestamp
            | Kind::Uint => self.clone(),
            _ => Self::DYN,
        }
    }

    /// Whether the type is only known at run time.
    #[must_use]
    pub fn is_dyn(&self) -> bool {
        matches!(self.0, Kind::Dyn)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self.0, Kind::Dyn | Kind::Error)
    }

    pub(crate) fn size(&self) -> u32 {
        match &self.0 {
            Kind::List(params) | Kind::Map(params) | Kind::Type(Some(params)) | Kind::Opaque(_, params) => {
                params.size
            }
            _ => 1,
        }
    }

    pub(crate) fn params(&self) -> &[Self] {
        match &self.0 {
            Kind::List(params) | Kind::Map(params) | Kind::Type(Some(params)) | Kind::Opaque(_, params) => {
                &params.types
            }
            _ => &[],
        }
    }

    /// The type inside an optional one.
    pub(crate) fn unwrap_optional(&self) -> Option<&Self> {
        match &self.0 {
            Kind::Opaque(OPTIONAL, params) => params.types.first(),
            _ => None,
        }
    }

    /// Same kind, ignoring parameters and names.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.0) == std::mem::discriminant(&other.0)
    }

    /// The name values of this type report at run time.
    pub(crate) fn name(&self) -> &str {
        match &self.0 {
            Kind::Dyn => "dyn",
            Kind::Null => "null_type",
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Uint => "uint",
            Kind::Double => "double",
            Kind::String => "string",
            Kind::Bytes => "bytes",
            Kind::Timestamp => "google.protobuf.Timestamp",
            Kind::Duration => "google.protobuf.Duration",
            Kind::Error => "error",
            Kind::List(_) => "list",
            Kind::Map(_) => "map",
            Kind::Type(_) => "type",
            Kind::Opaque(name, _) | Kind::Param(name) => name,
            Kind::Struct(object) => &object.name,
            Kind::Var(_) => "",
        }
    }

    /// Equal in structure; type variables must be the same unless `any_var`.
    pub(crate) fn equals(&self, other: &Self, any_var: bool) -> bool {
        match (&self.0, &other.0) {
            (Kind::Var(a), Kind::Var(b)) => any_var || a == b,
            (Kind::Param(a), Kind::Param(b)) => any_var || a == b,
            (Kind::Opaque(a, _), Kind::Opaque(b, _)) if a != b => false,
            (Kind::Struct(a), Kind::Struct(b)) => a.name == b.name,
            _ => {
                self.same_kind(other) && self.params().len() == other.params().len() && {
                    self.params().iter().zip(other.params()).all(|(a, b)| a.equals(b, any_var))
                }
            }
        }
    }
}

/// As in cel-go's messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Timestamp => f.write_str("timestamp"),
            Kind::Duration => f.write_str("duration"),
            Kind::Null => f.write_str("null"),
            Kind::Error => f.write_str("!error!"),
            Kind::Var(id) => write!(f, "_var{id}"),
            _ if self.params().is_empty() => f.write_str(self.name()),
            _ => {
                write!(f, "{}(", self.name())?;
                for (i, param) in self.params().iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    param.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}
