//! The Go tool: wrapper modules, builds, and the extracted sources of a module.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};

use super::catalog::{Family, Peer};
use super::{Cache, debian, wrapper};

const NEEDED: (u32, u32) = (1, 26);

const INSTALL: &str =
    "install Go 1.26 or newer (https://go.dev/dl/, or your distribution's golang package) and put it on PATH";

/// Fails if Go is missing or too old, and says what to install.
pub fn check_version(cache: &Cache) -> Result<()> {
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir(cache.root()?)
        .output()
        .map_err(|error| anyhow!("go cannot be run ({error}); {INSTALL}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if parse_version(&version).is_none_or(|found| found < NEEDED) {
        bail!("the peers need go 1.26 and this is {version}; {INSTALL}");
    }
    Ok(())
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix("go")?.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Writes the wrapper module of a family and resolves its dependencies. Does nothing if that is done.
pub fn prepare(cache: &Cache, family: Family) -> Result<()> {
    let folder = wrapper(cache, family)?;
    let (module, version) = family.main_module();
    let upstream = module_dir(module, &version)?.join("go.mod");
    let upstream = std::fs::read_to_string(&upstream).with_context(|| upstream.display().to_string())?;
    let (go_mod, tools) = (family.go_mod(&upstream), family.tools_go());
    let (own_folder, own_text) = family.own_program().unwrap_or_default();
    let wanted = format!("{go_mod}\n{tools}{own_text}");
    let mark = folder.join("resolved-from");
    if std::fs::read_to_string(&mark).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    std::fs::write(folder.join("go.mod"), go_mod)?;
    std::fs::write(folder.join("tools.go"), tools)?;
    if !own_folder.is_empty() {
        std::fs::create_dir_all(folder.join(own_folder))?;
        std::fs::write(folder.join(own_folder).join("main.go"), own_text)?;
    }
    let mut sums = String::new();
    for trusted in family.verified() {
        let path = module_dir(trusted, &version)?.join("go.sum");
        sums += &std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    }
    if !sums.is_empty() {
        std::fs::write(folder.join("go.sum"), sums)?;
    }
    run(cache, &folder, &format!("{}-tidy", family.name()), family.tidy_arguments())?;
    std::fs::write(mark, wanted)?;
    Ok(())
}

/// Builds programs of one family into the cache, with as few `go build` calls as possible: packages are loaded once,
/// and linking overlaps with compiling. Each program is moved into place only when it is complete.
pub fn build(cache: &Cache, family: Family, peers: &[Peer]) -> Result<()> {
    let bin = cache.folder("bin")?;
    let unfinished = cache.folder(&format!("unfinished/{}", family.name()))?;
    for batch in batches(peers) {
        let flags = family.linker_flags();
        let output =
            unfinished.join(if batch[0].is_test_binary { program_name(batch[0].package) } else { "" });
        let output = output.to_str().context("the cache's path is not UTF-8")?;
        let verb: &[&str] = if batch[0].is_test_binary { &["test", "-c", "-vet=off"] } else { &["build"] };
        let packages: Vec<_> = batch.iter().map(|peer| peer.package).collect();
        let flags = ["-trimpath", "-tags", family.tags(), "-ldflags", &flags, "-o", output];
        let arguments = [verb, &flags, &packages].concat();
        let folder = wrapper(cache, family)?;
        let library = family.c_library().map(|package| c_settings(&folder, package));
        run_with(cache, &folder, batch[0].name, &arguments, library.transpose()?)?;
        for peer in batch {
            let built = unfinished.join(program_name(peer.package));
            std::fs::rename(&built, bin.join(peer.name))
                .with_context(|| format!("move {} into place", peer.name))?;
        }
    }
    Ok(())
}

/// Programs that one call of `go build` can write into one folder: no test binaries, and no two of one name.
fn batches(peers: &[Peer]) -> Vec<Vec<Peer>> {
    let mut all: Vec<Vec<Peer>> = Vec::new();
    for peer in peers {
        let fits = |batch: &&mut Vec<Peer>| {
            let same = |other: &Peer| program_name(other.package) == program_name(peer.package);
            !peer.is_test_binary && !batch.iter().any(|other| other.is_test_binary || same(other))
        };
        match all.iter_mut().find(fits) {
            Some(batch) => batch.push(*peer),
            None => all.push(vec![*peer]),
        }
    }
    all
}

/// The name `go build` gives the program of a package: the last element of its path that is not a version.
fn program_name(package: &str) -> &str {
    let is_version = |part: &&str| {
        part.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    package.rsplit('/').find(|part| !is_version(part)).unwrap_or(package)
}

/// Builds a program of one file into the cache, unless it was built from the same source.
pub fn small_program(cache: &Cache, name: &str, go_mod: &str, source: &str) -> Result<PathBuf> {
    let folder = cache.folder(&format!("src/{name}"))?;
    let program = cache.folder("bin")?.join(name);
    let (wanted, mark) = (format!("{go_mod}\n{source}"), folder.join("built-from"));
    if program.is_file() && std::fs::read_to_string(&mark).is_ok_and(|text| text == wanted) {
        return Ok(program);
    }
    std::fs::write(folder.join("go.mod"), go_mod)?;
    std::fs::write(folder.join("main.go"), source)?;
    run(cache, &folder, &format!("{name}-tidy"), &["mod", "tidy"])?;
    let output = program.to_str().context("the cache's path is not UTF-8")?;
    run(cache, &folder, name, &["build", "-trimpath", "-o", output, "."])?;
    std::fs::write(mark, wanted)?;
    Ok(program)
}

fn run(cache: &Cache, folder: &Path, name: &str, arguments: &[&str]) -> Result<()> {
    run_with(cache, folder, name, arguments, None)
}

/// Environment that lets pkg-config find a Debian library unpacked beside the sources; nothing is installed. Go's
/// build cache ignores pkg-config's output but includes linker flags. `CGO_LDFLAGS` therefore carries the folder, or
/// a cached build would use the folder of an earlier run.
fn c_settings(folder: &Path, package: &str) -> Result<[(&'static str, OsString); 3]> {
    let unpacked = debian::unpacked(package, &folder.join(package))?;
    let found = std::fs::read_dir(unpacked.join("usr/lib"))?.flatten();
    let lib =
        found.map(|entry| entry.path()).find(|path| path.is_dir()).context("no library in the package")?;
    Ok([
        ("PKG_CONFIG_PATH", lib.join("pkgconfig").into()),
        ("PKG_CONFIG_SYSROOT_DIR", unpacked.into()),
        ("CGO_LDFLAGS", format!("-L{}", lib.to_str().context("the cache's path is not UTF-8")?).into()),
    ])
}

fn run_with(
    cache: &Cache,
    folder: &Path,
    name: &str,
    arguments: &[&str],
    c: Option<[(&'static str, OsString); 3]>,
) -> Result<()> {
    let log = cache.folder("logs")?.join(format!("{name}.log"));
    let output = std::fs::File::create(&log).with_context(|| format!("create {}", log.display()))?;
    let status = Command::new("go")
        .args(arguments)
        .current_dir(folder)
        .env("CGO_ENABLED", if c.is_some() { "1" } else { "0" })
        .envs(c.into_iter().flatten())
        .env("GOFLAGS", "-mod=mod")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("run go")?;
    if !status.success() {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let tail: Vec<_> = text.lines().rev().take(15).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        bail!(
            "go {} failed for {name} ({status}); whole log in {}\n{}",
            arguments[0],
            log.display(),
            tail.join("\n")
        );
    }
    Ok(())
}

/// The extracted sources of a module. Suites read CRDs, webhook manifests and templates from there.
pub fn module_dir(module: &str, version: &str) -> Result<PathBuf> {
    static KNOWN: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let query = format!("{module}@{version}");
    let mut known = KNOWN.lock().map_err(|_| anyhow!("a module look-up panicked"))?;
    if let Some(found) = known.get(&query) {
        return Ok(found.clone());
    }
    let output = Command::new("go")
        .args(["mod", "download", "-json", &query])
        .current_dir("/")
        .env("GOWORK", "off")
        .output()
        .map_err(|error| anyhow!("go cannot be run ({error}); {INSTALL}"))?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("go mod download {query}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if let Some(error) = answer["Error"].as_str() {
        bail!("go mod download {query}: {error}");
    }
    let found = PathBuf::from(answer["Dir"].as_str().with_context(|| format!("{query} has no folder"))?);
    known.insert(query, found.clone());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::catalog::select;

    #[test]
    fn programs_of_one_name_are_built_one_after_the_other() {
        let names = ["capi-core", "capi-bootstrap", "capi-controlplane", "clusterctl", "etcd", "e2e.test"];
        let chosen = select(&names.map(String::from)).unwrap();
        let batches = batches(&chosen);
        let names: Vec<Vec<_>> =
            batches.iter().map(|batch| batch.iter().map(|peer| peer.name).collect()).collect();
        assert_eq!(
            names,
            [
                vec!["etcd", "capi-core", "capi-bootstrap", "clusterctl"],
                vec!["capi-controlplane"],
                vec!["e2e.test"]
            ]
        );
        assert_eq!(program_name("go.etcd.io/etcd/server/v3"), "server");
    }

    #[test]
    fn go_versions_are_read() {
        assert_eq!(parse_version("go1.26.8"), Some((1, 26)));
        assert_eq!(parse_version("go1.27rc1"), Some((1, 27)));
        assert_eq!(parse_version("devel"), None);
    }
}
