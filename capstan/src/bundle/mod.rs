//! `capstan support-bundle`: objects, events and states in one file; secrets are redacted.

mod redact;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capstan_capi_core::secret::Secret;
use capstan_controller::{KindName, ListOptions};
use capstan_object::{Object as _, ObjectMeta};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::connection::{ConnectionArgs, Management};
use crate::exit::Exit;
use crate::inspect;
use crate::kinds::{list, served_kinds};
use crate::output::print_line;
use crate::plugins::Plugins;
use redact::{HIDDEN, Secrets, redact};

/// Arguments of `capstan support-bundle`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// File to write; must not exist
    #[arg(long, value_name = "FILE", default_value = "capstan-support.tar.gz")]
    to: PathBuf,
    /// Objects of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
}

/// A file of the bundle.
type Entry = (String, String);

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    if args.to.exists() {
        bail!("{} already exists: use another file with --to", args.to.display());
    }
    let entries = args.connection.run(plugins, async |mut management| {
        if args.all_namespaces {
            management.namespace = String::new();
        }
        collect(&management).await
    })?;
    write(&args.to, &entries).with_context(|| format!("cannot write {}", args.to.display()))?;
    print_line(&format!(
        "{}: {} files; contents of Secrets and boot data are redacted. Review it before you share it",
        args.to.display(),
        entries.len()
    ))?;
    Ok(Exit::Done)
}

async fn collect(management: &Management) -> Result<Vec<Entry>> {
    let (client, namespace) = (&management.client, &management.namespace);
    let mut entries = Vec::new();
    let about = json!({
        "capstan": env!("CARGO_PKG_VERSION"),
        "server": serde_json::from_slice::<Value>(&client.document("/version").await?).unwrap_or_default(),
    });
    entries.push(("version.yaml".to_owned(), yaml(&about)?));
    let mut clusters = Vec::new();
    let mut kinds: Vec<KindName> = served_kinds(client).await?.into_iter().map(|known| known.kind).collect();
    kinds.push(KindName::namespaced("events.k8s.io", "v1", "Event", "events"));
    kinds.push(KindName::namespaced("coordination.k8s.io", "v1", "Lease", "leases"));
    for kind in &kinds {
        for mut object in list(client, kind, namespace).await? {
            redact(&mut object);
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            if kind.kind == "Cluster" {
                clusters.push((text("namespace"), text("name")));
            }
            let path = format!("objects/{}/{kind}/{}.yaml", text("namespace"), text("name"));
            entries.push((path, yaml(&object)?));
        }
    }
    for (namespace, name) in clusters {
        let in_namespace = management.within(&namespace);
        if let Some(tree) = inspect::find_tree(&in_namespace, &name).await? {
            let now = jiff::Timestamp::now();
            let mut text = capstan_view::draw(&tree, true, now, capstan_view::Paint::Plain);
            if let Some(why) = capstan_view::why(&tree, now) {
                text = format!("{text}\n{}", inspect::explain(&management.plugins, &tree, &why, now));
            }
            entries.push((format!("clusters/{namespace}/{name}.txt"), text));
        }
    }
    let mut secrets = Secrets::default();
    for secret in client.list_all::<Secret>(namespace, &ListOptions::default()).await? {
        secret.data.iter().for_each(|(field, value)| secrets.add(field, value));
        let ObjectMeta { namespace, name, .. } = secret.metadata();
        entries.push((format!("objects/{namespace}/secrets/{name}.yaml"), yaml(&outline(&secret))?));
    }
    Ok(entries.into_iter().map(|(path, text)| (path, secrets.redact_text(text))).collect())
}

/// A Secret with sizes instead of values.
fn outline(secret: &Secret) -> Value {
    let sizes: serde_json::Map<String, Value> = secret
        .data
        .iter()
        .map(|(field, value)| (field.clone(), format!("{HIDDEN} {} bytes", value.len()).into()))
        .collect();
    let metadata = secret.metadata();
    json!({
        "kind": "Secret", "type": secret.kind, "data": sizes,
        "metadata": {
            "name": metadata.name, "namespace": metadata.namespace, "labels": metadata.labels,
            "ownerReferences": metadata.owner_references,
        },
    })
}

fn yaml(value: &Value) -> Result<String> {
    Ok(serde_saphyr::to_string(value)?)
}

/// Writes the archive; it gets its name only when it is complete.
fn write(to: &Path, entries: &[Entry]) -> Result<()> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let mut archive = tar::Builder::new(GzEncoder::new(file.as_file_mut(), Compression::default()));
    for (path, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, format!("capstan-support/{path}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()?;
    file.as_file().sync_all()?;
    file.persist_noclobber(to)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}
