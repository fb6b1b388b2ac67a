//! What manifests may ask for beside the example.

use capstan_controller::{Deletion, KindName};
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::compute::{ServerGroup, ServerGroupFilter};
use capstan_openstack_client::network::{
    ExternalGateway, FloatingIp, FloatingIpFilter, Network, NetworkFilter, NewNetwork, NewRouter, NewSubnet,
    Router, Subnet, Trunk, TrunkFilter,
};
use capstan_openstack_types::v1beta2::OpenStackCluster;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{self, NAME, NAMESPACE, Shape};
use crate::story::Act::{Before, Check, Create, Delete, During, ScaleWorkers};
use crate::story::{CheckResult, Script, failed};

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("feature", what)) }
}

fn cluster(world: &World<'_>) -> Result<Value, Violation> {
    let key = Key::new(NAMESPACE, NAME);
    world
        .objects()?
        .get(&KindName::of::<OpenStackCluster>(), &key)
        .ok_or_else(|| failed("no OpenStackCluster"))
}

fn changed(body: &mut Value, kind: &str, change: impl Fn(&mut Value)) {
    if body["kind"] == kind {
        change(&mut body["spec"]);
    }
}

/// Neutron keeps rules and ranges in its own spelling, and refuses a rule that differs in spelling alone.
#[test]
fn rules_and_ranges_of_the_manifest_may_be_written_otherwise_than_neutron_keeps_them() {
    fn change(body: &mut Value) {
        let rule = |name: &str, protocol: &str, ports: Value, prefix: &str| {
            let mut rule = json!({"name": name, "direction": "ingress", "etherType": "IPv4", "protocol": protocol,
                "remoteIPPrefix": prefix});
            if let Some(ports) = ports.as_array() {
                rule["portRangeMin"] = ports[0].clone();
                rule["portRangeMax"] = ports[1].clone();
            }
            rule
        };
        changed(body, "OpenStackCluster", |spec| {
            spec["managedSubnets"][0]["cidr"] = "10.6.0.1/24".into();
            spec["managedSecurityGroups"]["controlPlaneNodesSecurityGroupRules"] =
                json!([rule("api", "tcp", json!([6443, 6443]), "0.0.0.0/0")]);
            spec["managedSecurityGroups"]["workerNodesSecurityGroupRules"] = json!([
                rule("all", "tcp", json!([1, 65535]), "10.8.0.0/16"),
                rule("one", "UDP", json!([514, 514]), "10.9.0.5"),
                rule("range", "tcp", json!([22, 22]), "10.9.0.7/24"),
            ]);
        });
    }
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&[Create, Delete]) });
}

#[test]
fn without_a_load_balancer_a_floating_ip_leads_to_the_control_plane_machine() {
    fn change(body: &mut Value) {
        changed(body, "OpenStackCluster", |spec| {
            spec["apiServer"]["managedLoadBalancer"]["enabled"] = false.into();
        });
    }
    fn at_a_server<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            check(cloud.names("loadbalancers").is_empty(), "there is a load balancer")?;
            let addresses =
                cloud.client().list::<FloatingIp>(&FloatingIpFilter::default()).await.map_err(failed)?;
            let host = cluster(world)?["spec"]["controlPlaneEndpoint"]["host"].clone();
            let at_port = |ip: &FloatingIp| host == ip.floating_ip_address.as_str() && ip.port_id.is_some();
            check(addresses.len() == 1 && addresses.iter().all(at_port), format!("{addresses:?} for {host}"))
        })
    }
    let story =
        Script { change: Some(change), members: false, ..Script::of(&[Create, Check(at_a_server), Delete]) };
    goes_well(&story);
}

#[test]
fn without_a_floating_ip_the_endpoint_is_the_address_of_the_load_balancer() {
    fn change(body: &mut Value) {
        changed(body, "OpenStackCluster", |spec| {
            spec["apiServer"]["enableFloatingIP"] = false.into();
            spec["apiServer"]["fixedIP"] = "10.6.0.200".into();
        });
    }
    fn at_vip<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let host = cluster(world)?["spec"]["controlPlaneEndpoint"]["host"].clone();
            check(host == "10.6.0.200", format!("the endpoint is {host}"))?;
            check(cloud.names("floatingips").is_empty(), "there is a floating IP")
        })
    }
    goes_well(&Script { change: Some(change), ..Script::of(&[Create, Check(at_vip), Delete]) });
}

#[test]
fn with_kube_vip_the_endpoint_is_an_address_that_control_plane_machines_claim() {
    const VIP: &str = "10.6.0.5";
    fn change(body: &mut Value) {
        changed(body, "OpenStackCluster", |spec| {
            spec["apiServer"] = json!({"enableFloatingIP": false, "fixedIP": VIP});
        });
        changed(body, "KubeadmControlPlane", |spec| {
            let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-vip, namespace: kube-system}\n";
            spec["kubeadmConfigSpec"]["files"] =
                json!([{"path": "/etc/kubernetes/manifests/kube-vip.yaml", "content": manifest}]);
        });
        if body["metadata"]["name"] == "stacky-control-plane" {
            changed(body, "OpenStackMachineTemplate", |spec| {
                spec["template"]["spec"]["ports"] = json!([{"allowedAddressPairs": [{"ipAddress": VIP}]}]);
            });
        }
    }
    fn claimed<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let host = cluster(world)?["spec"]["controlPlaneEndpoint"]["host"].clone();
            check(host == VIP, format!("the endpoint is {host}"))?;
            check(cloud.names("loadbalancers").is_empty(), "there is a load balancer")?;
            check(cloud.names("floatingips").is_empty(), "there is a floating IP")
        })
    }
    let acts = [Create, Check(claimed), Delete];
    goes_well(&Script { change: Some(change), members: false, ..Script::of(&acts) });
}

#[test]
fn servers_boot_from_volumes_with_more_disks_tags_trunks_and_metadata() {
    fn change(body: &mut Value) {
        changed(body, "OpenStackMachineTemplate", |spec| {
            let spec = &mut spec["template"]["spec"];
            spec["rootVolume"] = json!({"sizeGiB": 30});
            spec["additionalBlockDevices"] =
                json!([{"name": "etcd", "sizeGiB": 8, "storage": {"type": "Volume"}}]);
            spec["serverMetadata"] = json!([{"key": "team", "value": "blue"}]);
            spec["tags"] = json!(["machine-tag"]);
            spec["trunk"] = true.into();
        });
        changed(body, "OpenStackCluster", |spec| spec["tags"] = json!(["cluster-tag"]));
    }
    fn complete<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let count = |kind: &str| cloud.names(kind).len();
            check((count("volumes"), count("trunks")) == (4, 2), format!("{:?}", cloud.names("volumes")))?;
            let servers = cloud
                .client()
                .list::<capstan_openstack_client::compute::Server>(&Default::default())
                .await
                .map_err(failed)?;
            let tagged = |server: &capstan_openstack_client::compute::Server| {
                server.metadata.get("team").is_some_and(|team| team == "blue")
                    && ["machine-tag", "cluster-tag"]
                        .iter()
                        .all(|tag| server.tags.iter().any(|held| held == tag))
            };
            check(servers.len() == 2 && servers.iter().all(tagged), format!("{servers:?}"))?;
            let trunks = cloud.client().list::<Trunk>(&TrunkFilter::default()).await.map_err(failed)?;
            let tagged = |trunk: &Trunk| trunk.tags.iter().any(|tag| tag == "cluster-tag");
            check(trunks.iter().all(tagged), format!("{trunks:?}"))?;
            let networks = cloud.client().list::<Network>(&NetworkFilter::default()).await.map_err(failed)?;
            let own = networks.iter().find(|network| !network.is_external);
            check(own.is_some_and(|network| network.tags == ["cluster-tag"]), "the network has no tag")
        })
    }
    fn left_to_nova<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let calls = cloud.simulator.calls();
            let mut names = calls.keys().filter(|name| name.starts_with("block-storage DELETE"));
            check(names.next().is_none(), format!("Nova deletes volumes with their servers: {calls:?}"))
        })
    }
    let acts = [Create, Check(complete), Delete, Check(left_to_nova)];
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&acts) });
}

/// Somebody makes a network `theirs` with a subnet and a router.
pub fn prepare_network<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let client = cloud.client();
        let new = NewNetwork { name: "theirs".to_owned(), ..NewNetwork::default() };
        let network: Network = client.create(&new).await.map_err(failed)?;
        let new = NewSubnet {
            network_id: network.id.clone(),
            name: "theirs".to_owned(),
            ip_version: 4,
            cidr: "10.7.0.0/24".to_owned(),
            ..NewSubnet::default()
        };
        let subnet: Subnet = client.create(&new).await.map_err(failed)?;
        let filter = NetworkFilter { is_external: Some(true), ..NetworkFilter::default() };
        let external = client.list::<Network>(&filter).await.map_err(failed)?;
        let gateway = ExternalGateway { network_id: external[0].id.clone(), ..ExternalGateway::default() };
        let new = NewRouter {
            name: "theirs".to_owned(),
            external_gateway_info: Some(gateway),
            ..NewRouter::default()
        };
        let router: Router = client.create(&new).await.map_err(failed)?;
        client.add_router_interface(&router.id, &subnet.id).await.map_err(failed)?;
        cloud.simulator.forgive();
        Ok(())
    })
}

#[test]
fn an_existing_network_is_used_and_stays() {
    fn change(body: &mut Value) {
        changed(body, "OpenStackCluster", |spec| {
            spec.as_object_mut().expect("a spec").remove("managedSubnets");
            spec["network"] = json!({"filter": {"name": "theirs"}});
            spec["subnets"] = json!([{"filter": {"name": "theirs"}}]);
        });
    }
    let story = Script { change: Some(change), ..Script::of(&[Before(prepare_network), Create, Delete]) };
    goes_well(&story);
}

/// Clusters of one name in two namespaces and one project do not touch each other.
#[test]
fn clusters_of_one_name_in_two_namespaces_do_not_touch_each_other() {
    fn another<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let user = world.user()?;
            let mut namespaces = KindName::namespaced("", "v1", "Namespace", "namespaces");
            namespaces.scope = capstan_object::Scope::Cluster;
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
            user.create(&namespaces, "", &body).await.map_err(failed)?;
            let secret = manifests::credentials("other");
            user.create(&manifests::secrets(), "other", &secret).await.map_err(failed)?;
            for (kind, mut body) in manifests::example(Shape::EXAMPLE) {
                if matches!(body["kind"].as_str(), Some("ClusterResourceSet" | "ConfigMap")) {
                    continue;
                }
                body["metadata"]["namespace"] = "other".into();
                user.create(&kind, "other", &body).await.map_err(failed)?;
            }
            world.run_until_idle().await?;
            check(cloud.names("networks").len() == 2, "each has a network")?;
            check(cloud.names("servers").len() == 4, format!("{:?}", cloud.names("servers")))?;
            let kind = KindName::of::<capstan_capi_types::core::Cluster>();
            let key = Key::new("other", NAME);
            world.user()?.delete(&kind, &key, &Deletion::default()).await.map_err(failed)?;
            world.run_until_idle().await?;
            check(world.objects()?.get(&kind, &key).is_none(), "the other cluster is still there")?;
            check(cloud.names("networks").len() == 1, "one network stays")?;
            check(cloud.names("servers").len() == 2, format!("{:?}", cloud.names("servers")))
        })
    }
    goes_well(&Script::of(&[Create, Check(another), Delete]));
}

#[test]
fn a_bastion_has_a_floating_ip_and_goes_when_it_is_disabled() {
    fn change(body: &mut Value) {
        changed(body, "OpenStackCluster", |spec| {
            let image = json!({"filter": {"name": "ubuntu-2404-kube-v1.36.0"}});
            let flavor = json!({"filter": {"name": "m1.small"}});
            spec["bastion"] = json!({"enabled": true, "spec": {"flavor": flavor, "image": image}});
        });
    }
    fn disabled<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let object = cluster(world)?;
            let bastion = &object["status"]["bastion"];
            check(bastion["state"] == "ACTIVE", format!("{bastion}"))?;
            check(bastion["floatingIP"].as_str().is_some_and(|ip| !ip.is_empty()), format!("{bastion}"))?;
            check(cloud.names("servers").len() == 3, "the bastion is a server")?;
            check(cloud.names("security_groups").len() == 3, "the bastion has a group")?;
            let patch = capstan_controller::Patch::Merge(json!({"spec": {"bastion": {"enabled": false}}}));
            let (kind, key) = (KindName::of::<OpenStackCluster>(), Key::new(NAMESPACE, NAME));
            world.user()?.patch(&kind, &key, None, &patch).await.map_err(failed)?;
            world.run_until_idle().await?;
            check(cloud.names("servers").len() == 2, "the bastion is gone")?;
            check(cloud.names("security_groups").len() == 2, "its group is gone")?;
            check(cloud.names("floatingips").len() == 1, "its floating IP is gone")
        })
    }
    let acts = [Create, Check(disabled), Delete];
    goes_well(&Script { bare: true, change: Some(change), guests: 1, ..Script::of(&acts) });
}

/// The policies of the server groups, and how many servers each has.
async fn server_groups(cloud: &Cloud) -> Result<Vec<(String, usize)>, Violation> {
    let all = cloud.client().list::<ServerGroup>(&ServerGroupFilter::default()).await.map_err(failed)?;
    let mut all: Vec<_> = all.iter().map(|it| (it.policy().to_owned(), it.members.len())).collect();
    all.sort();
    Ok(all)
}

#[test]
fn machines_are_kept_apart_by_server_groups_that_come_and_go_with_them() {
    fn change(body: &mut Value) {
        let asks = |policy: &str| json!({"annotations": {"capstan.dev/openstack-server-group": policy}});
        changed(body, "KubeadmControlPlane", |spec| {
            spec["machineTemplate"]["metadata"] = asks("soft-anti-affinity");
        });
        changed(body, "MachineDeployment", |spec| {
            spec["template"]["metadata"] = asks("anti-affinity");
        });
        changed(body, "OpenStackMachineTemplate", |spec| {
            spec["template"]["spec"]["flavor"]["filter"]["name"] = "m1.medium".into();
        });
    }
    fn apart<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let groups = server_groups(cloud).await?;
            let expected = [("anti-affinity".to_owned(), 2), ("soft-anti-affinity".to_owned(), 1)];
            check(groups == expected, format!("{groups:?}"))
        })
    }
    fn alone<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let groups = server_groups(cloud).await?;
            check(groups == [("soft-anti-affinity".to_owned(), 1)], format!("{groups:?}"))
        })
    }
    let shape = Shape { control_plane: 1, workers: 2, version: "v1.36.0" };
    let acts = [Create, Check(apart), ScaleWorkers(0), Check(alone), Delete];
    goes_well(&Script { bare: true, shape, change: Some(change), ..Script::of(&acts) });
}

/// Calls to the cloud so far.
fn calls(cloud: &Cloud) -> u64 {
    cloud.simulator.calls().values().sum()
}

#[test]
fn few_calls_lead_to_a_cluster_and_idle_ones_do_not_grow_with_clusters() {
    fn until_available<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let kind = KindName::of::<capstan_capi_types::core::Cluster>();
            for _ in 0..60 {
                world.pass(std::time::Duration::from_secs(5)).await?;
                let object = world.objects()?.get(&kind, &Key::new(NAMESPACE, NAME)).unwrap_or_default();
                let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                if conditions.iter().any(|it| it["type"] == "Available" && it["status"] == "True") {
                    let count = calls(cloud);
                    return check(count <= 56, format!("{count} calls: {:?}", cloud.simulator.calls()));
                }
            }
            Err(failed("the cluster does not become available within five minutes"))
        })
    }
    fn idle<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let before = calls(cloud);
            world.pass(std::time::Duration::from_secs(3600)).await?;
            let hour = calls(cloud) - before;
            // Five kinds once a minute and eight every ten minutes, for all clusters of the project.
            check(hour <= 360, format!("{hour} calls in an idle hour: {:?}", cloud.simulator.calls()))
        })
    }
    goes_well(&Script::of(&[During(until_available), Create, Check(idle), Delete]));
}
