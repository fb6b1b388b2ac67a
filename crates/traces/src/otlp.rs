//! OTLP's JSON: `ExportTraceServiceRequest` and its response.

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::layer::{Ended, Value};

/// What all spans of a process have in common.
#[derive(Debug, Clone)]
pub struct Resource {
    pub service_name: &'static str,
    pub service_version: &'static str,
    /// Unique among the replicas of a service.
    pub instance: String,
}

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The body of a request with these spans.
pub(crate) fn request(resource: &Resource, spans: &[Ended]) -> Vec<u8> {
    let attributes: Vec<Json> = [
        ("service.name", resource.service_name),
        ("service.version", resource.service_version),
        ("service.instance.id", &resource.instance),
    ]
    .iter()
    .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
    .collect();
    let scope = json!({"name": resource.service_name, "version": resource.service_version});
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
    .to_string()
    .into_bytes()
}

fn span(span: &Ended) -> Json {
    let attributes: Vec<Json> = span
        .attributes
        .iter()
        .map(|(key, value)| {
            let value = match value {
                Value::Text(text) => json!({"stringValue": text}),
                // 64 bits are text in the JSON of protobuf.
                Value::Integer(number) => json!({"intValue": number.to_string()}),
                Value::Bool(bool) => json!({"boolValue": bool}),
            };
            json!({"key": key, "value": value})
        })
        .collect();
    let mut json = json!({
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": attributes,
        "status": {},
    });
    if let Some(parent) = &span.parent {
        json["parentSpanId"] = parent.as_str().into();
    }
    if let Some(message) = &span.error {
        json["status"] = json!({"code": ERROR, "message": message});
    }
    json
}

fn nanoseconds(time: Timestamp) -> String {
    time.as_nanosecond().max(0).to_string()
}

/// How many spans a collector rejected although it accepted the request.
pub(crate) fn rejected(response: &[u8]) -> u64 {
    let response: Json = serde_json::from_slice(response).unwrap_or_default();
    let count = &response["partialSuccess"]["rejectedSpans"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_as_otlp_has_it() {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let ended = Ended {
            trace: "5b8efff798038103d269b633813fc60c".to_owned(),
            id: "eee19b7ec3c1b174".to_owned(),
            parent: Some("eee19b7ec3c1b173".to_owned()),
            name: "observe".to_owned(),
            start,
            end: start + std::time::Duration::from_millis(3),
            attributes: vec![("controller", Value::Text("machine".to_owned())), ("round", Value::Integer(2))],
            error: Some("E-X: no".to_owned()),
        };
        let resource = Resource { service_name: "s", service_version: "1", instance: "i".to_owned() };
        let body: Json = serde_json::from_slice(&request(&resource, &[ended])).unwrap();
        let all = &body["resourceSpans"][0];
        assert_eq!(
            all["resource"]["attributes"][2],
            json!({"key": "service.instance.id", "value": {"stringValue": "i"}})
        );
        assert_eq!(
            all["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "5b8efff798038103d269b633813fc60c",
                "spanId": "eee19b7ec3c1b174",
                "parentSpanId": "eee19b7ec3c1b173",
                "name": "observe",
                "kind": 1,
                "startTimeUnixNano": "1800000000000000000",
                "endTimeUnixNano": "1800000000003000000",
                "attributes": [
                    {"key": "controller", "value": {"stringValue": "machine"}},
                    {"key": "round", "value": {"intValue": "2"}},
                ],
                "status": {"code": 2, "message": "E-X: no"},
            })
        );
    }

    #[test]
    fn rejected_spans_are_counted_as_number_or_text() {
        for (text, wanted) in [
            ("{}", 0),
            ("", 0),
            (r#"{"partialSuccess":{"rejectedSpans":"3"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":4}}"#, 4),
        ] {
            assert_eq!(rejected(text.as_bytes()), wanted, "{text}");
        }
    }
}
