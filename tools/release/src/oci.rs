//! Container images without a container engine: an OCI layout with one layer, as a tar archive that `podman load`,
//! `skopeo copy` and, by the older manifest beside it, `docker load` read.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::context::Release;
use crate::digest::sha256;
use crate::target::Target;
use crate::tree::{Owner, Tree, gunzip, gzip};

/// The unprivileged user of images that have no shell, as others number it too.
pub const USER: u32 = 65532;
pub const PROGRAM: &str = "usr/bin/capstan";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

pub fn file_name(release: &Release, target: Target) -> String {
    format!("capstan-{}-image-{}.tar", release.version, target.architecture)
}

/// The files of the image.
fn layer(release: &Release, program: &[u8]) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.file(PROGRAM, 0o755, program);
    tree.file("etc/passwd", 0o644, format!("root:x:0:0:root:/:/\ncapstan:x:{USER}:{USER}:capstan:/:/\n"));
    tree.file("etc/group", 0o644, format!("root:x:0:\ncapstan:x:{USER}:\n"));
    // Clouds are called over HTTPS, and an image without a distribution knows no authority.
    tree.file("etc/ssl/certs/ca-certificates.crt", 0o644, authorities());
    tree.file("usr/share/doc/capstan/copyright", 0o644, release.copyright()?);
    tree.directory("var/lib/capstan", 0o700, Owner(USER));
    tree.directory("tmp", 0o1777, Owner(0));
    Ok(tree)
}

/// Mozilla's authorities at the version that Cargo.lock pins, so that the image is the same wherever it is made.
fn authorities() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        let body = STANDARD.encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = body.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(64));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// The archive's bytes.
pub fn pack(release: &Release, target: Target, program: &[u8]) -> Result<Vec<u8>> {
    let plain = layer(release, program)?.tar("", release.time)?;
    let created = release.timestamp();
    let labels = json!({
        "org.opencontainers.image.title": "capstan",
        "org.opencontainers.image.description": "Cluster API management plane in one binary",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.revision": release.revision,
        "org.opencontainers.image.licenses": "Apache-2.0",
    });
    let mut tree = Tree::default();
    let layer = blob(&mut tree, LAYER, gzip(&plain)?);
    let config = json!({
        "created": created,
        "architecture": target.architecture,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [format!("/{PROGRAM}")],
            "Env": ["PATH=/usr/bin", "HOME=/"],
            "WorkingDir": "/",
            "ExposedPorts": {"6443/tcp": {}},
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&plain))]},
        "history": [{"created": created, "created_by": "cargo xtask release"}],
    });
    let config = blob(&mut tree, CONFIG, config.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer], "annotations": labels,
    });
    let mut manifest = blob(&mut tree, MANIFEST, manifest.to_string().into_bytes());
    manifest["platform"] = json!({"architecture": target.architecture, "os": "linux"});
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]});
    let docker = json!([{
        "Config": path(&config)?,
        "RepoTags": [format!("{}:{}", release.image, release.version)],
        "Layers": [path(&layer)?],
    }]);
    tree.file("index.json", 0o644, index.to_string());
    tree.file("manifest.json", 0o644, docker.to_string());
    tree.file("oci-layout", 0o644, r#"{"imageLayoutVersion":"1.0.0"}"#);
    tree.tar("", release.time)
}

/// Stores bytes by their digest; answers the descriptor.
fn blob(tree: &mut Tree, media: &str, bytes: Vec<u8>) -> Value {
    let digest = sha256(&bytes);
    let size = bytes.len();
    tree.file(&format!("blobs/sha256/{digest}"), 0o644, bytes);
    json!({"mediaType": media, "digest": format!("sha256:{digest}"), "size": size})
}

fn path(descriptor: &Value) -> Result<String> {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    Ok(format!("blobs/sha256/{}", digest.context("a descriptor without a digest of sha256")?))
}

/// An image as it was read.
#[derive(Debug)]
pub struct Image {
    pub config: Value,
    pub files: Tree,
}

impl Image {
    /// Follows every digest from the index to the files, and checks each.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let tree = Tree::from_tar(bytes)?;
        ensure!(tree.text("oci-layout")?.contains("1.0.0"), "no OCI layout of version 1.0.0");
        let index: Value = serde_json::from_str(tree.text("index.json")?)?;
        let manifest: Value = serde_json::from_slice(fetch(&tree, &index["manifests"][0], MANIFEST)?)?;
        let config: Value = serde_json::from_slice(fetch(&tree, &manifest["config"], CONFIG)?)?;
        let layers = manifest["layers"].as_array().context("no layers")?;
        ensure!(layers.len() == 1, "{} layers", layers.len());
        let plain = gunzip(fetch(&tree, &layers[0], LAYER)?)?;
        ensure!(
            config["rootfs"]["diff_ids"] == json!([format!("sha256:{}", sha256(&plain))]),
            "the layer is not what the configuration says"
        );
        let docker: Value = serde_json::from_str(tree.text("manifest.json")?)?;
        ensure!(
            docker[0]["Config"] == path(&manifest["config"])? && docker[0]["Layers"][0] == path(&layers[0])?,
            "both manifests differ"
        );
        Ok(Self { config, files: Tree::from_tar(&plain)? })
    }
}

fn fetch<'a>(tree: &'a Tree, descriptor: &Value, media: &str) -> Result<&'a [u8]> {
    let path = path(descriptor)?;
    ensure!(descriptor["mediaType"] == media, "{path}: not of the type {media}");
    let bytes = tree.entries.get(&path).and_then(|entry| entry.bytes.as_deref());
    let bytes = bytes.with_context(|| format!("no {path}"))?;
    ensure!(path.ends_with(&sha256(bytes)), "{path} is not what its digest says");
    ensure!(descriptor["size"] == bytes.len(), "{path} is not as long as its descriptor says");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::release;
    use crate::target::TARGETS;

    #[test]
    fn an_image_reads_back_and_runs_without_privileges() {
        let image = Image::read(&pack(&release(), TARGETS[1], b"program").unwrap()).unwrap();
        assert_eq!(image.config["config"]["User"], "65532:65532");
        assert_eq!(image.config["config"]["Entrypoint"], json!(["/usr/bin/capstan"]));
        assert_eq!(image.config["architecture"], "arm64");
        assert_eq!(image.files.entries["usr/bin/capstan"].mode, 0o755);
        assert_eq!(image.files.entries["var/lib/capstan"].owner, Owner(USER));
        assert!(image.files.text("etc/ssl/certs/ca-certificates.crt").unwrap().matches("BEGIN").count() > 50);
    }

    #[test]
    fn the_same_inputs_give_the_same_image() {
        let image = || pack(&release(), TARGETS[0], b"program").unwrap();
        assert_eq!(image(), image());
    }

    #[test]
    fn a_changed_blob_is_found() {
        let packed = pack(&release(), TARGETS[0], b"program").unwrap();
        let mut tree = Tree::from_tar(&packed).unwrap();
        let blobs: Vec<String> =
            tree.entries.keys().filter(|path| path.starts_with("blobs/sha256/")).cloned().collect();
        assert_eq!(blobs.len(), 3);
        for path in blobs {
            let entry = tree.entries[&path].clone();
            let mut bytes = entry.bytes.clone().unwrap();
            bytes.push(b' ');
            tree.file(&path, 0o644, bytes);
            assert!(Image::read(&tree.tar("", 0).unwrap()).is_err(), "{path}");
            tree.entries.insert(path, entry);
        }
    }
}
