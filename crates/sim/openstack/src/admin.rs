//! Control of the simulator beside the APIs: faults and reports, under `/sim/`. No real cloud has these paths.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::simulator::Simulator;

/// Answers a request under `/sim/`; others are not ours.
pub(crate) fn answer(simulator: &Simulator, request: &Request<Bytes>) -> Option<Response<Bytes>> {
    let path = request.uri().path().strip_prefix("/sim/")?;
    let (status, body) = match (request.method(), path) {
        (&Method::GET, "faults") => (StatusCode::OK, json!(simulator.faults())),
        (&Method::POST, "faults") => match serde_json::from_slice::<Fault>(request.body()) {
            Ok(fault) => match simulator.inject(fault) {
                Ok(()) => (StatusCode::CREATED, json!({})),
                Err(error) => (StatusCode::NOT_FOUND, json!({"error": error.to_string()})),
            },
            Err(error) => (StatusCode::BAD_REQUEST, json!({"error": error.to_string()})),
        },
        (&Method::DELETE, "faults") => {
            simulator.heal();
            (StatusCode::OK, json!({}))
        }
        (&Method::GET, "leaks") => {
            let query = request.uri().query().unwrap_or_default();
            let project = query.split('&').find_map(|pair| pair.strip_prefix("project="));
            (StatusCode::OK, json!(simulator.leaks(project)))
        }
        (&Method::GET, "calls") => (StatusCode::OK, json!(simulator.calls())),
        (&Method::GET, "dump") => (StatusCode::OK, simulator.dump()),
        (&Method::PUT, "dump") => {
            let restored = serde_json::from_slice(request.body()).map_err(|error| error.to_string());
            match restored.and_then(|dump| simulator.restore(dump).map_err(|error| error.to_string())) {
                Ok(()) => (StatusCode::OK, json!({})),
                Err(error) => (StatusCode::BAD_REQUEST, json!({"error": error})),
            }
        }
        _ => {
            let paths =
                "GET, POST or DELETE /sim/faults, GET /sim/leaks, GET /sim/calls, GET or PUT /sim/dump";
            (StatusCode::NOT_FOUND, json!({"error": paths}))
        }
    };
    Some(json_response(status, &body))
}

fn json_response(status: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
