//! `cargo xtask cloudstack-clients`: third-party client libraries of CloudStack on the simulator.
//!
//! A suite is a program that takes a URL, a key and a secret, prints one line per claim and `DONE` at its end.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use capstan_env::Env;
use capstan_sim_cloudstack::{Layout, OfferedSize, Settings, Simulator, Timings};
use clap::Args;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::kubernetes::clients::python;
use crate::peers;
use crate::peers::catalog::{CLOUDSTACK_GO, CLOUDSTACK_GO_MODULE};
use crate::text::human_duration;

/// Releases of the clients on PyPI.
const PACKAGES: &[&str] = &["cs==5.2.0", "apache-libcloud==3.9.1"];
/// The program that uses the Go client.
const GO_SUITE: &str = include_str!("../../../clients/cloudstack/suite.go");
/// Timeout of a suite.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub struct Options {}

pub async fn run(_: Options) -> Result<()> {
    let script = crate::cargo::root().join("tests/clients/cloudstack/suite.py");
    let mut program = Command::new(python::environment(PACKAGES).await?);
    program.arg(script);
    run_suite(&PACKAGES.join(" and "), program).await?;
    let go_mod = format!(
        "module capstan.peers/cloudstack-go-suite\n\ngo 1.26.0\n\nrequire {CLOUDSTACK_GO_MODULE} v{CLOUDSTACK_GO}\n"
    );
    let program = peers::small_program("cloudstack-go-suite", &go_mod, GO_SUITE)?;
    run_suite(&format!("cloudstack-go {CLOUDSTACK_GO}"), Command::new(program)).await
}

/// A cloud in real time whose jobs take a moment, so that clients must poll.
fn cloud() -> Simulator {
    let short = Duration::from_millis(50);
    let timings =
        Timings { submit: short, power: short, router: short, expunge: short, rule: short, network: short };
    let settings = Settings {
        expunge_delay: Duration::from_secs(1),
        expunge_interval: Duration::from_secs(1),
        timings,
        ..Settings::default()
    };
    let env = Env::simulated(jiff::Timestamp::now, 1);
    let mut layout = Layout::small(&["v1.36.0"]);
    // Libcloud cannot parse custom offerings, which have no size.
    layout.service_offerings.retain(|(_, size)| matches!(size, OfferedSize::Fixed(_)));
    Simulator::new(env, &layout, settings, None)
}

/// Runs a suite on a fresh cloud. It must not leave resources behind.
async fn run_suite(clients: &str, mut program: Command) -> Result<()> {
    let started = Instant::now();
    let simulator = cloud();
    let keys = simulator.credentials("capstan")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    program
        .args([address.to_string(), keys.api_key, keys.secret_key])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let output = tokio::select! {
        () = simulator.serve(listener, std::future::pending()) => bail!("the simulator exited"),
        output = tokio::time::timeout(LIMIT, program.output()) => {
            output.with_context(|| format!("the suite did not end within {LIMIT:?}"))?.context("start the suite")?
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| *line != "DONE") {
        println!("  {line}");
    }
    if !output.status.success() || !text.lines().any(|line| line == "DONE") {
        bail!("{clients} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let left: Vec<_> = simulator.leaks(Some("capstan"));
    if !left.is_empty() {
        bail!("the suite of {clients} left behind {left:?}");
    }
    println!("{clients}: content, {}", human_duration(started.elapsed()));
    Ok(())
}
