//! Debian packages: an `ar` archive of a version, the control files and the data.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use md5::{Digest as _, Md5};

use crate::context::Release;
use crate::digest::hex;
use crate::target::Target;
use crate::tree::{Tree, gunzip, gzip};

/// Below `packaging/debian`.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
const CONFFILE: &str = "etc/default/capstan";

/// The files that the package installs.
fn data(release: &Release, program: &[u8]) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.file("usr/bin/capstan", 0o755, program);
    for (from, to) in [
        ("packaging/systemd/capstan.service", "usr/lib/systemd/system/capstan.service"),
        ("packaging/systemd/capstan.socket", "usr/lib/systemd/system/capstan.socket"),
        ("packaging/systemd/capstan.sysusers", "usr/lib/sysusers.d/capstan.conf"),
        ("packaging/debian/default", CONFFILE),
    ] {
        tree.file(to, 0o644, release.source(from)?);
    }
    for (from, to) in [
        ("completions/capstan.bash", "usr/share/bash-completion/completions/capstan"),
        ("completions/_capstan", "usr/share/zsh/vendor-completions/_capstan"),
        ("completions/capstan.fish", "usr/share/fish/vendor_completions.d/capstan.fish"),
    ] {
        tree.file(to, 0o644, release.made.text(from)?);
    }
    for (path, page) in release.made.files() {
        if let Some(name) = path.strip_prefix("man/") {
            tree.file(&format!("usr/share/man/man1/{name}.gz"), 0o644, gzip(page)?);
        }
    }
    let documents = "usr/share/doc/capstan";
    tree.file(&format!("{documents}/changelog.gz"), 0o644, gzip(&release.source("CHANGELOG.md")?)?);
    tree.file(&format!("{documents}/copyright"), 0o644, release.copyright()?);
    tree.graft(&format!("{documents}/examples"), &Tree::read(&release.root.join("examples"))?);
    tree.graft(&format!("{documents}/monitoring"), &Tree::read(&release.root.join("packaging/monitoring"))?);
    Ok(tree)
}

/// A prerelease sorts before its release in Debian only after a tilde.
pub fn debian_version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

pub fn file_name(release: &Release, target: Target) -> String {
    format!("capstan_{}_{}.deb", debian_version(&release.version), target.architecture)
}

/// The package's bytes.
pub fn pack(release: &Release, target: Target, program: &[u8], loader: bool) -> Result<Vec<u8>> {
    let data = data(release, program)?;
    let mut control = Tree::default();
    let kibibytes: usize = data.files().map(|(_, bytes)| bytes.len().div_ceil(1024)).sum();
    // A program without libraries needs none; what it trusts are the system's authorities.
    let depends = if loader { "passwd, libc6" } else { "passwd" };
    let fields = format!(
        "Package: capstan\nVersion: {}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {kibibytes}\n\
         Depends: {depends}\nRecommends: ca-certificates\nSection: admin\nPriority: optional\n\
         Description: Cluster API management plane in one binary\n \
         Creates, scales, upgrades, repairs and deletes Kubernetes clusters from\n \
         Cluster API manifests. Contains a Kubernetes-compatible API server with\n \
         its own durable store, the Cluster API controllers and the\n \
         infrastructure providers.\n",
        debian_version(&release.version),
        target.architecture,
        release.maintainer,
    );
    control.file("control", 0o644, fields);
    control.file("conffiles", 0o644, format!("/{CONFFILE}\n"));
    let mut sums = String::new();
    for (path, bytes) in data.files().filter(|(path, _)| *path != CONFFILE) {
        writeln!(sums, "{}  {path}", hex(&Md5::digest(bytes)))?;
    }
    control.file("md5sums", 0o644, sums);
    for script in SCRIPTS {
        control.file(script, 0o755, release.source(&format!("packaging/debian/{script}"))?);
    }
    let mut archive = b"!<arch>\n".to_vec();
    member(&mut archive, "debian-binary", b"2.0\n", release.time)?;
    member(&mut archive, "control.tar.gz", &gzip(&control.tar("./", release.time)?)?, release.time)?;
    member(&mut archive, "data.tar.gz", &gzip(&data.tar("./", release.time)?)?, release.time)?;
    Ok(archive)
}

fn member(archive: &mut Vec<u8>, name: &str, bytes: &[u8], time: u64) -> Result<()> {
    let head = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
    ensure!(head.len() == 60, "the head of {name} is too long");
    archive.extend_from_slice(head.as_bytes());
    archive.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
    Ok(())
}

/// A package as it was read.
#[derive(Debug)]
pub struct Package {
    pub control: Tree,
    pub data: Tree,
}

impl Package {
    /// Reads and checks: sums, sizes and the files that control files name.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let members = members(bytes)?;
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        ensure!(names == ["debian-binary", "control.tar.gz", "data.tar.gz"], "members are {names:?}");
        ensure!(members[0].1 == b"2.0\n", "not a package of format 2.0");
        let package = Self {
            control: Tree::from_tar(&gunzip(members[1].1)?)?,
            data: Tree::from_tar(&gunzip(members[2].1)?)?,
        };
        for line in package.control.text("md5sums")?.lines() {
            let (sum, path) = line.split_once("  ").context("md5sums has a line without a path")?;
            let file = package.data.entries.get(path).and_then(|entry| entry.bytes.as_ref());
            let file = file.with_context(|| format!("md5sums names {path}, which is not there"))?;
            ensure!(hex(&Md5::digest(file)) == sum, "{path} is not what md5sums says");
        }
        for path in package.control.text("conffiles")?.lines() {
            let there = package.data.entries.contains_key(path.trim_start_matches('/'));
            ensure!(there, "conffiles names {path}, which is not there");
        }
        Ok(package)
    }

    /// A field of the control file.
    pub fn field(&self, name: &str) -> Result<&str> {
        let control = self.control.text("control")?;
        let mut values =
            control.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim));
        values.next().with_context(|| format!("the control file has no {name}"))
    }
}

/// Names and bytes of an `ar` archive.
fn members(bytes: &[u8]) -> Result<Vec<(String, &[u8])>> {
    let mut rest = bytes.strip_prefix(b"!<arch>\n").context("no ar archive")?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (head, body) = rest.split_at_checked(60).context("a member's head is cut off")?;
        let head = std::str::from_utf8(head)?;
        ensure!(head.ends_with("`\n"), "a member's head does not end as one");
        let size: usize = head[48..58].trim_end().parse().context("a member's size")?;
        let (member, after) = body.split_at_checked(size).context("a member is cut off")?;
        all.push((head[..16].trim_end().trim_end_matches('/').to_owned(), member));
        rest = if size % 2 == 1 { after.get(1..).unwrap_or_default() } else { after };
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::context::testing::release;
    use crate::target::{Linked, TARGETS, sample};

    #[test]
    fn a_package_reads_back_with_everything_that_it_installs() {
        let release = release();
        let program = sample(TARGETS[0], Linked::Static);
        let package = Package::read(&pack(&release, TARGETS[0], &program, false).unwrap()).unwrap();
        let file = |path: &str| package.data.entries.get(path).unwrap_or_else(|| panic!("no {path}"));
        assert_eq!(file("usr/bin/capstan").bytes.as_deref(), Some(program.as_slice()));
        assert_eq!(file("usr/bin/capstan").mode, 0o755);
        for path in [
            "usr/lib/systemd/system/capstan.service",
            "usr/lib/sysusers.d/capstan.conf",
            "etc/default/capstan",
            "usr/share/bash-completion/completions/capstan",
            "usr/share/zsh/vendor-completions/_capstan",
            "usr/share/fish/vendor_completions.d/capstan.fish",
            "usr/share/man/man1/capstan.1.gz",
            "usr/share/doc/capstan/copyright",
            "usr/share/doc/capstan/examples/cni.yaml",
        ] {
            assert_eq!(file(path).mode, 0o644, "{path}");
        }
        assert_eq!(package.field("Architecture").unwrap(), "amd64");
        assert_eq!(package.field("Depends").unwrap(), "passwd");
        assert_eq!(package.control.text("conffiles").unwrap(), "/etc/default/capstan\n");
        for script in SCRIPTS {
            assert_eq!(package.control.entries[script].mode, 0o755, "{script}");
        }
    }

    #[test]
    fn a_damaged_package_is_refused() {
        let release = release();
        let package = pack(&release, TARGETS[0], b"program", false).unwrap();
        for cut in [7, 60, package.len() / 2, package.len() - 40] {
            assert!(Package::read(&package[..cut]).is_err(), "{cut} bytes of {}", package.len());
        }
    }

    #[test]
    fn prereleases_sort_before_their_release() {
        assert_eq!(debian_version("0.2.0-rc.1"), "0.2.0~rc.1");
        assert_eq!(debian_version("0.2.0"), "0.2.0");
    }

    /// Where Debian's own reader is, it must agree.
    #[test]
    fn dpkg_reads_the_package() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capstan.deb");
        std::fs::write(&path, pack(&release(), TARGETS[1], b"program", false).unwrap()).unwrap();
        let output = |arguments: &[&str]| {
            let output = Command::new("dpkg-deb").args(arguments).arg(&path).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(output(&["--info"]).contains("Architecture: arm64"));
        let contents = output(&["--contents"]);
        assert!(
            contents
                .lines()
                .any(|line| line.starts_with("-rwxr-xr-x root/root") && line.ends_with("./usr/bin/capstan")),
            "{contents}"
        );
    }

    #[test]
    fn maintainer_scripts_are_shell() {
        for script in SCRIPTS {
            let path = release().root.join("packaging/debian").join(script);
            let status = Command::new("sh").arg("-n").arg(&path).status().unwrap();
            assert!(status.success(), "{script}");
        }
    }
}
