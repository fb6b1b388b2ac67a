//! `capstan-release`: everything that a release hands out, packed from a program and this repository.
//!
//! ```text
//! cargo build (musl) ──▶ program ──┬──▶ archive, Debian package, image            per processor
//!                 release-files ───┤
//!           man pages, completions,└──▶ components and templates for clusterctl   once
//!           definitions                 chart, manifests, monitoring, bill of materials
//!                                       SHA256SUMS over all of it
//! ```
//!
//! `cargo xtask release` runs it. The same commit gives the same bytes: times come from `SOURCE_DATE_EPOCH` or the commit,
//! orders and owners are fixed. Everything is read back and checked before it ends.

mod archive;
mod build;
mod context;
mod deb;
mod digest;
mod kubernetes;
#[cfg(test)]
mod monitoring;
mod oci;
mod sbom;
mod target;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use capstan_test_support::cargo;
use clap::Parser;
use serde_json::Value;

use context::Release;
use target::{Linked, TARGETS, Target};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask release", about = "pack everything that a release hands out")]
struct Options {
    /// Folder for the files; emptied first
    #[arg(long, default_value = "target/release-files")]
    out: PathBuf,
    /// Pack this program instead of building one; its processor is read from it. One per processor
    #[arg(long, value_name = "PATH")]
    binary: Vec<PathBuf>,
    /// Build for these targets only
    #[arg(long, value_name = "TRIPLE", value_delimiter = ',', conflicts_with = "binary")]
    target: Vec<String>,
    /// Cargo's profile for the programs; a trial is built faster with another
    #[arg(long, default_value = "dist", conflicts_with = "binary")]
    profile: String,
    /// Name of the container image in charts and manifests, with its registry and without a tag
    #[arg(long, default_value = "localhost/capstan", value_parser = image_name)]
    image: String,
    /// Maintainer in the Debian package
    #[arg(long, default_value = "The Capstan authors <maintainers@capstan.invalid>")]
    maintainer: String,
    /// Fail unless this tag is the version's
    #[arg(long)]
    tag: Option<String>,
    /// Accept programs that need a loader and libraries. For trials: their image does not run
    #[arg(long)]
    allow_dynamic: bool,
    /// Pack only what is installed on a Kubernetes: chart, manifests, the repository of clusterctl
    #[arg(long)]
    kubernetes_only: bool,
    /// Pack only the Debian package of each processor
    #[arg(long, conflicts_with = "kubernetes_only")]
    debian_only: bool,
}

/// clusterctl refuses components whose image has no registry.
fn image_name(name: &str) -> Result<String, String> {
    let registry = name.split_once('/').map(|(registry, _)| registry).unwrap_or_default();
    let (path, last) = name.rsplit_once('/').unwrap_or(("", name));
    let has_registry = registry == "localhost" || registry.contains(['.', ':']);
    match has_registry && !path.is_empty() && !last.is_empty() && !last.contains([':', '@']) {
        true => Ok(name.to_owned()),
        false => {
            Err("not a registry and a path without a tag, such as registry.example.org/capstan".to_owned())
        }
    }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("release: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A program for a processor.
struct Program {
    path: PathBuf,
    target: Target,
    linked: Linked,
    bytes: Vec<u8>,
}

fn run(options: &Options) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    if let Some(tag) = &options.tag {
        ensure!(*tag == format!("v{version}"), "the tag is {tag} and the version is {version}");
    }
    let (revision, committed) = build::commit()?;
    let time = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().with_context(|| format!("SOURCE_DATE_EPOCH is {text:?}, not seconds"))?,
        Err(_) => committed,
    };
    let programs = programs(options, time)?;
    let out = cargo::root().join(&options.out);
    let native = programs.iter().find(|program| runs_here(program.target));
    let native =
        native.context("none of the programs runs on this machine, which must ask one for its man pages")?;
    let metadata = build::metadata(native.target)?;
    let made = build::made_by(&native.path, &out.with_extension("made"))?;
    let release = Release {
        root: cargo::root(),
        version,
        revision,
        time,
        image: options.image.clone(),
        maintainer: options.maintainer.clone(),
        made,
        notices: sbom::notices(&metadata)?,
    };
    empty(&out)?;
    if !options.kubernetes_only {
        for program in &programs {
            debian_package(&release, program, &out)?;
            if !options.debian_only {
                archive_and_image(&release, program, &out)?;
            }
        }
    }
    let files = match options {
        Options { debian_only: true, .. } => Vec::new(),
        Options { kubernetes_only: true, .. } => kubernetes::pack(&release)?,
        _ => once(&release, &metadata)?,
    };
    for (name, bytes) in files {
        write(&out, &name, &bytes)?;
    }
    digest::write_sums(&out)?;
    let files = digest::check_sums(&out)?;
    println!("release: {files} files of version {} in {}", release.version, out.display());
    Ok(())
}

/// The programs that were given, or new ones.
fn programs(options: &Options, time: u64) -> Result<Vec<Program>> {
    let mut paths = options.binary.clone();
    if paths.is_empty() {
        let targets = match options.target.as_slice() {
            [] => TARGETS.to_vec(),
            named => named.iter().map(|triple| target::find(triple)).collect::<Result<_>>()?,
        };
        build::check_tools(&targets)?;
        for target in targets {
            paths.push(build::program(target, &options.profile, &build::metadata(target)?, time)?);
        }
    }
    let mut programs: Vec<Program> = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let (target, linked) = target::of_program(&bytes).with_context(|| path.display().to_string())?;
        if linked == Linked::Dynamic && !options.allow_dynamic {
            bail!("{} needs a loader and libraries: build it for {}", path.display(), target.triple);
        }
        if programs.iter().any(|other| other.target == target) {
            bail!("{} is the second program for {}", path.display(), target.architecture);
        }
        programs.push(Program { path, target, linked, bytes });
    }
    Ok(programs)
}

fn runs_here(target: Target) -> bool {
    target.triple.starts_with(std::env::consts::ARCH)
}

/// Makes an empty folder. One that holds anything but a release is left alone.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        let is_empty = std::fs::read_dir(folder)?.next().is_none();
        ensure!(
            is_empty || folder.join(digest::SUMS).exists(),
            "{} holds something else than a release: remove it, or choose another folder with --out",
            folder.display()
        );
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))
}

/// Writes the Debian package of one processor and reads it back.
fn debian_package(release: &Release, program: &Program, out: &Path) -> Result<()> {
    let target = program.target;
    let package = deb::pack(release, target, &program.bytes, program.linked == Linked::Dynamic)?;
    let read = deb::Package::read(&package).context("the Debian package does not read back")?;
    ensure!(
        read.field("Architecture")? == target.architecture,
        "the Debian package is for another processor"
    );
    write(out, &deb::file_name(release, target), &package)
}

/// Writes the archive and the image of one processor, and reads the image back.
fn archive_and_image(release: &Release, program: &Program, out: &Path) -> Result<()> {
    let target = program.target;
    let archive = archive::pack(release, target, &program.bytes)?;
    write(out, &archive::file_name(release, target), &archive)?;
    let image = oci::pack(release, target, &program.bytes)?;
    let read = oci::Image::read(&image).context("the image does not read back")?;
    ensure!(read.config["architecture"] == target.architecture, "the image is for another processor");
    let inside = read.files.entries.get(oci::PROGRAM).and_then(|entry| entry.bytes.as_ref());
    ensure!(inside == Some(&program.bytes), "the image contains another program");
    write(out, &oci::file_name(release, target), &image)
}

/// Files that are the same for every processor.
fn once(release: &Release, metadata: &Value) -> Result<kubernetes::Files> {
    let mut files = kubernetes::pack(release)?;
    for (from, to) in [("dashboard.json", "capstan-dashboard.json"), ("alerts.yaml", "capstan-alerts.yaml")] {
        files.push((to.to_owned(), release.source(&format!("packaging/monitoring/{from}"))?));
    }
    files
        .push((format!("capstan-{}.cdx.json", release.version), sbom::bill(release, metadata)?.into_bytes()));
    Ok(files)
}

fn write(out: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    println!("release: {name} ({})", capstan_test_support::text::human_bytes(bytes.len() as u64));
    std::fs::write(out.join(name), bytes).with_context(|| format!("write {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_registry_and_no_tag() {
        for name in ["localhost/capstan", "ghcr.io/a/capstan", "10.0.0.1:5000/capstan"] {
            assert_eq!(image_name(name).as_deref(), Ok(name));
        }
        for name in ["capstan", "a/capstan", "ghcr.io/capstan:1", "ghcr.io/", "", "ghcr.io/capstan@sha256:0"]
        {
            assert!(image_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_folder_of_something_else_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("out");
        empty(&inside).unwrap();
        empty(&inside).unwrap();
        std::fs::write(inside.join("thesis.tex"), "").unwrap();
        assert!(empty(&inside).is_err());
        std::fs::write(inside.join(digest::SUMS), "").unwrap();
        empty(&inside).unwrap();
        assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 0);
    }
}
