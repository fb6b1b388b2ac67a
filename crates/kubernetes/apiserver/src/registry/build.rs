//! Builds the registry from the built-in kinds and the CustomResourceDefinitions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use capstan_schema::Schema;
use capstan_schema::custom::{Scale, Validator};
use capstan_schema::schema::TypeName;
use serde_json::Value;

use super::{Behaviour, Column, CustomResource, Group, Origin, Registry, Resource, ScalePaths, Subresource};
use crate::conversion::Strategy;
use crate::discovery::compare_versions;

const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const TERMINATING_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];

/// The built-in resources, built once per process.
pub fn built_in() -> &'static [Arc<Resource>] {
    static RESOURCES: OnceLock<Vec<Arc<Resource>>> = OnceLock::new();
    RESOURCES.get_or_init(|| {
        capstan_builtin::kinds()
            .iter()
            .filter_map(|kind| {
                let schema = capstan_builtin::schema(kind.group, kind.version, kind.kind)?;
                Some(Arc::new(Resource {
                    group: kind.group.into(),
                    version: kind.version.into(),
                    kind: kind.kind.into(),
                    list_kind: kind.list_kind.clone(),
                    plural: kind.plural.into(),
                    singular: kind.singular.into(),
                    short_names: kind.short_names.iter().map(|s| (*s).to_owned()).collect(),
                    categories: kind.categories.iter().map(|s| (*s).to_owned()).collect(),
                    namespaced: kind.namespaced,
                    verbs: kind.verbs.to_vec(),
                    subresources: kind
                        .subresources
                        .iter()
                        .map(|s| Subresource {
                            name: s.name.into(),
                            group: s.group.into(),
                            version: s.version.into(),
                            kind: s.kind.into(),
                            verbs: s.verbs.to_vec(),
                            scale: None,
                        })
                        .collect(),
                    schema,
                    columns: Vec::new(),
                    // Autoscalers are stored in the newer of their two versions.
                    storage_version: match kind.group {
                        "autoscaling" => "v2".into(),
                        _ => kind.version.into(),
                    },
                    // Both groups of events are one set of objects, stored in the older form.
                    bucket: match (kind.group, kind.plural) {
                        ("events.k8s.io", "events") => "/events".into(),
                        (group, plural) => format!("{group}/{plural}").into(),
                    },
                    origin: Origin::BuiltIn,
                    behaviour: None,
                }))
            })
            .collect()
    })
}

/// The registry without custom resources, shared by all servers.
pub fn empty() -> Arc<Registry> {
    static EMPTY: OnceLock<Arc<Registry>> = OnceLock::new();
    EMPTY.get_or_init(|| Arc::new(build(&[], 0))).clone()
}

pub fn build(custom: &[Arc<Resource>], generation: u64) -> Registry {
    let mut resources: BTreeMap<(String, String), Vec<Arc<Resource>>> = BTreeMap::new();
    let mut by_plural: HashMap<String, Vec<Arc<Resource>>> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let built_in_groups = built_in().iter().map(|r| r.group.clone()).collect::<Vec<_>>();
    for resource in built_in().iter().chain(custom) {
        let group_version = (resource.group.clone(), resource.version.clone());
        let of_name = by_plural.entry(resource.plural.clone()).or_default();
        let same = of_name.iter_mut().find(|r| r.group == resource.group && r.version == resource.version);
        if let Some(same) = same {
            *same = resource.clone();
            continue;
        }
        of_name.push(resource.clone());
        resources.entry(group_version).or_default().push(resource.clone());
        match groups.iter_mut().find(|g| g.name == resource.group) {
            Some(group) if group.versions.contains(&resource.version) => {}
            Some(group) => group.versions.push(resource.version.clone()),
            None => {
                groups.push(Group { name: resource.group.clone(), versions: vec![resource.version.clone()] })
            }
        }
    }
    for group in &mut groups {
        group.versions.sort_by(|a, b| compare_versions(a, b));
    }
    // Built-in groups keep the order of their table; custom groups follow by name.
    let first_custom = groups.iter().position(|g| !built_in_groups.contains(&g.name)).unwrap_or(groups.len());
    groups[first_custom..].sort_by(|a, b| a.name.cmp(&b.name));
    Registry { groups, resources, by_plural, generation }
}

/// The resources of a CustomResourceDefinition, one per served version.
///
/// The definition was validated when it was stored. A version whose schema no longer compiles is left out rather than
/// served without validation.
pub fn custom(crd: &Value, schema_epoch: u64) -> Vec<Arc<Resource>> {
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().map(|all| all.iter().map(text).collect()).unwrap_or_default()
    };
    let names = &spec["names"];
    let (group, plural) = (text(&spec["group"]), text(&names["plural"]));
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let storage_version =
        versions.iter().find(|v| v["storage"] == true).map(|v| text(&v["name"])).unwrap_or_default();
    let terminating = crd["status"]["conditions"]
        .as_array()
        .is_some_and(|all| all.iter().any(|c| c["type"] == "Terminating" && c["status"] == "True"));
    let origin = Arc::new(CustomResource {
        name: text(&crd["metadata"]["name"]),
        uid: text(&crd["metadata"]["uid"]),
        spec: spec.clone(),
        preserve_unknown: spec["preserveUnknownFields"] == true,
        schema_epoch,
        terminating,
    });
    let bucket: Arc<str> = format!("{group}/{plural}").into();
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .filter_map(|version| {
            let schema = match &version["schema"]["openAPIV3Schema"] {
                Value::Null => anything(),
                schema => match Schema::from_json(schema) {
                    Ok(schema) => schema,
                    Err(errors) => {
                        tracing::error!(crd = origin.name, version = %version["name"], ?errors, "schema does not compile");
                        return None;
                    }
                },
            };
            let (name, kind) = (text(&version["name"]), text(&names["kind"]));
            let schema = Arc::new(schema);
            let namespaced = spec["scope"] == "Namespaced";
            let subresources = subresources(version, &group, &name, &kind);
            let scale = subresources.iter().find_map(|s| s.scale.as_ref()).map(|paths| Scale {
                spec_replicas: paths.spec_replicas.clone(),
                status_replicas: paths.status_replicas.clone(),
                label_selector: paths.label_selector.clone(),
            });
            let behaviour = Behaviour {
                validator: Validator::new(&group, &name, &kind, namespaced, schema.clone(), scale),
                conversion: Strategy::from_spec(spec),
                deprecation: deprecation(spec, version),
            };
            Some(Arc::new(Resource {
                subresources,
                columns: columns(version),
                group: group.clone(),
                version: name,
                kind,
                list_kind: text(&names["listKind"]),
                plural: plural.clone(),
                singular: text(&names["singular"]),
                short_names: texts(&names["shortNames"]),
                categories: texts(&names["categories"]),
                namespaced,
                verbs: if terminating { TERMINATING_VERBS.to_vec() } else { CUSTOM_VERBS.to_vec() },
                schema,
                storage_version: storage_version.clone(),
                bucket: bucket.clone(),
                origin: Origin::Custom(origin.clone()),
                behaviour: Some(Arc::new(behaviour)),
            }))
        })
        .collect()
}

/// The warning of a deprecated version: the author's text, or the recommended version.
fn deprecation(spec: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(text) = version["deprecationWarning"].as_str() {
        return Some(text.to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind, name) = (text(&spec["group"]), text(&spec["names"]["kind"]), text(&version["name"]));
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let better = versions
        .iter()
        .filter(|v| v["served"] == true && v["deprecated"] != true)
        .map(|v| text(&v["name"]))
        .filter(|other| compare_versions(other, &name).is_lt())
        .min_by(|a, b| compare_versions(a, b));
    let mut warning = format!("{group}/{name} {kind} is deprecated");
    if let Some(better) = better {
        warning.push_str(&format!("; use {group}/{better} {kind}"));
    }
    Some(warning)
}

/// The schema of a version without one: everything is preserved.
fn anything() -> Schema {
    Schema { kind: Some(TypeName::Object), preserve_unknown: true, ..Schema::default() }
}

fn subresources(version: &Value, group: &str, name: &str, kind: &str) -> Vec<Subresource> {
    let verbs = vec!["get", "patch", "update"];
    let declared = &version["subresources"];
    let mut out = Vec::new();
    if declared.get("status").is_some_and(|s| !s.is_null()) {
        out.push(Subresource {
            name: "status".into(),
            group: group.into(),
            version: name.into(),
            kind: kind.into(),
            verbs: verbs.clone(),
            scale: None,
        });
    }
    if let Some(scale) = declared.get("scale").filter(|s| !s.is_null()) {
        let path = |key: &str| scale[key].as_str().unwrap_or_default().to_owned();
        out.push(Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs,
            scale: Some(ScalePaths {
                spec_replicas: path("specReplicasPath"),
                status_replicas: path("statusReplicasPath"),
                label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
            }),
        });
    }
    out
}

fn columns(version: &Value) -> Vec<Column> {
    let declared = version["additionalPrinterColumns"].as_array().map(Vec::as_slice).unwrap_or_default();
    declared
        .iter()
        .map(|column| {
            let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
            Column {
                name: text("name"),
                kind: text("type"),
                format: text("format"),
                description: text("description"),
                priority: column["priority"].as_i64().unwrap_or(0),
                json_path: text("jsonPath"),
            }
        })
        .collect()
}
