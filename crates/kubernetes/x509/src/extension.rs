//! Extensions of a certificate.

use std::net::IpAddr;

use crate::der;

const SUBJECT_KEY_ID: &[u32] = &[2, 5, 29, 14];
const KEY_USAGE: &[u32] = &[2, 5, 29, 15];
/// OID of subjectAltName.
pub const SUBJECT_ALTERNATIVE_NAMES: &[u32] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u32] = &[2, 5, 29, 19];
/// OID of authorityKeyIdentifier.
pub const AUTHORITY_KEY_ID: &[u32] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u32] = &[2, 5, 29, 37];
/// Extended key usage: TLS server.
pub const SERVER_AUTH: &[u32] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
/// Extended key usage: TLS client.
pub const CLIENT_AUTH: &[u32] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];

/// Key usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// digitalSignature.
    DigitalSignature = 0,
    /// keyEncipherment.
    KeyEncipherment = 2,
    /// keyCertSign.
    CertificateSignature = 5,
}

fn extension(id: &[u32], critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::oid(id)];
    if critical {
        parts.push(der::boolean_true());
    }
    parts.push(der::octet_string(value));
    der::sequence(&parts)
}

pub fn key_usage(uses: &[KeyUse]) -> Vec<u8> {
    let bits: Vec<u8> = uses.iter().map(|&use_| use_ as u8).collect();
    extension(KEY_USAGE, true, &der::named_bits(&bits))
}

/// Whether the certificate is a CA's, and its path length.
pub fn basic_constraints(authority: bool, path_length: Option<u8>) -> Vec<u8> {
    let mut parts = Vec::new();
    if authority {
        parts.push(der::boolean_true());
        parts.extend(path_length.map(|length| der::integer(&[length])));
    }
    extension(BASIC_CONSTRAINTS, true, &der::sequence(&parts))
}

pub fn subject_key_id(id: &[u8]) -> Vec<u8> {
    extension(SUBJECT_KEY_ID, false, &der::octet_string(id))
}

pub fn authority_key_id(id: &[u8]) -> Vec<u8> {
    extension(AUTHORITY_KEY_ID, false, &der::sequence(&[der::implicit(0, id)]))
}

/// Extended key usages, such as [`CLIENT_AUTH`].
pub fn extended_key_usage(uses: &[&[u32]]) -> Vec<u8> {
    let uses: Vec<Vec<u8>> = uses.iter().map(|&use_| der::oid(use_)).collect();
    extension(EXTENDED_KEY_USAGE, false, &der::sequence(&uses))
}

pub fn subject_alternative_names(names: &[String]) -> Vec<u8> {
    extension(SUBJECT_ALTERNATIVE_NAMES, false, &alternative_names(names))
}

/// The value of [`subject_alternative_names`].
pub fn alternative_names(names: &[String]) -> Vec<u8> {
    let general = |name: &String| match name.parse() {
        Ok(IpAddr::V4(address)) => der::implicit(7, &address.octets()),
        Ok(IpAddr::V6(address)) => der::implicit(7, &address.octets()),
        Err(_) => der::implicit(2, name.as_bytes()),
    };
    der::sequence(&names.iter().map(general).collect::<Vec<_>>())
}
