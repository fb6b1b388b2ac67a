//! The provider as a plug-in.

use std::sync::Arc;

use capstan_capi_types::admission::Rules;
use capstan_controller::{Client, Code, Env, Runtime};
use capstan_openstack_types::{admission, conversion, definitions};
use capstan_provider_kit::{
    Capacity, ConsoleReader, Failure, Finding, Flavor, Installed, Inventory, MachineModel, MachineNetwork,
    OpenedProvider, Provider, ProviderError, ProviderVersions, RunningProvider, Secret, Surveyor,
    within_patience,
};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::clouds::{Clouds, OverNetwork};
use crate::references::{self, CredentialUse};
use crate::{code, fix, init};

/// Provides machines on OpenStack. Services are reached when an object first names a cloud.
pub struct OpenStack {
    clouds: Clouds,
}

impl Default for OpenStack {
    fn default() -> Self {
        Self::reaching(Clouds::new(Arc::new(OverNetwork)))
    }
}

/// Flags of the provider.
#[derive(clap::Args)]
#[group(skip)]
struct Flags {
    /// Provide machines on OpenStack: OpenStackCluster, OpenStackMachine
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    openstack: bool,
}

impl OpenStack {
    /// Reaches services by `clouds`.
    pub fn reaching(clouds: Clouds) -> Self {
        Self { clouds }
    }

    pub(crate) fn clouds(&self) -> &Clouds {
        &self.clouds
    }
}

impl Provider for OpenStack {
    fn name(&self) -> &'static str {
        "openstack"
    }

    fn title(&self) -> &'static str {
        "OpenStack"
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
        let subnets = infrastructure["spec"]["managedSubnets"].as_array();
        let count = subnets.filter(|_| infrastructure["kind"] == "OpenStackCluster").map_or(0, Vec::len);
        let field = |number| format!("/spec/managedSubnets/{number}/cidr");
        (0..count).filter_map(|number| MachineNetwork::at(infrastructure, &field(number))).collect()
    }

    fn codes(&self) -> &'static [Code] {
        code::CATALOGUE
    }

    fn fix(&self, failure: &Failure<'_>) -> Vec<String> {
        fix::commands(failure)
    }

    /// In CAPO's namespace: the provider takes over from it.
    fn installed(&self) -> Option<Installed> {
        Some(Installed::infrastructure(self.name(), "capo-system"))
    }

    fn arguments(&self, command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn open<'a>(&'a self, matches: &'a ArgMatches, _: &'a Env) -> BoxFuture<'a, OpenedProvider> {
        let flags = Flags::from_arg_matches(matches)
            .map_err(|error| ProviderError::caused_by("the flags of --openstack", error));
        let opened = flags.map(|flags| {
            let running = Running { clouds: self.clouds.clone() };
            flags.openstack.then(|| Arc::new(running) as Arc<dyn RunningProvider>)
        });
        Box::pin(std::future::ready(opened))
    }

    fn model(&self) -> Option<MachineModel> {
        // Only the cloud knows the sizes of its flavors.
        let size = |_: &Value| None;
        Some(MachineModel { kind: "OpenStackMachine", provider_id_prefix: "openstack:///", size })
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        Some(self)
    }

    fn flavors(&self) -> &'static [Flavor] {
        init::FLAVORS
    }

    fn surveyor(&self) -> Option<&dyn Surveyor> {
        Some(self)
    }

    fn inventory(&self) -> Option<&dyn Inventory> {
        Some(self)
    }

    fn console(&self) -> Option<&dyn ConsoleReader> {
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

/// Whether Keystone accepts the credentials that objects use, each once.
async fn credentials(clouds: &Clouds, client: &Client) -> Vec<Finding> {
    let uses = match references::all(client, "").await {
        Ok(uses) => uses,
        Err(error) => {
            return vec![Finding::bad(
                format!("the objects of OpenStack cannot be read: {error}"),
                "use the kubeconfig of an administrator",
            )];
        }
    };
    let mut findings = Vec::new();
    for used in &uses {
        findings.push(finding(clouds, client, used).await);
    }
    findings
}

async fn finding(clouds: &Clouds, client: &Client, used: &CredentialUse) -> Finding {
    let (kind, name, reference) = (used.kind, &used.name, &used.reference);
    let Some(secret) = &used.secret else {
        let identity = &reference.name;
        return Finding::bad(
            format!("{kind} {name} refers to OpenStackClusterIdentity {identity}, which does not exist"),
            "create it, or correct identityRef",
        );
    };
    let unusable = |why: String| {
        let field = if kind == "OpenStackClusterIdentity" { "secretRef" } else { "identityRef" };
        Finding::bad(
            format!("OpenStack cannot be used with Secret {secret}: {why}"),
            format!("correct clouds.yaml in the Secret, or {field} of {kind} {name}"),
        )
    };
    let silent = |why: String| {
        Finding::bad(
            format!("OpenStack does not answer at the auth_url of Secret {secret}: {why}"),
            "start its services, or correct the network between them and this host; clusters are not changed meanwhile",
        )
    };
    match client.get::<Secret>(secret).await {
        Ok(Some(content)) => {
            match within_patience("Keystone", clouds.open(reference, secret, &content)).await {
                Ok(Ok(_)) => Finding::fine(format!("OpenStack accepts the credentials in Secret {secret}")),
                Ok(Err(error)) if error.code == code::UNREACHABLE => silent(error.text()),
                Ok(Err(error)) => unusable(error.text()),
                Err(late) => silent(late),
            }
        }
        Ok(None) => unusable(format!("{}: there is no Secret {secret}", code::SECRET)),
        Err(error) => unusable(format!("Secret {secret} cannot be read: {error}")),
    }
}
