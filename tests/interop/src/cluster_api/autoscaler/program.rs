//! The cluster-autoscaler of one cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bed::managers::plain;
use crate::bed::ports::free_port;
use crate::bed::process::{Process, Program};
use crate::bed::{Server, wait};

/// The version that the suite was written for.
pub const VERSION: &str = "cluster-autoscaler-1.36.1";

/// It looks often and decides soon: its defaults are made for clouds that take minutes.
const HASTE: [&str; 9] = [
    "--scan-interval=1s",
    "--scale-down-unneeded-time=4s",
    "--scale-down-unready-time=30s",
    "--scale-down-delay-after-add=4s",
    "--scale-down-delay-after-delete=1s",
    "--scale-down-delay-after-failure=2s",
    "--unremovable-node-recheck-timeout=2s",
    "--initial-node-group-backoff-duration=5s",
    "--node-deletion-delay-timeout=5s",
];

/// A running autoscaler.
#[derive(Debug)]
pub struct Autoscaler {
    process: Process,
}

impl Autoscaler {
    /// Starts it for the node groups of a cluster, given by namespace and name, and waits until it is healthy.
    pub async fn start(
        folder: &Path,
        program: &Path,
        workload: &Path,
        management: &Server,
        (namespace, cluster): (&str, &str),
    ) -> Result<Self> {
        let port = free_port()?;
        let process = Program::new("cluster-autoscaler", program)
            .arg("--cloud-provider=clusterapi")
            .arg(format!("--kubeconfig={}", workload.display()))
            .arg(format!("--cloud-config={}", management.kubeconfig.display()))
            .arg("--clusterapi-cloud-config-authoritative")
            .arg(format!(
                "--node-group-auto-discovery=clusterapi:namespace={namespace},clusterName={cluster}"
            ))
            .arg(format!("--address=127.0.0.1:{port}"))
            .arg("--leader-elect=true")
            // CoreDNS may be anywhere.
            .arg("--skip-nodes-with-system-pods=false")
            .arg("--v=4")
            .args(HASTE)
            .start(folder)?;
        let mut autoscaler = Self { process };
        wait::until("the autoscaler is healthy", Duration::from_secs(60), || async {
            let answer = plain(port, "/health-check").await?;
            Ok((answer.split_whitespace().nth(1) == Some("200")).then_some(()))
        })
        .await
        .with_context(|| autoscaler.check().err().map_or_else(String::new, |error| format!("{error:#}")))?;
        Ok(autoscaler)
    }

    /// Fails if it has exited.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Stops it. Fails if it logged errors.
    pub fn judge(mut self) -> Result<()> {
        let log = std::fs::read_to_string(self.process.log())?;
        self.process.stop(Duration::from_secs(20))?;
        let errors: Vec<&str> = log.lines().filter(|line| is_error(line)).collect();
        ensure!(errors.is_empty(), "the autoscaler logged {} errors:\n{}", errors.len(), errors.join("\n"));
        Ok(())
    }
}

/// Whether a line is an error in klog's format: `E1119 01:02:03.456789 …`.
fn is_error(line: &str) -> bool {
    line.strip_prefix('E')
        .is_some_and(|rest| rest.len() > 4 && rest.as_bytes()[..4].iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_from_other_lines() {
        assert!(is_error("E1119 01:02:03.456789       1 static_autoscaler.go:371] no"));
        assert!(!is_error("I1119 01:02:03.456789       1 Eviction"));
        assert!(!is_error("Every"));
    }
}
