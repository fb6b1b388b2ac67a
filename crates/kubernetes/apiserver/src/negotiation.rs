//! What a client wants back (`Accept`) and what it sent (`Content-Type`).
//!
//! Upstream negotiates twice: its router compares bare media types for built-in kinds, then the handler
//! weighs parameters. Custom resources skip the router, which is why their error texts differ.

use crate::status::Status;

/// JSON.
pub const JSON: &str = "application/json";
/// YAML.
pub const YAML: &str = "application/yaml";
/// Protobuf behind the `k8s\0` envelope.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How bytes are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// JSON.
    Json,
    /// YAML.
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

    /// The media type of a watch: JSON streams carry no parameter, the others say `stream=watch`.
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

/// Version of the `meta.k8s.io` group a transformation is asked in.
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

/// What an object is turned into before it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Sent as it is.
    Whole,
    /// A `Table`.
    Table(MetaVersion),
    /// `PartialObjectMetadata`: single objects and watch events.
    Metadata(MetaVersion),
    /// `PartialObjectMetadataList`.
    MetadataList(MetaVersion),
}

/// What a client accepts, decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// How the answer is encoded. [`Encoding::Protobuf`] only if the client takes nothing else.
    pub encoding: Encoding,
    /// What the answer looks like.
    pub shape: Shape,
    /// Indented JSON was asked for in the header (`pretty=1`).
    pub pretty: bool,
}

/// What kind of endpoint negotiates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// One object, or a write, of a built-in kind.
    BuiltIn,
    /// List or watch of a built-in kind, whose route also offers `stream=watch` types.
    BuiltInCollection,
    /// Custom resources: no protobuf for whole objects.
    Custom,
    /// Discovery and other documents: no transformations.
    Document,
}

/// One clause of an `Accept` header.
#[derive(Debug, PartialEq)]
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// A `group/version, Kind=` that a clause asks to convert to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Target<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// Decides what to answer with. `header` is the first `Accept` header, if any.
pub fn accept(header: Option<&str>, endpoint: Endpoint) -> Result<Accepted, Status> {
    let header = header.unwrap_or("");
    if matches!(endpoint, Endpoint::BuiltIn | Endpoint::BuiltInCollection) {
        check_route_produces(header, endpoint)?;
    }
    choose(header, endpoint, false).ok_or_else(|| not_acceptable(&OBJECT_TYPES))
}

/// Decides what to watch with. YAML has no stream form.
pub fn accept_watch(header: Option<&str>, endpoint: Endpoint) -> Result<Accepted, Status> {
    // The same header is weighed for a plain answer first: an error there comes first too.
    accept(header, endpoint)?;
    choose(header.unwrap_or(""), endpoint, true).filter(|accepted| accepted.encoding.streams()).ok_or_else(
        || {
            not_acceptable(&[
                "application/json;stream=watch",
                "application/vnd.kubernetes.protobuf;stream=watch",
            ])
        },
    )
}

/// Whether `/api` and `/apis` should answer with aggregated discovery: any clause that names it wins over
/// plain ones, whatever their order. Only `v2` is served; `v2beta1` is gone in 1.36.
pub fn wants_aggregated_discovery(header: Option<&str>) -> Option<Encoding> {
    let wanted = Target { group: "apidiscovery.k8s.io", version: "v2", kind: "APIGroupDiscoveryList" };
    parse(header?)
        .iter()
        .filter(|clause| target(clause) == Some(wanted))
        .find_map(|clause| [Encoding::Json, Encoding::Yaml].into_iter().find(|e| matches(clause, *e)))
}

/// The first of some documents' media types that an `Accept` header takes; anything is taken if it is absent.
pub fn first_accepted<T: Copy>(header: Option<&str>, offered: &[(&str, &str, T)]) -> Option<T> {
    let header = header.filter(|header| !header.is_empty()).unwrap_or("*/*");
    parse(header).iter().find_map(|clause| {
        let matching = offered.iter().find(|(kind, subtype, _)| {
            [*kind, "*"].contains(&clause.kind) && [*subtype, "*"].contains(&clause.subtype)
        });
        matching.map(|(_, _, value)| *value)
    })
}

/// Whether JSON should be indented: the `pretty` query parameter if given, else for browsers and
/// command-line tools.
pub fn pretty(query: Option<&str>, user_agent: Option<&str>) -> bool {
    let value = query.unwrap_or("").split('&').find_map(|pair| pair.strip_prefix("pretty="));
    if let Some(value) = value.filter(|v| !v.is_empty()) {
        return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = user_agent.unwrap_or("");
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

/// How a patch is to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Strategic merge; not for custom resources.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// The encoding of a request body. An absent or empty `Content-Type` means JSON.
pub fn body(content_type: Option<&str>, endpoint: Endpoint) -> Result<Encoding, Status> {
    let media_type = bare(content_type.unwrap_or("")).trim().to_ascii_lowercase();
    match media_type.as_str() {
        "" | JSON => Ok(Encoding::Json),
        YAML => Ok(Encoding::Yaml),
        // Upstream claims to accept protobuf for custom resources and then drops the connection.
        PROTOBUF if endpoint != Endpoint::Custom => Ok(Encoding::Protobuf),
        PROTOBUF => Err(unsupported(&[JSON, YAML])),
        _ => Err(unsupported(&[JSON, YAML, PROTOBUF])),
    }
}

/// The kind of a patch body.
pub fn patch(content_type: Option<&str>, endpoint: Endpoint) -> Result<PatchKind, Status> {
    const JSON_PATCH: &str = "application/json-patch+json";
    const MERGE: &str = "application/merge-patch+json";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    const APPLY: &str = "application/apply-patch+yaml";
    let custom = endpoint == Endpoint::Custom;
    match bare(content_type.unwrap_or("")) {
        JSON_PATCH => Ok(PatchKind::Json),
        MERGE => Ok(PatchKind::Merge),
        STRATEGIC if !custom => Ok(PatchKind::Strategic),
        APPLY => Ok(PatchKind::Apply),
        _ if custom => Err(unsupported(&[JSON_PATCH, MERGE, APPLY])),
        // Built-in kinds fail in upstream's router, which does not say what it would take.
        _ => Err(from_router(Status::unsupported_media_type("415: Unsupported Media Type"))),
    }
}

/// What objects can be encoded as.
pub(crate) const OBJECT_TYPES: [&str; 3] = [JSON, YAML, PROTOBUF];

/// 406 of the handlers.
pub(crate) fn not_acceptable(offered: &[&str]) -> Status {
    Status::not_acceptable(format!("only the following media types are accepted: {}", offered.join(", ")))
}

fn unsupported(accepted: &[&str]) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}

/// Errors of upstream's router carry empty details.
fn from_router(mut status: Status) -> Status {
    status.details = Some(Box::default());
    status
}

/// A media type without its parameters.
fn bare(content_type: &str) -> &str {
    match content_type.find(';') {
        Some(at) if at > 0 => &content_type[..at],
        _ => content_type,
    }
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
            let media_type = clause.split(';').next().unwrap_or("").trim_matches(' ');
            media_type == "*/*" || produced.contains(&media_type)
        });
    if acceptable {
        return Ok(());
    }
    Err(from_router(Status::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {}",
        produced.join(", ")
    ))))
}

/// The best (clause, encoding), clauses by weight, encodings in the server's order. Protobuf is replaced
/// by JSON if another clause takes the same shape as JSON, but for metadata.
fn choose(header: &str, endpoint: Endpoint, watch: bool) -> Option<Accepted> {
    if header.is_empty() {
        return Some(Accepted { encoding: Encoding::Json, shape: Shape::Whole, pretty: false });
    }
    let clauses = parse(header);
    let mut candidates = clauses.iter().flat_map(|clause| {
        Encoding::ALL.into_iter().filter_map(move |encoding| allowed(clause, encoding, endpoint))
    });
    let first = candidates.next()?;
    // Metadata goes out as protobuf: clients that ask for it compare the types of items, which only JSON has.
    let metadata =
        matches!(first.shape, Shape::Metadata(MetaVersion::V1) | Shape::MetadataList(MetaVersion::V1));
    if first.encoding != Encoding::Protobuf || metadata {
        return Some(first);
    }
    let usable = |c: &Accepted| c.encoding == Encoding::Json || (!watch && c.encoding == Encoding::Yaml);
    Some(candidates.find(|other| other.shape == first.shape && usable(other)).unwrap_or(first))
}

/// What a clause and an encoding give together, if the endpoint allows it.
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

/// The conversion a clause asks for.
fn target<'a>(clause: &Clause<'a>) -> Option<Target<'a>> {
    let mut target = None;
    for (key, value) in &clause.parameters {
        match *key {
            "as" => target.get_or_insert(Target::default()).kind = value,
            "g" => target.get_or_insert(Target::default()).group = value,
            "v" => target.get_or_insert(Target::default()).version = value,
            _ => {}
        }
    }
    target
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

/// Clauses by descending weight, explicit types before wildcards. A malformed clause is skipped.
fn parse(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause> = header.split(',').filter_map(clause).collect();
    // Upstream's comparison is not an order (a lighter explicit type beats a heavier wildcard, but only
    // when they meet), so its insertion sort is part of the behaviour. Long headers get a real order.
    if clauses.len() <= 12 {
        for end in 1..clauses.len() {
            let mut at = end;
            while at > 0 && before(&clauses[at], &clauses[at - 1]) {
                clauses.swap(at, at - 1);
                at -= 1;
            }
        }
    } else {
        clauses.sort_by(|a, b| {
            b.quality
                .total_cmp(&a.quality)
                .then((a.kind == "*").cmp(&(b.kind == "*")))
                .then((a.subtype == "*").cmp(&(b.subtype == "*")))
        });
    }
    clauses
}

fn before(a: &Clause, b: &Clause) -> bool {
    a.quality > b.quality || (a.kind != "*" && b.kind == "*") || (a.subtype != "*" && b.subtype == "*")
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.trim_matches(' ').split(';');
    let media_type = parts.next()?;
    let (kind, subtype) = match media_type.split_once('/') {
        Some((_, rest)) if rest.contains('/') => return None,
        Some((kind, subtype)) if !subtype.is_empty() => (kind.trim_matches(' '), subtype.trim_matches(' ')),
        // A lone `*` is a wildcard; anything else without a subtype is malformed.
        _ if media_type.trim_matches([' ', '/']) == "*" => ("*", "*"),
        _ => return None,
    };
    let mut quality = 1.0;
    let mut parameters = Vec::new();
    for part in parts {
        let Some((key, value)) = part.split_once('=') else { continue };
        if value.is_empty() || value.contains('=') {
            continue;
        }
        match key.trim_matches(' ') {
            "q" => quality = value.parse().unwrap_or(0.0),
            key => parameters.push((key, value.trim_matches(' '))),
        }
    }
    Some(Clause { kind, subtype, quality, parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

    fn plain(encoding: Encoding) -> Accepted {
        Accepted { encoding, shape: Shape::Whole, pretty: false }
    }

    #[test]
    fn accept_headers_of_real_clients_are_understood() {
        let table = Accepted { shape: Shape::Table(MetaVersion::V1), ..plain(Encoding::Json) };
        let metadata = Accepted { shape: Shape::Metadata(MetaVersion::V1), ..plain(Encoding::Protobuf) };
        let kubectl_get =
            format!("{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
        let cases: [(&str, Accepted); 9] = [
            ("", plain(Encoding::Json)),
            ("*/*", plain(Encoding::Json)),
            ("application/yaml", plain(Encoding::Yaml)),
            ("application/json;q=0.1, application/yaml;q=0.9", plain(Encoding::Yaml)),
            (&kubectl_get, table),
            ("application/vnd.kubernetes.protobuf,application/json", plain(Encoding::Json)),
            ("application/vnd.kubernetes.protobuf", plain(Encoding::Protobuf)),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
                metadata,
            ),
            ("application/json;pretty=1", Accepted { pretty: true, ..plain(Encoding::Json) }),
        ];
        for (header, expected) in cases {
            assert_eq!(accept(Some(header), Endpoint::BuiltIn).unwrap(), expected, "{header}");
        }
    }

    #[test]
    fn an_unknown_transformation_falls_through_to_the_next_clause() {
        let header = "application/json;as=Chart;v=v1;g=meta.k8s.io, application/yaml";
        assert_eq!(accept(Some(header), Endpoint::Custom).unwrap(), plain(Encoding::Yaml));
    }

    #[test]
    fn what_cannot_be_served_is_406_in_the_words_of_each_family() {
        let message = |header, endpoint| accept(Some(header), endpoint).unwrap_err().message;
        let handlers = "only the following media types are accepted: \
                        application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_eq!(
            message("text/html", Endpoint::BuiltIn),
            "406: Not Acceptable\n\nAvailable representations: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
        assert!(message("text/html", Endpoint::BuiltInCollection).ends_with("protobuf;stream=watch"));
        assert_eq!(message("text/html", Endpoint::Custom), handlers);
        assert_eq!(message(PROTOBUF, Endpoint::Custom), handlers);
        assert_eq!(message("application/cbor", Endpoint::Custom), handlers);
        assert_eq!(message(TABLE, Endpoint::Document), handlers);
        // The router passes what the handler then refuses.
        assert_eq!(message("application/json;as=Chart;v=v1;g=meta.k8s.io", Endpoint::BuiltIn), handlers);
    }

    #[test]
    fn a_watch_has_no_yaml_form() {
        assert_eq!(
            accept_watch(Some(YAML), Endpoint::Custom).unwrap_err().message,
            "only the following media types are accepted: \
             application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        );
        let header = "application/json;stream=watch";
        assert_eq!(accept_watch(Some(header), Endpoint::Custom).unwrap(), plain(Encoding::Json));
        let header = "application/vnd.kubernetes.protobuf;stream=watch, application/json";
        assert_eq!(accept_watch(Some(header), Endpoint::BuiltInCollection).unwrap(), plain(Encoding::Json));
    }

    #[test]
    fn aggregated_discovery_wins_wherever_it_stands_and_only_in_v2() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        let client_go = format!("{v2},{v2beta1},application/json");
        assert_eq!(wants_aggregated_discovery(Some(&client_go)), Some(Encoding::Json));
        assert_eq!(wants_aggregated_discovery(Some(&format!("application/json,{v2}"))), Some(Encoding::Json));
        assert_eq!(wants_aggregated_discovery(Some(v2beta1)), None);
        assert_eq!(wants_aggregated_discovery(Some("application/json")), None);
        assert_eq!(wants_aggregated_discovery(None), None);
    }

    #[test]
    fn body_types_are_told_apart() {
        assert_eq!(body(None, Endpoint::Custom).unwrap(), Encoding::Json);
        assert_eq!(body(Some("application/json; charset=utf-8"), Endpoint::Custom).unwrap(), Encoding::Json);
        assert_eq!(body(Some("Application/YAML"), Endpoint::Custom).unwrap(), Encoding::Yaml);
        assert_eq!(body(Some(PROTOBUF), Endpoint::BuiltIn).unwrap(), Encoding::Protobuf);
        assert_eq!(body(Some(PROTOBUF), Endpoint::Custom).unwrap_err().code, 415);
        assert_eq!(
            body(Some("text/plain"), Endpoint::BuiltIn).unwrap_err().message,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
    }

    #[test]
    fn strategic_merge_is_for_built_in_kinds_only() {
        let strategic = Some("application/strategic-merge-patch+json");
        assert_eq!(patch(strategic, Endpoint::BuiltIn).unwrap(), PatchKind::Strategic);
        assert_eq!(
            patch(strategic, Endpoint::Custom).unwrap_err().message,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        );
        assert_eq!(
            patch(Some("application/json"), Endpoint::BuiltIn).unwrap_err().message,
            "415: Unsupported Media Type"
        );
        assert_eq!(
            patch(Some("application/apply-patch+yaml; charset=utf-8"), Endpoint::Custom).unwrap(),
            PatchKind::Apply
        );
    }

    #[test]
    fn people_get_indented_json() {
        assert!(pretty(None, Some("curl/8.0")));
        assert!(!pretty(Some("pretty=false"), Some("curl/8.0")));
        assert!(pretty(Some("limit=5&pretty=true"), Some("kubectl/v1.36.3")));
        assert!(!pretty(None, Some("kubectl/v1.36.3")));
    }
}
