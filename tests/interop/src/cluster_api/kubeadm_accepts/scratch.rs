//! A root folder with the files of the boot data, to which kubeadm is confined.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_types::bootstrap::{Format, KubeadmConfigSpec};
use serde_json::Value;

pub struct Scratch {
    root: PathBuf,
    kubeadm: PathBuf,
    /// Path of kubeadm's configuration inside the root. Set by `boot`.
    config: RefCell<String>,
}

/// Result of a kubeadm command.
pub struct KubeadmResult {
    command: String,
    succeeded: bool,
    output: String,
}

impl KubeadmResult {
    pub fn must_succeed(&self) -> Result<()> {
        ensure!(self.succeeded, "{}: {}", self.command, self.output.trim());
        Ok(())
    }

    pub fn must_fail(&self, message: &str) -> Result<()> {
        ensure!(!self.succeeded, "{} accepted it", self.command);
        ensure!(
            self.output.contains(message),
            "{} rejected it, but without {message:?}: {}",
            self.command,
            self.output
        );
        Ok(())
    }
}

impl Scratch {
    pub fn new(root: PathBuf, kubeadm: PathBuf) -> Self {
        Self { root, kubeadm, config: RefCell::default() }
    }

    /// Does what the first boot does before kubeadm runs: renders the template and writes the files.
    pub fn boot(&self, data: &[u8], spec: &KubeadmConfigSpec) -> Result<()> {
        let text = std::str::from_utf8(data)?.replace("{{ ds.meta_data.local_hostname }}", "node-1");
        let config = match spec.format {
            Some(Format::Ignition) => self.ignition(&serde_json::from_str(&text)?)?,
            _ => self.cloud_config(&serde_saphyr::from_str(&text)?)?,
        };
        *self.config.borrow_mut() = config;
        Ok(())
    }

    fn cloud_config(&self, config: &Value) -> Result<String> {
        for file in config["write_files"].as_array().context("no files")? {
            let text = |key: &str| file[key].as_str().unwrap_or_default();
            let content = match text("encoding") {
                "" => text("content").as_bytes().to_vec(),
                "base64" => STANDARD.decode(text("content").trim())?,
                other => bail!("encoding {other}"),
            };
            let mode = u32::from_str_radix(text("permissions"), 8).unwrap_or(0o644);
            self.write(text("path"), &content, mode)?;
        }
        config_of(config["runcmd"].as_array().context("no commands")?.iter().filter_map(Value::as_str))
    }

    fn ignition(&self, config: &Value) -> Result<String> {
        let mut script = String::new();
        for file in config["storage"]["files"].as_array().context("no files")? {
            let path = file["path"].as_str().context("no path")?;
            let source = file["contents"]["source"].as_str().context("no source")?;
            let encoded = source.strip_prefix("data:,").context("no data")?;
            let content: Vec<u8> = percent_encoding::percent_decode_str(encoded).collect();
            if path == "/etc/kubeadm.sh" {
                script = String::from_utf8(content.clone())?;
            }
            let mode = file["mode"].as_u64().and_then(|mode| u32::try_from(mode).ok()).context("no mode")?;
            self.write(path, &content, mode)?;
        }
        config_of(script.lines())
    }

    fn write(&self, path: &str, content: &[u8], mode: u32) -> Result<()> {
        let target = self.inside(path);
        fs::create_dir_all(target.parent().context("no parent")?)?;
        fs::write(&target, content).with_context(|| target.display().to_string())?;
        fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.inside(path)).with_context(|| format!("kubeadm did not write {path}"))
    }

    pub fn edit_config(&self, edit: impl FnOnce(String) -> String) -> Result<()> {
        let path = self.config.borrow().clone();
        fs::write(self.inside(&path), edit(self.read(&path)?))?;
        Ok(())
    }

    /// Runs kubeadm with its configuration, inside the root. Uses a user namespace unless the suite runs as root.
    pub fn kubeadm(&self, arguments: &[&str]) -> Result<KubeadmResult> {
        let mut command = if rustix::process::geteuid().is_root() {
            Command::new(&self.kubeadm)
        } else {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user"]).arg(&self.kubeadm);
            command
        };
        command
            .args(arguments)
            .arg("--rootfs")
            .arg(&self.root)
            .arg("--config")
            .arg(self.config.borrow().as_str());
        let output = command.output().with_context(|| format!("run {}", self.kubeadm.display()))?;
        let printed = [output.stdout, output.stderr].concat();
        Ok(KubeadmResult {
            command: format!("kubeadm {}", arguments.join(" ")),
            succeeded: output.status.success(),
            output: String::from_utf8_lossy(&printed).into_owned(),
        })
    }
}

/// The configuration that the boot data's kubeadm command names.
fn config_of<'a>(mut commands: impl Iterator<Item = &'a str>) -> Result<String> {
    let command = commands.find(|command| command.starts_with("kubeadm ")).context("kubeadm is not run")?;
    let mut words = command.split_whitespace();
    words.find(|word| *word == "--config").context("kubeadm has no configuration")?;
    Ok(words.next().context("kubeadm has no configuration")?.to_owned())
}
