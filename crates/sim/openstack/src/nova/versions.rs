//! Version documents and microversions. Cinder and Placement read theirs the same way.

use serde_json::{Value, json};

use crate::wire::{Call, Fail, Reply};

const NEWEST: &str = "2.103";

fn v2(call: &Call) -> Value {
    json!({
        "id": "v2.0", "status": "DEPRECATED", "version": "", "min_version": "", "updated": "2025-07-04T12:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/v2/", call.base)}],
    })
}

fn v21(call: &Call) -> Value {
    json!({
        "id": "v2.1", "status": "CURRENT", "version": NEWEST, "min_version": "2.1", "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": format!("{}/v2.1/", call.base)}],
    })
}

/// Version documents, which need no token.
pub(crate) fn open(call: &Call) -> Option<Reply> {
    let one = |mut version: Value, kind: &str| {
        if let Some(links) = version["links"].as_array_mut() {
            links.push(
                json!({"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}),
            );
        }
        let kind = format!("application/vnd.openstack.compute+json;version={kind}");
        version["media-types"] = json!([{"base": "application/json", "type": kind}]);
        json!({"version": version})
    };
    match call.segments().as_slice() {
        [] => Some(Reply::ok(json!({"versions": [v2(call), v21(call)]}))),
        ["v2"] => Some(Reply::ok(one(v2(call), "2"))),
        ["v2.1"] => Some(with_version(Reply::ok(one(v21(call), "2.1")), "compute", "2.1")),
        _ => None,
    }
}

/// The microversion that a request asks for.
pub(crate) fn negotiate(
    call: &Call,
    word: &str,
    least: (u32, u32),
    most: (u32, u32),
) -> Result<(u32, u32), Fail> {
    let Some(text) = asked(call, word) else { return Ok(least) };
    if text.eq_ignore_ascii_case("latest") {
        return Ok(most);
    }
    let parsed = text.split_once('.').and_then(|(major, minor)| {
        let plain = |part: &str| !part.starts_with('0') || part == "0";
        (plain(major) && plain(minor)).then_some(())?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    let Some(version) = parsed else {
        return Err(Fail::bad(format!(
            "API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum."
        )));
    };
    if version < least || version > most {
        return Err(Fail::new(
            406,
            "",
            format!(
                "Version {text} is not supported by the API. Minimum is {}.{} and maximum is {}.{}.",
                least.0, least.1, most.0, most.1
            ),
        ));
    }
    Ok(version)
}

/// The version asked for in the headers. Another service's word does not count.
pub(crate) fn asked(call: &Call, word: &str) -> Option<String> {
    let values = call.headers.get_all("openstack-api-version").iter().filter_map(|value| value.to_str().ok());
    let found = values.flat_map(|value| value.split(',')).find_map(|value| {
        let (service, version) = value.trim().split_once(' ')?;
        service.eq_ignore_ascii_case(word).then(|| version.trim().to_owned())
    });
    let legacy = || {
        (word == "compute").then(|| call.header("x-openstack-nova-api-version").map(str::to_owned)).flatten()
    };
    found.or_else(legacy)
}

/// A reply with the version that it is of.
pub(crate) fn with_headers(call: &Call, reply: Reply, word: &str) -> Reply {
    let version = match reply.status {
        // A version that cannot be read is not echoed, one that is not served is.
        400 if call.version == (0, 0) => return reply,
        406 if call.version == (0, 0) => asked(call, word).unwrap_or_default(),
        _ => format!("{}.{}", call.version.0, call.version.1),
    };
    with_version(reply, word, &version)
}

fn with_version(reply: Reply, word: &str, version: &str) -> Reply {
    let reply = reply.with("openstack-api-version", format!("{word} {version}"));
    match word {
        "compute" => reply
            .with("x-openstack-nova-api-version", version)
            .with("vary", "OpenStack-API-Version, X-OpenStack-Nova-API-Version"),
        _ => reply.with("vary", "OpenStack-API-Version"),
    }
}
