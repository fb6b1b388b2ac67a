//! `capstan generate`: manifests from the providers' cluster templates, without clusterctl.

mod template;

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use capstan_provider_kit::{Flavor, Provider, Shape};

use crate::exit::Exit;
use crate::output::{print_as_it_is, print_line};
use crate::plugins::Plugins;

pub use template::{rendered, variables};

/// Limit of a template, in bytes.
const LARGEST: u64 = 4 << 20;

/// Arguments of `capstan generate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the manifest of a cluster from a flavor of a provider; variables come from --set and the environment
    Cluster(ClusterArgs),
}

#[derive(Debug, clap::Args)]
struct ClusterArgs {
    /// Name of the cluster
    name: String,
    #[command(flatten)]
    choice: FlavorArgs,
    /// Template file instead of a flavor; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["provider", "flavor"])]
    from: Option<PathBuf>,
    /// Kubernetes version, such as v1.36.0
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
    /// Machines of the control plane
    #[arg(long, value_name = "N")]
    control_plane_machine_count: Option<u32>,
    /// Workers
    #[arg(long, value_name = "N")]
    worker_machine_count: Option<u32>,
    /// Namespace of the objects
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Value of a variable
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Print the variables of the template and their defaults
    #[arg(long)]
    list_variables: bool,
}

/// The choice of a template.
#[derive(Debug, clap::Args)]
pub struct FlavorArgs {
    /// Infrastructure provider; by default the one whose credentials are in the environment
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Flavor of the template, such as kube-vip; the default one if not given
    #[arg(long, value_name = "NAME", default_value = "")]
    pub flavor: String,
}

/// Reads `NAME=VALUE`.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| format!("{text:?} is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Refuses values of variables that a template does not have, such as a name with a typo.
pub fn check_names(template: &str, set: &[(String, String)]) -> Result<()> {
    let known = variables(template).map_err(|why| anyhow!(why))?;
    match set.iter().find(|(name, _)| known.iter().all(|variable| variable.name != *name)) {
        None => Ok(()),
        Some((name, value)) => {
            let names: Vec<&str> = known.iter().map(|variable| variable.name.as_str()).collect();
            bail!("--set {name}={value}: the template has no such variable; it has {}", names.join(", "))
        }
    }
}

/// Refuses versions and numbers of machines that no provider can carry out.
pub fn check_shapes(value: impl Fn(&str) -> Option<String>) -> Result<()> {
    for (name, shape) in [
        ("KUBERNETES_VERSION", Shape::Version),
        ("CONTROL_PLANE_MACHINE_COUNT", Shape::OddCount),
        ("WORKER_MACHINE_COUNT", Shape::Count),
    ] {
        // An empty value is none.
        if let Some(value) = value(name).filter(|value| !value.is_empty()) {
            shape.check(&value).map_err(|why| anyhow!("{name}={value}: {why}"))?;
        }
    }
    Ok(())
}

impl FlavorArgs {
    /// The provider that was chosen, or the only one that `fits` and has its credentials in the environment.
    pub fn provider<'a>(
        &self,
        plugins: &'a Plugins,
        fits: impl Fn(&dyn Provider) -> bool,
    ) -> Result<&'a dyn Provider> {
        let fitting: Vec<&dyn Provider> =
            plugins.providers().map(AsRef::as_ref).filter(|provider| fits(*provider)).collect();
        let names: Vec<&str> = fitting.iter().map(|provider| provider.name()).collect();
        let known = || fitting.iter().filter(|provider| has_credentials(**provider));
        let found = match &self.provider {
            None if fitting.len() == 1 => fitting.first(),
            None if known().count() == 1 => known().next(),
            None => bail!(
                "--provider is needed: one of {}; or set the credentials of one in the environment: {}",
                names.join(", "),
                fitting
                    .iter()
                    .map(|provider| variables_of(*provider).join(", "))
                    .collect::<Vec<_>>()
                    .join("; or ")
            ),
            Some(name) => fitting.iter().find(|provider| provider.name() == name),
        };
        let name = self.provider.as_deref().unwrap_or_default();
        found.copied().with_context(|| format!("--provider {name}: expected one of {}", names.join(", ")))
    }

    /// The template of the chosen flavor.
    pub fn template(&self, provider: &dyn Provider) -> Result<&'static str> {
        let flavors: &'static [Flavor] = provider.flavors();
        let found = flavors.iter().find(|flavor| flavor.name == self.flavor);
        let names: Vec<&str> = flavors.iter().map(|it| it.name).filter(|name| !name.is_empty()).collect();
        let wrong = || format!("--flavor {}: {} has {}", self.flavor, provider.title(), names.join(", "));
        Ok(found.with_context(wrong)?.template)
    }
}

/// The environment variables with the credentials of a provider.
fn variables_of(provider: &dyn Provider) -> Vec<&'static str> {
    let fields = provider.surveyor().map(|surveyor| surveyor.credentials()).unwrap_or_default();
    fields.iter().map(|field| field.variable).collect()
}

fn has_credentials(provider: &dyn Provider) -> bool {
    let variables = variables_of(provider);
    !variables.is_empty() && variables.iter().all(|variable| std::env::var_os(variable).is_some())
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    let What::Cluster(args) = &args.what;
    let template = match &args.from {
        Some(file) => read(file)?,
        None => {
            args.choice.template(args.choice.provider(plugins, |it| !it.flavors().is_empty())?)?.to_owned()
        }
    };
    if args.list_variables {
        for variable in variables(&template).map_err(|why| anyhow!(why))? {
            let default = variable.default.map_or("required".to_owned(), |it| format!("default {it:?}"));
            print_line(&format!("{}: {default}", variable.name))?;
        }
        return Ok(Exit::Done);
    }
    let count = |count: Option<u32>| count.map(|count| count.to_string());
    let value = |name: &str| {
        let flag = match name {
            "CLUSTER_NAME" => Some(args.name.clone()),
            "NAMESPACE" => args.namespace.clone(),
            "KUBERNETES_VERSION" => args.kubernetes_version.clone(),
            "CONTROL_PLANE_MACHINE_COUNT" => count(args.control_plane_machine_count),
            "WORKER_MACHINE_COUNT" => count(args.worker_machine_count),
            _ => None,
        };
        let set = || args.set.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.clone());
        flag.or_else(set).or_else(|| std::env::var(name).ok())
    };
    check_names(&template, &args.set)?;
    // Templates of a file may have another control plane, and versions of another shape.
    if args.from.is_none() {
        check_shapes(value)?;
    }
    let text = rendered(&template, value).map_err(|why| anyhow!(why))?;
    // A value may have changed more than a scalar.
    crate::apply::read(&text).context("the manifest is not valid; check the values of the variables")?;
    print_as_it_is(text.trim_end())?;
    Ok(Exit::Done)
}

fn read(file: &PathBuf) -> Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    match file.as_os_str() == "-" {
        true => std::io::stdin().take(LARGEST).read_to_string(&mut text),
        false => std::fs::File::open(file).and_then(|opened| opened.take(LARGEST).read_to_string(&mut text)),
    }
    .with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text)
}
