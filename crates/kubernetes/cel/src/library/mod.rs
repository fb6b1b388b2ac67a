//! Implementations of functions.

pub(crate) mod authorization;
pub(crate) mod convert;
pub(crate) mod format_string;
pub(crate) mod lists;
pub(crate) mod named_format;
pub(crate) mod network;
pub(crate) mod operators;
pub(crate) mod optional;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod sets;
pub(crate) mod standard;
pub(crate) mod strings;
pub(crate) mod temporal;
pub(crate) mod url;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::error::EvalError;
use crate::value::Value;

pub(crate) type Outcome<'a> = Result<Value<'a>, EvalError>;

/// A value of one of Kubernetes' libraries.
#[derive(Clone, Debug)]
pub enum Opaque {
    /// `kubernetes.Quantity`. The flag marks a computed quantity, which upstream's equality rejects on its right
    /// side.
    #[doc(hidden)]
    Quantity(Arc<quantity::Quantity>, bool),
    /// `net.IP`
    Ip(IpAddr),
    /// `net.CIDR`
    #[doc(hidden)]
    Cidr(network::Cidr),
    /// `kubernetes.URL`
    #[doc(hidden)]
    Url(Arc<url::Url>),
    /// `kubernetes.Semver`
    #[doc(hidden)]
    Semver(Arc<semver::Version>),
    /// `kubernetes.NamedFormat`
    #[doc(hidden)]
    Format(&'static named_format::NamedFormat),
    /// `kubernetes.authorization.*`
    #[doc(hidden)]
    Access(Arc<authorization::Access>),
}

impl Opaque {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(..) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Access(access) => access.type_name(),
        }
    }

    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Quantity(..) => "cel.Quantity",
            Self::Ip(_) => "cel.IP",
            Self::Cidr(_) => "cel.CIDR",
            Self::Url(_) => "cel.URL",
            Self::Semver(_) => "cel.Semver",
            Self::Format(_) => "cel.Format",
            Self::Access(access) => access.go_type(),
        }
    }

    /// Size of an address or prefix in bytes, for the cost model.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Ip(IpAddr::V4(_)) => Some(4),
            Self::Ip(IpAddr::V6(_)) => Some(16),
            Self::Cidr(cidr) => Some(u64::from(cidr.bits).div_ceil(8)),
            _ => None,
        }
    }

    pub(crate) fn equals(&self, other: &Self) -> Result<bool, EvalError> {
        match (self, other) {
            (Self::Quantity(a, _), Self::Quantity(b, false)) => Ok(a == b),
            (Self::Ip(a), Self::Ip(b)) => Ok(a == b),
            (Self::Cidr(a), Self::Cidr(b)) => Ok(a == b),
            (Self::Url(a), Self::Url(b)) => Ok(a.to_string() == b.to_string()),
            (Self::Semver(a), Self::Semver(b)) => Ok(a.compare(b).is_eq()),
            (Self::Format(a), Self::Format(b)) => Ok(a.name == b.name),
            _ => Err(EvalError::no_such_overload()),
        }
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(quantity, _) => quantity.fmt(f),
            Self::Ip(ip) => ip.fmt(f),
            Self::Cidr(cidr) => cidr.fmt(f),
            Self::Url(url) => url.fmt(f),
            Self::Semver(version) => version.fmt(f),
            Self::Format(format) => f.write_str(format.name),
            Self::Access(access) => f.write_str(access.type_name()),
        }
    }
}

fn no_such_overload<'a>() -> Outcome<'a> {
    Err(EvalError::no_such_overload())
}

fn fail<'a>(message: impl Into<Arc<str>>) -> Outcome<'a> {
    Err(EvalError::new(message))
}
