//! `capstan-interop`: suites that test Capstan against real, third-party programs.
//!
//! `cargo xtask <suite>` builds and runs it; `cargo xtask interop` selects suites. A suite that cannot find its peer
//! fails with the command that builds it. It never passes by skipping.

mod api;
mod bed;
mod bench;
mod clouds;
mod cluster_api;
mod diff;
mod differences;
mod discovery;
mod first_use;
mod kubernetes;
mod packaging;
mod self_checks;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use capstan_test_support::{cargo, node_image, peers, text};
use clap::{Parser, Subcommand};

use bed::Flavour;
use clouds::{
    capc_adopted, capc_moved, capc_on_sim, cloudstack_clients, cloudstack_golden, cloudstack_replay,
    eksa_goldens, openstack_capo, openstack_occm, openstack_real, openstack_replay, real_cluster,
};
use cluster_api::{
    autoscaler, clusterctl, conversion_goldens, corefile_goldens, gitops, helm, kubeadm_accepts, manager,
    planner, schema_diff, topology_diff, upstream,
};
use first_use::{bad_day, demo, mend, picture, quick_start};
use kubernetes::{
    clients, e2e, etcd_members, kms, kubectl_workload, oidc, parity, port_forward, raw, verdicts,
};
use packaging::{alerts, install_deb};
use self_checks::{attacks, cloud_faults, crash, fuzz, older_data, simulate};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "suites against real programs, and other tasks that need the whole product"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start an API server on loopback and keep it until interrupted
    Bed {
        /// Which server
        #[arg(default_value = "capstan")]
        server: Flavour,
        /// Also run Cluster API's four managers against it
        #[arg(long)]
        managers: bool,
        /// Our binary [default: built with the profile `ci`]
        #[arg(long)]
        capstan: Option<PathBuf>,
    },
    /// Run Cluster API's Go managers on capstan and compare with kube-apiserver
    UpstreamOnCapstan(upstream::Options),
    /// Run the commands of the README, with kubectl and clusterctl
    QuickStart(quick_start::Options),
    /// Use `capstan demo` on a terminal: watch, interrupt, kill, continue, break, ask why, delete
    Demo(demo::Options),
    /// Break clusters, run the fixes that `capstan why` prints, and wait until they are ready
    Mend(mend::Options),
    /// Record a terminal session in which things go wrong, for the README
    BadDay(bad_day::Options),
    /// Draw a picture of `capstan demo` for the README
    Picture(picture::Options),
    /// Record a data directory in the current format, for the test that opens it with later versions
    OlderData(older_data::Options),
    /// Run our controllers on kube-apiserver: lifecycle of a cluster, webhooks, leader election
    Manager(manager::Options),
    /// Kill the leader of two managers in the middle of rollouts and check that nothing is doubled or lost
    Failover(manager::failover::Options),
    /// Run Cluster API's Go managers with our simulated machines
    SimUnderUpstream(manager::mixed::Options),
    /// Run our controllers with Cluster API's in-memory provider
    CoreOverCapd(manager::mixed::Options),
    /// Run clusterctl against capstan: describe, get kubeconfig, generate, rollout, move
    Clusterctl(clusterctl::Options),
    /// Drive clusters from a git repository with Flux
    Gitops(gitops::Options),
    /// Install the chart and the manifests of a release on kube-apiserver, with Helm and kubectl
    Helm(helm::Options),
    /// Install, run, upgrade, remove and purge the Debian package on a Debian that systemd has booted; needs root
    InstallDeb(install_deb::Options),
    /// Check the alert rules with promtool, let each fire, and compare their metrics with those that are served
    Alerts(alerts::Options),
    /// Use a simulated workload cluster with kubectl: drain, disruption budgets, workloads
    KubectlWorkload(kubectl_workload::Options),
    /// Run Kubernetes' own end-to-end tests that need no node
    E2e(e2e::Options),
    /// Compare kubectl against capstan and against kube-apiserver
    KubectlParity(parity::Options),
    /// Compare responses to raw HTTP requests with those of kube-apiserver
    RawParity(raw::Options),
    /// Compare how both servers validate generated objects of upstream's CRDs
    SchemaVerdicts(verdicts::Options),
    /// Compare our CRDs with those in the upstream modules
    SchemaDiff(schema_diff::Options),
    /// Compare the objects of ClusterClass topologies with those of upstream's controller
    TopologyDiff(topology_diff::Options),
    /// Run the cluster-autoscaler on our management plane: from one machine to three, from and to none
    Autoscaler(autoscaler::Options),
    /// Replay upstream's recorded MachineDeployment rollouts with our planner
    PlannerGoldens(planner::Options),
    /// Convert random objects between v1beta1 and v1beta2 and compare with upstream
    ConversionGoldens(conversion_goldens::Options),
    /// Migrate Corefiles and compare with the library that Cluster API uses
    CorefileGoldens(corefile_goldens::Options),
    /// Test our etcd client with real etcd, and etcdctl with our etcd server
    EtcdMembers(etcd_members::Options),
    /// Forward ports of Pods through our server with kubectl and Cluster API's etcd client
    PortForward(port_forward::Options),
    /// Sign in with a real Dex and use the API with its tokens
    Oidc(oidc::Options),
    /// Wraps data keys with a KMS v2 plug-in in another process
    Kms(kms::Options),
    /// Kill the server under load and check for lost writes and events
    Crash(crash::Options),
    /// Repeat what attackers tried against the server, with 1 GiB of memory
    Attacks(attacks::Options),
    /// Run client libraries of other languages against the server
    Clients(clients::Options),
    /// Decode recorded responses of a real CloudStack server with our client
    CloudstackGolden(cloudstack_golden::Options),
    /// Run client libraries of CloudStack against the simulator
    CloudstackClients(cloudstack_clients::Options),
    /// Run clusters on a simulated CloudStack with a crash and a lost response at every call
    CloudstackFaults(cloud_faults::Options),
    /// Run clusters on a simulated OpenStack with a crash and a lost response at every call
    OpenstackFaults(cloud_faults::Options),
    /// Run clusters of EKS Anywhere's API on a simulated CloudStack with a crash and a lost response at every effect
    LifecycleFaults(cloud_faults::Options),
    /// Replay recorded responses of a CloudStack server against the simulator
    CloudstackReplay(cloudstack_replay::Options),
    /// Generate the objects of EKS Anywhere's manifests and compare with those of its own tests
    EksaGoldens(eksa_goldens::Options),
    /// Replay recorded responses of OpenStack services against the simulator
    OpenstackReplay(openstack_replay::Options),
    /// Run CAPC and our provider on simulated CloudStacks and count their calls
    CapcOnSim(capc_on_sim::Options),
    /// Take over a cluster of CAPC on a simulated CloudStack, then scale, upgrade and delete it
    CapcAdopted(capc_adopted::Options),
    /// Move clusters of CAPC on a simulated CloudStack to us with clusterctl, then scale and delete them
    CapcMoved(capc_moved::Options),
    /// Run CAPO and our provider on simulated OpenStacks and count their calls
    OpenstackCapo(openstack_capo::Options),
    /// Run the OpenStack cloud controller manager in a cluster on a simulated OpenStack
    OpenstackOccm(openstack_occm::Options),
    /// Run a cluster on real OpenStack services on this machine, and check that deletion leaves nothing
    OpenstackReal(openstack_real::Options),
    /// Check with real kubeadm that it accepts our boot data
    KubeadmAccepts(kubeadm_accepts::Options),
    /// Run a cluster of real nodes on this host, and check that deletion leaves nothing
    RealCluster(real_cluster::Options),
    /// Benchmark both servers under the same load
    Bench(bench::Options),
    /// Run scenarios of whole clusters in simulated time, with a fault at every effect
    Simulate(simulate::Options),
    /// Run property tests with random seeds for a given time
    Fuzz(fuzz::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("interop: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<()> {
    bed::process::end_with_children_on_signals()?;
    match command {
        Command::Bed { server, managers, capstan } => bed::hold(server, managers, capstan).await,
        Command::UpstreamOnCapstan(options) => upstream::run(options).await,
        Command::QuickStart(options) => quick_start::run(options).await,
        Command::Demo(options) => demo::run(options).await,
        Command::Mend(options) => mend::run(options).await,
        Command::BadDay(options) => bad_day::run(options).await,
        Command::Picture(options) => picture::run(options).await,
        Command::OlderData(options) => older_data::run(options).await,
        Command::Manager(options) => manager::run(options).await,
        Command::Failover(options) => manager::failover::run(options).await,
        Command::SimUnderUpstream(options) => manager::mixed::sim_under_upstream(options).await,
        Command::CoreOverCapd(options) => manager::mixed::core_over_capd(options).await,
        Command::Clusterctl(options) => clusterctl::run(options).await,
        Command::Gitops(options) => gitops::run(options).await,
        Command::Helm(options) => helm::run(options).await,
        Command::InstallDeb(options) => install_deb::run(options).await,
        Command::Alerts(options) => alerts::run(options).await,
        Command::KubectlWorkload(options) => kubectl_workload::run(options).await,
        Command::E2e(options) => e2e::run(options).await,
        Command::KubectlParity(options) => parity::run(options).await,
        Command::RawParity(options) => raw::run(options).await,
        Command::SchemaVerdicts(options) => verdicts::run(options).await,
        Command::SchemaDiff(options) => schema_diff::run(&options),
        Command::TopologyDiff(options) => topology_diff::run(options).await,
        Command::Autoscaler(options) => autoscaler::run(options).await,
        Command::PlannerGoldens(options) => planner::run(&options),
        Command::ConversionGoldens(options) => conversion_goldens::run(&options),
        Command::CorefileGoldens(options) => corefile_goldens::run(&options),
        Command::EtcdMembers(options) => etcd_members::run(&options).await,
        Command::PortForward(options) => port_forward::run(&options).await,
        Command::Oidc(options) => oidc::run(options).await,
        Command::Kms(options) => kms::run(options).await,
        Command::Crash(options) => crash::run(options).await,
        Command::Attacks(options) => attacks::run(options).await,
        Command::Clients(options) => clients::run(options).await,
        Command::CloudstackGolden(options) => cloudstack_golden::run(&options).await,
        Command::CloudstackClients(options) => cloudstack_clients::run(options).await,
        Command::CloudstackFaults(options) => cloud_faults::run(&cloud_faults::CLOUDSTACK, &options),
        Command::OpenstackFaults(options) => cloud_faults::run(&cloud_faults::OPENSTACK, &options),
        Command::LifecycleFaults(options) => cloud_faults::run(&cloud_faults::LIFECYCLE, &options),
        Command::CloudstackReplay(options) => cloudstack_replay::run(options).await,
        Command::EksaGoldens(options) => eksa_goldens::run(&options),
        Command::OpenstackReplay(options) => openstack_replay::run(&options),
        Command::CapcOnSim(options) => capc_on_sim::run(options).await,
        Command::CapcAdopted(options) => capc_adopted::run(options).await,
        Command::CapcMoved(options) => capc_moved::run(options).await,
        Command::OpenstackCapo(options) => openstack_capo::run(options).await,
        Command::OpenstackOccm(options) => openstack_occm::run(options).await,
        Command::OpenstackReal(options) => openstack_real::run(options).await,
        Command::KubeadmAccepts(options) => kubeadm_accepts::run(&options),
        Command::RealCluster(options) => real_cluster::run(options).await,
        Command::Bench(options) => bench::run(options).await,
        Command::Simulate(options) => simulate::run(options),
        Command::Fuzz(options) => fuzz::run(&options),
    }
}
