//! The Go types of the built-in kinds: field names, protobuf numbers, JSON and patch behavior, list and map types,
//! defaults. Read once per process from a generated text (`cargo xtask builtin-tables`); the generator documents its
//! format.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

/// Index of a type in the [`Table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(u32);

impl TypeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A Go type expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// `bool`
    Bool,
    /// `string`
    String,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float64`
    Float64,
    /// `[]byte`
    Bytes,
    /// `interface{}`
    Any,
    /// `*T`
    Pointer(Box<Expr>),
    /// `[]T`
    List(Box<Expr>),
    /// `map[K]T`; keys are always strings.
    Map(Box<Expr>, Box<Expr>),
    Named(TypeId),
}

/// Types with a custom JSON format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// `meta/v1.Time`: whole seconds.
    Time,
    /// `meta/v1.MicroTime`: microseconds.
    MicroTime,
    /// `resource.Quantity`
    Quantity,
    /// `intstr.IntOrString`
    IntOrString,
    /// `runtime.RawExtension`: any object.
    RawExtension,
    /// `runtime.Unknown`: the protobuf envelope.
    Unknown,
    /// `meta/v1.FieldsV1`: any object.
    FieldsV1,
    /// `apiextensions/v1.JSON`: any value.
    Json,
    /// `apiextensions/v1.JSONSchemaPropsOrArray`
    SchemaOrArray,
    /// `apiextensions/v1.JSONSchemaPropsOrBool`
    SchemaOrBool,
    /// `apiextensions/v1.JSONSchemaPropsOrStringArray`
    SchemaOrStringArray,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Struct,
    /// An alias; `message` if protobuf wraps it in a message (`repeated items = 1`).
    Alias {
        under: Expr,
        message: bool,
    },
    /// A type with a custom JSON format.
    Special(Special),
}

#[derive(Debug, Clone)]
pub struct Type {
    /// Short package and name: `core/v1.Pod`, `meta/v1.ObjectMeta`.
    pub name: &'static str,
    pub shape: Shape,
    /// Fields in Go's order, inlined structs as one field with `inline` set. Empty unless a struct (or
    /// one of the `JSONSchemaPropsOr…` specials, whose fields only protobuf knows).
    pub fields: Vec<Field>,
    /// `x-kubernetes-map-type` of the whole type.
    pub map_type: Option<&'static str>,
    /// `x-kubernetes-unions`.
    pub unions: Option<Value>,
    /// JSON name → path of field indices through inlined structs.
    by_json: HashMap<&'static str, Vec<u16>>,
    /// Protobuf number → field index.
    by_number: Vec<(u32, u16)>,
}

#[derive(Debug, Clone)]
pub struct Field {
    /// JSON name; empty for an inlined struct.
    pub json: &'static str,
    /// The fields of this struct are inlined in its parent.
    pub inline: bool,
    /// Protobuf field number, 0 if it is not in protobuf.
    pub number: u32,
    /// Omitted from JSON if empty (false, 0, "", nil, no entries); structs are never empty.
    pub omit_empty: bool,
    /// Omitted from JSON if zero.
    pub omit_zero: bool,
    pub expr: Expr,
    /// Required in OpenAPI.
    pub required: bool,
    /// Default in OpenAPI.
    pub default: Option<Value>,
    /// `format` in OpenAPI.
    pub format: Option<&'static str>,
    /// Enum values in OpenAPI; empty if open.
    pub enumeration: Vec<Value>,
    /// Enum values of list items in OpenAPI; empty if open.
    pub item_enumeration: Vec<Value>,
    /// `x-kubernetes-list-type`
    pub list_type: Option<&'static str>,
    /// `x-kubernetes-list-map-keys`
    pub map_keys: Vec<&'static str>,
    /// `x-kubernetes-map-type`
    pub map_type: Option<&'static str>,
    /// `patchStrategy`
    pub patch_strategy: Option<&'static str>,
    /// `patchMergeKey`
    pub patch_merge_key: Option<&'static str>,
}

#[derive(Debug)]
pub struct Table {
    types: Vec<Type>,
    names: HashMap<&'static str, TypeId>,
}

/// Package of the Go types of an API group; other groups have no built-in types.
const PACKAGES: [(&str, &str); 21] = [
    ("", "core"),
    ("admissionregistration.k8s.io", "admissionregistration"),
    ("apiextensions.k8s.io", "apiextensions"),
    ("apiregistration.k8s.io", "apiregistration"),
    ("apps", "apps"),
    ("authentication.k8s.io", "authentication"),
    ("authorization.k8s.io", "authorization"),
    ("autoscaling", "autoscaling"),
    ("batch", "batch"),
    ("certificates.k8s.io", "certificates"),
    ("coordination.k8s.io", "coordination"),
    ("discovery.k8s.io", "discovery"),
    ("events.k8s.io", "events"),
    ("flowcontrol.apiserver.k8s.io", "flowcontrol"),
    ("networking.k8s.io", "networking"),
    ("node.k8s.io", "node"),
    ("policy", "policy"),
    ("rbac.authorization.k8s.io", "rbac"),
    ("resource.k8s.io", "resource"),
    ("scheduling.k8s.io", "scheduling"),
    ("storage.k8s.io", "storage"),
];

/// Kinds of `meta/v1` that are registered in every group.
const META_KINDS: [&str; 9] = [
    "Status",
    "DeleteOptions",
    "ListOptions",
    "GetOptions",
    "CreateOptions",
    "UpdateOptions",
    "PatchOptions",
    "WatchEvent",
    "ApplyOptions",
];

/// The table, loaded on first use.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| load(include_str!("facts/types.txt")));
    &TABLE
}

impl Table {
    /// A type by its id.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// A type by its short package and name.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied()
    }

    /// The Go type of a kind, its list or one of the kinds of every group (`DeleteOptions`…).
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        let package = PACKAGES.iter().find(|(g, _)| *g == group).map(|(_, p)| *p);
        let own = package.and_then(|p| self.find(&format!("{p}/{version}.{kind}")));
        own.or_else(|| {
            let meta = group == "meta.k8s.io" && version == "v1" || META_KINDS.contains(&kind);
            let of_all = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions"].contains(&kind);
            (meta || of_all && group.is_empty() && version == "v1")
                .then(|| self.find(&format!("meta/v1.{kind}")))?
        })
    }

    /// All types, by name.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        self.types.iter().enumerate().map(|(i, t)| (id(i), t))
    }

    /// The field of a struct with a JSON name, looking through inlined structs.
    pub fn field(&self, of: TypeId, json: &str) -> Option<&Field> {
        self.locate(of, json).map(|(_, field)| field)
    }

    /// The field of a struct with a JSON name, and the Go names of the inlined structs on its path.
    pub(crate) fn locate(&self, of: TypeId, json: &str) -> Option<(Vec<&'static str>, &Field)> {
        let mut current = self.get(of);
        let (last, through) = current.by_json.get(json)?.split_last()?;
        let mut names = Vec::new();
        for step in through {
            let Expr::Named(inner) = current.fields[*step as usize].expr else { return None };
            current = self.get(inner);
            names.push(current.short_name());
        }
        Some((names, &current.fields[*last as usize]))
    }

    /// All fields of a struct in JSON: inlined structs flattened.
    pub fn flat_fields(&self, of: TypeId) -> Vec<&Field> {
        let mut out = Vec::new();
        for field in &self.get(of).fields {
            match field.expr {
                Expr::Named(inner) if field.inline => out.extend(self.flat_fields(inner)),
                _ => out.push(field),
            }
        }
        out
    }

    /// The expression behind aliases of non-message types: `core/v1.Protocol` → `string`.
    pub fn resolve<'a>(&'a self, expr: &'a Expr) -> &'a Expr {
        match expr {
            Expr::Named(id) => match &self.get(*id).shape {
                Shape::Alias { under, .. } => self.resolve(under),
                _ => expr,
            },
            _ => expr,
        }
    }

    /// Like [`Table::resolve`], but stops at aliases that protobuf wraps in a message.
    pub(crate) fn resolve_wire<'a>(&'a self, expr: &'a Expr) -> &'a Expr {
        match expr {
            Expr::Named(id) => match &self.get(*id).shape {
                Shape::Alias { under, message: false } => self.resolve_wire(under),
                _ => expr,
            },
            _ => expr,
        }
    }

    /// The type as Go prints it: `map[string]string`, `*v1.PodSpec`.
    pub fn go_name(&self, expr: &Expr) -> String {
        match expr {
            Expr::Bool => "bool".to_owned(),
            Expr::String => "string".to_owned(),
            Expr::Int32 => "int32".to_owned(),
            Expr::Int64 => "int64".to_owned(),
            Expr::Float64 => "float64".to_owned(),
            Expr::Bytes => "[]uint8".to_owned(),
            Expr::Any => "interface {}".to_owned(),
            Expr::Pointer(inner) => format!("*{}", self.go_name(inner)),
            Expr::List(inner) => format!("[]{}", self.go_name(inner)),
            Expr::Map(key, value) => format!("map[{}]{}", self.go_name(key), self.go_name(value)),
            Expr::Named(id) => {
                let name = self.get(*id).name;
                name.rsplit('/').next().unwrap_or(name).to_owned()
            }
        }
    }
}

impl Type {
    /// The field with a protobuf number.
    pub fn numbered(&self, number: u32) -> Option<&Field> {
        let at = self.by_number.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        Some(&self.fields[self.by_number[at].1 as usize])
    }

    /// Fields that protobuf carries, by number.
    pub(crate) fn wire_fields(&self) -> impl Iterator<Item = &Field> {
        self.by_number.iter().map(|(_, at)| &self.fields[*at as usize])
    }

    /// Go's name without its package: `Pod`.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Name of its OpenAPI definition: `io.k8s.api.core.v1.Pod`.
    pub fn openapi_name(&self) -> String {
        let dotted = self.name.replace('/', ".");
        let home = match self.name.split(['/', '.']).next().unwrap_or_default() {
            "meta" => "io.k8s.apimachinery.pkg.apis",
            // Quantities; devices are in `resource/v1`.
            "resource" if !self.name.contains('/') => "io.k8s.apimachinery.pkg.api",
            "intstr" => "io.k8s.apimachinery.pkg.util",
            "runtime" | "types" => "io.k8s.apimachinery.pkg",
            "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis",
            "apiregistration" => "io.k8s.kube-aggregator.pkg.apis",
            _ => "io.k8s.api",
        };
        format!("{home}.{dotted}")
    }
}

fn id(index: usize) -> TypeId {
    // A few hundred types: the index always fits.
    TypeId(u32::try_from(index).unwrap_or(u32::MAX))
}

fn load(text: &'static str) -> Table {
    let mut names = HashMap::new();
    for line in text.lines().filter(|l| !l.starts_with(' ')) {
        let name = line.split(' ').next().unwrap_or_default();
        names.insert(name, id(names.len()));
    }
    let mut types: Vec<Type> = Vec::with_capacity(names.len());
    for line in text.lines() {
        match line.strip_prefix(' ') {
            Some(rest) => {
                if let Some(current) = types.last_mut() {
                    current.fields.push(parse_field(rest, &names));
                }
            }
            None => types.push(parse_type(line, &names)),
        }
    }
    let mut table = Table { types, names };
    for index in 0..table.types.len() {
        let by_json = json_paths(&table, id(index));
        let current = &mut table.types[index];
        current.by_json = by_json;
        current.by_number = (0u16..)
            .zip(&current.fields)
            .filter(|(_, f)| f.number != 0)
            .map(|(at, f)| (f.number, at))
            .collect();
        current.by_number.sort_unstable();
    }
    table
}

fn json_paths(table: &Table, of: TypeId) -> HashMap<&'static str, Vec<u16>> {
    let mut out = HashMap::new();
    for (at, field) in (0u16..).zip(&table.get(of).fields) {
        match field.expr {
            Expr::Named(inner) if field.inline => {
                for (name, mut path) in json_paths(table, inner) {
                    path.insert(0, at);
                    out.entry(name).or_insert(path);
                }
            }
            _ => {
                out.insert(field.json, vec![at]);
            }
        }
    }
    out
}

fn parse_type(line: &'static str, names: &HashMap<&'static str, TypeId>) -> Type {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let mut out = Type {
        name,
        shape: Shape::Struct,
        fields: Vec::new(),
        map_type: None,
        unions: None,
        by_json: HashMap::new(),
        by_number: Vec::new(),
    };
    match words.next() {
        Some("special") => {
            if let Some(special) = special(name) {
                out.shape = Shape::Special(special);
            }
        }
        Some("=") => {
            let under = parse_expr(words.next().unwrap_or_default(), names);
            out.shape = Shape::Alias { under, message: words.next() == Some("message") };
        }
        _ => {
            for fact in words {
                match fact.split_once('=') {
                    Some(("mt", v)) => out.map_type = Some(v),
                    Some(("union", v)) => out.unions = serde_json::from_str(v).ok(),
                    _ => {}
                }
            }
        }
    }
    out
}

fn parse_field(line: &'static str, names: &HashMap<&'static str, TypeId>) -> Field {
    let mut words = line.split(' ');
    let json = words.next().unwrap_or_default();
    let number = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let flag = words.next().unwrap_or("-");
    let expr = parse_expr(words.next().unwrap_or_default(), names);
    let mut out = Field {
        json: if json == "^" { "" } else { json },
        inline: json == "^",
        number,
        omit_empty: flag.contains('?'),
        omit_zero: flag.contains('0'),
        expr,
        required: false,
        default: None,
        format: None,
        enumeration: Vec::new(),
        item_enumeration: Vec::new(),
        list_type: None,
        map_keys: Vec::new(),
        map_type: None,
        patch_strategy: None,
        patch_merge_key: None,
    };
    for fact in words {
        match fact.split_once('=') {
            None => out.required |= fact == "req",
            Some(("def", v)) => out.default = serde_json::from_str(v).ok(),
            Some(("fmt", v)) => out.format = Some(v),
            Some(("enum", v)) => out.enumeration = serde_json::from_str(v).unwrap_or_default(),
            Some(("ienum", v)) => out.item_enumeration = serde_json::from_str(v).unwrap_or_default(),
            Some(("lt", v)) => out.list_type = Some(v),
            Some(("keys", v)) => out.map_keys = v.split(',').collect(),
            Some(("mt", v)) => out.map_type = Some(v),
            Some(("ps", v)) => out.patch_strategy = Some(v),
            Some(("pk", v)) => out.patch_merge_key = Some(v),
            Some(_) => {}
        }
    }
    out
}

fn parse_expr(text: &str, names: &HashMap<&'static str, TypeId>) -> Expr {
    match text {
        "bool" => return Expr::Bool,
        "string" => return Expr::String,
        "int32" => return Expr::Int32,
        "int64" => return Expr::Int64,
        "float64" => return Expr::Float64,
        "[]byte" => return Expr::Bytes,
        _ => {}
    }
    if let Some(inner) = text.strip_prefix('*') {
        return Expr::Pointer(Box::new(parse_expr(inner, names)));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Expr::List(Box::new(parse_expr(inner, names)));
    }
    if let Some((key, value)) = text.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return Expr::Map(Box::new(parse_expr(key, names)), Box::new(parse_expr(value, names)));
    }
    names.get(text).map_or(Expr::Any, |id| Expr::Named(*id))
}

fn special(name: &str) -> Option<Special> {
    Some(match name {
        "meta/v1.Time" => Special::Time,
        "meta/v1.MicroTime" => Special::MicroTime,
        "resource.Quantity" => Special::Quantity,
        "intstr.IntOrString" => Special::IntOrString,
        "runtime.RawExtension" => Special::RawExtension,
        "runtime.Unknown" => Special::Unknown,
        "meta/v1.FieldsV1" => Special::FieldsV1,
        "apiextensions/v1.JSON" => Special::Json,
        "apiextensions/v1.JSONSchemaPropsOrArray" => Special::SchemaOrArray,
        "apiextensions/v1.JSONSchemaPropsOrBool" => Special::SchemaOrBool,
        "apiextensions/v1.JSONSchemaPropsOrStringArray" => Special::SchemaOrStringArray,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_type_of_the_text_is_known() {
        let table = table();
        assert!(table.types.len() > 500);
        for (_, ty) in table.types() {
            for field in &ty.fields {
                let any = format!("{:?}", field.expr).contains("Any");
                assert!(!any || ty.name == "meta/v1.TableRow", "{}.{}", ty.name, field.json);
            }
            assert!(!matches!(ty.shape, Shape::Struct) || !ty.name.contains(' '));
        }
    }

    #[test]
    fn fields_of_inlined_structs_are_found_by_json_name() {
        let table = table();
        let volume = table.kind("", "v1", "Pod").and_then(|_| table.find("core/v1.Volume")).unwrap();
        assert_eq!(table.field(volume, "emptyDir").unwrap().number, 2);
        assert_eq!(table.get(volume).numbered(2).unwrap().json, "");
        assert!(table.field(volume, "volumeSource").is_none());
    }

    #[test]
    fn kinds_of_every_group_are_found_in_meta() {
        let table = table();
        for group in ["", "apps", "example.com"] {
            let id = table.kind(group, "v1", "DeleteOptions").unwrap();
            assert_eq!(table.get(id).name, "meta/v1.DeleteOptions");
        }
        assert!(table.kind("example.com", "v1", "Pod").is_none());
    }

    #[test]
    fn openapi_names_are_upstreams() {
        let table = table();
        for (name, wanted) in [
            ("core/v1.Pod", "io.k8s.api.core.v1.Pod"),
            ("meta/v1.ObjectMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
            ("resource.Quantity", "io.k8s.apimachinery.pkg.api.resource.Quantity"),
            ("intstr.IntOrString", "io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
            ("apiextensions/v1.JSON", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"),
            (
                "apiregistration/v1.APIService",
                "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
            ),
        ] {
            assert_eq!(table.get(table.find(name).unwrap()).openapi_name(), wanted);
        }
    }
}
