//! The lifecycle API as a plug-in of the program.

use std::path::PathBuf;
use std::sync::Arc;

use capstan_capi_types::admission::Rules;
use capstan_cloudstack_provider::Clouds;
use capstan_controller::{Code, Env, Runtime, TcpDial};
use capstan_provider_kit::{
    FrontEnd, Installed, OpenedProvider, Provider, ProviderError, RunningProvider, Subcommand,
};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::adoption::TakeOver;
use crate::cluster::Settings;
use crate::cni::{Cni, Helm, Renderer};
use crate::release::Releases;
use crate::{admission, code, credentials, definitions};

/// EKS Anywhere's API for clusters on CloudStack.
pub struct Lifecycle {
    clouds: Clouds,
}

impl Lifecycle {
    /// Asks CloudStack by `clouds`.
    pub fn reaching(clouds: Clouds) -> Self {
        Self { clouds }
    }
}

/// Flags of the lifecycle API. It is off by default: with it `kubectl get clusters` is ambiguous, since its kind has the
/// plural of Cluster API's.
#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Serve EKS Anywhere's API for clusters on CloudStack: Cluster, CloudStackDatacenterConfig, CloudStackMachineConfig
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    lifecycle: bool,
    /// File with the Kubernetes releases that such clusters may have; docs/lifecycle.md shows one
    #[arg(long, value_name = "FILE")]
    lifecycle_releases: Option<PathBuf>,
    /// CNI of such clusters: manifests or a Helm chart as a file, a directory or a URL; `calico=SOURCE` is used for
    /// clusters that request Calico; docs/lifecycle.md shows sources
    #[arg(long, value_name = "SOURCE")]
    lifecycle_cni: Vec<String>,
}

/// Largest file of releases that is read.
const MOST: u64 = 1_000_000;

fn read(path: &PathBuf) -> Result<String, ProviderError> {
    let failed = |error| ProviderError::caused_by(format!("cannot read {}", path.display()), error);
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MOST {
        return Err(ProviderError::new(format!(
            "{} has {size} bytes: at most {MOST} are read",
            path.display()
        )));
    }
    std::fs::read_to_string(path).map_err(failed)
}

impl Flags {
    async fn settings(&self) -> Result<Settings, ProviderError> {
        let mut settings = Settings::default();
        if let Some(path) = &self.lifecycle_releases {
            settings.releases = Releases::parse(&read(path)?).map_err(|why| {
                let flag = format!("--lifecycle-releases {}", path.display());
                ProviderError::new(format!("{}: {flag}: {why}", code::RELEASES))
            })?;
        }
        let failed = |why: String| ProviderError::new(format!("--lifecycle-cni {why}"));
        settings.cni = Cni::of_flags(&self.lifecycle_cni).map_err(failed)?;
        if settings.cni.has_charts() {
            let helm = Helm::find("helm").await.map_err(|why| failed(format!("names a chart: {why}")))?;
            settings.renderer = Renderer::new(Arc::new(helm));
        }
        Ok(settings)
    }
}

impl Provider for Lifecycle {
    fn name(&self) -> &'static str {
        "lifecycle"
    }

    fn title(&self) -> &'static str {
        "Lifecycle API"
    }

    fn definitions(&self) -> Vec<Value> {
        definitions::definitions()
    }

    fn rules(&self) -> Vec<Rules> {
        admission::rules()
    }

    fn codes(&self) -> &'static [Code] {
        code::CATALOGUE
    }

    /// A front end of Cluster API, and none of its providers.
    fn installed(&self) -> Option<Installed> {
        None
    }

    fn front_end(&self) -> Option<&dyn FrontEnd> {
        Some(&TakeOver)
    }

    fn arguments(&self, command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn commands(&self) -> Vec<Subcommand> {
        vec![credentials::command()]
    }

    fn open<'a>(&'a self, matches: &'a ArgMatches, _: &'a Env) -> BoxFuture<'a, OpenedProvider> {
        let flags = Flags::from_arg_matches(matches)
            .map_err(|error| ProviderError::caused_by("the flags of --lifecycle", error));
        Box::pin(async move {
            let flags = flags?;
            if !flags.lifecycle {
                return Ok(None);
            }
            let running = Running { clouds: self.clouds.clone(), settings: flags.settings().await? };
            Ok(Some(Arc::new(running) as Arc<dyn RunningProvider>))
        })
    }
}

struct Running {
    clouds: Clouds,
    settings: Settings,
}

impl RunningProvider for Running {
    fn add_controllers(&self, runtime: &mut Runtime) {
        crate::add_controllers(runtime, &self.clouds, Arc::new(TcpDial), &self.settings);
    }
}

#[cfg(test)]
mod tests {
    use capstan_cloudstack_provider::OverNetwork;

    use super::*;

    #[test]
    fn it_is_served_if_asked_for() {
        let lifecycle = Lifecycle::reaching(Clouds::new(Arc::new(OverNetwork)));
        let served = |arguments: &[&'static str]| {
            let command = lifecycle.arguments(Command::new("server"));
            let matches = command.get_matches_from([&["server"], arguments].concat());
            Flags::from_arg_matches(&matches).expect("flags").lifecycle
        };
        assert!(!served(&[]));
        assert!(served(&["--lifecycle=true"]));
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_named() {
        let none = "/nonexistent/it.yaml";
        let of = |releases: Option<PathBuf>, cni: &[&str]| Flags {
            lifecycle: true,
            lifecycle_releases: releases,
            lifecycle_cni: cni.iter().map(|it| (*it).to_owned()).collect(),
        };
        let error = of(Some(none.into()), &[]).settings().await.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("cannot read /nonexistent/it.yaml"));
        let error = of(None, &[none]).settings().await.err().map(|error| error.to_string());
        assert!(
            error.is_some_and(|it| it.starts_with("--lifecycle-cni /nonexistent/it.yaml: cannot be read"))
        );
    }
}
