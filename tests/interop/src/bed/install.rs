//! CRDs and webhook configurations as upstream modules ship them, with services replaced by loopback URLs.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::wait;
use crate::api::Api;
use crate::peers::{Cache, module_dir};

/// Objects to create, in order.
#[derive(Debug, Default)]
pub struct Manifests {
    namespaces: Vec<Value>,
    definitions: Vec<Value>,
    webhooks: Vec<Value>,
}

/// Output of `kubectl kustomize` for folders of a module. Cached.
pub fn rendered(cache: &Cache, name: &str, module: &str, version: &str, folders: &[&str]) -> Result<String> {
    let kept = cache.folder("manifests")?.join(format!("{name}.yaml"));
    if let Ok(text) = std::fs::read_to_string(&kept) {
        return Ok(text);
    }
    let root = module_dir(module, version)?;
    let mut text = String::new();
    for folder in folders {
        // Upstream's overlays refer to files beside their folder.
        let output = Command::new(cache.built("kubectl")?)
            .args(["kustomize", "--load-restrictor=LoadRestrictionsNone"])
            .arg(root.join(folder))
            .output()?;
        if !output.status.success() {
            bail!("kubectl kustomize {folder}: {}", String::from_utf8_lossy(&output.stderr));
        }
        text.push_str("---\n");
        text.push_str(&String::from_utf8(output.stdout)?);
    }
    let unfinished = kept.with_extension(format!("{}.unfinished", std::process::id()));
    std::fs::write(&unfinished, &text)?;
    std::fs::rename(&unfinished, &kept).with_context(|| format!("write {}", kept.display()))?;
    Ok(text)
}

pub fn documents(text: &str) -> Result<Vec<Value>> {
    let options = serde_saphyr::options! { budget: None };
    let all: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

/// The documents of all `.yaml` files directly in a folder.
pub fn documents_in(folder: &PathBuf) -> Result<Vec<Value>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        all.extend(documents(&text).with_context(|| path.display().to_string())?);
    }
    Ok(all)
}

impl Manifests {
    /// Adds rendered manifests. Services become loopback URLs with the CA that signed their certificate.
    pub fn add(&mut self, text: &str, port: u16, authority: &[u8]) -> Result<()> {
        let authority = BASE64.encode(authority);
        for mut object in documents(text)? {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            match kind.as_str() {
                "Namespace" => self.namespaces.push(object),
                "CustomResourceDefinition" => {
                    if object["spec"]["conversion"]["strategy"] == "Webhook" {
                        let config = &mut object["spec"]["conversion"]["webhook"]["clientConfig"];
                        point_at_loopback(config, port, &authority);
                    }
                    // clusterctl sets this label on everything it installs, and only moves objects of kinds that have
                    // it.
                    object["metadata"]["labels"]["clusterctl.cluster.x-k8s.io"] = "".into();
                    self.definitions.push(object);
                }
                "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
                        point_at_loopback(&mut webhook["clientConfig"], port, &authority);
                    }
                    self.webhooks.push(object);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Creates namespaces and CRDs and waits until every CRD is established.
    pub async fn create_kinds(&self, api: &Api) -> Result<()> {
        for namespace in &self.namespaces {
            create(api, "/api/v1/namespaces", namespace).await?;
        }
        create_definitions(api, &self.definitions).await
    }

    pub async fn create_webhooks(&self, api: &Api) -> Result<()> {
        for webhook in &self.webhooks {
            let plural = webhook["kind"].as_str().unwrap_or_default().to_lowercase() + "s";
            create(api, &format!("/apis/admissionregistration.k8s.io/v1/{plural}"), webhook).await?;
        }
        Ok(())
    }
}

/// Creates CRDs and waits until each is established.
pub async fn create_definitions(api: &Api, definitions: &[Value]) -> Result<()> {
    const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in definitions {
        create(api, PATH, definition).await?;
    }
    wait::until("every CRD is established", Duration::from_secs(60), || async {
        let list = api.get(PATH).await?.success()?;
        let established = |item: &Value| {
            let conditions = item["status"]["conditions"].as_array();
            conditions
                .is_some_and(|all| all.iter().any(|c| c["type"] == "Established" && c["status"] == "True"))
        };
        let items = list["items"].as_array().context("no items")?;
        Ok((items.len() >= definitions.len() && items.iter().all(established)).then_some(()))
    })
    .await?;
    // kube-apiserver responds with 404 or 429 for a moment after that.
    for definition in definitions {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = spec["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
            let path = format!("/apis/{group}/{}/{plural}?limit=1", text(&version["name"]));
            wait::until(&path, Duration::from_secs(60), || async {
                Ok(api.get(&path).await?.status.is_success().then_some(()))
            })
            .await?;
        }
    }
    Ok(())
}

async fn create(api: &Api, path: &str, object: &Value) -> Result<()> {
    let name = &object["metadata"]["name"];
    api.post(path, object).await?.success().with_context(|| format!("create {} {name}", object["kind"]))?;
    Ok(())
}

fn point_at_loopback(config: &mut Value, port: u16, authority: &str) {
    if let Some(service) = config.get("service") {
        let path = service["path"].as_str().unwrap_or("/");
        *config = json!({"url": format!("https://127.0.0.1:{port}{path}")});
    }
    config["caBundle"] = authority.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_becomes_a_loopback_url() {
        let mut config = json!({"service": {"name": "s", "namespace": "n", "path": "/convert"}});
        point_at_loopback(&mut config, 9443, "Y2E=");
        assert_eq!(config, json!({"url": "https://127.0.0.1:9443/convert", "caBundle": "Y2E="}));
    }

    #[test]
    fn objects_are_sorted_by_creation_order() {
        let mut manifests = Manifests::default();
        let text = "kind: Namespace\n---\nkind: Deployment\n---\nkind: CustomResourceDefinition\nspec: {}\n";
        manifests.add(text, 1, b"ca").unwrap();
        assert_eq!(
            (manifests.namespaces.len(), manifests.definitions.len(), manifests.webhooks.len()),
            (1, 1, 0)
        );
    }
}
