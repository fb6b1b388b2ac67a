//! Booting machines: user data in, files, console and requests out.

mod conformance;
mod failures;
mod kubeadm;
mod rendered;
mod site;
mod user_data;

use std::net::Ipv4Addr;

use capstan_env::Env;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Boot, execute};
use crate::console::Console;
use crate::machine::files::Files;
use crate::request::{Control, InitRequest, JoinRequest, KubeadmError};
use crate::vm::{GuestFault, Image, VmSpec};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 7);

/// A cluster that accepts everyone, or no one, and records the requests.
#[derive(Default)]
struct Recorder {
    inits: Mutex<Vec<InitRequest>>,
    joins: Mutex<Vec<JoinRequest>>,
    refusal: Option<KubeadmError>,
}

impl Recorder {
    fn answer(&self) -> Result<(), KubeadmError> {
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

impl Control for Recorder {
    fn init<'a>(&'a self, request: InitRequest) -> BoxFuture<'a, Result<(), KubeadmError>> {
        self.inits.lock().push(request);
        Box::pin(async { self.answer() })
    }

    fn join<'a>(&'a self, request: JoinRequest) -> BoxFuture<'a, Result<(), KubeadmError>> {
        self.joins.lock().push(request);
        Box::pin(async { self.answer() })
    }
}

fn vm(user_data: impl Into<Vec<u8>>) -> VmSpec {
    VmSpec {
        id: "i-1".to_owned(),
        name: "Node-1".to_owned(),
        user_data: user_data.into(),
        image: Image { kubernetes: Some("v1.34.1".to_owned()) },
        address: None,
        provider_id: Some("sim://i-1".to_owned()),
        cpus: 2,
        memory_mib: 4096,
        tags: Default::default(),
        faults: Vec::new(),
    }
}

fn env() -> Env {
    Env::simulated(|| "2026-11-15T12:00:00Z".parse().expect("a time"), 1)
}

/// A machine after its boot.
struct Booted {
    outcome: Result<Option<String>, String>,
    console: String,
    files: Files,
    control: Recorder,
}

impl Booted {
    fn text(&self, path: &str) -> String {
        self.files.text(path).unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.console))
    }

    /// The console without times and programs.
    fn lines(&self) -> Vec<&str> {
        self.console.lines().filter_map(|line| line.split_once("]: ").map(|(_, text)| text)).collect()
    }

    fn prints(&self, what: &str) {
        assert!(self.console.contains(what), "{what}\nis not text in\n{}", self.console);
    }

    fn init(&self) -> InitRequest {
        self.control.inits.lock().first().cloned().unwrap_or_else(|| panic!("no init\n{}", self.console))
    }

    fn join(&self) -> JoinRequest {
        self.control.joins.lock().first().cloned().unwrap_or_else(|| panic!("no join\n{}", self.console))
    }
}

async fn boot_with(vm: VmSpec, control: Recorder) -> Booted {
    let (console, env) = (Console::default(), env());
    let guest = execute(Boot {
        vm: &vm,
        address: ADDRESS,
        console: &console,
        env: &env,
        control: &control,
        powered: Instant::now(),
    })
    .await;
    let files = guest.files.clone();
    let outcome = guest.outcome();
    Booted { outcome, console: console.text(), files, control }
}

async fn boot(vm: VmSpec) -> Booted {
    boot_with(vm, Recorder::default()).await
}

/// Boots cloud-config with some lines after its header.
async fn cloud_config(lines: &str) -> Booted {
    boot(vm(format!("## template: jinja\n#cloud-config\n{lines}"))).await
}

fn with_fault(mut vm: VmSpec, fault: GuestFault) -> VmSpec {
    vm.faults.push(fault);
    vm
}
