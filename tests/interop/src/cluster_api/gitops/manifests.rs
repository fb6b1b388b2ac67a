//! What the operator commits: the examples of the repository, for the simulated cloud.

use std::net::IpAddr;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::bed::cloudstack::CloudStack;
use crate::bed::cluster::examples;

/// Versions of Kubernetes: the first one, and the one that clusters are upgraded to.
pub const OLD: &str = "v1.35.0";
pub const NEW: &str = "v1.36.0";
/// The network of all tenants, which the operator of the cloud makes.
pub const NETWORK: &str = "shared";
/// Name of the cluster of EKS Anywhere's API.
pub const ANYWHERE: &str = "anywhere";
/// Name of the cluster of Cluster API.
pub const PLAIN: &str = "cloudy";

/// A cluster of EKS Anywhere's API, and what may change of it.
#[derive(Clone, Copy)]
pub struct Anywhere {
    pub control_plane: i64,
    pub workers: i64,
    pub version: &'static str,
}

fn minor(version: &str) -> String {
    version.trim_start_matches('v').split('.').take(2).collect::<Vec<_>>().join(".")
}

impl Anywhere {
    pub fn objects(self, cloud: &CloudStack, endpoint: &str) -> Result<Vec<Value>> {
        let mut objects = examples(&["lifecycle-cluster.yaml"])?;
        for object in &mut objects {
            let kind = object["kind"].as_str().context("an object without a kind")?.to_owned();
            let spec = &mut object["spec"];
            match kind.as_str() {
                "Cluster" => {
                    spec["kubernetesVersion"] = minor(self.version).into();
                    spec["controlPlaneConfiguration"]["count"] = self.control_plane.into();
                    spec["controlPlaneConfiguration"]["endpoint"]["host"] = endpoint.into();
                    spec["workerNodeGroupConfigurations"][0]["count"] = self.workers.into();
                    // The simulator's addresses are those of this host, which refuses connections to them.
                    object["metadata"]["annotations"] =
                        json!({"anywhere.eks.amazonaws.com/skip-ip-check": "true"});
                }
                "CloudStackDatacenterConfig" => {
                    let zone = &mut spec["availabilityZones"][0];
                    zone["managementApiEndpoint"] = cloud.url().into();
                    zone["zone"]["network"]["name"] = NETWORK.into();
                }
                _ => spec["template"]["name"] = template(self.version).into(),
            }
        }
        Ok(objects)
    }
}

fn template(version: &str) -> String {
    format!("ubuntu-2404-kube-{version}")
}

/// A cluster of Cluster API with its CNI. Templates are named by the version, since they cannot be changed.
pub fn plain(workers: i64, version: &str, address: IpAddr, port: u16) -> Result<Vec<Value>> {
    let mut objects = examples(&["cni.yaml", "cloudstack-cluster.yaml"])?;
    let named = |name: &Value| Value::from(format!("{}-{version}", name.as_str().unwrap_or_default()));
    for object in &mut objects {
        object["metadata"]["namespace"] = "default".into();
        match object["kind"].as_str().context("an object without a kind")? {
            "CloudStackCluster" => {
                object["spec"]["controlPlaneEndpoint"] = json!({"host": address, "port": port});
            }
            "CloudStackMachineTemplate" => {
                object["metadata"]["name"] = named(&object["metadata"]["name"]);
                object["spec"]["template"]["spec"]["template"]["name"] = template(version).into();
            }
            "KubeadmControlPlane" => {
                object["spec"]["version"] = version.into();
                let name = &mut object["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"];
                *name = named(name);
            }
            "MachineDeployment" => {
                object["spec"]["replicas"] = workers.into();
                let spec = &mut object["spec"]["template"]["spec"];
                spec["version"] = version.into();
                spec["infrastructureRef"]["name"] = named(&spec["infrastructureRef"]["name"]);
            }
            _ => {}
        }
    }
    Ok(objects)
}
