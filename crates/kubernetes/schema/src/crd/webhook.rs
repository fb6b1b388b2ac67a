//! Validates conversion between versions and its webhook.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Options;
use super::props::Props;
use super::view::Spec;
use crate::field::{FieldError, FieldErrors};
use crate::golang::quote;
use crate::meta;
use crate::path::Path;

const RECOGNIZED: [&str; 2] = ["v1", "v1beta1"];

/// Whether a CRD names a supported version of conversion reviews, or none.
pub fn has_recognized_version_or_none(spec: &Spec<'_>) -> bool {
    let webhook = spec.props.schema("conversion").and_then(|c| c.schema("webhook"));
    let versions = webhook.map(|w| w.texts("conversionReviewVersions")).unwrap_or_default();
    versions.is_empty() || versions.iter().any(|v| RECOGNIZED.contains(v))
}

fn client_config<'a>(spec: &Spec<'a>) -> Option<Props<'a>> {
    spec.props.schema("conversion")?.schema("webhook")?.schema("clientConfig")
}

/// Whether a CRD has invalid CA bundles.
pub fn has_invalid_ca_bundle(spec: &Spec<'_>) -> bool {
    let bundle = client_config(spec).map(|config| config.text("caBundle")).unwrap_or_default();
    !bundle.is_empty() && ca_bundle_error(bundle).is_some()
}

fn ca_bundle_error(bundle: &str) -> Option<&'static str> {
    let decoded = STANDARD.decode(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&decoded);
    (!text.contains("-----BEGIN CERTIFICATE-----"))
        .then_some("unable to load root certificates: unable to parse bytes as PEM block")
}

/// Validates `spec.conversion`. Errors use the field names of the internal type.
pub fn validate(conversion: Option<Props<'_>>, options: &Options<'_>, path: &Path<'_>) -> FieldErrors {
    let Some(conversion) = conversion else { return FieldErrors::new() };
    let mut out = FieldErrors::new();
    let strategy = conversion.text("strategy");
    match strategy {
        "" => out.push(FieldError::required(path.field("strategy"), "")),
        "None" | "Webhook" => {}
        other => out.push(FieldError::not_supported(path.field("strategy"), other, &["None", "Webhook"])),
    }
    let webhook = conversion.schema("webhook");
    let config = webhook.and_then(|webhook| webhook.schema("clientConfig"));
    let versions = webhook.map(|webhook| webhook.texts("conversionReviewVersions")).unwrap_or_default();
    let (config_path, versions_path) =
        (path.field("webhookClientConfig"), path.field("conversionReviewVersions"));
    if strategy != "Webhook" {
        const DETAIL: &str = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            out.push(FieldError::forbidden(config_path, DETAIL));
        }
        if !versions.is_empty() {
            out.push(FieldError::forbidden(versions_path, DETAIL));
        }
        return out;
    }
    match config {
        None => out.push(FieldError::required(config_path, "required when strategy is set to Webhook")),
        Some(config) => {
            match (config.optional_text("url"), config.schema("service")) {
                (Some(target), None) => out.extend(url(target, &config_path.field("url"))),
                (None, Some(target)) => out.extend(service(target, &config_path.field("service"))),
                _ => out.push(FieldError::required(config_path, "exactly one of url or service is required")),
            }
            let bundle = config.text("caBundle");
            if let (false, false, Some(error)) =
                (bundle.is_empty(), options.allow_invalid_ca_bundle, ca_bundle_error(bundle))
            {
                out.push(FieldError::invalid(config_path.field("caBundle"), bundle, error));
            }
        }
    }
    out.extend(review_versions(&versions, options.require_recognized_review_version, &versions_path));
    out
}

fn review_versions(versions: &[&str], require_recognized: bool, path: &Path<'_>) -> FieldErrors {
    if versions.is_empty() {
        return [FieldError::required(path, "")].into();
    }
    let mut out = FieldErrors::new();
    let mut seen = HashSet::with_capacity(versions.len());
    for (index, version) in versions.iter().enumerate() {
        if !seen.insert(version) {
            out.push(FieldError::invalid(path.index(index), *version, "duplicate version"));
            continue;
        }
        for message in meta::dns1035_label(version) {
            out.push(FieldError::invalid(path.index(index), *version, message));
        }
    }
    if require_recognized && !versions.iter().any(|v| RECOGNIZED.contains(v)) {
        out.push(FieldError::invalid(
            path,
            versions.to_vec(),
            format!("must include at least one of {}", RECOGNIZED.join(", ")),
        ));
    }
    out
}

fn url(text: &str, path: &Path<'_>) -> FieldErrors {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut out = FieldErrors::new();
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && !scheme.contains('/') =>
        {
            (scheme.to_lowercase(), rest)
        }
        _ => (String::new(), rest),
    };
    let authority = rest.strip_prefix("//").map(|a| a.split('/').next().unwrap_or_default());
    let authority = authority.unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let port = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map(|(_, port)| port);
    if let Some(port) = port.filter(|port| !port.bytes().all(|b| b.is_ascii_digit())) {
        let wrong = format!("parse {}: invalid port {} after host", quote(text), quote(&format!(":{port}")));
        out.push(FieldError::required(path, format!("url must be a valid URL: {wrong}{FORM}")));
        return out;
    }
    if scheme != "https" {
        out.push(FieldError::invalid(path, scheme, format!("'https' is the only allowed URL scheme{FORM}")));
    }
    if host.is_empty() {
        out.push(FieldError::invalid(path, host, format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        out.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        out.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        out.push(FieldError::invalid(path, query, "query parameters are not permitted in the URL"));
    }
    out
}

fn service(service: Props<'_>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    // Upstream swaps name and namespace here, so each is reported as the other.
    for (reported, key) in [("name", "namespace"), ("namespace", "name")] {
        if service.text(key).is_empty() {
            out.push(FieldError::required(path.field(reported), ""));
        }
    }
    let port = service.integer("port").unwrap_or_default();
    if !(1..=65_535).contains(&port) {
        out.push(FieldError::invalid(
            path.field("port"),
            port,
            "port is not valid: must be between 1 and 65535, inclusive",
        ));
    }
    let Some(url_path) = service.get("path").and_then(Value::as_str) else { return out };
    let field = path.field("path");
    match url_path {
        "" | "/" => return out,
        "//" => {
            out.push(FieldError::invalid(field, url_path, "segment[0] may not be empty"));
            return out;
        }
        _ => {}
    }
    if !url_path.starts_with('/') {
        out.push(FieldError::invalid(field, url_path, "must start with a '/'"));
    }
    let mut chars = url_path.chars();
    chars.next();
    let segments = chars.as_str();
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    for (index, segment) in segments.split('/').enumerate() {
        if segment.is_empty() {
            out.push(FieldError::invalid(field, url_path, format!("segment[{index}] may not be empty")));
            continue;
        }
        for message in meta::dns1123_subdomain(segment) {
            out.push(FieldError::invalid(field, url_path, format!("segment[{index}]: {message}")));
        }
    }
    out
}
