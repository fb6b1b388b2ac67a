//! Certificate signing requests. The self-signature is left to signers.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::report::{Report, list, maybe_int, text, texts};

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) fn signing_request(subject: &Subject<'_>, report: &mut Report) {
    let update = std::mem::take(&mut report.errors);
    if subject.old.is_some() {
        subject.metadata(report);
    } else {
        report.errors.extend(update.clone());
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    request(spec, &path, report);
    let usages = texts(spec, "usages");
    let field = path.field("usages");
    if usages.is_empty() {
        report.required(field, "");
    }
    for (index, usage) in usages.iter().enumerate() {
        report.one_of(field.index(index), usage, &USAGES);
    }
    let mut seen = BTreeSet::new();
    for (index, usage) in usages.iter().enumerate() {
        if !seen.insert(usage) {
            report.duplicate(field.index(index), *usage);
        }
    }
    signer_name(text(spec, "signerName"), path.field("signerName"), report);
    if let Some(seconds) = maybe_int(spec, "expirationSeconds").filter(|s| *s < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        report.invalid(path.field("expirationSeconds"), seconds, detail);
    }
    conditions(subject.new, report);
    certificate(subject, report);
    if let Some(old) = subject.old {
        changes(subject, old, report);
        report.errors.extend(update);
    }
}

fn request(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let given = text(spec, "request");
    let pem = STANDARD.decode(given).unwrap_or_default();
    let pem = String::from_utf8_lossy(&pem);
    let body = pem
        .split_once("-----BEGIN CERTIFICATE REQUEST-----")
        .and_then(|(_, rest)| rest.split_once("-----END CERTIFICATE REQUEST-----"))
        .map(|(body, _)| body.chars().filter(|c| !c.is_whitespace()).collect::<String>())
        .and_then(|body| STANDARD.decode(body).ok());
    let field = path.field("request");
    let shown = spec.get("request").cloned().unwrap_or_default();
    match body {
        None => report.invalid(field, shown, "PEM block type must be CERTIFICATE REQUEST"),
        // Every request is an ASN.1 sequence.
        Some(der) if der.first() != Some(&0x30) => report.invalid(field, shown, "asn1: structure error"),
        Some(_) => {}
    }
}

fn signer_name(name: &str, path: Path<'_>, report: &mut Report) {
    if name.is_empty() {
        report.required(path, "");
        return;
    }
    if name == "kubernetes.io/legacy-unknown" {
        report.invalid(path, name, "the legacy signerName is not allowed via this API version");
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        report.invalid(path, name, detail);
        return;
    };
    // Only the first invalid part is reported.
    let mut odd = |whole: &str, check: fn(&str) -> Vec<String>| {
        let found =
            whole.split('.').map(|part| (part, check(part))).find(|(_, messages)| !messages.is_empty());
        for message in found.iter().flat_map(|(part, messages)| messages.iter().map(move |m| (part, m))) {
            report.invalid(path, whole, format!("validating label {:?}: {}", message.0, message.1));
        }
    };
    odd(domain, meta::dns1123_label);
    odd(rest, meta::dns1123_subdomain);
    if !domain.contains('.') {
        report.invalid(path, domain, "should be a domain with at least two segments separated by dots");
    }
}

fn conditions(csr: &Value, report: &mut Report) {
    let path = Path::at("status.conditions");
    let mut seen = BTreeSet::new();
    let mut decided = BTreeSet::new();
    for (index, condition) in list(&csr["status"], "conditions").iter().enumerate() {
        let item = path.index(index);
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        if kind.is_empty() {
            report.required(item.field("type"), "");
        }
        let only_true = ["Approved", "Denied", "Failed"].contains(&kind);
        let known: &[&str] = if only_true { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            report.required(item.field("status"), "");
        } else {
            report.one_of(item.field("status"), status, known);
        }
        if ["Approved", "Denied"].contains(&kind) {
            decided.insert(kind);
            if decided.len() == 2 {
                report.invalid(path, kind, "Approved and Denied conditions are mutually exclusive");
            }
        }
        if !seen.insert(kind) {
            report.duplicate(item.field("type"), kind);
        }
    }
}

/// A certificate that is set or changed must be one.
fn certificate(subject: &Subject<'_>, report: &mut Report) {
    let given = text(&subject.new["status"], "certificate");
    let before = subject.old.map(|old| text(&old["status"], "certificate"));
    if given.is_empty() || before == Some(given) {
        return;
    }
    let pem = STANDARD.decode(given).unwrap_or_default();
    if let Some(problem) = certificate_problem(&String::from_utf8_lossy(&pem)) {
        report.invalid(Path::at("status.certificate"), "<certificate data>", problem);
    }
}

fn certificate_problem(pem: &str) -> Option<String> {
    let mut blocks = 0;
    let mut rest = pem;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let Some((kind, after)) = after.split_once("-----") else { break };
        let Some((body, after)) = after.split_once(&format!("-----END {kind}-----")) else { break };
        if kind != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {kind:?}"));
        }
        if body.contains(':') {
            return Some("no PEM block headers are permitted".to_owned());
        }
        let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
        // Every certificate is an ASN.1 sequence.
        if STANDARD.decode(body).ok().is_none_or(|der| der.first() != Some(&0x30)) {
            return Some("x509: malformed certificate".to_owned());
        }
        blocks += 1;
        rest = after;
    }
    (blocks == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

fn changes(subject: &Subject<'_>, old: &Value, report: &mut Report) {
    let of = |csr: &Value, kind: &str| -> Vec<Value> {
        list(&csr["status"], "conditions").iter().filter(|c| text(c, "type") == kind).cloned().collect()
    };
    let path = Path::at("status.conditions");
    for kind in ["Approved", "Denied", "Failed"] {
        if of(subject.new, kind).len() < of(old, kind).len() {
            report.forbidden(path, format!("updates may not remove a condition of type {kind:?}"));
        }
    }
    if subject.subresource != "approval" {
        for kind in ["Approved", "Denied"] {
            let (after, before) = (of(subject.new, kind), of(old, kind));
            if after.len() > before.len() {
                report.forbidden(path, format!("updates may not add a condition of type {kind:?}"));
            } else if after.len() == before.len() && after != before {
                report.forbidden(path, format!("updates may not modify a condition of type {kind:?}"));
            }
        }
    }
    let (after, before) = (text(&subject.new["status"], "certificate"), text(&old["status"], "certificate"));
    if after != before {
        let path = Path::at("status.certificate");
        if subject.subresource != "status" {
            report.forbidden(path, "updates may not set certificate content");
        } else if !before.is_empty() {
            report.forbidden(path, "updates may not modify existing certificate content");
        }
    }
}
