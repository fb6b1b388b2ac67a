//! `cargo xtask builtin-tables`: generates the table of the Go types behind the built-in kinds. A small Go program
//! reads them from the pinned modules; the `builtin` crate keeps the result as text.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::peers::catalog::Family;
use crate::peers::{module_dir, small_program};

const PROGRAM: &str = include_str!("main.go");
const TABLE: &str = "crates/kubernetes/builtin/src/facts/types.txt";

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Options {
    /// Compare with the committed table instead of replacing it
    #[arg(long)]
    check: bool,
}

/// Generates the table and writes it, or compares it with the committed one.
pub fn run(options: Options) -> Result<()> {
    let made = generate()?;
    let path = crate::cargo::root().join(TABLE);
    let kept = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    if kept == made {
        println!("builtin-tables: {TABLE} is current ({} lines)", made.lines().count());
        return Ok(());
    }
    if options.check {
        let differing =
            made.lines().zip(kept.lines()).position(|(made, kept)| made != kept).map_or(0, |at| at + 1);
        bail!(
            "{TABLE} differs from the pinned modules, first in line {differing}; run cargo xtask builtin-tables"
        );
    }
    std::fs::write(&path, &made).with_context(|| path.display().to_string())?;
    println!("builtin-tables: wrote {TABLE} ({} lines)", made.lines().count());
    Ok(())
}

fn generate() -> Result<String> {
    let (module, version) = Family::Kubernetes.main_module();
    let upstream = module_dir(module, &version)?.join("go.mod");
    let upstream = std::fs::read_to_string(&upstream).with_context(|| upstream.display().to_string())?;
    let program = small_program("builtin-tables", &Family::Kubernetes.go_mod(&upstream), PROGRAM)?;
    let output = Command::new(&program).stdin(Stdio::null()).output().context("run the generator")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("the generator failed ({})\n{}", output.status, text.trim_end());
    }
    String::from_utf8(output.stdout).context("the generator printed something that is not UTF-8")
}
