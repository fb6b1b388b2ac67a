//! `cargo xtask kms`: a server whose data keys are wrapped by a KMS v2 plug-in in another process, which is built on
//! upstream's gRPC service.
//!
//! Secrets are not in the files; the plug-in may be down while the server runs, but not when it starts; a new key of
//! the plug-in is noticed and taken up, and what an older one has wrapped stays readable.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use crate::api::Api;
use crate::bed::process::{Process, Program};
use crate::bed::{Server, Workdir, capstan, ports::free_port, wait};
use crate::peers::catalog::Family;
use crate::peers::{self, module_dir};
use crate::text::human_duration;

const PROGRAM: &str = include_str!("plugin.go");
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// The server asks for the current key every minute.
const POLLED: Duration = Duration::from_secs(120);

#[derive(Debug, Args)]
pub struct Options {
    /// Our binary [default: built with the profile `ci`]
    #[arg(long)]
    capstan: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<()> {
    let begin = Instant::now();
    let binary = capstan::binary(options.capstan.as_deref())?;
    let mut workdir = Workdir::new("kms")?;
    let plugin = Plugin::build(workdir.path())?;
    let folder = workdir.folder("server")?;
    let config = workdir.path().join("encryption.yaml");
    std::fs::write(&config, plugin.configuration())?;
    let config = config.to_str().context("the path is not UTF-8")?;
    let arguments = ["--api-only", "--encryption-provider-config", config];
    let data = folder.join("data");

    plugin.add_key("one", 1)?;
    let mut running = plugin.start()?;
    let mut server = Server::capstan_with(&folder, &binary, free_port()?, &arguments).await?;
    create(&server.api()?, "first", "hunter-first").await?;
    ensure!(!holds(&data, b"hunter-first")?, "a Secret is in the files");
    ensure!(status(&binary, &data, config)?.contains("key one of the KMS plug-in upstream"));
    println!("a plug-in on upstream's service wraps the data keys");

    running.kill()?;
    create(&server.api()?, "second", "hunter-second").await?;
    expect(&server.api()?, "first", "hunter-first").await?;
    ensure!(!holds(&data, b"hunter-second")?, "a Secret is in the files");
    server.stop()?;
    let refused =
        Command::new(&binary).arg("server").args(arguments).arg("--data-dir").arg(&data).output()?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success(), "a server starts without its plug-in");
    ensure!(said.contains("the KMS plug-in upstream") && said.contains("check that it runs"), "{said}");
    println!("without the plug-in the server goes on, and does not start again: {}", said.trim());

    let _running = plugin.start()?;
    let server = Server::capstan_with(&folder, &binary, free_port()?, &arguments).await?;
    expect(&server.api()?, "second", "hunter-second").await?;
    plugin.add_key("two", 2)?;
    wait::until("the new key of the plug-in", POLLED, || async {
        let shown = status(&binary, &data, config)?;
        let current = shown.lines().any(|line| line.contains("values: key two of the KMS plug-in"));
        Ok(current.then_some(()))
    })
    .await?;
    create(&server.api()?, "third", "hunter-third").await?;
    drop(server);
    let server = Server::capstan_with(&folder, &binary, free_port()?, &arguments).await?;
    for name in ["first", "second", "third"] {
        expect(&server.api()?, name, &format!("hunter-{name}")).await?;
    }
    ensure!(!holds(&data, b"hunter-")?, "a Secret is in the files");
    println!("a new key of the plug-in is taken up; all Secrets are readable");
    println!("kms: passed in {}", human_duration(begin.elapsed()));
    workdir.passed();
    Ok(())
}

async fn create(api: &Api, name: &str, value: &str) -> Result<()> {
    let secret = json!({"metadata": {"name": name}, "stringData": {"value": value}});
    api.post(SECRETS, &secret).await?.success()?;
    Ok(())
}

async fn expect(api: &Api, name: &str, value: &str) -> Result<()> {
    use base64::Engine as _;
    let secret = api.get(&format!("{SECRETS}/{name}")).await?.success()?;
    let found = secret["data"]["value"].as_str().unwrap_or_default();
    ensure!(
        base64::engine::general_purpose::STANDARD.decode(found)? == value.as_bytes(),
        "{name} has {found}"
    );
    Ok(())
}

/// What `capstan encryption status` prints.
fn status(binary: &Path, data: &Path, config: &str) -> Result<String> {
    let output = Command::new(binary)
        .args(["encryption", "status", "--encryption-provider-config", config, "--data-dir"])
        .arg(data)
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a file below a folder has these bytes, in clear text or in base64.
fn holds(folder: &Path, bytes: &[u8]) -> Result<bool> {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(bytes);
    // The last character of the encoding depends on what follows.
    let encoded = &encoded.as_bytes()[..encoded.len() - 2];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            holds(&path, bytes)?
        } else {
            let content = std::fs::read(&path)?;
            [bytes, encoded].iter().any(|wanted| content.windows(wanted.len()).any(|part| part == *wanted))
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A plug-in that can be started, and its keys.
struct Plugin {
    program: PathBuf,
    folder: PathBuf,
}

impl Plugin {
    fn build(folder: &Path) -> Result<Self> {
        let (module, version) = Family::Kubernetes.main_module();
        let upstream = module_dir(module, &version)?.join("go.mod");
        let upstream = std::fs::read_to_string(&upstream).with_context(|| upstream.display().to_string())?;
        let program = peers::small_program("kms-plugin", &Family::Kubernetes.go_mod(&upstream), PROGRAM)?;
        Ok(Self { program, folder: folder.to_owned() })
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("kms.sock")
    }

    fn configuration(&self) -> String {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - resources: [secrets]\n  providers:\n  - kms: {{apiVersion: v2, name: upstream, endpoint: \
             'unix://{}', timeout: 3s}}\n",
            self.socket().display()
        )
    }

    fn add_key(&self, id: &str, byte: u8) -> Result<()> {
        let path = self.folder.join("keys");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let secret = format!("{byte:02x}").repeat(32);
        // Renamed, so that the plug-in never reads half a line.
        let beside = self.folder.join("keys.new");
        std::fs::write(&beside, format!("{before}{id} {secret}\n"))?;
        std::fs::rename(beside, path).context("replace the keys")
    }

    fn start(&self) -> Result<Process> {
        let socket = self.socket();
        let _ = std::fs::remove_file(&socket);
        let mut process = Program::new("kms-plugin", &self.program)
            .arg(&socket)
            .arg(self.folder.join("keys"))
            .start(&self.folder)?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while !socket.exists() {
            process.check()?;
            ensure!(Instant::now() < deadline, "the plug-in does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }
}
