//! The Rust client, a program in a workspace of its own, so that neither `xtask` nor the hermetic tests build kube.

use anyhow::Result;
use tokio::process::Command;

use crate::cargo;

pub async fn suite() -> Result<Command> {
    Ok(Command::new(cargo::build("tests/clients/kube-rs", "kube-rs-suite", &["--locked"])?))
}
