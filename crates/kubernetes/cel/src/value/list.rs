//! Lists: views of JSON arrays, computed ones, and concatenations of both.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Value;
use crate::decl::{DeclType, ListKind};
use crate::error::EvalError;
use crate::eval::Meter;

/// Up to this length a concatenation is copied rather than linked.
const COPY_LIMIT: u64 = 32;

/// A list of values.
#[derive(Clone, Debug)]
pub struct List<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    Json { items: &'a [Json], elem: Option<&'a DeclType>, identity: ListIdentity<'a> },
    Owned { items: Arc<Vec<Value<'a>>>, identity: ListIdentity<'a> },
    // Sharing the halves keeps a chain of `x + x` from using more memory than its cost allows.
    Concat(Arc<Concat<'a>>),
}

#[derive(Debug)]
struct Concat<'a> {
    left: List<'a>,
    right: List<'a>,
    len: u64,
}

/// How elements are identified. A computed list has no identity unless it is the sum of a set or a map list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListIdentity<'a> {
    /// Built by the expression.
    Plain,
    /// Typed data in which order matters.
    Atomic,
    Set,
    Keyed(&'a [String]),
}

impl<'a> List<'a> {
    pub(crate) fn owned(items: Vec<Value<'a>>) -> Self {
        Self(Repr::Owned { items: Arc::new(items), identity: ListIdentity::Plain })
    }

    pub(crate) fn owned_as(items: Vec<Value<'a>>, identity: ListIdentity<'a>) -> Self {
        Self(Repr::Owned { items: Arc::new(items), identity })
    }

    pub(crate) fn typed(items: &'a [Json], elem: &'a DeclType, kind: &'a ListKind) -> Self {
        let identity = match kind {
            ListKind::Atomic => ListIdentity::Atomic,
            ListKind::Set => ListIdentity::Set,
            ListKind::Map(keys) => ListIdentity::Keyed(keys),
        };
        Self(Repr::Json { items, elem: Some(elem), identity })
    }

    pub(crate) fn untyped(items: &'a [Json]) -> Self {
        Self(Repr::Json { items, elem: None, identity: ListIdentity::Plain })
    }

    /// The same data without its declared type.
    pub(crate) fn raw(&self) -> Self {
        match &self.0 {
            Repr::Json { items, .. } => Self::untyped(items),
            _ => self.clone(),
        }
    }

    pub(crate) fn identity(&self) -> ListIdentity<'a> {
        match &self.0 {
            Repr::Json { identity, .. } | Repr::Owned { identity, .. } => *identity,
            Repr::Concat(_) => ListIdentity::Plain,
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.identity(), ListIdentity::Plain)
    }

    pub(crate) fn is_concat(&self) -> bool {
        matches!(self.0, Repr::Concat(_))
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Repr::Json { items, .. } => items.len() as u64,
            Repr::Owned { items, .. } => items.len() as u64,
            Repr::Concat(concat) => concat.len,
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element, or `None` beyond the end. Fails if the data does not match its declared type.
    pub(crate) fn get(&self, index: u64) -> Option<Result<Value<'a>, EvalError>> {
        let mut list = self;
        let mut index = index;
        loop {
            match &list.0 {
                Repr::Json { items, elem, .. } => {
                    let item = items.get(usize::try_from(index).ok()?)?;
                    return Some(match elem {
                        Some(elem) => Value::from_json(item, elem),
                        None => Ok(Value::from_untyped(item)),
                    });
                }
                Repr::Owned { items, .. } => return items.get(usize::try_from(index).ok()?).cloned().map(Ok),
                Repr::Concat(concat) => {
                    let left = concat.left.len();
                    if index < left {
                        list = &concat.left;
                    } else {
                        list = &concat.right;
                        index -= left;
                    }
                }
            }
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        // Parts of a concatenation, the next one last.
        let mut parts = vec![self];
        let mut index = 0;
        std::iter::from_fn(move || {
            loop {
                let part = parts.last()?;
                if let Repr::Concat(concat) = &part.0 {
                    parts.pop();
                    parts.extend([&concat.right, &concat.left]);
                    continue;
                }
                if let Some(item) = part.get(index) {
                    index += 1;
                    return Some(item);
                }
                parts.pop();
                index = 0;
            }
        })
    }

    /// The elements of a list built by the expression.
    pub(crate) fn as_slice(&self) -> Option<&[Value<'a>]> {
        match &self.0 {
            Repr::Owned { items, .. } => Some(items),
            _ => None,
        }
    }

    /// Appends in place if the list is not shared.
    pub(crate) fn push(&mut self, value: Value<'a>) -> Result<(), Value<'a>> {
        match &mut self.0 {
            Repr::Owned { items, identity: ListIdentity::Plain } => match Arc::get_mut(items) {
                Some(items) => {
                    items.push(value);
                    Ok(())
                }
                None => Err(value),
            },
            _ => Err(value),
        }
    }

    /// `self + other` of lists without set or map semantics.
    pub(crate) fn concat(&self, other: &Self, meter: &mut Meter) -> Result<Self, EvalError> {
        if self.is_plain() {
            if self.is_empty() {
                return Ok(other.clone());
            }
            if other.is_empty() {
                return Ok(self.clone());
            }
        }
        let len = self.len().saturating_add(other.len());
        if len <= COPY_LIMIT || !self.is_plain() {
            // Typed data stays typed data of the same kind.
            meter.work(len)?;
            let mut items = Vec::with_capacity(len as usize);
            for item in self.iter().chain(other.iter()) {
                items.push(item?);
            }
            return Ok(Self::owned_as(items, self.identity()));
        }
        Ok(Self(Repr::Concat(Arc::new(Concat { left: self.clone(), right: other.clone(), len }))))
    }
}
