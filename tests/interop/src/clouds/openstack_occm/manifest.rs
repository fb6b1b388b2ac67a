//! The manifests: the published example, with kubelets that leave their Nodes to a cloud controller manager.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::bed::cluster::examples;
use crate::bed::openstack::TENANT;

/// Kubernetes version of the cluster. The cloud has an image of it.
pub const VERSION: &str = "v1.36.0";
/// Name of the cluster, also in the configuration of the controller manager, and its namespace.
pub const NAME: &str = "stacky";
/// What the credential for the workload is kept in, and under which name.
pub const CLOUD_CONFIG: (&str, &str) = ("stacky-workload-cloud-config", "cloud.conf");
/// Time after which that credential is replaced.
const ROTATED: &str = "30d";

/// The objects, with the Secret. API servers listen at `port`, on machines and on the load balancer.
///
/// Kubelets of the control plane set the provider id, as in CAPO's templates. Those of workers do not, which leaves it to
/// the controller manager.
pub fn cluster(clouds_yaml: &str, port: u16) -> Result<Vec<Value>> {
    let external = json!({"name": "cloud-provider", "value": "external"});
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "openstack-credentials"},
        "stringData": {"clouds.yaml": clouds_yaml},
    })];
    for mut object in examples(&["cni.yaml", "openstack-cluster.yaml"])? {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let spec = &mut object["spec"];
        match kind.as_str() {
            "OpenStackCluster" => {
                ensure!(spec["identityRef"]["cloudName"] == TENANT, "the example has another cloud");
                spec["apiServer"]["port"] = port.into();
                object["metadata"]["annotations"]["capstan.dev/openstack-application-credential"] =
                    ROTATED.into();
            }
            "KubeadmControlPlane" => {
                let config = &mut spec["kubeadmConfigSpec"];
                config["clusterConfiguration"]["controllerManager"]["extraArgs"] = json!([external]);
                let endpoint = json!({"bindPort": port});
                config["initConfiguration"]["localAPIEndpoint"] = endpoint.clone();
                config["joinConfiguration"]["controlPlane"]["localAPIEndpoint"] = endpoint;
                for part in ["initConfiguration", "joinConfiguration"] {
                    let arguments = &mut config[part]["nodeRegistration"]["kubeletExtraArgs"];
                    arguments.as_array_mut().into_iter().for_each(|all| all.push(external.clone()));
                }
            }
            "KubeadmConfigTemplate" => {
                let node = &mut spec["template"]["spec"]["joinConfiguration"]["nodeRegistration"];
                node["kubeletExtraArgs"] = json!([external]);
            }
            _ => {}
        }
        objects.push(object);
    }
    Ok(objects)
}

/// Ports of a Service of [`workload`].
pub const PORTS: [u16; 2] = [80, 443];
/// Who may reach it.
pub const SOURCES: [&str; 2] = ["10.0.0.0/8", "127.0.0.0/8"];

/// A Deployment and a Service of type LoadBalancer in front of it.
pub fn workload(name: &str) -> [Value; 2] {
    let labels = json!({"app": name});
    let ports = PORTS.map(|port| json!({"name": format!("p{port}"), "port": port, "targetPort": 8080}));
    [
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "example.org/web:v1"}]},
                },
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {
                "type": "LoadBalancer", "selector": labels, "ports": ports,
                "loadBalancerSourceRanges": SOURCES,
            },
        }),
    ]
}
