//! The files of `capstan init`: a Secret and a manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capstan_provider_kit::CredentialValues;
use serde_json::{Value, json};

use crate::apply::read;

/// Limit of a CNI's manifest, in bytes: it becomes a ConfigMap.
const LARGEST: usize = 1 << 20;

pub struct Paths {
    pub secret: PathBuf,
    pub manifest: PathBuf,
}

impl Paths {
    /// Absolute: they are printed to be pasted later, elsewhere.
    pub fn of(dir: &Path, name: &str) -> Result<Self> {
        let dir = std::path::absolute(dir).with_context(|| format!("--to {}", dir.display()))?;
        Ok(Self {
            secret: dir.join(format!("{name}-credentials.yaml")),
            manifest: dir.join(format!("{name}.yaml")),
        })
    }

    /// Fails before anything is asked.
    pub fn check(&self, force: bool) -> Result<()> {
        for path in [&self.secret, &self.manifest] {
            if path.exists() && !force {
                bail!("{} exists: use --force to replace it, or --to for another directory", path.display());
            }
        }
        Ok(())
    }

    pub fn write(&self, secret: &str, manifest: &str) -> Result<()> {
        let failed = |path: &Path| format!("cannot write {}", path.display());
        crate::server::write_private(&self.secret, secret.as_bytes())
            .with_context(|| failed(&self.secret))?;
        std::fs::write(&self.manifest, manifest).with_context(|| failed(&self.manifest))
    }
}

/// The Secret as a manifest. JSON strings are YAML.
pub fn secret(cloud: &str, name: &str, namespace: &str, credentials: &CredentialValues) -> String {
    let mut text = format!(
        "# Credentials of {cloud}. Keep this file private, or delete it after it was applied.\n\
         apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n  namespace: {namespace}\nstringData:\n"
    );
    for (field, value) in credentials {
        text.push_str(&format!("  {field}: {}\n", Value::from(value.as_str())));
    }
    text
}

/// The manifest with a head that says what was chosen.
pub fn manifest(cloud: &str, name: &str, chosen: &[String], body: &str, cni: Option<&str>) -> Result<String> {
    let lines = chosen.iter().map(|choice| format!("#   {choice}\n"));
    let head = format!(
        "# Cluster {name} on {cloud}, written by `capstan init`. Edit it as you like; `capstan plan -f FILE` previews it.\n\
         #\n{}",
        lines.collect::<String>()
    );
    // The head of the template is about the template.
    let body: Vec<&str> = body.lines().skip_while(|line| line.starts_with('#')).collect();
    let cni = cni.map(|text| format!("---\n{text}")).unwrap_or_default();
    let text = format!("{head}---\n{}\n{cni}", body.join("\n"));
    read(&text).context("the manifest is not valid; check the answers")?;
    Ok(text)
}

/// Objects that install a CNI in the clusters with the label of this one.
pub fn cni(file: &Path, cluster: &str, namespace: &str) -> Result<String> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("--cni: cannot read {}", file.display()))?;
    if text.len() > LARGEST {
        bail!("--cni: {} is longer than 1 MiB, the limit of a ConfigMap", file.display());
    }
    read(&text).with_context(|| format!("--cni: {}", file.display()))?;
    let name = format!("{cluster}-cni");
    let objects = [
        json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "clusterSelector": {"matchLabels": {"cni": cluster}},
                "resources": [{"kind": "ConfigMap", "name": name}],
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
            "data": {"cni.yaml": text},
        }),
    ];
    let [set, map] = objects.map(|object| serde_json::to_string_pretty(&object));
    Ok(format!("# The CNI.\n{}\n---\n{}\n", set?, map?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_valid_manifests() {
        let credentials = CredentialValues::from([("secret-key".to_owned(), "a: \"b\"".to_owned())]);
        let objects = read(&secret("Example", "keys", "default", &credentials)).expect("a Secret");
        assert_eq!(objects[0]["stringData"]["secret-key"], "a: \"b\"");
        let body = "# head\n#   more\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("cni.yaml");
        std::fs::write(&file, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cni}\n")
            .expect("written");
        let cni = cni(&file, "first", "default").expect("objects");
        let text = manifest("Example", "first", &["zone: z".to_owned()], body, Some(&cni)).expect("valid");
        let kinds: Vec<_> = read(&text).expect("objects").iter().map(|it| it["kind"].clone()).collect();
        assert_eq!(kinds, ["ConfigMap", "ClusterResourceSet", "ConfigMap"]);
        assert!(text.contains("#   zone: z\n---\napiVersion") && !text.contains("more"), "{text}");
    }

    #[test]
    fn files_have_absolute_paths() {
        let paths = Paths::of(Path::new("."), "first").expect("paths");
        let here = std::env::current_dir().expect("a directory");
        assert_eq!(paths.manifest, here.join("first.yaml"));
        assert_eq!(paths.secret, here.join("first-credentials.yaml"));
    }

    #[test]
    fn existing_files_are_kept_unless_forced() {
        let dir = tempfile::tempdir().expect("a folder");
        let paths = Paths::of(dir.path(), "first").expect("paths");
        paths.check(false).expect("nothing is there");
        paths.write("a", "b").expect("written");
        assert!(paths.check(false).is_err_and(|error| error.to_string().contains("--force")));
        paths.check(true).expect("forced");
    }
}
