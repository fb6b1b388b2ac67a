//! `capstan init`: credentials and manifest of a first cluster, from what a cloud has to offer.

mod ask;
mod files;

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use capstan_provider_kit::{Answers, CredentialValues, Finding, Provider, Question, Severity, Surveyor};
use capstan_schema::meta::{dns1123_label, dns1123_subdomain};

use crate::exit::Exit;
use crate::generate::{FlavorArgs, assignment, check_names, check_shapes, rendered, variables};
use crate::output::{eprint_line, print_line};
use crate::plugins::Plugins;

/// The variable with the value of the label `cni` of the Cluster.
const CNI_LABEL: &str = "CNI_LABEL";

/// Arguments of `capstan init`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the cluster
    name: String,
    #[command(flatten)]
    choice: FlavorArgs,
    /// Kubernetes version, such as v1.36.0; by default that of the chosen image
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
    /// Machines of the control plane
    #[arg(long, value_name = "N")]
    control_plane_machine_count: Option<u32>,
    /// Workers
    #[arg(long, value_name = "N")]
    worker_machine_count: Option<u32>,
    /// Answer to a question, or value of another variable of the template
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Manifest of a CNI that the cluster gets when its API answers
    #[arg(long, value_name = "FILE")]
    cni: Option<PathBuf>,
    /// Namespace of the cluster and its credentials
    #[arg(long, short, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// Directory for the files
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    /// Accept the proposed values instead of asking
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &Args, plugins: &Plugins) -> Result<Exit> {
    if let Some(wrong) = dns1123_subdomain(&args.name).into_iter().next() {
        bail!("{}: not a name of a cluster: {wrong}", args.name);
    }
    let provider = args.choice.provider(plugins, |it| it.surveyor().is_some())?;
    let surveyor = provider.surveyor().context("the provider cannot propose clusters")?;
    let template = args.choice.template(provider)?;
    check_names(template, &args.set)?;
    let paths = files::Paths::of(&args.to, &args.name)?;
    paths.check(args.force)?;
    let mut answers = given(args, surveyor, |name| std::env::var(name).ok());
    check_shapes(|name| answers.get(name).cloned())?;
    let [secret_name, secret_namespace] =
        surveyor.secret_variables().map(|name| answers.get(name).cloned().unwrap_or_default());
    for (what, wrong) in [
        (&secret_name, dns1123_subdomain(&secret_name)),
        (&secret_namespace, dns1123_label(&secret_namespace)),
    ] {
        if let Some(wrong) = wrong.into_iter().next() {
            bail!("{what:?}: not a name of a Secret or its namespace: {wrong}");
        }
    }
    let credentials = ask::credentials(surveyor, args.yes)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let chosen = runtime.block_on(choose(args, provider, surveyor, &credentials, &mut answers))?;
    let findings = runtime.block_on(surveyor.check(&credentials, &answers));
    report(&findings);

    let value = |name: &str| answers.get(name).cloned().or_else(|| std::env::var(name).ok());
    let body = rendered(template, value).map_err(|why| anyhow!(why))?;
    let cni = args.cni.as_deref().map(|file| files::cni(file, &args.name, &args.namespace)).transpose()?;
    let manifest = files::manifest(provider.title(), &args.name, &chosen, &body, cni.as_deref())?;
    let secret = files::secret(provider.title(), &secret_name, &secret_namespace, &credentials);
    paths.write(&secret, &manifest)?;
    let label =
        match variables(template).map_err(|why| anyhow!(why))?.into_iter().find(|it| it.name == CNI_LABEL) {
            Some(variable) => value(CNI_LABEL).filter(|value| !value.is_empty()).or(variable.default),
            None => None,
        };
    print_line(&next(args, &paths, cni.is_some(), label.as_deref()))?;
    let failed = findings.iter().any(|finding| finding.severity == Severity::Bad);
    Ok(if failed { Exit::Blocked } else { Exit::Done })
}

/// Answers of the command line, and those of the environment where it has none.
fn given(args: &Args, surveyor: &dyn Surveyor, environment: impl Fn(&str) -> Option<String>) -> Answers {
    let count = |count: Option<u32>| count.map(|count| count.to_string());
    let flags = [
        ("CLUSTER_NAME", Some(args.name.clone())),
        ("NAMESPACE", Some(args.namespace.clone())),
        ("KUBERNETES_VERSION", args.kubernetes_version.clone()),
        ("CONTROL_PLANE_MACHINE_COUNT", count(args.control_plane_machine_count)),
        ("WORKER_MACHINE_COUNT", count(args.worker_machine_count)),
        (CNI_LABEL, args.cni.as_ref().map(|_| args.name.clone())),
    ];
    let flags = flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut answers: Answers = flags.chain(args.set.iter().cloned()).collect();
    for (name, variable) in surveyor.environment() {
        if let Some(value) = environment(variable).filter(|value| !value.is_empty()) {
            answers.entry((*name).to_owned()).or_insert(value);
        }
    }
    for (name, value) in
        surveyor.secret_variables().into_iter().zip([surveyor.secret_name(), &args.namespace])
    {
        answers.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    answers
}

/// Asks until the provider has no more questions. Returns what was chosen, as comments of the manifest.
async fn choose(
    args: &Args,
    provider: &dyn Provider,
    surveyor: &dyn Surveyor,
    credentials: &CredentialValues,
    answers: &mut Answers,
) -> Result<Vec<String>> {
    /// A provider that asks for ever is a bug.
    const MOST: usize = 100;
    let given: Vec<String> = answers.keys().cloned().collect();
    let mut chosen = Vec::new();
    for _ in 0..MOST {
        let question = surveyor.next(credentials, answers).await;
        let Some(question) = question.with_context(|| format!("cannot ask {}", provider.title()))? else {
            verify(provider, surveyor, credentials, answers, &given).await?;
            return Ok(chosen);
        };
        let value = match ask::question(&question, args.yes) {
            Ok(value) => value,
            Err(why) => {
                // An answer that the cloud does not know may be why it has nothing to propose.
                verify(provider, surveyor, credentials, answers, &given).await?;
                return Err(why);
            }
        };
        chosen.push(comment(&question, &value));
        answers.insert(question.variable.to_owned(), value);
    }
    bail!("{} has too many questions; report it as a bug", provider.title());
}

/// Checks answers of the command line against what the cloud has, one by one.
async fn verify(
    provider: &dyn Provider,
    surveyor: &dyn Surveyor,
    credentials: &CredentialValues,
    answers: &Answers,
    given: &[String],
) -> Result<()> {
    for name in given {
        let mut without = answers.clone();
        let Some(value) = without.remove(name) else { continue };
        let question = surveyor.next(credentials, &without).await;
        let question = question.with_context(|| format!("cannot ask {}", provider.title()))?;
        let Some(question) = question.filter(|question| question.variable == name) else { continue };
        if let Some(shape) = question.others {
            shape.check(&value).map_err(|why| anyhow!("{name}={value}: {why}"))?;
        } else if question.choices.iter().all(|choice| choice.value != value) {
            let known: Vec<&str> = question.choices.iter().map(|choice| choice.value.as_str()).collect();
            bail!(
                "{name}={value}: {} has no such {}; it has {}",
                provider.title(),
                question.title,
                known.join(", ")
            );
        }
    }
    Ok(())
}

fn comment(question: &Question, value: &str) -> String {
    let others: Vec<&str> =
        question.choices.iter().map(|choice| choice.value.as_str()).filter(|other| *other != value).collect();
    let more = match others.len() {
        0 => String::new(),
        count => {
            format!(" (also: {}{})", others[..count.min(5)].join(", "), if count > 5 { ", …" } else { "" })
        }
    };
    format!("{}: {value}{more}", question.title)
}

fn report(findings: &[Finding]) {
    for finding in findings {
        let (mark, fix) = match finding.severity {
            Severity::Fine => ("ok", String::new()),
            Severity::Warning => ("warning", format!("; {}", finding.mend)),
            Severity::Bad => ("error", format!("; {}", finding.mend)),
        };
        eprint_line(&format!("{mark}: {}{fix}", finding.what));
    }
}

/// `label` is the value of the Cluster's label `cni`.
fn next(args: &Args, paths: &files::Paths, cni: bool, label: Option<&str>) -> String {
    let (secret, manifest) = (paths.secret.display(), paths.manifest.display());
    let selected =
        label.map(|label| format!(", or apply a ClusterResourceSet that selects the label cni={label}"));
    let without_cni = match cni {
        true => String::new(),
        false => format!(
            "\nnodes are NotReady until a CNI is installed: use --cni FILE{}",
            selected.unwrap_or_default()
        ),
    };
    format!(
        "wrote {secret} and {manifest}\n\
         next: capstan up -f {secret} -f {manifest} -n {}{without_cni}",
        args.namespace
    )
}
