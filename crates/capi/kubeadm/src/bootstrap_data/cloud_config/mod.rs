//! Bootstrap data for cloud-init.
//!
//! Section order, file modes and commands match upstream because images rely on them. Values are quoted where
//! upstream inserts them verbatim, so no value can change the structure of the document.

mod sections;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use capstan_capi_types::bootstrap::File;

use crate::bootstrap_data::data::{BootstrapData, KubeadmCommand, SENTINEL};
use crate::yaml;

/// cloud-init renders `{{ ds.meta_data… }}` before it parses the document.
const HEADER: &str = "## template: jinja\n#cloud-config\n";
const PLACEHOLDER: &str = "/run/cluster-api/placeholder";
const PLACEHOLDER_CONTENT: &str =
    "keeps the directory of the bootstrap sentinel, which mkdir -p cannot make on every operating system";

/// Path of kubeadm's configuration on the first node.
const INIT_CONFIG: &str = "/run/kubeadm/kubeadm.yaml";
/// Path of kubeadm's configuration on a joining node.
const JOIN_CONFIG: &str = "/run/kubeadm/kubeadm-join-config.yaml";

pub(crate) fn render(data: &BootstrapData<'_>) -> String {
    let mut out = String::from(HEADER);
    out.push_str("\nwrite_files:\n");
    for file in data.all_files() {
        write_file(&mut out, file);
    }
    let (path, config) = kubeadm_config(&data.run);
    write_file(&mut out, &own_file(path, &config));
    write_file(&mut out, &own_file(PLACEHOLDER, PLACEHOLDER_CONTENT));

    let spec = data.spec;
    if !spec.boot_commands.is_empty() {
        out.push_str("bootcmd:\n");
        write_commands(&mut out, &spec.boot_commands);
    }
    out.push_str("runcmd:\n");
    write_commands(&mut out, &spec.pre_kubeadm_commands);
    let verb = if matches!(data.run, KubeadmCommand::Init { .. }) { "init" } else { "join" };
    let command = format!("kubeadm {verb} --config {path}{} && {SENTINEL}", data.verbosity());
    let _ = writeln!(out, "  - {}", yaml::scalar(&command));
    write_commands(&mut out, &spec.post_kubeadm_commands);
    sections::ntp(&mut out, &spec.ntp);
    sections::users(&mut out, &data.users);
    sections::disk_setup(&mut out, &spec.disk_setup);
    sections::mounts(&mut out, &spec.mounts);
    out
}

fn kubeadm_config(run: &KubeadmCommand) -> (&'static str, String) {
    match run {
        KubeadmCommand::Init { cluster_configuration, init_configuration } => {
            (INIT_CONFIG, format!("---\n{cluster_configuration}---\n{init_configuration}"))
        }
        KubeadmCommand::JoinControlPlane { join_configuration }
        | KubeadmCommand::JoinWorker { join_configuration } => {
            (JOIN_CONFIG, format!("---\n{join_configuration}"))
        }
    }
}

fn own_file(path: &str, content: &str) -> File {
    File {
        path: path.to_owned(),
        owner: "root:root".to_owned(),
        permissions: "0640".to_owned(),
        content: content.to_owned(),
        ..File::default()
    }
}

/// One entry of `write_files`. A file ends with one newline, as upstream's do, however many its content has.
fn write_file(out: &mut String, file: &File) {
    let _ = writeln!(out, "-   path: {}", yaml::scalar(&file.path));
    if let Some(encoding) = file.encoding {
        let _ = writeln!(out, "    encoding: {}", yaml::double_quoted(encoding.as_str()));
    }
    if !file.owner.is_empty() {
        let _ = writeln!(out, "    owner: {}", yaml::scalar(&file.owner));
    }
    if !file.permissions.is_empty() {
        // Always quoted: a mode read as a number would be read in base ten.
        let _ = writeln!(out, "    permissions: '{}'", file.permissions.replace('\'', "''"));
    }
    if let Some(append) = file.append {
        let _ = writeln!(out, "    append: {append}");
    }
    if yaml::fits_block(&file.content) {
        let _ = writeln!(out, "    content: {}", yaml::block_header(&file.content, 2));
        let _ = writeln!(out, "{}", yaml::indented(&file.content, 6));
    } else {
        let _ = writeln!(out, "    content: {}", yaml::double_quoted(&file.content));
    }
}

fn write_commands(out: &mut String, commands: &[String]) {
    for command in commands {
        let _ = writeln!(out, "  - {}", yaml::double_quoted(command));
    }
}
