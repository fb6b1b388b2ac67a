//! Content negotiation: `Accept` and `Content-Type`.
//!
//! Upstream negotiates twice: its router compares plain media types for built-in kinds, then the handler evaluates
//! parameters. Custom resources skip the router, so their error texts differ.

mod clause;
mod content;
#[cfg(test)]
mod tests;

use clause::{Clause, Target, parse, target};
pub use content::{PatchKind, body, patch};

use crate::status::Status;

pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
/// Protobuf behind the `k8s\0` envelope.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
    /// Protobuf behind the `k8s\0` envelope.
    Protobuf,
}

impl Encoding {
    const ALL: [Encoding; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// The media type without parameters.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => YAML,
            Self::Protobuf => PROTOBUF,
        }
    }

    /// The media type of a watch: JSON streams have no parameter, the others have `stream=watch`.
    pub fn watch_media_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => "application/yaml;stream=watch",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    fn subtype(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Protobuf => "vnd.kubernetes.protobuf",
        }
    }

    fn streams(self) -> bool {
        self != Self::Yaml
    }
}

/// Version of the `meta.k8s.io` group of a transformation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// `meta.k8s.io/v1`
    V1,
    /// `meta.k8s.io/v1beta1`
    V1Beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The transformation of an object before it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Unchanged.
    Whole,
    /// A `Table`.
    Table(MetaVersion),
    /// `PartialObjectMetadata`: for single objects and watch events.
    Metadata(MetaVersion),
    /// `PartialObjectMetadataList`.
    MetadataList(MetaVersion),
}

/// The result of negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    pub encoding: Encoding,
    pub shape: Shape,
    /// Whether the header requests indented JSON (`pretty=1`).
    pub pretty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// One object, or a write, of a built-in kind.
    BuiltIn,
    /// List or watch of a built-in kind, whose route also offers `stream=watch` types.
    BuiltInCollection,
    /// Custom resources: no protobuf for complete objects.
    Custom,
    /// Discovery and other documents: no transformations.
    Document,
}

/// Negotiates a document of upstream's router, which compares plain media types as for built-in kinds.
pub fn accept_routed(header: Option<&str>) -> Result<Accepted, Status> {
    check_route_produces(header.unwrap_or(""), Endpoint::BuiltIn)?;
    accept(header, Endpoint::Document)
}

/// Negotiates a response. `header` is the first `Accept` header, if any.
pub fn accept(header: Option<&str>, endpoint: Endpoint) -> Result<Accepted, Status> {
    let header = header.unwrap_or("");
    if matches!(endpoint, Endpoint::BuiltIn | Endpoint::BuiltInCollection) {
        check_route_produces(header, endpoint)?;
    }
    choose(header, endpoint).ok_or_else(|| not_acceptable(&OBJECT_TYPES))
}

/// Negotiates the encoding of an error; `None` if the client accepts none that we have. Errors are never tables.
pub fn accept_error(header: Option<&str>, pretty: bool) -> Option<Accepted> {
    let mut accepted = choose(header.unwrap_or(""), Endpoint::Document)?;
    accepted.pretty |= pretty;
    Some(accepted)
}

/// Negotiates a watch. YAML cannot be streamed.
pub fn accept_watch(header: Option<&str>, endpoint: Endpoint) -> Result<Accepted, Status> {
    // As upstream, errors of the negotiation without a stream come first.
    let accepted = accept(header, endpoint)?;
    if accepted.encoding.streams() {
        return Ok(accepted);
    }
    Err(not_acceptable(&[
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
    ]))
}

/// Whether the client requests aggregated discovery for `/api` and `/apis`: any clause that names it wins, whatever
/// the order. Only `v2` is served; `v2beta1` is gone in 1.36.
pub fn wants_aggregated_discovery(header: Option<&str>) -> Option<Encoding> {
    let wanted = Target { group: "apidiscovery.k8s.io", version: "v2", kind: "APIGroupDiscoveryList" };
    parse(header?)
        .iter()
        .filter(|clause| target(clause) == Some(wanted))
        .find_map(|clause| [Encoding::Json, Encoding::Yaml].into_iter().find(|e| matches(clause, *e)))
}

/// The first media type that an `Accept` header accepts; the first one without a header.
pub fn first_accepted<T: Copy>(header: Option<&str>, offered: &[(&str, &str, T)]) -> Option<T> {
    let header = header.filter(|header| !header.is_empty()).unwrap_or("*/*");
    parse(header).iter().find_map(|clause| {
        let matching = offered.iter().find(|(kind, subtype, _)| {
            [*kind, "*"].contains(&clause.kind) && [*subtype, "*"].contains(&clause.subtype)
        });
        matching.map(|(_, _, value)| *value)
    })
}

/// Whether JSON is indented: by the `pretty` query parameter if given, otherwise for browsers and command-line tools.
pub fn pretty(query: Option<&str>, user_agent: Option<&str>) -> bool {
    let value = query.unwrap_or("").split('&').find_map(|pair| pair.strip_prefix("pretty="));
    if let Some(value) = value.filter(|v| !v.is_empty()) {
        return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = user_agent.unwrap_or("");
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

/// Media types of objects.
pub(crate) const OBJECT_TYPES: [&str; 3] = [JSON, YAML, PROTOBUF];

/// 406 of the handlers.
pub(crate) fn not_acceptable(offered: &[&str]) -> Status {
    Status::not_acceptable(format!("only the following media types are accepted: {}", offered.join(", ")))
}

/// Errors of upstream's router carry empty details.
fn from_router(mut status: Status) -> Status {
    status.details = Some(Box::default());
    status
}

/// The router's check: some clause must literally name a produced type or be `*/*`.
fn check_route_produces(header: &str, endpoint: Endpoint) -> Result<(), Status> {
    let mut produced = vec![JSON, YAML, PROTOBUF];
    if endpoint == Endpoint::BuiltInCollection {
        produced
            .extend(["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]);
    }
    let acceptable = header.is_empty()
        || header.split(',').any(|clause| {
            let media_type = bare(clause);
            media_type == "*/*" || produced.contains(&media_type)
        });
    if acceptable {
        return Ok(());
    }
    Err(not_acceptable_by_router(&produced))
}

/// 406 of upstream's router.
pub(crate) fn not_acceptable_by_router(produced: &[&str]) -> Status {
    from_router(Status::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {}",
        produced.join(", ")
    )))
}

/// Whether a client accepts JSON, as the router compares: literally, or anything.
pub fn accepts_json(header: Option<&str>) -> bool {
    let header = header.unwrap_or("");
    header.is_empty() || header.split(',').any(|clause| matches!(bare(clause), "*/*" | JSON))
}

/// The media type of a clause, without parameters.
fn bare(clause: &str) -> &str {
    clause.split(';').next().unwrap_or("").trim_matches(' ')
}

/// The best (clause, encoding): clauses by weight, encodings in the server's order.
fn choose(header: &str, endpoint: Endpoint) -> Option<Accepted> {
    if header.is_empty() {
        return Some(Accepted { encoding: Encoding::Json, shape: Shape::Whole, pretty: false });
    }
    let clauses = parse(header);
    let mut candidates = clauses.iter().flat_map(|clause| {
        Encoding::ALL.into_iter().filter_map(move |encoding| allowed(clause, encoding, endpoint))
    });
    candidates.next()
}

/// The result of a clause and an encoding, if the endpoint supports it.
fn allowed(clause: &Clause, encoding: Encoding, endpoint: Endpoint) -> Option<Accepted> {
    if !matches(clause, encoding) {
        return None;
    }
    for (key, value) in &clause.parameters {
        match *key {
            "stream" if !value.is_empty() && (!encoding.streams() || *value != "watch") => return None,
            "sv" if !value.is_empty() && (*value != "v1" || endpoint == Endpoint::Document) => return None,
            _ => {}
        }
    }
    let shape = match target(clause) {
        None => {
            if endpoint == Endpoint::Custom && encoding == Encoding::Protobuf {
                return None;
            }
            Shape::Whole
        }
        Some(_) if endpoint == Endpoint::Document => return None,
        Some(target) => shape(target, encoding)?,
    };
    let pretty = clause.parameters.iter().any(|(key, value)| *key == "pretty" && *value == "1");
    Some(Accepted { encoding, shape, pretty })
}

fn matches(clause: &Clause, encoding: Encoding) -> bool {
    match (clause.kind, clause.subtype) {
        ("*", "*") | ("application", "*") => true,
        ("application", subtype) => subtype == encoding.subtype(),
        _ => false,
    }
}

fn shape(target: Target, encoding: Encoding) -> Option<Shape> {
    let version = match (target.group, target.version) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
        _ => return None,
    };
    match target.kind {
        // Tables have no protobuf form.
        "Table" => (encoding != Encoding::Protobuf).then_some(Shape::Table(version)),
        "PartialObjectMetadata" => Some(Shape::Metadata(version)),
        "PartialObjectMetadataList" => Some(Shape::MetadataList(version)),
        _ => None,
    }
}
