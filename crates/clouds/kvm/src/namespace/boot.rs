//! Converts user data to what a machine executes: staged files, and scripts in cloud-init's order.
//!
//! ```text
//!   bootcmd ─▶ write_files ─▶ hostname, users ─▶ write_files (deferred) ─▶ runcmd
//! ```
//!
//! It is parsed on the host, with limits, and executed in the machine by its own shell and tools. A failed module is
//! reported on the console and does not prevent the following ones, as with cloud-init.

use std::fmt::Write as _;
use std::path::Path;

use capstan_user_data::{Failed, File, Metadata, UserData, files, read, script};
use serde_json::{Map, Value, json};

use super::run::{at, make_folder};
use crate::backend::{BackendError, MachineSpec};

type Config = Map<String, Value>;

/// Where a machine finds its staged files.
const STAGE: &str = "/run/capstan";

/// What a machine executes at its first boot.
#[derive(Debug, Default)]
pub(super) struct Plan {
    script: String,
    staged: Vec<(String, Vec<u8>)>,
}

impl Plan {
    /// The boot plan of a machine. Errors in the user data are reported on its console.
    pub(super) fn of(spec: &MachineSpec, address: &str) -> Self {
        let v1 = json!({
            "instance_id": spec.id, "local_hostname": spec.name, "cloud_name": "kvm", "platform": "kvm",
            "distro": "debian", "machine": std::env::consts::ARCH,
        });
        let meta_data = json!({
            "instance_id": spec.id, "local_hostname": spec.name, "hostname": spec.name, "name": spec.name,
            "local_ipv4": address, "uuid": spec.id, "provider_id": spec.provider_id,
        });
        let mut plan = Self::default();
        plan.line("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        match read(&spec.user_data, &Metadata::new(&v1, &meta_data)) {
            Ok(parsed) => {
                for warning in &parsed.warnings {
                    plan.report(warning);
                }
                match parsed.data {
                    UserData::CloudConfig(config) => plan.cloud_config(&config),
                    UserData::Script(text) => plan.run("part-001", "script", &text),
                    UserData::Empty => plan.report("there is no user data"),
                    UserData::Ignition(_) => {
                        plan.report("user data is for Ignition, which this image does not have")
                    }
                }
            }
            Err(bad) => plan.report(&bad.0),
        }
        plan
    }

    /// Writes it to the directory of a machine.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackendError> {
        let staged = folder.join("files");
        make_folder(&staged)?;
        for (name, content) in &self.staged {
            let path = staged.join(name);
            std::fs::write(&path, content).map_err(at(&path))?;
        }
        let path = folder.join("boot.sh");
        std::fs::write(&path, &self.script).map_err(at(&path))
    }

    fn line(&mut self, line: &str) {
        self.script.push_str(line);
        self.script.push('\n');
    }

    fn report(&mut self, words: &str) {
        self.line(&format!("printf '%s\\n' {}", quoted(words)));
    }

    /// Runs a command and reports the module on the console if it fails.
    fn attempt(&mut self, module: &str, command: &str) {
        let words = quoted(&format!("Running module {module} failed: exit code"));
        let _ = writeln!(self.script, "{{ {command}; }} || printf '%s %s\\n' {words} $?");
    }

    fn stage(&mut self, content: Vec<u8>) -> String {
        let name = self.staged.len().to_string();
        let path = format!("{STAGE}/files/{name}");
        self.staged.push((name, content));
        path
    }

    fn run(&mut self, name: &str, module: &str, text: &str) {
        let staged = self.stage(text.as_bytes().to_vec());
        let path = quoted(&format!("/var/lib/cloud/instance/scripts/{name}"));
        self.attempt(module, &format!("install -D -m 0700 {staged} {path} && {path}"));
    }

    fn module(&mut self, name: &str, outcome: Result<(), Failed>) {
        if let Err(why) = outcome {
            self.report(&format!("Running module {name} failed: {why}"));
        }
    }

    fn cloud_config(&mut self, config: &Config) {
        self.commands(config, "bootcmd");
        self.write_files(config, false);
        self.hostname(config);
        let outcome = self.users(config);
        self.module("users_groups", outcome);
        self.write_files(config, true);
        for (section, why) in [
            ("ntp", "a machine of namespaces has its host's clock"),
            ("disk_setup", "a machine of namespaces has no disks"),
            ("fs_setup", "a machine of namespaces has no disks"),
            ("mounts", "a machine of namespaces has no disks; use hostVolumes"),
        ] {
            if config.get(section).is_some_and(|section| !section.is_null()) {
                self.report(&format!("{section} is skipped: {why}"));
            }
        }
        self.commands(config, "runcmd");
    }

    fn commands(&mut self, config: &Config, section: &str) {
        match script(config.get(section), section) {
            Ok(Some(text)) => self.run(section, section, &text),
            Ok(None) => {}
            Err(why) => self.module(section, Err(why)),
        }
    }

    fn write_files(&mut self, config: &Config, deferred: bool) {
        let mut found = Vec::new();
        let outcome = files(config, deferred, |file| {
            found.push(file);
            Ok(())
        });
        for file in found {
            match file {
                Ok(file) => self.write_file(file),
                Err(skipped) => self.report(&skipped.0),
            }
        }
        self.module("write_files", outcome);
    }

    fn write_file(&mut self, file: File) {
        let File { path, content, mode, owner, append } = file;
        let staged = self.stage(content);
        let (path, owner) = (quoted(&path), quoted(&owner));
        let put = if append {
            format!("mkdir -p \"$(dirname {path})\" && cat {staged} >> {path} && chmod {mode:04o} {path}")
        } else {
            format!("install -D -m {mode:04o} {staged} {path}")
        };
        self.attempt("write_files", &format!("{put} && chown {owner} {path}"));
    }

    fn hostname(&mut self, config: &Config) {
        let name = ["hostname", "fqdn"].iter().find_map(|field| config.get(*field).and_then(Value::as_str));
        if let Some(name) = name {
            let short = quoted(name.split('.').next().unwrap_or(name));
            self.attempt(
                "set_hostname",
                &format!("hostname {short} && printf '%s\\n' {short} > /etc/hostname"),
            );
        }
    }

    fn users(&mut self, config: &Config) -> Result<(), Failed> {
        let users = match config.get("users") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(users)) => users,
            Some(_) => return Err("users is not a list".to_owned()),
        };
        for user in users {
            let text = |field: &str| {
                user.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(quoted)
            };
            let name = match user {
                Value::String(name) if name == "default" => continue,
                Value::String(name) => quoted(name),
                _ => text("name").ok_or("'name' is a required property of a user")?,
            };
            let mut add = "useradd --create-home".to_owned();
            for (field, option) in [
                ("gecos", "--comment"),
                ("homedir", "--home-dir"),
                ("shell", "--shell"),
                ("groups", "--groups"),
                ("primary_group", "--gid"),
                ("passwd", "--password"),
            ] {
                if let Some(value) = text(field) {
                    let _ = write!(add, " {option} {value}");
                }
            }
            self.attempt("users_groups", &format!("id -u {name} > /dev/null 2>&1 || {add} {name}"));
            let keys = user.get("ssh_authorized_keys").and_then(Value::as_array).into_iter().flatten();
            let keys: Vec<&str> = keys.filter_map(Value::as_str).collect();
            if !keys.is_empty() {
                let staged = self.stage(format!("{}\n", keys.join("\n")).into_bytes());
                let home = format!("\"$(getent passwd {name} | cut -d: -f6)\"");
                let put = format!("install -D -m 0600 -o {name} {staged} {home}/.ssh/authorized_keys");
                self.attempt("users_groups", &put);
            }
            if let Some(rule) = user.get("sudo").and_then(Value::as_str) {
                let bare = user.get("name").and_then(Value::as_str).unwrap_or_default();
                let staged = self.stage(format!("{bare} {rule}\n").into_bytes());
                let put =
                    format!("mkdir -p /etc/sudoers.d && cat {staged} >> /etc/sudoers.d/90-cloud-init-users");
                self.attempt("users_groups", &put);
            }
        }
        Ok(())
    }
}

/// Quotes a word for the shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::Command;

    use super::*;

    fn plan(user_data: &str) -> Plan {
        let spec = MachineSpec {
            id: "a1".to_owned().try_into().expect("an id"),
            network: "n1".to_owned().try_into().expect("an id"),
            name: "node-1".to_owned(),
            provider_id: "kvm:///a1".to_owned(),
            image: "x".to_owned(),
            user_data: user_data.as_bytes().to_vec(),
            cpus: None,
            memory_mib: None,
            dns_servers: Vec::new(),
            host_volumes: Vec::new(),
            node_labels: BTreeMap::new(),
            node_taints: Vec::new(),
        };
        Plan::of(&spec, "10.89.0.2")
    }

    /// Executes a plan below a directory by rewriting its paths.
    fn execute(plan: &Plan, root: &Path) -> String {
        let stage = root.join("stage");
        plan.write(&stage).expect("staged");
        let text = plan.script.replace(STAGE, &stage.to_string_lossy());
        let text = text.replace("/var/lib/cloud", &root.join("cloud").to_string_lossy());
        let text = text.replace("/there", &root.join("there").to_string_lossy());
        let text = text.replace("chown 'root:root'", "true");
        let output = Command::new("sh").args(["-c", &text]).output().expect("a shell");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    #[test]
    fn a_cloud_config_is_executed_in_order_despite_failures() {
        let plan = plan(
            "## template: jinja\n#cloud-config\n\
             write_files:\n\
             - {path: /there/a, content: 'x {{ ds.meta_data.provider_id }}', permissions: '0600', owner: 'root:root'}\n\
             - {path: /there/a, content: ' y', append: true, permissions: '0640'}\n\
             - {path: /there/late, content: z, defer: true}\n\
             bootcmd: [echo first]\n\
             runcmd:\n- [echo, it's, second]\n- 'false && echo never'\n- exit 7\n",
        );
        let root = tempfile::tempdir().expect("a folder");
        let output = execute(&plan, root.path());
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines, ["first", "it's second", "Running module runcmd failed: exit code 7"]);
        let read = |name: &str| std::fs::read_to_string(root.path().join("there").join(name)).expect(name);
        assert_eq!(read("a"), "x kvm:///a1 y");
        assert_eq!(read("late"), "z");
        let mode = std::os::unix::fs::MetadataExt::mode(
            &std::fs::metadata(root.path().join("there/a")).expect("a file"),
        );
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn user_data_cannot_inject_commands() {
        let plan = plan(
            "#cloud-config\nwrite_files:\n- {path: \"/there/'; echo broken; '\", content: a, owner: '$(echo broken)'}\n",
        );
        let root = tempfile::tempdir().expect("a folder");
        let output = execute(&plan, root.path());
        assert!(!output.lines().any(|line| line == "broken"), "{output}");
        assert!(output.contains("Running module write_files failed"), "{output}");
        assert!(root.path().join("there/'; echo broken; '").is_file());
    }

    #[test]
    fn invalid_user_data_is_reported_without_being_quoted() {
        for (data, words) in [
            ("", "there is no user data"),
            ("hunter2", "Unhandled non-multipart"),
            ("#cloud-config\n[hunter2", "Failed loading yaml blob"),
            ("{\"ignition\": {}}", "Ignition"),
            ("#cloud-config\nruncmd: 7\n", "Running module runcmd failed"),
            ("#cloud-config\nntp: {servers: [a]}\n", "ntp is skipped"),
        ] {
            let root = tempfile::tempdir().expect("a folder");
            let output = execute(&plan(data), root.path());
            assert!(output.contains(words), "{data}: {output}");
            assert!(!output.contains("hunter2"), "{output}");
        }
    }
}
