//! Non-resource paths: discovery, OpenAPI, version, health, metrics and backups.

use std::sync::Arc;

use ::http::{HeaderValue, Method, StatusCode, header, request};
use bytes::Bytes;

use crate::auth::{Attributes, MASTERS, User, forbidden};
use crate::discovery::Document;
use crate::http::info::RequestInfo;
use crate::http::options::Query;
use crate::negotiation::{self, Encoding, Endpoint};
use crate::parts::ServerParts;
use crate::registry::Registry;
use crate::reply::{self, Reply, ReplyBody};
use crate::status::{Result, Status};
use crate::{backup, discovery, health, metrics, openapi, respond, route};
use serde_json::json;

/// Serves a non-resource path.
pub(crate) async fn serve(
    server: &ServerParts,
    head: &request::Parts,
    info: &RequestInfo,
    user: &Arc<User>,
) -> Result<Reply> {
    let header_text = |name| head.headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok());
    let accept = header_text(header::ACCEPT);
    let path = info.path.trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let registry = server.registry.load_full();
    if head.method != Method::GET && is_routed(&parts, &registry) {
        return Err(route::method_not_allowed());
    }
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", rest @ ..] => {
            return Ok(health::serve(server, head, parts[0], rest));
        }
        ["metrics"] => {
            let content_type = "text/plain; version=0.0.4; charset=utf-8";
            let body = ReplyBody::full(metrics::expose(server));
            return Ok(reply::with_type(StatusCode::OK, content_type, body));
        }
        [".well-known", "openid-configuration"] => {
            // The issuer's keys are served by this server, under the host that the client used.
            let host = header_text(header::HOST).unwrap_or("127.0.0.1");
            let value = server.authenticator.tokens().openid_configuration(&format!("https://{host}"));
            return Ok(openid_reply("application/json", &value.map_err(Status::internal)?));
        }
        ["openid", "v1", "jwks"] => {
            let value = server.authenticator.tokens().key_set().map_err(Status::internal)?;
            return Ok(openid_reply("application/jwk-set+json", &value));
        }
        ["capstan", "v1", "backup"] if head.method == Method::GET => return backup(server, info, user),
        ["version"] => {
            // The only form of it; the router knows no other.
            if !negotiation::accepts_json(accept) {
                return Err(negotiation::not_acceptable_by_router(&[negotiation::JSON]));
            }
            let value: serde_json::Value =
                serde_json::from_slice(&discovery::version()).map_err(Status::internal)?;
            let text = serde_json::to_string_pretty(&value).map_err(Status::internal)?;
            return Ok(reply::json_bytes(StatusCode::OK, text));
        }
        _ => {}
    }
    let if_none_match = header_text(header::IF_NONE_MATCH);
    match parts.as_slice() {
        ["openapi", "v2"] => {
            let encoding = openapi::accept_v2(accept)
                .ok_or_else(|| Status::not_acceptable("OpenAPI v2 is to be had as application/json"))?;
            let document = server.openapi.v2(&registry, encoding);
            let content_type = match encoding {
                openapi::Encoding::Json => "application/json",
                openapi::Encoding::Protobuf => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            };
            Ok(document_reply(content_type, &document, if_none_match))
        }
        ["openapi", "v3"] => {
            let document = server.openapi.v3_index(&registry);
            Ok(document_reply("application/json", &document, if_none_match))
        }
        ["openapi", "v3", rest @ ..] => {
            if !openapi::accepts_v3(accept) {
                return Err(Status::not_acceptable("OpenAPI v3 is to be had as application/json"));
            }
            let path = rest.join("/");
            let Some(document) = server.openapi.v3(&registry, &path) else {
                let mut reply =
                    reply::with_type(StatusCode::NOT_FOUND, negotiation::JSON, ReplyBody::full(""));
                reply.headers_mut().remove(header::CONTENT_TYPE);
                return Ok(reply);
            };
            let query = Query::parse(head.uri.query());
            let hash = query.get("hash").filter(|hash| !hash.is_empty());
            if hash.is_some_and(|hash| hash != document.hash) {
                return moved(&openapi::location(&path, &document.hash));
            }
            let mut reply = document_reply("application/json", &document, if_none_match);
            if hash.is_some() {
                // The URL contains the hash of the content, so it can be cached forever.
                let headers = reply.headers_mut();
                headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            }
            Ok(reply)
        }
        [root @ ("api" | "apis")] if negotiation::wants_aggregated_discovery(accept).is_some() => {
            let pages = server.discovery.pages(&registry);
            let document = if *root == "api" { pages.aggregated_core() } else { pages.aggregated_groups() };
            Ok(document_reply(discovery::AGGREGATED_MEDIA_TYPE, &document, if_none_match))
        }
        _ => {
            let pages = server.discovery.pages(&registry);
            let bytes = match parts.as_slice() {
                [] => Some(paths(&registry)),
                ["api"] => {
                    // HTTP/2 has the address in the URI.
                    let authority = head.uri.authority().map(http::uri::Authority::as_str);
                    let address = header_text(header::HOST).or(authority);
                    Some(pages.core_versions(address.unwrap_or("127.0.0.1")))
                }
                ["apis"] => Some(pages.groups()),
                ["api", version] => pages.resources("", version),
                ["apis", group] => pages.group(group),
                ["apis", group, version] => pages.resources(group, version),
                _ => None,
            };
            let Some(bytes) = bytes else { return route::not_found(info) };
            if parts.is_empty() {
                return Ok(reply::json_bytes(StatusCode::OK, respond::indented(bytes.trim_ascii_end())));
            }
            let mut accepted = if is_routed(&parts, &registry) {
                negotiation::accept_routed(accept)?
            } else {
                negotiation::accept(accept, Endpoint::Document)?
            };
            accepted.pretty |= negotiation::pretty(head.uri.query(), header_text(header::USER_AGENT));
            if accepted.encoding == Encoding::Json && !accepted.pretty {
                return Ok(reply::json_bytes(StatusCode::OK, bytes));
            }
            let value = serde_json::from_slice(&bytes).map_err(Status::internal)?;
            respond::encode_as(accepted, StatusCode::OK, &value)
        }
    }
}

/// Whether upstream serves a path by its router, which knows only GET. Its other handlers do not look at the method.
fn is_routed(parts: &[&str], registry: &Registry) -> bool {
    let served = |group: &str, version: &str| {
        let mut groups = registry.groups.iter().filter(|known| known.name == group);
        groups.any(|known| known.versions.iter().any(|known| known == version))
    };
    match parts {
        ["version"] | ["api"] | [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"] => true,
        ["capstan", "v1", "backup"] => true,
        ["api", version] => served("", version),
        ["apis", group, version] => route::is_builtin_group(group) && served(group, version),
        _ => false,
    }
}

/// The index of paths, for people with a browser.
fn paths(registry: &Registry) -> Bytes {
    let mut paths =
        ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis"].map(str::to_owned).to_vec();
    for group in registry.groups.iter().filter(|g| !g.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|v| format!("/apis/{}/{v}", group.name)));
    }
    for endpoint in health::ENDPOINTS {
        paths.push(format!("/{endpoint}"));
        paths.extend(health::checks(endpoint).map(|check| format!("/{endpoint}/{check}")));
    }
    paths
        .extend(["/metrics", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/version"].map(str::to_owned));
    paths.sort();
    reply::line(&json!({ "paths": paths }))
}

fn document_reply(content_type: &'static str, document: &Document, if_none_match: Option<&str>) -> Reply {
    let mut reply = if document.matches(if_none_match) {
        reply::with_type(StatusCode::NOT_MODIFIED, content_type, ReplyBody::full(""))
    } else {
        reply::with_type(StatusCode::OK, content_type, ReplyBody::full(document.body.clone()))
    };
    let headers = reply.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(&document.etag()) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    reply
}

/// A backup of everything including keys. Only for members of `system:masters`, whatever the stored policy allows.
fn backup(server: &ServerParts, info: &RequestInfo, user: &Arc<User>) -> Result<Reply> {
    if !user.in_group(MASTERS) {
        let attributes = Attributes {
            user: user.clone(),
            verb: info.verb.clone(),
            path: info.path.clone(),
            ..Attributes::default()
        };
        return Err(forbidden(
            &attributes,
            &format!("a backup holds the server's keys and is for {MASTERS}"),
        ));
    }
    let taken = backup::take(&server.store, &server.pki).map_err(Status::internal)?;
    let body = ReplyBody::stream(futures::stream::iter(taken));
    Ok(reply::with_type(StatusCode::OK, "application/octet-stream", body))
}

/// Redirects from the URL of older content.
fn moved(location: &str) -> Result<Reply> {
    let mut reply = reply::with_type(StatusCode::MOVED_PERMANENTLY, "application/json", ReplyBody::full(""));
    let location = HeaderValue::from_str(location).map_err(Status::internal)?;
    reply.headers_mut().insert(header::LOCATION, location);
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    Ok(reply)
}

/// Documents for verifiers of ServiceAccount tokens, cacheable for an hour as upstream.
fn openid_reply(content_type: &'static str, value: &serde_json::Value) -> Reply {
    let mut reply = reply::with_type(StatusCode::OK, content_type, ReplyBody::full(value.to_string()));
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    reply
}
