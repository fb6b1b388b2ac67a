//! `cargo xtask cloudstack-faults` and `openstack-faults`: run clusters on a simulated cloud with a crash and a lost
//! response at every call, and with a crash before it at every effect of a brief lifecycle. `lifecycle-faults` does so with
//! clusters of EKS Anywhere's API, at every effect of their lifecycles.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use super::Part;
use crate::cargo;

/// A simulated cloud and the lifecycles of clusters on it.
pub struct Cloud {
    /// The program, an example of the provider's package, and the command.
    program: &'static str,
    lifecycles: &'static [Lifecycles],
}

/// Lifecycles that get the same faults.
struct Lifecycles {
    names: &'static [&'static str],
    /// At calls to the cloud only, or at every effect.
    calls: bool,
    faults: &'static [&'static str],
    /// How many shares of the faults of each lifecycle are about equal work. Every share repeats the lifecycle without faults
    /// first, so a short lifecycle is not worth dividing.
    shares: u32,
}

/// A share of the faults of one lifecycle.
#[derive(Clone, Copy)]
struct Share {
    lifecycles: &'static Lifecycles,
    name: &'static str,
    part: Part,
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
    lifecycles: &[
        Lifecycles { names: &["whole"], calls: true, faults: AROUND_CALLS, shares: 32 },
        Lifecycles { names: &["short"], calls: true, faults: AROUND_CALLS, shares: 4 },
        Lifecycles { names: CLOUDSTACK_NETWORKS, calls: true, faults: AROUND_CALLS, shares: 1 },
        Lifecycles { names: &["brief"], calls: false, faults: AROUND_EFFECTS, shares: 15 },
    ],
};

pub const OPENSTACK: Cloud = Cloud {
    program: "openstack-faults",
    lifecycles: &[
        Lifecycles { names: &["whole"], calls: true, faults: AROUND_CALLS, shares: 32 },
        Lifecycles { names: &["short"], calls: true, faults: AROUND_CALLS, shares: 4 },
        Lifecycles { names: &["brief"], calls: false, faults: AROUND_EFFECTS, shares: 15 },
    ],
};

/// Clusters of the lifecycle API. Its controllers call no cloud to change it: their effects are objects of Cluster API,
/// so every effect gets the faults.
pub const LIFECYCLE: Cloud = Cloud {
    program: "lifecycle-faults",
    lifecycles: &[
        Lifecycles { names: &["whole"], calls: false, faults: AROUND_CALLS, shares: 48 },
        Lifecycles { names: &["hasty"], calls: false, faults: AROUND_CALLS, shares: 16 },
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
    /// With `--all`, a fault at one call in so many
    #[arg(long, value_name = "N", requires = "all", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Run again what passed before
    #[arg(long)]
    again: bool,
}

pub fn run(cloud: &Cloud, options: &Options) -> Result<()> {
    let program = match options.all {
        true => cargo::optimised_program(cloud.program)?,
        // It uses what the tests have built anyway.
        false => cargo::suite_program(cloud.program)?,
    };
    for share in shares(cloud, options.part) {
        inject(cloud, &program, options, share)?;
    }
    Ok(())
}

/// The shares of a part of the suite; lifecycles are not divided if all of it is wanted.
fn shares(cloud: &Cloud, part: Part) -> Vec<Share> {
    let lifecycles = cloud
        .lifecycles
        .iter()
        .flat_map(|lifecycles| lifecycles.names.iter().map(move |name| (lifecycles, *name)));
    let shares = lifecycles.flat_map(|(lifecycles, name)| {
        let of = if part.of == 1 { 1 } else { lifecycles.shares };
        (1..=of).map(move |one| Share { lifecycles, name, part: Part { one, of } })
    });
    part.take(shares).collect()
}

/// Runs a lifecycle with faults at a share of its calls, or of all its effects.
fn inject(cloud: &Cloud, program: &Path, options: &Options, share: Share) -> Result<()> {
    let Share { lifecycles, name, part: Part { one, of } } = share;
    println!("{name}: share {one} of {of}");
    let arguments = json!({
        "only": [name],
        "every": of * options.every,
        "offset": one - 1,
        "effects": [],
        "calls": lifecycles.calls,
        "faults": lifecycles.faults,
        "calm": false,
        "jobs": null,
        "broken": format!("target/{}/broken", cloud.program),
        "record": format!("target/{}/runs.jsonl", cloud.program),
        "again": options.again,
        "seed": 1,
    });
    let status = Command::new(program)
        .arg(arguments.to_string())
        .current_dir(cargo::root())
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    let Part { one, of } = options.part;
    ensure!(
        status.success(),
        "{name} failed ({status}); to repeat: cargo xtask {} --part {one}/{of}",
        cloud.program
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The parts that CI takes in turn.
    const PARTS: u32 = 64;

    #[test]
    fn every_share_is_in_one_part() {
        for cloud in [&CLOUDSTACK, &OPENSTACK, &LIFECYCLE] {
            let parts = (1..=PARTS).map(|one| shares(cloud, Part { one, of: PARTS }));
            let all: Vec<_> = parts.flatten().map(|share| (share.name, share.part.one)).collect();
            let wanted: u32 = cloud
                .lifecycles
                .iter()
                .map(|lifecycles| lifecycles.shares * lifecycles.names.len() as u32)
                .sum();
            assert_eq!(all.len(), wanted as usize);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        }
    }

    #[test]
    fn lifecycles_are_whole_if_everything_is_wanted() {
        let all = shares(&CLOUDSTACK, Part { one: 1, of: 1 });
        assert!(all.iter().all(|share| share.part == Part { one: 1, of: 1 }));
        assert_eq!(
            all.len(),
            CLOUDSTACK.lifecycles.iter().map(|lifecycles| lifecycles.names.len()).sum::<usize>()
        );
    }
}
