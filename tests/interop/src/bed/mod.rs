//! Test beds: API servers and managers as plain processes on loopback.

pub mod capstan;
pub mod cloudstack;
pub mod cluster;
pub mod install;
pub mod kubeconfig;
pub mod machine;
pub mod manager;
pub mod managers;
pub mod openstack;
pub mod pki;
pub mod process;
pub mod real_openstack;
pub mod release;
mod server;
pub mod site;
pub mod template;
pub mod tool;
pub mod wait;
mod workdir;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

pub use capstan_test_support::ports;
pub use managers::Managers;
pub use server::{Controllers, Flavour, Server};
pub use workdir::Workdir;

use crate::text::human_duration;

/// `cargo xtask bed`: starts a server (and managers), prints how to reach it, and runs until interrupted.
pub async fn hold(flavour: Flavour, managers: bool, capstan: Option<PathBuf>) -> Result<()> {
    let mut workdir = Workdir::new("bed")?;
    let mut server = Server::start(flavour, &workdir.folder("server")?, capstan.as_deref()).await?;
    println!("{} is ready after {}", flavour.name(), human_duration(server.start_time));
    println!("export KUBECONFIG={}", server.kubeconfig.display());
    let mut running = None;
    if managers {
        running = Some(Managers::start(&workdir.folder("managers")?, &server.kubeconfig).await?);
        println!("core, bootstrap, control-plane and development managers are ready");
    }
    println!("logs: {}; interrupt to stop", workdir.path().display());
    workdir.passed();
    loop {
        server.check()?;
        if let Some(running) = &mut running {
            running.check()?;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
