//! Estimates for the functions of Kubernetes' libraries and of cel-go's extensions.

use super::estimate::{Estimator, NodeView};
use super::size::Range;
use super::{ACCESS_CHECK, REGEX_LENGTH, STRING_TRAVERSAL, UNIT_COST};
use crate::syntax::ast::Literal;
use crate::types::{Kind, Type};

/// The longest pattern of the named formats. Upstream assumes it for all of them.
const MAX_NAME_FORMAT_REGEX_SIZE: f64 = 128.0;
const MAX_FORMAT_SIZE: u64 = 64;
/// The size of an IP address in bytes.
const ADDRESS: Range = Range { min: 4, max: 16 };

/// Cost of a call without its arguments, and the size of its result.
pub(super) struct CallEstimate {
    pub(super) cost: Range,
    pub(super) result: Option<Range>,
}

fn cost(cost: Range) -> Option<CallEstimate> {
    Some(CallEstimate { cost, result: None })
}

fn sized(cost: Range, result: Range) -> Option<CallEstimate> {
    Some(CallEstimate { cost, result: Some(result) })
}

impl Estimator<'_> {
    /// Sets and lists of cel-go's extensions, by overload.
    pub(super) fn extension_call(
        &self,
        overload: &str,
        target: Option<&NodeView<'_>>,
        args: &[NodeView<'_>],
    ) -> Option<CallEstimate> {
        let sets = |factor: f64| match args {
            [a, b] => {
                let product = self.size_of(a).multiply(self.size_of(b));
                cost(product.scale(factor).add(Range::ONE))
            }
            _ => None,
        };
        let allocating =
            |factor: f64, size: Range| sized(size.scale(factor).add(Range::ONE).add(Range::fixed(10)), size);
        let self_compare = |node: &NodeView<'_>, text: bool| {
            let size = self.size_of(node);
            allocating(if text { 2.0 + STRING_TRAVERSAL } else { 2.0 }, size.multiply(size))
        };
        match (overload, target, args) {
            ("list_sets_contains_list" | "list_sets_intersects_list", ..) => sets(1.0),
            ("list_sets_equivalent_list", ..) => sets(2.0),
            ("list_slice", Some(target), [start, end]) => {
                let max = self.size_of(target).max;
                let (start, end) = (self.literal_int(start, 0), self.literal_int(end, max));
                allocating(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            ("list_flatten", Some(target), []) => allocating(1.0, self.size_of(target)),
            ("list_flatten_int", Some(target), [depth]) => {
                allocating(self.literal_int(depth, u64::MAX) as f64, self.size_of(target))
            }
            ("lists_range", None, [end]) => allocating(1.0, Range::fixed(self.literal_int(end, u64::MAX))),
            ("list_reverse", Some(target), []) => allocating(1.0, self.size_of(target)),
            ("list_distinct", Some(target), []) => self_compare(target, false),
            (id, Some(target), []) if id.starts_with("list_") && id.ends_with("_sort") => {
                self_compare(target, is_text_overload(id))
            }
            (id, Some(_), [keys]) if id.ends_with("_sortByAssociatedKeys") => {
                self_compare(keys, is_text_overload(id))
            }
            _ => None,
        }
    }

    /// The value of an int literal, negative ones as zero.
    fn literal_int(&self, node: &NodeView<'_>, otherwise: u64) -> u64 {
        match node.expr.and_then(|id| self.checked.ast.literal(id)) {
            Some(Literal::Int(value)) => u64::try_from(*value).unwrap_or(0),
            _ => otherwise,
        }
    }

    /// Kubernetes' libraries, by function.
    pub(super) fn library_call(
        &self,
        function: &str,
        overload: &str,
        target: Option<&NodeView<'_>>,
        args: &[NodeView<'_>],
    ) -> Option<CallEstimate> {
        let traversed = |size: Range| size.scale(STRING_TRAVERSAL);
        match function {
            "check" => cost(Range::fixed(ACCESS_CHECK)),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self.list_scan(target?),
            "url" => match args {
                [arg] => {
                    let size = self.size_of(arg);
                    sized(traversed(size), size)
                }
                _ => None,
            },
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.size_of(target?);
                sized(traversed(size), size)
            }
            "replace" => self.replace(target?, args),
            "split" => {
                let size = self.size_of(target?);
                let max = match args.get(1).and_then(|limit| self.checked.ast.literal(limit.expr?)) {
                    Some(Literal::Int(limit)) => *limit as u64,
                    _ => size.max,
                };
                sized(size.scale(2.0 * STRING_TRAVERSAL), Range { min: 0, max })
            }
            "join" => self.join(target?, args),
            "find" | "findAll" => {
                let size = self.size_of(target?);
                let text = traversed(size.add(Range::ONE));
                let pattern = self.size_of(args.first()?).scale(REGEX_LENGTH);
                sized(text.multiply(pattern), Range { min: 0, max: size.max })
            }
            "ip" if overload == "cidr_ip" => cost(Range::ONE),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                cost(traversed(self.size_of(args.first()?)))
            }
            "ip.isCanonical" => cost(self.size_of(args.first()?).scale(2.0 * STRING_TRAVERSAL)),
            "containsIP" | "containsCIDR" => {
                let other = args.first()?;
                let mut total = traversed(ADDRESS.add(ADDRESS));
                if function == "containsCIDR" {
                    total = total.add(traversed(ADDRESS)).add(Range::ONE);
                }
                if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                    total = total.add(traversed(self.size_of(other)));
                }
                cost(total)
            }
            "validate" => {
                let text = traversed(self.size_of(args.first()?));
                cost(text.scale(MAX_NAME_FORMAT_REGEX_SIZE * REGEX_LENGTH))
            }
            "_==_" => match args {
                [left, right] => self.equality(left, right),
                _ => None,
            },
            "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
            | "allowed" | "reason" | "error" | "errored" => cost(Range::ONE),
            unit if UNIT_COST.contains(&unit) => cost(Range::ONE),
            _ => None,
        }
    }

    /// One per element, more for text. The same functions on strings traverse the text.
    fn list_scan(&self, target: &NodeView<'_>) -> Option<CallEstimate> {
        let Some(element) = element_of(target) else {
            return cost(self.size_of(target).scale(STRING_TRAVERSAL));
        };
        let mut each = Range::ONE;
        if matches!(element.t.0, Kind::String | Kind::Bytes) {
            each = each.add(self.size_of(&element).scale(STRING_TRAVERSAL));
        }
        cost(self.size_of(target).multiply(each))
    }

    fn replace(&self, target: &NodeView<'_>, args: &[NodeView<'_>]) -> Option<CallEstimate> {
        let [old, new, ..] = args else { return None };
        let (size, old, new) = (self.size_of(target), self.size_of(old), self.size_of(new));
        let per_match = |text: u64, old: u64| (text as f64 / old as f64).ceil() as u64;
        let (max_count, max_kept) = if old.min == 0 {
            // An empty pattern matches around every character.
            (size.max.saturating_add(1), size.max)
        } else if new.max <= old.min {
            (0, size.max)
        } else {
            (per_match(size.max, old.min), 0)
        };
        let (min_count, min_kept) = if old.max == 0 {
            (size.min.saturating_add(1), size.min)
        } else if old.max <= new.min {
            (0, size.min)
        } else {
            (per_match(size.min, old.max), 0)
        };
        let count = Range { min: min_count, max: max_count };
        let result = count.multiply(new).add(Range { min: min_kept, max: max_kept });
        sized(size.scale(2.0 * STRING_TRAVERSAL), result)
    }

    fn join(&self, target: &NodeView<'_>, args: &[NodeView<'_>]) -> Option<CallEstimate> {
        let list = self.size_of(target);
        let mut size = Range::ZERO;
        if let Some(element) = element_of(target) {
            size = list.multiply(self.size_of(&element));
        }
        if let Some(separator) = args.first() {
            let between = Range { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
            size = size.add(self.size_of(separator).multiply(between));
        }
        sized(size.scale(STRING_TRAVERSAL), size)
    }

    fn equality(&self, left: &NodeView<'_>, right: &NodeView<'_>) -> Option<CallEstimate> {
        if left.t.name() != right.t.name() {
            return None;
        }
        match (&left.t.0, left.t.name()) {
            (Kind::Opaque(..), "net.IP" | "net.CIDR") => cost(Range::ONE),
            (Kind::Struct(_), "kubernetes.Quantity" | "kubernetes.Semver") => cost(Range::ONE),
            (Kind::Struct(_), name) if name.starts_with("kubernetes.authorization.") => cost(Range::ONE),
            (Kind::Struct(_), "kubernetes.NamedFormat") => {
                cost(Range { min: 1, max: MAX_FORMAT_SIZE }.scale(STRING_TRAVERSAL))
            }
            (Kind::Struct(_), "kubernetes.URL") => {
                let size = right.computed.unwrap_or(Range::ONE);
                cost(Range { min: 1, max: size.max }.scale(STRING_TRAVERSAL))
            }
            _ => None,
        }
    }
}

fn is_text_overload(id: &str) -> bool {
    id.starts_with("list_string_") || id.starts_with("list_bytes_")
}

/// The elements of a list (or, as upstream, the first type parameter of any type).
fn element_of<'t>(list: &NodeView<'t>) -> Option<NodeView<'t>> {
    let t: &'t Type = list.t.params().first()?;
    let path = list.path.as_ref().map(|path| {
        let mut path = path.clone();
        path.push("@items".into());
        path
    });
    Some(NodeView { path, t, expr: None, computed: None })
}
