//! Error bodies: each service has its own.

use std::time::Duration;

use http::{HeaderMap, header};
use serde_json::Value;

use crate::error::{Class, Refusal};
use crate::service::Service;

/// Longest error text that is kept.
const LONGEST_TEXT: usize = 1024;
/// Longest error body that is looked at: tracebacks and pages of proxies are longer, and say no more.
const LONGEST_BODY: usize = 64 * 1024;

/// What an error body says: the service's word for it and its text.
struct Message {
    fault: String,
    text: String,
    /// The body has a shape in which the service speaks of its things. Unknown paths and proxies have others.
    of_a_thing: bool,
}

/// Reads the answer to a request that was refused.
pub fn read_refusal(service: Service, status: u16, headers: &HeaderMap, body: &[u8]) -> Refusal {
    let said = said(service, body);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let request_id = header("x-openstack-request-id").or_else(|| header("x-compute-request-id"));
    let retry_after = header(header::RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    Refusal {
        status,
        class: class(service, status, &said),
        fault: said.fault,
        text: said.text,
        request_id: request_id.map(|id| tidy(id).chars().take(80).collect()),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

fn said(service: Service, body: &[u8]) -> Message {
    let nothing = || Message { fault: String::new(), text: String::new(), of_a_thing: false };
    let json: Option<Value> =
        (body.len() <= LONGEST_BODY).then(|| serde_json::from_slice(body).ok()).flatten();
    let Some(Value::Object(fields)) = json else {
        return nothing();
    };
    let text = |value: &Value| tidy(value.as_str().unwrap_or_default());
    let said = |fault: &str, text: String, of_a_thing| Message { fault: tidy(fault), text, of_a_thing };
    if let Some(error) = fields.get("NeutronError") {
        // Extensions answer with a bare text.
        let message = error.get("message").unwrap_or(error);
        let kind = error["type"].as_str().unwrap_or_default();
        return said(kind, text(message), kind != "HTTPNotFound");
    }
    if let Some(error) = fields.get("error").filter(|error| error.is_object()) {
        return said("", text(&error["message"]), true);
    }
    if let Some(fault) = fields.get("faultstring") {
        return said("", text(fault), true);
    }
    if let Some(error) = fields.get("errors").and_then(|errors| errors.get(0)) {
        let detail = error.get("detail").or_else(|| error.get("description")).unwrap_or(&Value::Null);
        return said("", text(detail), true);
    }
    if let Some(message) = fields.get("message") {
        let text = text(message);
        let of_a_thing = service == Service::Image && text != "The resource could not be found.";
        return said("", text, of_a_thing);
    }
    if let Some(description) = fields.get("description") {
        return said("", text(description), false);
    }
    match fields.iter().find(|(_, fault)| fault.get("message").is_some()) {
        Some((name, fault)) => said(name, text(&fault["message"]), true),
        None => nothing(),
    }
}

fn class(service: Service, status: u16, said: &Message) -> Class {
    let has = |words: &[&str]| words.iter().any(|word| said.text.contains(word));
    match status {
        401 => Class::Credentials,
        403 if has(&["Quota exceeded", "Quota has been met", "quota exceeded", "Maximum number of"]) => {
            Class::Quota
        }
        // Limits that Keystone keeps for the services.
        403 if has(&["is over a limit"]) => Class::Quota,
        // The policy of flavors without a disk is an administrator's; the request is what can be changed.
        403 if service == Service::Compute && has(&["Only volume-backed servers"]) => Class::Parameter,
        403 => Class::Permission,
        // The thing that the request is about is there; what it would need is not.
        404 if said.fault == "ExternalGatewayForFloatingIPNotFound" => Class::Parameter,
        404 if said.of_a_thing => Class::NotFound,
        404 | 300..=399 => Class::Protocol,
        // Cinder refuses in one long text what another state would allow.
        400 if service == Service::BlockStorage && has(&["status must be"]) => Class::Busy,
        400 if service == Service::LoadBalancer && has(&["has children"]) => Class::InUse,
        406 | 501 | 505 => Class::Unsupported,
        409 => conflict(service, said),
        413 if service == Service::BlockStorage || has(&["uota"]) => Class::Quota,
        413 | 429 => Class::RateLimited,
        502..=504 => Class::Unavailable,
        500.. => Class::Internal,
        _ => Class::Parameter,
    }
}

fn conflict(service: Service, said: &Message) -> Class {
    let has = |words: &[&str]| words.iter().any(|word| said.text.contains(word));
    match service {
        Service::Network => match said.fault.as_str() {
            "OverQuota" => Class::Quota,
            "IpAddressGenerationFailure" | "NoNetworkAvailable" => Class::Capacity,
            "ExternalIpAddressExhausted" | "IpAddressGenerationFailureNoMatchingSubnet" => Class::Capacity,
            "IpAddressAlreadyAllocated" | "MacAddressInUse" | "FloatingIPPortAlreadyAssociated" => {
                Class::Exists
            }
            "RetryRequest" | "StateInvalid" | "RevisionNumberConstraintFailed" => Class::Busy,
            fault if fault.contains("InUse") => Class::InUse,
            fault if fault.contains("Exists") || fault.contains("Duplicate") => Class::Exists,
            _ => Class::Parameter,
        },
        Service::LoadBalancer if has(&["is immutable", "Invalid state"]) => Class::Busy,
        Service::LoadBalancer => Class::Exists,
        Service::Compute if has(&["already exists"]) => Class::Exists,
        Service::Compute if has(&["in use"]) => Class::InUse,
        Service::Compute if has(&["Multiple possible networks"]) => Class::Parameter,
        Service::Compute | Service::BlockStorage => Class::Busy,
        Service::Identity => Class::Exists,
        Service::Image if has(&["already exists", "duplicated"]) => Class::Exists,
        Service::Image if has(&["in use"]) => Class::InUse,
        Service::Image => Class::Parameter,
        Service::Placement => Class::Busy,
    }
}

/// Somebody else's text, fit for a line of a log: without line breaks, bounded.
pub(crate) fn tidy(text: &str) -> String {
    let bounded: String = text.chars().take(LONGEST_TEXT * 2).collect();
    let plain = bounded.replace("<br />", " ").replace("<br/>", " ");
    let mut tidy = String::new();
    for word in plain.split(|c: char| c.is_control() || c == ' ').filter(|word| !word.is_empty()) {
        if tidy.len() + word.len() > LONGEST_TEXT {
            tidy.push('…');
            break;
        }
        if !tidy.is_empty() {
            tidy.push(' ');
        }
        tidy += word;
    }
    tidy
}
