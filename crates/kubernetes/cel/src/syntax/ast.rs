//! Expressions as a tree in an arena, so that cloning and dropping deep ones does not recurse.

use std::sync::Arc;

/// The index of an expression in its [`Ast`].
pub(crate) type ExprId = u32;

/// A parsed expression: nodes, their offsets in the source, and the root.
#[derive(Debug, Default)]
pub(crate) struct Ast {
    nodes: Vec<Expr>,
    /// Code point offsets. Map entries and struct fields have their own.
    offsets: Vec<u32>,
    pub(crate) root: ExprId,
}

#[derive(Debug, Clone)]
pub(crate) enum Expr {
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: ExprId,
        field: Arc<str>,
        test_only: bool,
    },
    Call {
        function: Arc<str>,
        target: Option<ExprId>,
        args: Vec<ExprId>,
    },
    List {
        elements: Vec<ListElement>,
    },
    Map {
        entries: Vec<MapEntry>,
    },
    Struct {
        name: Arc<str>,
        fields: Vec<StructField>,
    },
    Comprehension(Box<Comprehension>),
    /// Placeholder where a syntax error was reported.
    Unspecified,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Debug, Clone)]
pub(crate) struct ListElement {
    pub(crate) value: ExprId,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct MapEntry {
    pub(crate) key: ExprId,
    pub(crate) value: ExprId,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct StructField {
    pub(crate) name: Arc<str>,
    pub(crate) value: ExprId,
    pub(crate) optional: bool,
    pub(crate) offset: u32,
}

/// A fold over a range, to which all quantifier and transformation macros expand.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) range: ExprId,
    pub(crate) var: Arc<str>,
    pub(crate) var2: Option<Arc<str>>,
    pub(crate) accu: Arc<str>,
    pub(crate) init: ExprId,
    pub(crate) condition: ExprId,
    pub(crate) step: ExprId,
    pub(crate) result: ExprId,
}

impl Ast {
    pub(crate) fn add(&mut self, expr: Expr, offset: u32) -> ExprId {
        let id = self.nodes.len() as ExprId;
        self.nodes.push(expr);
        self.offsets.push(offset);
        id
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn get(&self, id: ExprId) -> &Expr {
        &self.nodes[id as usize]
    }

    pub(crate) fn set(&mut self, id: ExprId, expr: Expr) {
        self.nodes[id as usize] = expr;
    }

    pub(crate) fn offset(&self, id: ExprId) -> u32 {
        self.offsets[id as usize]
    }

    pub(crate) fn literal(&self, id: ExprId) -> Option<&Literal> {
        match self.get(id) {
            Expr::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// The qualified name of a chain of identifiers and selections.
    pub(crate) fn qualified_name(&self, id: ExprId) -> Option<String> {
        let mut parts: Vec<&str> = Vec::new();
        let mut id = id;
        loop {
            match self.get(id) {
                Expr::Ident(name) => {
                    parts.push(name);
                    break;
                }
                Expr::Select { operand, field, test_only: false } => {
                    parts.push(field);
                    id = *operand;
                }
                _ => return None,
            }
        }
        parts.reverse();
        Some(parts.join("."))
    }

    /// The direct children of an expression, in evaluation order.
    pub(crate) fn children(&self, id: ExprId) -> Vec<ExprId> {
        match self.get(id) {
            Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified => Vec::new(),
            Expr::Select { operand, .. } => vec![*operand],
            Expr::Call { target, args, .. } => target.iter().chain(args).copied().collect(),
            Expr::List { elements } => elements.iter().map(|element| element.value).collect(),
            Expr::Map { entries } => entries.iter().flat_map(|entry| [entry.key, entry.value]).collect(),
            Expr::Struct { fields, .. } => fields.iter().map(|field| field.value).collect(),
            Expr::Comprehension(fold) => {
                vec![fold.range, fold.init, fold.condition, fold.step, fold.result]
            }
        }
    }

    /// The longest path from the root to a leaf.
    pub(crate) fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut stack = vec![(self.root, 1)];
        while let Some((id, depth)) = stack.pop() {
            deepest = deepest.max(depth);
            stack.extend(self.children(id).into_iter().map(|child| (child, depth + 1)));
        }
        deepest
    }
}
