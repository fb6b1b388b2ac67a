//! Manifests: read as people write them, applied as `kubectl apply --server-side` does.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capstan_controller::{Client, KindName};
use capstan_object::{Key, Scope};
use serde_json::Value;

use crate::change::patch;

/// Largest file that is read.
const LARGEST: u64 = 16 << 20;

/// The objects of files, in order; `-` is stdin.
pub fn read_all(files: &[PathBuf]) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for file in files {
        objects.extend(read(&text_of(file)?).with_context(|| format!("{}", file.display()))?);
    }
    Ok(objects)
}

fn text_of(file: &Path) -> Result<String> {
    let mut text = String::new();
    let unreadable = || format!("{} cannot be read", file.display());
    if file.as_os_str() == "-" {
        std::io::stdin().take(LARGEST).read_to_string(&mut text).context("stdin cannot be read")?;
    } else {
        let opened = std::fs::File::open(file).with_context(unreadable)?;
        opened.take(LARGEST).read_to_string(&mut text).with_context(unreadable)?;
    }
    Ok(text)
}

/// The objects of a file, in its order. Lists are taken apart, and empty documents left out.
pub fn read(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("no YAML")?;
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        match document["items"].as_array() {
            Some(items) if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => {
                objects.extend(items.iter().cloned());
            }
            _ => objects.push(document),
        }
    }
    for (number, object) in objects.iter().enumerate() {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if object.pointer(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                bail!("object {} of the file has no {}", number + 1, field[1..].replace('/', "."));
            }
        }
    }
    Ok(objects)
}

/// `Kind/name`.
pub fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Applies manifests on a server.
pub struct Applier<'a> {
    client: &'a Client,
    namespace: &'a str,
    known: BTreeMap<(String, String), KindName>,
    dry_run: bool,
}

impl<'a> Applier<'a> {
    /// Objects that name no namespace go into `namespace`.
    pub fn new(client: &'a Client, namespace: &'a str) -> Self {
        Self { client, namespace, known: BTreeMap::new(), dry_run: false }
    }

    /// The same, but the server judges objects only.
    pub fn dry(self) -> Self {
        Self { dry_run: true, ..self }
    }

    /// Applies an object; answers what the server makes of it.
    pub async fn apply(&mut self, object: &Value) -> Result<Value> {
        let (kind, key) = self.place(object).await?;
        let mut body = object.clone();
        if !key.namespace.is_empty() {
            body["metadata"]["namespace"] = key.namespace.as_str().into();
        }
        let path = kind.object_path(&key, None);
        let path = format!("{path}?fieldManager=capstan-cli&force=true");
        let sent = patch(self.client, &path, "application/apply-patch+yaml", &body, self.dry_run).await;
        sent.with_context(|| format!("{} is refused", title(object)))
    }

    /// The object as the server has it now.
    pub async fn current(&mut self, object: &Value) -> Result<Option<Value>> {
        let (kind, key) = self.place(object).await?;
        let found = self.client.get_raw(&kind, &key).await?;
        Ok(found.map(|found| found.parse()).transpose()?)
    }

    /// Kind, namespace and name of an object.
    async fn place(&mut self, object: &Value) -> Result<(KindName, Key)> {
        let kind = self.kind(object).await?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = match kind.scope {
            Scope::Cluster => "",
            Scope::Namespaced => object["metadata"]["namespace"].as_str().unwrap_or(self.namespace),
        };
        Ok((kind, Key::new(namespace, name)))
    }

    /// The kind of an object, asked of the server once.
    async fn kind(&mut self, object: &Value) -> Result<KindName> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        if let Some(known) = self.known.get(&(api.clone(), kind.clone())) {
            return Ok(known.clone());
        }
        let served = match self.client.served(&api, &kind).await {
            Err(error) if error.is_not_found() => None,
            served => served?,
        };
        let unknown = || format!("{}: the server has no kind {kind} in {api}", title(object));
        let name = served.with_context(unknown)?;
        self.known.insert((api, kind), name.clone());
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_documents_and_lists_is_a_list_of_objects() {
        let text = "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n\
                    apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n";
        let titles: Vec<String> = read(text).expect("objects").iter().map(title).collect();
        assert_eq!(titles, ["ConfigMap/a", "Secret/b"]);
    }

    #[test]
    fn what_is_no_object_is_named_by_its_place_and_what_it_lacks() {
        let wrong = |text: &str| format!("{:#}", read(text).expect_err("refused"));
        assert_eq!(wrong("apiVersion: v1\nkind: Secret\n"), "object 1 of the file has no metadata.name");
        assert_eq!(wrong("just words"), "object 1 of the file has no apiVersion");
    }

    #[test]
    fn the_demonstration_s_manifests_can_be_read() {
        for text in [include_str!("../../examples/demo.yaml"), include_str!("../../examples/cni.yaml")] {
            assert!(!read(text).expect("objects").is_empty());
        }
    }
}
