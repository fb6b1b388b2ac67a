use super::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn plain(encoding: Encoding) -> Accepted {
    Accepted { encoding, shape: Shape::Whole, pretty: false }
}

#[test]
fn accept_headers_of_real_clients_are_understood() {
    let table = Accepted { shape: Shape::Table(MetaVersion::V1), ..plain(Encoding::Json) };
    let metadata = Accepted { shape: Shape::Metadata(MetaVersion::V1), ..plain(Encoding::Protobuf) };
    let kubectl_get = format!("{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
    let cases: [(&str, Accepted); 9] = [
        ("", plain(Encoding::Json)),
        ("*/*", plain(Encoding::Json)),
        ("application/yaml", plain(Encoding::Yaml)),
        ("application/json;q=0.1, application/yaml;q=0.9", plain(Encoding::Yaml)),
        (&kubectl_get, table),
        ("application/vnd.kubernetes.protobuf,application/json", plain(Encoding::Protobuf)),
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
fn unacceptable_types_are_406_with_the_text_of_each_endpoint() {
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
    // The router accepts it, then the handler rejects it.
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
    assert_eq!(accept_watch(Some(header), Endpoint::BuiltInCollection).unwrap(), plain(Encoding::Protobuf));
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
fn body_types_are_distinguished() {
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
