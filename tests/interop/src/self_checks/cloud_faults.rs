//! `cargo xtask cloudstack-faults` and `openstack-faults`: run clusters on a simulated cloud with a crash and a lost
//! response at every call, and with a crash before it at every effect of a brief life.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use super::Part;
use crate::cargo;

/// A simulated cloud and the lives of clusters on it.
pub struct Cloud {
    /// The program, an example of the package, and the command.
    program: &'static str,
    package: &'static str,
    lives: &'static [Lives],
}

/// Lives that get the same faults.
struct Lives {
    names: &'static [&'static str],
    /// At calls to the cloud only, or at every effect.
    calls: bool,
    faults: &'static [&'static str],
}

const AROUND_CALLS: &[&str] = &["crash", "lost"];
const AROUND_EFFECTS: &[&str] = &["crash", "lost", "crash-before"];

/// Clusters on every kind of network: those that are finished, and those that are deleted at the fault.
const CLOUDSTACK_NETWORKS: &[&str] = &[
    "brief-vpc",
    "brief-existing",
    "brief-tier",
    "brief-shared",
    "brief-routed",
    "brief-routed-tier",
    "brief-routed-existing",
    "hasty",
    "hasty-vpc",
    "hasty-existing",
    "hasty-tier",
    "hasty-shared",
    "hasty-routed",
];

pub const CLOUDSTACK: Cloud = Cloud {
    program: "cloudstack-faults",
    package: "capstan-cloudstack-provider",
    lives: &[
        Lives { names: &["short", "whole"], calls: true, faults: AROUND_CALLS },
        Lives { names: CLOUDSTACK_NETWORKS, calls: true, faults: AROUND_CALLS },
        Lives { names: &["brief"], calls: false, faults: AROUND_EFFECTS },
    ],
};

pub const OPENSTACK: Cloud = Cloud {
    program: "openstack-faults",
    package: "capstan-openstack-provider",
    lives: &[
        Lives { names: &["short", "whole"], calls: true, faults: AROUND_CALLS },
        Lives { names: &["brief"], calls: false, faults: AROUND_EFFECTS },
    ],
};

#[derive(Debug, Args)]
pub struct Options {
    /// Only this part, for example `3/64` for the third of 64
    #[arg(long, default_value = "1/1", value_parser = Part::parse)]
    part: Part,
    /// Every part, with an optimised build
    #[arg(long, conflicts_with = "part")]
    all: bool,
    /// Run again what passed before
    #[arg(long)]
    again: bool,
}

pub fn run(cloud: &Cloud, options: &Options) -> Result<()> {
    // Many runs are worth the minutes of an optimised build. CI's part uses what its tests have built anyway.
    let optimised = ["--release", "-p", "capstan", "-p", cloud.package, "--example", cloud.program];
    let program = match options.all {
        true => cargo::program(".", cloud.program, &optimised)?,
        false => cargo::suite_program(cloud.program)?,
    };
    cloud.lives.iter().try_for_each(|lives| inject(cloud, &program, options, lives))
}

/// Runs lives with faults at a part of their calls, or of all their effects.
fn inject(cloud: &Cloud, program: &Path, options: &Options, lives: &Lives) -> Result<()> {
    let Part { one, of } = options.part;
    println!("{}: part {one} of {of}", lives.names.join(", "));
    let options = json!({
        "only": lives.names,
        "every": of,
        "offset": one - 1,
        "effects": [],
        "calls": lives.calls,
        "faults": lives.faults,
        "calm": false,
        "jobs": null,
        "broken": format!("target/{}/broken", cloud.program),
        "record": format!("target/{}/runs.jsonl", cloud.program),
        "again": options.again,
        "seed": 1,
    });
    let status = Command::new(program)
        .arg(options.to_string())
        .current_dir(cargo::root())
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    ensure!(
        status.success(),
        "failed ({status}); to repeat: cargo xtask {} --part {one}/{of}",
        cloud.program
    );
    Ok(())
}
