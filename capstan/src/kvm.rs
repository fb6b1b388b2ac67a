//! Machines on this host: the provider behind `--kvm`, and the balancer that it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use capstan_capi_plane::Installed;
use capstan_capi_types::clusterctl::ProviderType;
use capstan_controller::Runtime;
use capstan_kvm::backend::Backend;
use capstan_kvm::balancer::{self, Asking};
use capstan_kvm::namespace::{Namespaces, Settings};
use capstan_kvm::{KVMClusters, KVMMachines};
use tokio::net::TcpListener;

use crate::signals;

/// Arguments about machines on this host.
#[derive(clap::Args, Clone)]
pub struct KvmArgs {
    /// Provide machines on this host: KVMCluster, KVMMachine. Takes root; what the host lacks is said at the start
    #[arg(long)]
    pub kvm: bool,
    /// Directory for those machines; they outlive this process
    #[arg(long, value_name = "DIR", default_value = "/var/lib/capstan/kvm", requires = "kvm")]
    pub kvm_state: PathBuf,
    /// Directory of node images
    #[arg(long, value_name = "DIR", default_value = "/var/lib/capstan/images", requires = "kvm")]
    pub kvm_images: PathBuf,
}

/// Machines on this host.
pub struct Kvm {
    backend: Arc<dyn Backend>,
}

impl Kvm {
    /// Refuses a host that lacks something, before anything is changed.
    pub fn open(args: &KvmArgs) -> Result<Self> {
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let settings = Settings {
            state: args.kvm_state.clone(),
            images: args.kvm_images.clone(),
            balancer: vec![program, "kvm-balancer".into()],
        };
        let backend = Namespaces::open(settings).context("--kvm")?;
        Ok(Self { backend: Arc::new(backend) })
    }

    /// Adds the provider's controllers.
    pub fn add_controllers(&self, runtime: &mut Runtime) {
        runtime.add(KVMClusters::new(self.backend.clone()));
        runtime.add(KVMMachines::new(self.backend.clone()));
    }

    /// The provider, as clusterctl lists it.
    pub fn provider() -> Installed {
        Installed {
            name: "kvm",
            kind: ProviderType::Infrastructure,
            namespace: "capstan-system",
            version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// Arguments of `capstan kvm-balancer`, which the provider starts in the namespace of a network.
#[derive(clap::Args)]
pub struct BalancerArgs {
    /// Address to listen on; members are reached on the same port
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// File with the addresses of members, one per line; it may change
    #[arg(long, value_name = "FILE")]
    members: PathBuf,
}

/// Balances until SIGTERM.
pub fn balance(args: BalancerArgs) -> Result<()> {
    crate::logging::start();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener =
            TcpListener::bind(args.listen).await.with_context(|| format!("listen on {}", args.listen))?;
        let asking = Asking::new().context("members cannot be asked")?;
        tokio::select! {
            () = balancer::serve(listener, args.members, args.listen.port(), asking) => {}
            () = signals::stop() => {}
        }
        Ok(())
    })
}
