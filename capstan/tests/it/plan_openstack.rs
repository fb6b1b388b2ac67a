//! `capstan plan` for a cluster on OpenStack.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cloudstack::FastCloud;
use crate::plan::written;
use crate::program::Server;
use crate::sample::{example, of_kind};
use crate::verbs::on;

const IMAGE: &str = "ubuntu-2404-kube-v1.35.0";

fn warnings(plan: &Value) -> Vec<&str> {
    plan["warnings"].as_array().unwrap().iter().flat_map(Value::as_str).collect()
}

fn set_templates(objects: &mut [Value], change: impl Fn(&mut Value)) {
    let templates = objects.iter_mut().filter(|it| it["kind"] == "OpenStackMachineTemplate");
    templates.for_each(|it| change(&mut it["spec"]["template"]["spec"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_checks_quota_flavors_images_and_networks() {
    let dir = TempDir::new().unwrap();
    let data = TempDir::new().unwrap();
    let cloud = FastCloud::of("openstack", dir.path());
    let server = Server::start(data.path(), &["--in-memory"]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "openstack-credentials"},
        "stringData": cloud.keys});
    let mut objects = example("openstack-cluster.yaml");
    of_kind(&mut objects, "OpenStackCluster")["spec"]["apiServer"]["port"] = cloud.endpoint_port.into();
    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["version"] = "v1.35.0".into();
    of_kind(&mut objects, "MachineDeployment")["spec"]["template"]["spec"]["version"] = "v1.35.0".into();
    set_templates(&mut objects, |spec| spec["image"]["filter"]["name"] = IMAGE.into());
    let plan = |objects: &[Value]| -> Value {
        let file = written(dir.path(), "p.json", objects);
        let output = on(&server, &["plan", "-f", file.to_str().unwrap(), "-o", "json"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };

    let without = plan(&objects);
    assert!(warnings(&without).iter().any(|it| it.starts_with("E-OS-SECRET: ")), "{without:#}");
    let with_secret = |objects: &[Value]| [std::slice::from_ref(&secret), objects].concat();
    let good = plan(&with_secret(&objects));
    assert_eq!(warnings(&good).len(), 1, "only the CNI: {good:#}");
    assert_eq!((&good["peak"]["cpus"], &good["peak"]["memoryMiB"]), (&6.into(), &12288.into()), "{good:#}");
    let room = &good["room"][0];
    assert_eq!(
        (&room["place"], &room["left"]["machines"]),
        (&"OpenStack project capstan".into(), &"10".into())
    );
    let needs = |what: &str| {
        let others = room["others"].as_array().unwrap().iter();
        others.filter(|it| it["what"] == what).map(|it| it["needs"].as_u64().unwrap()).sum::<u64>()
    };
    let needed = ["ports", "floating IPs", "load balancers", "networks", "volumes"].map(needs);
    assert_eq!(needed, [4, 1, 1, 1, 0], "{room:#}");

    // What is not there, and what does not fit.
    let mut wrong = objects.clone();
    of_kind(&mut wrong, "OpenStackCluster")["spec"]["externalNetwork"]["filter"]["name"] = "nowhere".into();
    set_templates(&mut wrong, |spec| {
        spec["flavor"]["filter"]["name"] = "m1.huge".into();
        spec["rootVolume"] = json!({"sizeGiB": 600});
    });
    let wrong = plan(&with_secret(&wrong));
    for words in [
        "OpenStackCluster/stacky: E-OS-NOTFOUND: spec.externalNetwork: no external network matches",
        "KubeadmControlPlane/stacky: E-OS-NOTFOUND: spec.flavor: there is no flavor with name \"m1.huge\"",
        "E-OS-QUOTA: quota exceeded for OpenStack project capstan: 1200 GiB of volumes needed, 1000 left",
    ] {
        assert!(warnings(&wrong).iter().any(|it| it.contains(words)), "{words:?}: {wrong:#}");
    }

    // Pods with addresses of machines.
    let mut shared = objects.clone();
    let subnet = of_kind(&mut shared, "OpenStackCluster")["spec"]["managedSubnets"][0]["cidr"].clone();
    of_kind(&mut shared, "Cluster")["spec"]["clusterNetwork"]["pods"]["cidrBlocks"] = json!([subnet]);
    let shared = plan(&with_secret(&shared));
    let subnet = subnet.as_str().unwrap();
    let words = format!(
        "cluster stacky: {subnet} of its pods overlaps {subnet} of its machines: choose another range in \
         spec.clusterNetwork, or in spec.managedSubnets[0].cidr of its infrastructure"
    );
    assert!(warnings(&shared).contains(&words.as_str()), "{shared:#}");

    // More workers than the project may have.
    let mut scaled = objects.clone();
    of_kind(&mut scaled, "MachineDeployment")["spec"]["replicas"] = 12.into();
    let scaled = plan(&with_secret(&scaled));
    for words in ["13 machines needed, 10 left", "50 CPUs needed, 20 left"] {
        let words = format!("E-OS-QUOTA: quota exceeded for OpenStack project capstan: {words}");
        assert!(warnings(&scaled).iter().any(|it| it.contains(&words)), "{words:?}: {scaled:#}");
    }

    // Another version needs another image.
    let image = |objects: &mut [Value], version: &str| {
        let name = format!("ubuntu-2404-kube-{version}");
        set_templates(objects, |spec| spec["image"]["filter"]["name"] = name.as_str().into());
    };
    of_kind(&mut objects, "KubeadmControlPlane")["spec"]["version"] = "v1.36.0".into();
    of_kind(&mut objects, "MachineDeployment")["spec"]["template"]["spec"]["version"] = "v1.36.0".into();
    let older = plan(&with_secret(&objects));
    for of in ["KubeadmControlPlane/stacky", "MachineDeployment/stacky-workers"] {
        let words = format!("{of}: E-OS-IMAGE: spec.image: image \"{IMAGE}\" has Kubernetes v1.35.0");
        assert!(warnings(&older).iter().any(|it| it.contains(&words)), "{words:?}: {older:#}");
    }
    image(&mut objects, "v1.36.0");
    let newer = plan(&with_secret(&objects));
    assert_eq!(warnings(&newer).len(), 1, "only the CNI: {newer:#}");
}
