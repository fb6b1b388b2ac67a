//! The simulator's own API under `/sim/`: faults and counters. No real server has these paths.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::params::Params;
use crate::simulator::Simulator;

/// Answers a request under `/sim/`; others are not ours.
pub(crate) fn answer(simulator: &Simulator, request: &Request<Bytes>) -> Option<Response<Bytes>> {
    let path = request.uri().path().strip_prefix("/sim/")?;
    if (request.method(), path) == (&Method::POST, "call") {
        let form = String::from_utf8_lossy(request.body());
        return Some(simulator.call_as_root(Params::parse("", &form)));
    }
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
            let query = Params::parse(request.uri().query().unwrap_or_default(), "");
            (StatusCode::OK, json!(simulator.leaks(query.get("account"))))
        }
        (&Method::GET, "calls") => (StatusCode::OK, json!(simulator.calls())),
        _ => {
            let paths = "GET, POST or DELETE /sim/faults, GET /sim/leaks, GET /sim/calls, or POST /sim/call";
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
