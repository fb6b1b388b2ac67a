//! The OpenStack cloud controller manager as a plain local process, which in life is a DaemonSet of the workload cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::manifest::NAME;
use crate::bed::ports::free_port;
use crate::bed::process::{Process, Program};
use crate::peers::Cache;

/// The networks that load balancers of Services are made in.
#[derive(Clone, Debug)]
pub struct Networks {
    /// Subnet of their addresses and of the nodes.
    pub subnet: String,
    /// Network of their floating IPs.
    pub external: String,
}

/// `cloud.conf`: credentials as our provider wrote them, and what real deployments add to them.
pub fn cloud_config(credentials: &str, networks: &Networks) -> String {
    let Networks { subnet, external } = networks;
    format!(
        "{credentials}\n[LoadBalancer]\nlb-provider=amphora\nsubnet-id={subnet}\nfloating-network-id={external}\n\
         manage-security-groups=true\ncreate-monitor=true\n"
    )
}

/// A running controller manager.
#[derive(Debug)]
pub struct ControllerManager(Process);

impl ControllerManager {
    /// Starts it with the flags of its published manifest.
    pub fn start(folder: &Path, kubeconfig: &Path, cloud_config: &Path) -> Result<Self> {
        let program = Cache::locate()?.built("openstack-cloud-controller-manager")?;
        let process = Program::new("occm", program)
            .args(["--v=2", "--cloud-provider=openstack", "--use-service-account-credentials=false"])
            .arg(format!("--cluster-name={NAME}"))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--cloud-config={}", cloud_config.display()))
            .args(["--bind-address=127.0.0.1", "--leader-elect=false"])
            .arg(format!("--secure-port={}", free_port()?))
            .start(folder)?;
        Ok(Self(process))
    }

    /// Fails if the process has exited.
    pub fn check(&mut self) -> Result<()> {
        self.0.check()
    }

    /// Stops it. Returns the errors it has logged.
    pub fn stop(mut self) -> Result<Vec<String>> {
        self.0.stop(Duration::from_secs(10))?;
        let log = std::fs::read_to_string(self.0.log())?;
        Ok(log.lines().filter(|line| is_error(line)).map(ToOwned::to_owned).collect())
    }
}

/// klog begins an error with `E` and the date.
fn is_error(line: &str) -> bool {
    line.strip_prefix('E').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_recognized_by_their_severity() {
        assert!(is_error("E1119 01:50:09.000000       1 controller.go:1] failed"));
        assert!(!is_error("I1119 01:50:09.000000       1 controller.go:1] Error"));
        assert!(!is_error("Error: nothing"));
    }
}
