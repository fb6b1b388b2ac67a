//! Paths and operations of a resource, independent of the OpenAPI version.

use std::collections::BTreeMap;

use super::names;
use super::parameters::{Options, Parameter, query};
use crate::negotiation::{JSON, PROTOBUF, YAML};
use crate::registry::{Resource, Subresource};

/// The path of a group-version, which lists its resources.
pub fn resource_list(group: &str, version: &str, definition: String) -> (String, PathItem) {
    let path = match group {
        "" => format!("/api/{version}/"),
        group => format!("/apis/{group}/{version}/"),
    };
    let operation = Operation {
        method: "get",
        action: "",
        id: names::operation("get", group, version, "APIResources"),
        tag: names::tag(group, version),
        description: "list the resources there are".into(),
        parameters: Vec::new(),
        body: None,
        responses: vec![(200, "OK", definition)],
        consumes: ANY,
        produces: ANY,
        kind: None,
    };
    (path, PathItem { operations: vec![operation], ..PathItem::default() })
}

pub type Paths = BTreeMap<String, PathItem>;

/// The operations of one path and the parameters they share.
#[derive(Debug, Default)]
pub struct PathItem {
    pub parameters: Vec<Parameter>,
    pub operations: Vec<Operation>,
}

#[derive(Debug)]
pub struct Operation {
    /// `get`, `post`, …
    pub method: &'static str,
    /// `x-kubernetes-action`
    pub action: &'static str,
    pub id: String,
    pub tag: String,
    pub description: String,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    /// Status codes with the definition of the response.
    pub responses: Vec<(u16, &'static str, String)>,
    pub consumes: &'static [&'static str],
    pub produces: &'static [&'static str],
    /// `x-kubernetes-group-version-kind`
    pub kind: Option<(String, String, String)>,
}

/// The body of a request.
#[derive(Debug)]
pub struct Body {
    pub definition: String,
    pub required: bool,
}

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

const TEXT: &[&str] = &[JSON, YAML];
const ANY: &[&str] = &[JSON, YAML, PROTOBUF];
const STREAMS: &[&str] = &[
    JSON,
    "application/json;stream=watch",
    PROTOBUF,
    "application/vnd.kubernetes.protobuf;stream=watch",
    YAML,
];
const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The paths of a resource. `definition` returns the definition of a group, version and kind; operations without one
/// are left out.
pub fn describe(
    resource: &Resource,
    mut definition: impl FnMut(&str, &str, &str) -> Option<String>,
) -> Paths {
    let mut paths = Paths::new();
    let Some(object) = definition(&resource.group, &resource.version, &resource.kind) else { return paths };
    let list = definition(&resource.group, &resource.version, &resource.list_kind);
    let custom = resource.custom().is_some();
    let writer = Writer { resource, object, list: list.unwrap_or_default(), custom };
    writer.collection(&mut paths);
    writer.item(&mut paths);
    // Streams and proxies have no body to describe.
    let streams = ["attach", "exec", "portforward", "proxy", "log"];
    for subresource in resource.subresources.iter().filter(|sub| !streams.contains(&sub.name.as_str())) {
        if let Some(body) = definition(&subresource.group, &subresource.version, &subresource.kind) {
            writer.subresource(subresource, &body, &mut paths);
        }
    }
    for item in paths.values_mut() {
        item.share_parameters();
    }
    paths
}

struct Writer<'a> {
    resource: &'a Resource,
    object: String,
    list: String,
    custom: bool,
}

impl Writer<'_> {
    fn collection(&self, paths: &mut Paths) {
        let resource = self.resource;
        if resource.namespaced && self.can("list") {
            let mut list = self.list_operation();
            list.id = self.id("list", &format!("{}ForAllNamespaces", resource.kind));
            list.parameters.retain(|parameter| parameter.place != "path");
            add(paths, format!("{}/{}", self.root(), resource.plural), list);
        }
        let path = self.collection_path();
        if self.can("list") {
            add(paths, path.clone(), self.list_operation());
        }
        if self.can("create") {
            add(paths, path.clone(), self.create(None, &self.object));
        }
        if self.can("deletecollection") {
            add(paths, path, self.delete_collection());
        }
    }

    fn item(&self, paths: &mut Paths) {
        let path = format!("{}/{{name}}", self.collection_path());
        if self.can("get") {
            add(paths, path.clone(), self.read(None, &self.object));
        }
        if self.can("update") {
            add(paths, path.clone(), self.replace(None, &self.object));
        }
        if self.can("delete") {
            add(paths, path.clone(), self.delete());
        }
        if self.can("patch") {
            add(paths, path, self.patch(None, &self.object));
        }
    }

    fn subresource(&self, subresource: &Subresource, body: &str, paths: &mut Paths) {
        let path = format!("{}/{{name}}/{}", self.collection_path(), subresource.name);
        let name = Some(subresource.name.as_str());
        for verb in &subresource.verbs {
            let mut operation = match *verb {
                "get" => self.read(name, body),
                "update" => self.replace(name, body),
                "patch" => self.patch(name, body),
                "create" => self.create(name, body),
                _ => continue,
            };
            // Operations on subresources of custom resources have the resource's own kind.
            if !self.custom {
                let Subresource { group, version, kind, .. } = subresource;
                operation.kind = Some((group.clone(), version.clone(), kind.clone()));
            }
            add(paths, path.clone(), operation);
        }
    }

    fn can(&self, verb: &str) -> bool {
        // A custom resource is described completely even while its definition is being deleted.
        self.custom || self.resource.verbs.contains(&verb)
    }

    fn root(&self) -> String {
        match self.resource.group.as_str() {
            "" => format!("/api/{}", self.resource.version),
            group => format!("/apis/{group}/{}", self.resource.version),
        }
    }

    fn collection_path(&self) -> String {
        let namespace = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{}{namespace}/{}", self.root(), self.resource.plural)
    }

    fn id(&self, verb: &str, rest: &str) -> String {
        names::operation(verb, &self.resource.group, &self.resource.version, rest)
    }

    /// `NamespacedWidgetStatus`
    fn subject(&self, subresource: Option<&str>) -> String {
        let namespaced = if self.resource.namespaced { "Namespaced" } else { "" };
        let subresource = subresource.map(names::title).unwrap_or_default();
        format!("{namespaced}{}{subresource}", self.resource.kind)
    }

    /// `a Widget`, `the status of a Widget`
    fn object_words(&self, subresource: Option<&str>) -> String {
        let kind = &self.resource.kind;
        match subresource {
            Some(name) => format!("the {name} of a {kind}"),
            None => format!("a {kind}"),
        }
    }

    fn operation(&self, method: &'static str, action: &'static str, options: Options) -> Operation {
        let resource = self.resource;
        let mut parameters = query(options);
        if resource.namespaced {
            parameters.push(Parameter::namespace());
        }
        Operation {
            method,
            action,
            id: String::new(),
            tag: names::tag(&resource.group, &resource.version),
            description: String::new(),
            parameters,
            body: None,
            responses: Vec::new(),
            consumes: if self.custom { TEXT } else { &["*/*"] },
            produces: if self.custom { TEXT } else { ANY },
            kind: Some((resource.group.clone(), resource.version.clone(), resource.kind.clone())),
        }
    }

    fn named(&self, method: &'static str, action: &'static str, options: Options) -> Operation {
        let mut operation = self.operation(method, action, options);
        operation.parameters.push(Parameter::name(&self.resource.kind));
        operation
    }

    fn list_operation(&self) -> Operation {
        Operation {
            id: self.id("list", &self.subject(None)),
            description: format!("list or watch {} objects", self.resource.kind),
            responses: vec![(200, "OK", self.list.clone())],
            produces: if self.custom { TEXT } else { STREAMS },
            ..self.operation("get", "list", Options::List)
        }
    }

    fn create(&self, subresource: Option<&str>, body: &str) -> Operation {
        let operation = match subresource {
            Some(_) => self.named("post", "post", Options::Create),
            None => self.operation("post", "post", Options::Create),
        };
        Operation {
            id: self.id("create", &self.subject(subresource)),
            description: format!("create {}", self.object_words(subresource)),
            body: Some(Body { definition: body.to_owned(), required: true }),
            responses: vec![
                (200, "OK", body.to_owned()),
                (201, "Created", body.to_owned()),
                (202, "Accepted", body.to_owned()),
            ],
            ..operation
        }
    }

    fn delete_collection(&self) -> Operation {
        let (options, body) = if self.custom {
            (Options::List, None)
        } else {
            let body = Body { definition: DELETE_OPTIONS.into(), required: false };
            (Options::DeleteCollection, Some(body))
        };
        Operation {
            id: self.id("delete", &format!("Collection{}", self.subject(None))),
            description: format!("delete all {} objects that are selected", self.resource.kind),
            body,
            responses: vec![(200, "OK", STATUS.into())],
            ..self.operation("delete", "deletecollection", options)
        }
    }

    fn read(&self, subresource: Option<&str>, body: &str) -> Operation {
        let options = if self.custom { Options::Get } else { Options::None };
        Operation {
            id: self.id("read", &self.subject(subresource)),
            description: format!("read {}", self.object_words(subresource)),
            responses: vec![(200, "OK", body.to_owned())],
            ..self.named("get", "get", options)
        }
    }

    fn replace(&self, subresource: Option<&str>, body: &str) -> Operation {
        Operation {
            id: self.id("replace", &self.subject(subresource)),
            description: format!("replace {}", self.object_words(subresource)),
            body: Some(Body { definition: body.to_owned(), required: true }),
            responses: vec![(200, "OK", body.to_owned()), (201, "Created", body.to_owned())],
            ..self.named("put", "put", Options::Update)
        }
    }

    fn delete(&self) -> Operation {
        let answer = if self.returns_deleted() { self.object.as_str() } else { STATUS };
        Operation {
            id: self.id("delete", &self.subject(None)),
            description: format!("delete {}", self.object_words(None)),
            body: Some(Body { definition: DELETE_OPTIONS.into(), required: false }),
            responses: vec![(200, "OK", answer.into()), (202, "Accepted", answer.into())],
            ..self.named("delete", "delete", Options::Delete)
        }
    }

    /// Whether deletion returns the object.
    fn returns_deleted(&self) -> bool {
        let kinds = [
            ("", "PersistentVolume"),
            ("", "PersistentVolumeClaim"),
            ("", "Pod"),
            ("", "PodTemplate"),
            ("", "ResourceQuota"),
            ("", "Service"),
            ("", "ServiceAccount"),
            ("storage.k8s.io", "CSIDriver"),
            ("storage.k8s.io", "CSINode"),
            ("storage.k8s.io", "StorageClass"),
            ("storage.k8s.io", "VolumeAttachment"),
        ];
        !self.custom && kinds.contains(&(self.resource.group.as_str(), self.resource.kind.as_str()))
    }

    fn patch(&self, subresource: Option<&str>, body: &str) -> Operation {
        let mut responses = vec![(200, "OK", body.to_owned())];
        if !self.custom {
            responses.push((201, "Created", body.to_owned()));
        }
        Operation {
            id: self.id("patch", &self.subject(subresource)),
            description: format!("change parts of {}", self.object_words(subresource)),
            body: Some(Body { definition: PATCH.into(), required: true }),
            responses,
            consumes: if self.custom { CUSTOM_PATCHES } else { PATCHES },
            ..self.named("patch", "patch", Options::Patch)
        }
    }
}

fn add(paths: &mut Paths, path: String, operation: Operation) {
    paths.entry(path).or_default().operations.push(operation);
}

impl PathItem {
    /// Moves parameters of all operations to the path.
    fn share_parameters(&mut self) {
        let Some(first) = self.operations.first() else { return };
        let shared: Vec<Parameter> = first
            .parameters
            .iter()
            .filter(|parameter| self.operations.iter().all(|other| other.parameters.contains(parameter)))
            .cloned()
            .collect();
        for operation in &mut self.operations {
            operation.parameters.retain(|parameter| !shared.contains(parameter));
        }
        self.parameters.extend(shared);
        self.parameters.sort();
    }
}
