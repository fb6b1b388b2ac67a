//! The context of one request to a resource, and decoding of its body.

use std::sync::Arc;

use bytes::Bytes;
use capstan_builtin as builtin;
use capstan_builtin::decode::Words;
use capstan_schema::Schema;
use capstan_schema::bounded::{Texts, cut};
use capstan_schema::memory::Undecodable;
use serde_json::{Map, Value};

use crate::admission::{
    AdmissionAttributes, AuditAnnotations, GroupVersionKind, GroupVersionResource, Operation, Reinvocations,
    Warnings,
};
use crate::auth::{Attributes, User};
use crate::http::body::{self, Decoded, MAX_CRD_DEPTH, MAX_DEPTH};
use crate::http::options::{FieldValidation, Query};
use crate::memory::RequestMemory;
use crate::negotiation::{self, Accepted, Encoding, Endpoint};
use crate::object::Meta;
use crate::parts::ServerParts;
use crate::portforward::Upgrade;
use crate::registry::{Registry, Resource};
use crate::route::{Route, Verb};
use crate::scale;
use crate::status::{Result, Status};
use crate::strategy;

/// Bytes of a body that an error repeats.
const SHOWN_BODY: usize = 16 * 1024;

/// The context of one request to a resource. Immutable.
pub(crate) struct Call {
    pub parts: Arc<ServerParts>,
    pub registry: Arc<Registry>,
    pub route: Route,
    pub user: Arc<User>,
    pub query: Query,
    pub user_agent: String,
    pub content_type: Option<String>,
    pub accepted: Accepted,
    pub warnings: Warnings,
    pub annotations: AuditAnnotations,
    /// The protocol upgrade that the client requests.
    pub upgrade: Option<Upgrade>,
    /// What may still be decoded for it.
    pub memory: RequestMemory,
}

/// The kind of a request's body.
pub(crate) struct BodyKind<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    /// Whether Go has a type for it, so that another kind is rejected before validation.
    pub typed: bool,
}

impl BodyKind<'_> {
    /// `group/version`, or `version` in the core group.
    pub fn api_version(&self) -> String {
        crate::registry::api_version(self.group, self.version)
    }
}

impl Call {
    pub fn endpoint(&self) -> Endpoint {
        if self.resource().custom().is_some() { Endpoint::Custom } else { Endpoint::BuiltIn }
    }

    pub fn resource(&self) -> &Arc<Resource> {
        self.route.resource()
    }

    pub fn verb(&self) -> Verb {
        self.route.verb()
    }

    /// Name of the subresource, or empty.
    pub fn subresource(&self) -> &str {
        self.route.subresource_name()
    }

    /// Name of the object, or empty.
    pub fn name(&self) -> &str {
        self.route.name()
    }

    /// Namespace of the objects; empty for cluster-scoped kinds and for all namespaces.
    pub fn namespace(&self) -> &str {
        self.route.namespace()
    }

    /// The same request for a subresource of its object.
    pub fn on(mut self, subresource: &str) -> Self {
        self.route = self.route.on(subresource);
        self
    }

    /// Store key of the object.
    pub fn key(&self) -> String {
        crate::object::key(self.namespace(), self.name())
    }

    pub fn kind(&self) -> GroupVersionKind {
        GroupVersionKind::new(
            self.resource().group.as_str(),
            self.resource().version.as_str(),
            self.resource().kind.as_str(),
        )
    }

    pub fn not_found(&self) -> Status {
        Status::not_found(&self.resource().group, &self.resource().plural, self.name())
    }

    pub fn conflict(&self, why: impl std::fmt::Display) -> Status {
        Status::conflict(&self.resource().group, &self.resource().plural, self.name(), why)
    }

    /// The field manager of a write.
    pub fn manager(&self, field_manager: &str) -> String {
        capstan_schema::apply::manager_name(field_manager, &self.user_agent)
    }

    /// Authorization attributes of this request with another verb.
    pub fn attributes(&self, verb: &str) -> Attributes {
        self.route.attributes(self.user.clone(), verb)
    }

    /// Admission attributes of this request.
    pub fn admission(
        &self,
        operation: Operation,
        object: Option<Value>,
        old_object: Option<Arc<Value>>,
        options: Value,
        dry_run: bool,
    ) -> AdmissionAttributes {
        let kind = self
            .route
            .subresource()
            .map(|s| GroupVersionKind::new(s.group.as_str(), s.version.as_str(), s.kind.as_str()))
            .unwrap_or_else(|| self.kind());
        let name = match self.name() {
            "" => object.as_ref().map(|o| o.name().to_owned()).unwrap_or_default(),
            name => name.to_owned(),
        };
        let is_namespace = strategy::is_namespace(self.resource());
        AdmissionAttributes {
            operation,
            kind,
            resource: GroupVersionResource::new(
                self.resource().group.as_str(),
                self.resource().version.as_str(),
                self.resource().plural.as_str(),
            ),
            subresource: self.subresource().to_owned(),
            namespace: if is_namespace { name.clone() } else { self.namespace().to_owned() },
            name,
            object,
            old_object,
            options: Some(options),
            dry_run,
            user: self.user.clone(),
            warnings: self.warnings.clone(),
            annotations: self.annotations.clone(),
            reinvocations: Reinvocations::default(),
        }
    }

    /// The kind of the body: an object of the resource, except for subresources with a body of their own.
    pub fn body_kind(&self) -> BodyKind<'_> {
        if self.subresource() == scale::NAME {
            return BodyKind { group: scale::GROUP, version: scale::VERSION, kind: scale::KIND, typed: true };
        }
        let resource = self.resource();
        let typed = resource.custom().is_none();
        match self.route.subresource() {
            // A subresource of another kind, like an Eviction.
            Some(own) if typed && own.kind != resource.kind => {
                BodyKind { group: &own.group, version: &own.version, kind: &own.kind, typed }
            }
            _ => BodyKind { group: &resource.group, version: &resource.version, kind: &resource.kind, typed },
        }
    }

    pub fn body_schema(&self) -> Arc<Schema> {
        let BodyKind { group, version, kind, typed } = self.body_kind();
        // A subresource may have a kind of its own.
        let own = (typed && kind != self.resource().kind).then(|| builtin::schema(group, version, kind));
        own.flatten().unwrap_or_else(|| self.resource().schema.clone())
    }

    /// Normalises a body of this request to its stored form; see [`strategy::normalise`].
    pub fn normalise(
        &self,
        words: Words,
        body: &mut Value,
        strict: &mut Texts,
    ) -> std::result::Result<(), Undecodable> {
        if self.subresource() == scale::NAME {
            strict.append(scale::normalise(words, body)?);
            return Ok(());
        }
        strategy::normalise_with(words, self.resource(), body, strict, self.memory.left())
    }

    /// Decodes a request body into an object of this resource: known fields only, defaulted.
    pub fn decode(&self, bytes: &Bytes, strictness: FieldValidation) -> Result<Value> {
        let encoding = negotiation::body(self.content_type.as_deref(), self.endpoint())?;
        self.decode_as(bytes, encoding, strictness)
    }

    /// Like [`Call::decode`], with the given encoding.
    pub fn decode_as(&self, bytes: &Bytes, encoding: Encoding, strictness: FieldValidation) -> Result<Value> {
        if encoding == Encoding::Json
            && self.subresource() != scale::NAME
            && let Some(object) = strategy::normalise_text(self.resource(), bytes, self.max_depth())
        {
            self.memory.keep_decoded(bytes, &object);
            return Ok(object);
        }
        let Decoded { mut value, duplicates, .. } = self.parse(bytes, encoding)?;
        self.expect_kind(&mut value, bytes)?;
        let mut strict = Texts::default();
        self.normalise(Words::Decoder, &mut value, &mut strict).map_err(|error| {
            let BodyKind { kind, version, .. } = self.body_kind();
            Status::undecodable(error, |why| {
                Status::bad_request(builtin::decode::bad_request(why, version, kind))
            })
        })?;
        // Duplicates are found before the object is compared with its type.
        let mut all = duplicates;
        all.append(strict);
        let count = |texts: &Texts| texts.entries().len() + texts.more();
        // Of a built-in kind both are found in the order of the text.
        if count(&all) > 1
            && encoding == Encoding::Json
            && self.resource().custom().is_none()
            && let Some(ordered) = strategy::strict_errors(self.resource(), bytes)
            && count(&ordered) == count(&all)
        {
            all = ordered;
        }
        self.apply_field_validation(all, strictness)?;
        Ok(value)
    }

    /// Applies `fieldValidation` to strict decoding errors: rejects, warns or ignores.
    pub fn apply_field_validation(&self, strict: Texts, strictness: FieldValidation) -> Result<()> {
        if strict.is_empty() {
            return Ok(());
        }
        match strictness {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => strict.into_lines().into_iter().for_each(|text| self.warn(&text)),
            FieldValidation::Strict => {
                let BodyKind { kind, version, .. } = self.body_kind();
                let why = format!("strict decoding error: {}", strict.join(", "));
                return Err(Status::bad_request(builtin::decode::bad_request(why, version, kind)));
            }
        }
        Ok(())
    }

    /// Adds a strict decoding error as a warning. Those of the YAML decoder have a line each, below a heading.
    pub fn warn(&self, text: &str) {
        let heading = text.starts_with("yaml: unmarshal errors:");
        text.lines().skip(usize::from(heading)).for_each(|line| self.warnings.add(line.trim()));
    }

    fn max_depth(&self) -> usize {
        if crate::crd::is_definition(self.resource()) { MAX_CRD_DEPTH } else { MAX_DEPTH }
    }

    /// A body as its client sent it, for the audit log; none if it cannot be parsed.
    pub fn body_as_sent(&self, bytes: &Bytes) -> Option<Value> {
        let kind = self.content_type.as_deref().unwrap_or_default();
        let encoding = match negotiation::body(Some(kind), self.endpoint()) {
            Ok(encoding) => encoding,
            Err(_) if kind.contains("yaml") => Encoding::Yaml,
            Err(_) => Encoding::Json,
        };
        self.parse_as(bytes, encoding).ok().map(|decoded| decoded.value)
    }

    /// Parses a body without interpreting it. Its memory is taken until the request ends.
    pub fn parse(&self, bytes: &Bytes, encoding: Encoding) -> Result<Decoded> {
        let parsed = self.parse_as(bytes, encoding).map_err(|error| {
            Status::undecodable(error, |why| self.unrecognized(bytes, &unparsed(encoding, &why)))
        })?;
        match encoding {
            Encoding::Protobuf => self.memory.keep_decoded(bytes, &parsed.value),
            Encoding::Json | Encoding::Yaml => self.memory.keep(parsed.memory),
        }
        Ok(parsed)
    }

    fn parse_as(&self, bytes: &Bytes, encoding: Encoding) -> std::result::Result<Decoded, Undecodable> {
        let max_depth = self.max_depth();
        match encoding {
            Encoding::Json => body::json(bytes, max_depth, self.memory.left()),
            Encoding::Yaml => body::yaml(bytes, max_depth, self.memory.left()),
            Encoding::Protobuf => {
                Ok(Decoded { value: builtin::protobuf::decode(bytes)?, ..Decoded::default() })
            }
        }
    }

    /// 400 for a body that is no object.
    fn unrecognized(&self, bytes: &[u8], why: &str) -> Status {
        let kind = self.body_kind().kind;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(bytes)
        ))
    }

    pub fn expect_kind(&self, value: &mut Value, bytes: &[u8]) -> Result<()> {
        let wanted = self.body_kind();
        if value.is_null() && wanted.typed {
            *value = Value::Object(Map::new());
        }
        let (api_version, kind) = type_of(value).map_err(|why| self.unrecognized(bytes, &why))?;
        if kind.is_empty() && !wanted.typed {
            let shown = cut(String::from_utf8_lossy(bytes), SHOWN_BODY);
            return Err(self.unrecognized(bytes, &format!("Object 'Kind' is missing in '{shown}'")));
        }
        if api_version.matches('/').count() > 1 {
            return Err(self.unrecognized(bytes, &format!("unexpected GroupVersion string: {api_version}")));
        }
        let expected = wanted.api_version();
        let given = if api_version.is_empty() && wanted.typed { &expected } else { &api_version };
        let (group, version) = given.split_once('/').unwrap_or(("", given));
        let known = kind.is_empty() || builtin::table::table().kind(group, version, &kind).is_some();
        if wanted.typed && !known {
            return Err(Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {}: {}",
                wanted.kind,
                not_registered(&kind, given)
            )));
        }
        // An object of another custom kind is left to validation.
        if !kind.is_empty() && kind != wanted.kind && wanted.typed {
            let package = match wanted.group {
                "" => "core",
                group => group.split('.').next().unwrap_or(group),
            };
            return Err(Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {0}: converting ({version}.{kind}) to \
                 ({package}.{0}): unknown conversion",
                wanted.kind
            )));
        }
        if *given != expected {
            return Err(Status::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            )));
        }
        value["apiVersion"] = expected.into();
        if kind.is_empty() {
            value["kind"] = wanted.kind.into();
        }
        Ok(())
    }

    /// Checks that an object's namespace matches the request's; sets it if absent.
    pub fn set_namespace(&self, object: &mut Value) -> Result<()> {
        let wanted = self.namespace();
        let namespace = object.namespace();
        if namespace == wanted {
            return Ok(());
        }
        if !namespace.is_empty() && !wanted.is_empty() {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        object.set_meta("namespace", wanted);
        Ok(())
    }
}

/// Upstream's text for a kind that it does not know.
pub(crate) fn not_registered(kind: &str, api_version: &str) -> String {
    format!(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )
}

/// Why a text could not be parsed. Upstream reads the type of a JSON object first, and says so.
pub(crate) fn unparsed(encoding: Encoding, why: &str) -> String {
    match encoding {
        Encoding::Json => format!("couldn't get version/kind; json parse error: {why}"),
        Encoding::Yaml | Encoding::Protobuf => why.to_owned(),
    }
}

/// `apiVersion` and `kind` of a body, as Go decodes them.
pub(crate) fn type_of(value: &Value) -> std::result::Result<(String, String), String> {
    let wrong = |found: &Value, place: &str| {
        unparsed(Encoding::Json, &format!("json: cannot unmarshal {} into Go {place}", go_type(found)))
    };
    let text = |key: &str| match value.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong(other, &format!("struct field .{key} of type string"))),
    };
    match value {
        Value::Object(_) => {
            let kind = text("kind")?;
            Ok((text("apiVersion")?, kind))
        }
        Value::Null => Ok((String::new(), String::new())),
        other => {
            const TYPE: &str = "value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                                Kind string \"json:\\\"kind,omitempty\\\"\" }";
            Err(wrong(other, TYPE))
        }
    }
}

/// The name of a JSON type in the messages of Go's decoder.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The beginning of a body for an error message: text if it looks like JSON, hexadecimal otherwise.
fn summary(bytes: &[u8]) -> String {
    const SHOWN: usize = 30;
    let shown = &bytes[..bytes.len().min(SHOWN)];
    let text = match bytes.first() {
        None => return "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|b| format!("{b:02x}")).collect(),
    };
    if bytes.len() > SHOWN { format!("{text} ...") } else { text }
}
