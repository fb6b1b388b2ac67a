//! A CRD in upstream's internal form: what all versions share is kept once, at the top, and errors about it refer to
//! that (`spec.validation` instead of `spec.versions[0].schema`).

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::props::Props;

/// The spec of a definition.
#[derive(Debug, Clone)]
pub struct Spec<'a> {
    pub props: Props<'a>,
    pub names: Props<'a>,
    pub versions: Vec<Version<'a>>,
    /// Name of the first version.
    pub version: &'a str,
    /// `{openAPIV3Schema}` that all versions share.
    pub validation: Option<Props<'a>>,
    pub subresources: Option<Props<'a>>,
    pub columns: Option<&'a [Value]>,
    pub selectable_fields: Option<&'a [Value]>,
}

/// One version, without what it shares with all others.
#[derive(Debug, Clone, Copy)]
pub struct Version<'a> {
    pub props: Props<'a>,
    pub name: &'a str,
    pub schema: Option<Props<'a>>,
    pub subresources: Option<Props<'a>>,
    pub columns: Option<&'a [Value]>,
    pub selectable_fields: Option<&'a [Value]>,
}

/// Stands for absent objects.
static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

impl<'a> Spec<'a> {
    pub fn of(crd: &'a Value) -> Self {
        let props = crd.get("spec").and_then(Props::of).unwrap_or(Props(&NOTHING));
        let mut versions: Vec<Version<'a>> = props
            .list("versions")
            .map(|version| Version {
                props: version,
                name: version.text("name"),
                schema: version.schema("schema"),
                subresources: version.schema("subresources"),
                columns: entries(version, "additionalPrinterColumns"),
                selectable_fields: entries(version, "selectableFields"),
            })
            .collect();
        let validation = shared(&mut versions, |v| &mut v.schema, same_schema);
        let subresources = shared(&mut versions, |v| &mut v.subresources, |a, b| a.0 == b.0);
        let columns = shared(&mut versions, |v| &mut v.columns, |a, b| a == b);
        let selectable_fields = shared(&mut versions, |v| &mut v.selectable_fields, |a, b| a == b);
        Self {
            props,
            names: props.schema("names").unwrap_or(Props(&NOTHING)),
            version: versions.first().map(|v| v.name).unwrap_or_default(),
            versions,
            validation,
            subresources,
            columns,
            selectable_fields,
        }
    }

    pub fn preserves_unknown_fields(&self) -> bool {
        self.props.flag("preserveUnknownFields")
    }

    /// All schemas of the CRD, each once.
    pub fn schemas(&self) -> impl Iterator<Item = Props<'a>> {
        let validations = self.validation.into_iter().chain(self.versions.iter().filter_map(|v| v.schema));
        validations.filter_map(|validation| validation.schema("openAPIV3Schema"))
    }

    pub fn any_schema(&self, mut is: impl FnMut(Props<'a>) -> bool) -> bool {
        self.schemas().any(|schema| schema.any(&mut is))
    }

    /// The schema of a version, shared or its own.
    pub fn schema_of(&self, version: &Version<'a>) -> Option<Props<'a>> {
        version.schema.or(self.validation).and_then(|validation| validation.schema("openAPIV3Schema"))
    }
}

fn entries<'a>(props: Props<'a>, key: &str) -> Option<&'a [Value]> {
    // An empty list counts as absent.
    props.get(key).and_then(Value::as_array).map(Vec::as_slice).filter(|items| !items.is_empty())
}

/// As in upstream's comparison, null equals absent, and so does an empty list.
fn same_schema(a: &Props<'_>, b: &Props<'_>) -> bool {
    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                let set = |map: &Map<String, Value>| map.values().filter(|v| !v.is_null()).count();
                set(a) == set(b)
                    && a.iter()
                        .filter(|(_, v)| !v.is_null())
                        .all(|(key, v)| b.get(key).is_some_and(|w| same(v, w)))
            }
            _ => a == b,
        }
    }
    a.0.iter().filter(|(_, v)| !v.is_null()).count() == b.0.iter().filter(|(_, v)| !v.is_null()).count()
        && a.0.iter().filter(|(_, v)| !v.is_null()).all(|(key, v)| b.0.get(key).is_some_and(|w| same(v, w)))
}

/// Extracts what is the same in all versions.
fn shared<'a, T: Copy>(
    versions: &mut [Version<'a>],
    field: impl for<'b> Fn(&'b mut Version<'a>) -> &'b mut Option<T>,
    same: impl Fn(&T, &T) -> bool,
) -> Option<T> {
    let first = *field(versions.first_mut()?);
    let all_same = versions.iter_mut().all(|version| match (&first, &*field(version)) {
        (Some(a), Some(b)) => same(a, b),
        (None, None) => true,
        _ => false,
    });
    if !all_same {
        return None;
    }
    versions.iter_mut().for_each(|version| *field(version) = None);
    first
}
