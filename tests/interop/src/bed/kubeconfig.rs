//! Writes and reads kubeconfig files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::pki::Pki;

/// Writes an administrator's kubeconfig.
pub fn write(path: &Path, url: &str, pki: &Pki) -> Result<()> {
    let access = Access {
        url: url.to_owned(),
        authority_pem: pki.read("ca.crt")?,
        certificate_pem: pki.read("admin.crt")?,
        key_pem: pki.read("admin.key")?,
    };
    write_access(path, &access)
}

/// Writes a kubeconfig for an access that was read from another one.
pub fn write_access(path: &Path, access: &Access) -> Result<()> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bed",
        "clusters": [{"name": "bed", "cluster": {
            "server": access.url, "certificate-authority-data": BASE64.encode(&access.authority_pem)}}],
        "users": [{"name": "admin", "user": {
            "client-certificate-data": BASE64.encode(&access.certificate_pem),
            "client-key-data": BASE64.encode(&access.key_pem)}}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "admin"}}],
    });
    std::fs::write(path, config.to_string()).with_context(|| format!("write {}", path.display()))
}

/// Writes a kubeconfig with a bearer token for the server of another one.
pub fn write_token(path: &Path, access: &Access, token: &str) -> Result<()> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bed",
        "clusters": [{"name": "bed", "cluster": {
            "server": access.url, "certificate-authority-data": BASE64.encode(&access.authority_pem)}}],
        "users": [{"name": "token", "user": {"token": token}}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "token"}}],
    });
    std::fs::write(path, config.to_string()).with_context(|| format!("write {}", path.display()))
}

/// Server, CA and client certificate of a kubeconfig's current context.
#[derive(Clone, Debug)]
pub struct Access {
    pub url: String,
    pub authority_pem: Vec<u8>,
    pub certificate_pem: Vec<u8>,
    pub key_pem: Vec<u8>,
}

/// Reads the current context of a kubeconfig. It must use client certificates.
pub fn read(path: &Path) -> Result<Access> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let config: Value = serde_saphyr::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
    access(&config, path).with_context(|| format!("{} is incomplete", path.display()))
}

fn access(config: &Value, path: &Path) -> Result<Access> {
    let named = |list: &str, name: &Value| -> Result<Value> {
        let entries = config[list].as_array().with_context(|| format!("no {list}"))?;
        let found = entries.iter().find(|entry| entry["name"] == *name);
        Ok(found.with_context(|| format!("no entry {name} in {list}"))?.clone())
    };
    let context = &named("contexts", &config["current-context"])?["context"];
    let cluster = &named("clusters", &context["cluster"])?["cluster"];
    let user = &named("users", &context["user"])?["user"];
    let material = |holder: &Value, field: &str| -> Result<Vec<u8>> {
        if let Some(data) = holder[format!("{field}-data")].as_str() {
            return Ok(BASE64.decode(data)?);
        }
        let file = holder[field].as_str().with_context(|| format!("no {field}"))?;
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        Ok(std::fs::read(folder.join(file))?)
    };
    Ok(Access {
        url: cluster["server"].as_str().context("no server")?.to_owned(),
        authority_pem: material(cluster, "certificate-authority")?,
        certificate_pem: material(user, "client-certificate")?,
        key_pem: material(user, "client-key")?,
    })
}
