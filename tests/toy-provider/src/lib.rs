//! The smallest provider there is. A cluster is a harbour, which is a directory; a machine is a berth, which is a file in it
//! that another program makes. It proves that a cloud is a plug-in: everything the program knows of it is in here.

mod cloud;
mod harbour;
mod types;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use capstan_controller::{Client, Code, Env, Runtime};
use capstan_provider_kit::{
    Capacity, Finding, Inventory, MachineModel, OpenedProvider, Provider, RunningProvider, definitions as crd,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use futures::future::{BoxFuture, ready};
use serde_json::Value;

use types::{ToyCluster, ToyMachine, ToyMachineTemplate};

pub mod code {
    capstan_controller::codes! {
        FULL = "E-TOY-FULL", Cloud,
            "a harbour has too few berths",
            "raise spec.berths of the ToyCluster, or remove machines";
        HARBOUR = "E-TOY-HARBOUR", User,
            "a harbour cannot be made",
            "correct spec.directory of the ToyCluster";
    }
}

/// The plug-in, with how many harbours it made.
#[derive(Clone, Default)]
pub struct Toy(Arc<AtomicU64>);

const LABELS: [(&str, &str); 3] = crd::labels("infrastructure-toy", "v1beta1");

impl Provider for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn title(&self) -> &'static str {
        "Toy harbours"
    }

    fn definitions(&self) -> Vec<Value> {
        vec![
            crd::definition::<ToyCluster>(&LABELS, crd::cluster_version::<ToyCluster>(Vec::new())),
            crd::definition::<ToyMachine>(&LABELS, crd::machine_version::<ToyMachine>()),
            crd::definition::<ToyMachineTemplate>(&LABELS, crd::template_version::<ToyMachineTemplate>()),
        ]
    }

    fn codes(&self) -> &'static [Code] {
        code::CATALOGUE
    }

    fn arguments(&self, command: Command) -> Command {
        command.arg(Arg::new("toy").long("toy").action(ArgAction::SetTrue).help("Provide berths: ToyCluster"))
    }

    fn open<'a>(&'a self, matches: &'a ArgMatches, _: &'a Env) -> BoxFuture<'a, OpenedProvider> {
        let running: Arc<dyn RunningProvider> = Arc::new(self.clone());
        Box::pin(ready(Ok(matches.get_flag("toy").then_some(running))))
    }

    fn model(&self) -> Option<MachineModel> {
        Some(MachineModel { kind: "ToyMachine", provider_id_prefix: "toy:///", size: |_| None })
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        Some(self)
    }

    fn inventory(&self) -> Option<&dyn Inventory> {
        Some(self)
    }

    fn check<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(cloud::check(client))
    }
}

impl RunningProvider for Toy {
    fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(self.clone());
    }

    fn metrics(&self) -> String {
        format!("# TYPE toy_harbours_total counter\ntoy_harbours_total {}\n", self.0.load(Ordering::Relaxed))
    }
}
