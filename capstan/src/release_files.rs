//! `capstan release-files`: what a release contains of the program besides the program. For `cargo xtask release`, which
//! packs a binary without the product's crates.
//!
//! ```text
//! man/capstan.1, man/capstan-server.1, …
//! completions/capstan.bash, _capstan, capstan.fish
//! definitions/cluster-api.yaml, infrastructure-NAME.yaml
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use capstan_provider_kit::Provider;
use clap::Command;
use clap_complete::Shell;
use serde_json::Value;

use crate::completion;
use crate::plugins::Plugins;

/// Arguments of `capstan release-files`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory to write into; made if it does not exist
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Writes the files.
pub fn run(args: &Args, command: Command, plugins: &Plugins) -> Result<()> {
    write(&args.to, command, plugins).with_context(|| format!("write into {}", args.to.display()))
}

fn write(folder: &Path, command: Command, plugins: &Plugins) -> Result<()> {
    // The pages of `help VERB` would repeat those of the verbs. Before completions, which complete the command itself.
    let for_pages = command.clone().disable_help_subcommand(true);
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, name) in
        [(Shell::Bash, "capstan.bash"), (Shell::Zsh, "_capstan"), (Shell::Fish, "capstan.fish")]
    {
        fs::write(completions.join(name), completion::script(shell, command.clone()))?;
    }
    let pages = folder.join("man");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(for_pages, &pages)?;

    let definitions = folder.join("definitions");
    fs::create_dir_all(&definitions)?;
    let own = capstan_capi_plane::definitions();
    fs::write(definitions.join("cluster-api.yaml"), yaml(&own)?)?;
    for provider in plugins.providers() {
        let path = definitions.join(file_name(provider.as_ref()));
        fs::write(path, yaml(&provider.definitions())?)?;
    }
    Ok(())
}

/// A provider's file is named as clusterctl names the provider; a front end is none.
fn file_name(provider: &dyn Provider) -> String {
    let label = provider.installed().map(|entry| entry.label());
    format!("{}.yaml", label.unwrap_or_else(|| provider.name().to_owned()))
}

/// One document each.
fn yaml(objects: &[Value]) -> Result<String> {
    let documents: Vec<String> = objects.iter().map(serde_saphyr::to_string).collect::<Result<_, _>>()?;
    Ok(documents
        .iter()
        .map(|document| format!("{}\n", document.trim_end()))
        .collect::<Vec<_>>()
        .join("---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page_and_definitions_read_back() {
        let plugins = Plugins::new(crate::providers());
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), crate::cli::command(&plugins), &plugins).expect("written");
        let program = crate::cli::command(&plugins);
        for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let page = folder.path().join("man").join(format!("capstan-{}.1", verb.get_name()));
            assert!(page.exists(), "{}", page.display());
        }
        for page in ["capstan-demo-cloud.1", "capstan-help-server.1"] {
            assert!(!folder.path().join("man").join(page).exists(), "{page}");
        }
        for shell in ["capstan.bash", "_capstan", "capstan.fish"] {
            assert!(folder.path().join("completions").join(shell).exists(), "{shell}");
        }
        for provider in plugins.providers() {
            let path = folder.path().join("definitions").join(file_name(provider.as_ref()));
            let text = fs::read_to_string(path).expect("definitions");
            let read: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
            assert_eq!(read, provider.definitions(), "{}", provider.name());
        }
    }
}
