//! The service account of the manager, with the rights that our manifests give it and no other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::api::Api;
use crate::bed::{install, kubeconfig};

const MANIFEST: &str = "packaging/manifests/manager.yaml";
const TOKEN: &str = "/api/v1/namespaces/capstan-system/serviceaccounts/capstan/token";

/// Creates it as an administrator would, and writes a kubeconfig with a token of it.
pub async fn create(api: &Api, admin: &Path, folder: &Path) -> Result<PathBuf> {
    let manifest = crate::cargo::root().join(MANIFEST);
    let text = std::fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let mut roles = 0;
    for object in install::documents(&text.replace("@VERSION@", "test"))? {
        let path = match object["kind"].as_str().unwrap_or_default() {
            "Namespace" => "/api/v1/namespaces",
            "ServiceAccount" => "/api/v1/namespaces/capstan-system/serviceaccounts",
            "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            _ => continue,
        };
        roles += usize::from(object["kind"] == "ClusterRole");
        api.post(path, &object).await?.success().with_context(|| format!("create {}", object["kind"]))?;
    }
    ensure!(roles > 0, "{MANIFEST} has no ClusterRole");
    let request = json!({"spec": {"expirationSeconds": 7200}});
    let issued = api.post(TOKEN, &request).await?.success()?;
    let token = issued["status"]["token"].as_str().context("no token was issued")?;
    let access = kubeconfig::read(admin)?;
    let config: Value = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "manager",
        "clusters": [{"name": "bed", "cluster": {
            "server": access.url, "certificate-authority-data": BASE64.encode(&access.authority_pem)}}],
        "users": [{"name": "manager", "user": {"token": token}}],
        "contexts": [{"name": "manager", "context": {"cluster": "bed", "user": "manager"}}],
    });
    std::fs::create_dir_all(folder)?;
    let path = folder.join("manager.kubeconfig");
    std::fs::write(&path, serde_json::to_string_pretty(&config)?)?;
    Ok(path)
}
