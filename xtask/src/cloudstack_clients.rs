//! `cargo xtask cloudstack-clients`: client libraries of CloudStack that nobody here wrote, on the simulator.
//!
//! The suite is a program that gets an address, a key and a secret, prints one line per claim and `DONE` at its end.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use capstan_apiserver::env::Env;
use capstan_sim_cloudstack::{Layout, OfferedSize, Settings, Simulator, Timings};
use clap::Args;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::clients::python;
use crate::text::human_duration;

/// Releases of the clients.
const PACKAGES: &[&str] = &["cs==5.2.0", "apache-libcloud==3.9.1"];
/// Most that the suite may take.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub struct Options {}

pub async fn run(_: Options) -> Result<()> {
    let started = Instant::now();
    let interpreter = python::environment(PACKAGES).await?;
    // Real time, and jobs that take a moment: clients must poll.
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
    // Libcloud cannot read offerings without a size.
    layout.service_offerings.retain(|(_, size)| matches!(size, OfferedSize::Fixed(_)));
    let simulator = Simulator::new(env, &layout, settings, None);
    let keys = simulator.credentials("capstan")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients/cloudstack/suite.py");
    let mut program = Command::new(interpreter);
    program
        .arg(script)
        .args([address.to_string(), keys.api_key, keys.secret_key])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let output = tokio::select! {
        () = simulator.serve(listener, std::future::pending()) => bail!("the simulator ended"),
        output = tokio::time::timeout(LIMIT, program.output()) => {
            output.with_context(|| format!("the suite did not end within {LIMIT:?}"))?.context("start the suite")?
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| *line != "DONE") {
        println!("  {line}");
    }
    if !output.status.success() || !text.lines().any(|line| line == "DONE") {
        bail!("{} are not content: {}", PACKAGES.join(" and "), String::from_utf8_lossy(&output.stderr));
    }
    let left: Vec<_> = simulator.leaks(Some("capstan"));
    if !left.is_empty() {
        bail!("the suite left behind {left:?}");
    }
    println!("{} are content, {}", PACKAGES.join(" and "), human_duration(started.elapsed()));
    Ok(())
}
