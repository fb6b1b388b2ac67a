//! The provider as a plug-in.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use capstan_capi_types::admission::Rules;
use capstan_cloudstack_types::v1beta3::CloudStackFailureDomain;
use capstan_cloudstack_types::{admission, conversion, definitions};
use capstan_controller::{Client, Code, Env, Runtime};
use capstan_provider_kit::{
    Adoption, Capacity, Failure, Finding, Flavor, Installed, Inventory, MachineModel, MachineNetwork,
    OpenedProvider, Provider, ProviderError, ProviderVersions, RunningProvider, Secret, Size, Surveyor,
    served, within_patience,
};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::clouds::{Clouds, OverNetwork, Tenancy, secret_of};
use crate::code;

/// Provides machines on CloudStack. Servers are reached when an object first names one.
pub struct CloudStack {
    clouds: Clouds,
}

impl Default for CloudStack {
    fn default() -> Self {
        Self::reaching(Clouds::new(Arc::new(OverNetwork)))
    }
}

/// Flags of the provider.
#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Provide machines on CloudStack: CloudStackCluster, CloudStackMachine
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    cloudstack: bool,
}

impl CloudStack {
    /// Reaches servers by `clouds`.
    pub fn reaching(clouds: Clouds) -> Self {
        Self { clouds }
    }

    /// The ways to the servers.
    pub fn clouds(&self) -> &Clouds {
        &self.clouds
    }
}

/// The addresses of a network that the provider creates; those of others are in the cloud only.
fn network_of(network: &Value, field: &str) -> Option<MachineNetwork> {
    let text = |name: &str| network[name].as_str().filter(|text| !text.is_empty());
    if let (Some(gateway), Some(netmask)) = (text("gateway"), text("netmask")) {
        let length = netmask.parse::<Ipv4Addr>().ok()?.to_bits().leading_ones();
        return Some(MachineNetwork {
            cidr: format!("{gateway}/{length}"),
            field: format!("{field}.gateway"),
        });
    }
    let cidr = network["vpc"]["cidr"].as_str().filter(|cidr| !cidr.is_empty())?;
    Some(MachineNetwork { cidr: cidr.to_owned(), field: format!("{field}.vpc.cidr") })
}

impl Provider for CloudStack {
    fn name(&self) -> &'static str {
        "cloudstack"
    }

    fn title(&self) -> &'static str {
        "CloudStack"
    }

    fn definitions(&self) -> Vec<Value> {
        definitions::definitions()
    }

    fn rules(&self) -> Vec<Rules> {
        admission::all().into()
    }

    fn versions(&self) -> Option<ProviderVersions> {
        Some(ProviderVersions { kinds: conversion::kinds(), convert: conversion::convert })
    }

    fn machine_networks(&self, infrastructure: &Value) -> Vec<MachineNetwork> {
        let domains = infrastructure["spec"]["failureDomains"].as_array();
        let domains = domains.filter(|_| infrastructure["kind"] == "CloudStackCluster");
        domains
            .into_iter()
            .flatten()
            .enumerate()
            .filter_map(|(number, domain)| {
                network_of(&domain["zone"]["network"], &format!("spec.failureDomains[{number}].zone.network"))
            })
            .collect()
    }

    fn codes(&self) -> &'static [Code] {
        code::CATALOGUE
    }

    fn fix(&self, failure: &Failure<'_>) -> Vec<String> {
        crate::fix::commands(failure)
    }

    /// In CAPC's namespace: the provider takes over from it.
    fn installed(&self) -> Option<Installed> {
        Some(Installed::infrastructure(self.name(), "capc-system"))
    }

    fn arguments(&self, command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn open<'a>(&'a self, matches: &'a ArgMatches, _: &'a Env) -> BoxFuture<'a, OpenedProvider> {
        let flags = Flags::from_arg_matches(matches)
            .map_err(|error| ProviderError::caused_by("the flags of --cloudstack", error));
        let opened = flags.map(|flags| {
            let running = Running { clouds: self.clouds.clone() };
            flags.cloudstack.then(|| Arc::new(running) as Arc<dyn RunningProvider>)
        });
        Box::pin(std::future::ready(opened))
    }

    fn model(&self) -> Option<MachineModel> {
        Some(MachineModel {
            kind: "CloudStackMachine",
            provider_id_prefix: "cloudstack:///",
            size: Size::in_spec,
        })
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        Some(self)
    }

    fn inventory(&self) -> Option<&dyn Inventory> {
        Some(self)
    }

    fn adoption(&self) -> Option<&dyn Adoption> {
        Some(self)
    }

    fn flavors(&self) -> &'static [Flavor] {
        crate::init::FLAVORS
    }

    fn surveyor(&self) -> Option<&dyn Surveyor> {
        Some(self)
    }

    fn check<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(credentials(&self.clouds, client))
    }
}

struct Running {
    clouds: Clouds,
}

impl RunningProvider for Running {
    fn add_controllers(&self, runtime: &mut Runtime) {
        crate::add_controllers(runtime, &self.clouds);
    }

    fn metrics(&self) -> String {
        self.clouds.metrics()
    }
}

/// Whether CloudStack accepts the keys that failure domains name, each Secret and tenancy once.
async fn credentials(clouds: &Clouds, client: &Client) -> Vec<Finding> {
    let domains = match served::<CloudStackFailureDomain>(client, "").await {
        Ok(domains) => domains.unwrap_or_default(),
        Err(error) => {
            return vec![Finding::bad(
                format!("CloudStackFailureDomains cannot be read: {error}"),
                "use the kubeconfig of an administrator",
            )];
        }
    };
    let mut asked = BTreeSet::new();
    let mut findings = Vec::new();
    for domain in &domains {
        let secret = secret_of(&domain.spec.acs_endpoint);
        if !asked.insert((secret.clone(), Tenancy::of(&domain.spec))) {
            continue;
        }
        let unusable = |why: String| {
            Finding::bad(
                format!("CloudStack cannot be used with Secret {secret}: {why}"),
                format!("correct the Secret, or acsEndpoint of failure domain {}", domain.spec.name),
            )
        };
        let silent = |why: String| {
            Finding::bad(
                format!("CloudStack does not answer at the api-url of Secret {secret}: {why}"),
                "start its management server, or correct the network between it and this host; clusters stay as they \
                 are meanwhile",
            )
        };
        findings.push(match client.get::<Secret>(&secret).await {
            Ok(Some(keys)) => match within_patience("it", clouds.check(&domain.spec, &keys)).await {
                Ok(Ok(())) => Finding::fine(format!("CloudStack accepts the keys in Secret {secret}")),
                Ok(Err(error)) if error.code == code::UNREACHABLE => silent(error.text()),
                Ok(Err(error)) => unusable(error.text()),
                Err(late) => silent(late),
            },
            Ok(None) => unusable(format!("{}: there is no Secret {secret}", code::SECRET)),
            Err(error) => unusable(format!("Secret {secret} cannot be read: {error}")),
        });
    }
    findings
}
