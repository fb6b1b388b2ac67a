//! The templates of `capstan generate cluster`: each becomes a cluster, and its variables are documented.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_openstack_client::compute::{Keypair, NewKeypair, Server, ServerFilter};
use capstan_openstack_client::network::{
    Network, NetworkFilter, Port, PortFilter, SecurityGroup, SecurityGroupFilter,
};
use capstan_openstack_provider::OpenStack;
use capstan_openstack_types::v1beta2::OpenStackMachine;
use capstan_provider_kit::Provider as _;
use capstan_sim_openstack::{Fault, Service, Settings, Target};
use serde_json::Value;

use crate::cloud::Cloud;
use crate::features::prepare_network;
use crate::manifests::{self, NAME, NAMESPACE, Shape};
use crate::story::Act::{Before, Check, Create, Delete};
use crate::story::{CheckResult, Script, Template, failed};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../..")
}

/// Variables of a text, each with its default.
fn variables(text: &str) -> BTreeSet<(&str, Option<&str>)> {
    let starts = text.split("${").skip(1);
    let inside = starts.filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    inside
        .map(|inside| inside.split_once(":=").map_or((inside, None), |(name, default)| (name, Some(default))))
        .collect()
}

/// The values of a user of the simulated cloud. The id of the external network is known once there is a cloud.
fn value(name: &str) -> &str {
    match name {
        "CLUSTER_NAME" => NAME,
        "KUBERNETES_VERSION" => "v1.36.0",
        "OPENSTACK_CLOUD" => "capstan",
        "OPENSTACK_IMAGE_NAME" | "OPENSTACK_BASTION_IMAGE_NAME" => "ubuntu-2404-kube-v1.36.0",
        "OPENSTACK_NETWORK_NAME" | "OPENSTACK_SUBNET_NAME" | "OPENSTACK_SSH_KEY_NAME" => "theirs",
        "OPENSTACK_FAILURE_DOMAIN" | "OPENSTACK_FAILURE_DOMAIN_1" => "az1",
        "OPENSTACK_FAILURE_DOMAIN_2" => "az2",
        "OPENSTACK_FAILURE_DOMAIN_3" => "az3",
        "KUBE_VIP_IMAGE" => "images.example/kube-vip:v1",
        "OPENSTACK_EXTERNAL_NETWORK_ID" => "00000000-0000-0000-0000-000000000000",
        name if name.ends_with("_FLAVOR") => "m1.medium",
        _ => "unknown",
    }
}

fn filled_in(text: &str) -> String {
    let mut filled = text.to_owned();
    for (name, default) in variables(text) {
        let known = value(name);
        match default {
            Some(default) if known == "unknown" => {
                filled = filled.replace(&format!("${{{name}:={default}}}"), default);
            }
            Some(default) => filled = filled.replace(&format!("${{{name}:={default}}}"), known),
            None => filled = filled.replace(&format!("${{{name}}}"), known),
        }
    }
    filled
}

/// The objects of a flavor.
fn documents(flavor: &str) -> Vec<(KindName, Value)> {
    let provider = OpenStack::default();
    let flavor = provider.flavors().iter().find(|it| it.name == flavor).expect("a flavor");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&filled_in(flavor.template)).expect("YAML");
    let with_kind = |mut body: Value| {
        body["metadata"]["namespace"] = NAMESPACE.into();
        if body["kind"] == "OpenStackCluster" {
            // The id is the cloud's own.
            body["spec"]["externalNetwork"] = serde_json::json!({"filter": {"name": "public"}});
        }
        (manifests::kind(body["kind"].as_str().expect("a kind")), body)
    };
    documents.into_iter().map(with_kind).collect()
}

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("template", what)) }
}

fn becomes_a_cluster(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn story(template: Template, acts: &[crate::story::Act]) -> Script {
    Script { bare: true, template: Some(template), ..Script::of(acts) }
}

/// Somebody uploads a public key.
fn key<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
    Box::pin(async move {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2zHHkGTbZ7kmIy5tVbYVWGqyq6vXFfQ0dHnFz6uJxk somebody";
        let new = NewKeypair {
            name: "theirs".to_owned(),
            public_key: Some(key.to_owned()),
            ..NewKeypair::default()
        };
        cloud.client().create::<Keypair>(&new).await.map_err(failed)?;
        cloud.simulator.forgive();
        Ok(())
    })
}

#[test]
fn the_default_has_a_load_balancer() {
    becomes_a_cluster(&story(|| documents(""), &[Create, Delete]));
}

#[test]
fn without_lb_needs_no_octavia() {
    fn none<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move { check(cloud.names("loadbalancers").is_empty(), "there is a load balancer") })
    }
    let story = story(|| documents("without-lb"), &[Create, Check(none), Delete]);
    let settings = Settings { absent_services: vec![Service::LoadBalancer], ..Settings::default() };
    becomes_a_cluster(&Script { members: false, settings, ..story });
}

/// Before Octavia followed Keystone's default roles, members without a role of its own could not even list.
#[test]
fn without_lb_needs_no_role_in_octavia() {
    fn refused<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let on = Target { service: Some(Service::LoadBalancer), ..Target::default() };
            cloud.simulator.inject(Fault::Error { on, status: 403, message: String::new() }).map_err(failed)
        })
    }
    let story = story(|| documents("without-lb"), &[Before(refused), Create, Delete]);
    becomes_a_cluster(&Script { members: false, ..story });
}

#[test]
fn multi_az_spreads_over_three_zones() {
    fn spread<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let servers = cloud.client().list::<Server>(&ServerFilter::default()).await.map_err(failed)?;
            let mut zones: Vec<_> = servers.iter().map(|server| server.availability_zone.clone()).collect();
            zones.sort();
            check(zones.len() == 6 && zones.chunks(2).all(|pair| pair[0] == pair[1]), format!("{zones:?}"))
        })
    }
    let shape = Shape { control_plane: 3, workers: 3, version: "v1.36.0" };
    let story = story(|| documents("multi-az"), &[Create, Check(spread), Delete]);
    becomes_a_cluster(&Script { shape, third_zone: true, ..story });
}

#[test]
fn existing_network_creates_none() {
    fn none<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let networks = cloud.client().list::<Network>(&NetworkFilter::default()).await.map_err(failed)?;
            let own: Vec<&str> =
                networks.iter().filter(|it| !it.is_external).map(|it| it.name.as_str()).collect();
            check(own == ["theirs"], format!("{own:?}"))
        })
    }
    let acts = [Before(prepare_network), Create, Check(none), Delete];
    becomes_a_cluster(&story(|| documents("existing-network"), &acts));
}

#[test]
fn boot_from_volume_has_a_volume_per_machine() {
    fn volumes<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(
            async move { check(cloud.names("volumes").len() == 2, format!("{:?}", cloud.names("volumes"))) },
        )
    }
    becomes_a_cluster(&story(|| documents("boot-from-volume"), &[Create, Check(volumes), Delete]));
}

#[test]
fn bastion_has_a_third_server() {
    let acts = [Before(key), Create, Delete];
    becomes_a_cluster(&Script { guests: 1, ..story(|| documents("bastion"), &acts) });
}

#[test]
fn dual_stack_gives_every_port_an_address_of_both_families() {
    fn both<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let client = cloud.client();
            check(cloud.names("subnets").len() == 2, format!("{:?}", cloud.names("subnets")))?;
            let ports = client.list::<Port>(&PortFilter::default()).await.map_err(failed)?;
            // Octavia's are of another project.
            let servers: Vec<&Port> = ports
                .iter()
                .filter(|port| port.device_owner.starts_with("compute") && port.name.starts_with(NAME))
                .collect();
            let both = |port: &&Port| {
                let v6 = port.fixed_ips.iter().filter(|ip| ip.ip_address.contains(':')).count();
                (port.fixed_ips.len(), v6) == (2, 1)
            };
            check(servers.len() == 2 && servers.iter().all(both), format!("{servers:?}"))?;
            let routed = |port: &&Port| port.device_owner.contains("router_interface");
            check(ports.iter().filter(routed).count() == 2, "a subnet has no way out")?;
            let groups =
                client.list::<SecurityGroup>(&SecurityGroupFilter::default()).await.map_err(failed)?;
            let managed = groups.iter().filter(|group| group.name.contains("secgroup"));
            let let_in = |group: &SecurityGroup, family: &str| {
                let rules = group.security_group_rules.iter();
                rules.filter(|rule| rule.direction == "ingress" && rule.ethertype == family).count()
            };
            for group in managed {
                check(let_in(group, "IPv4") == let_in(group, "IPv6"), format!("{group:?}"))?;
            }
            let machines = world.objects()?.list(&KindName::of::<OpenStackMachine>());
            let addresses: String = machines.iter().map(|it| it["status"]["addresses"].to_string()).collect();
            check(addresses.contains("fd00:10:6:"), addresses)
        })
    }
    becomes_a_cluster(&story(|| documents("dual-stack"), &[Create, Check(both), Delete]));
}

#[test]
fn kube_vip_needs_neither_octavia_nor_a_floating_ip() {
    fn none<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            check(cloud.names("loadbalancers").is_empty(), "there is a load balancer")?;
            check(cloud.names("floatingips").is_empty(), "there is a floating IP")
        })
    }
    let story = story(|| documents("kube-vip"), &[Create, Check(none), Delete]);
    becomes_a_cluster(&Script { members: false, ..story });
}

#[test]
fn every_variable_of_a_template_is_documented() {
    let documented = std::fs::read_to_string(root().join("docs/openstack.md")).expect("the document");
    for flavor in OpenStack::default().flavors() {
        assert!(
            flavor.name.is_empty() || documented.contains(&format!("| `{}` |", flavor.name)),
            "{}",
            flavor.name
        );
        for (name, _) in variables(flavor.template) {
            assert!(documented.contains(&format!("`{name}`")), "{}: {name}", flavor.name);
        }
    }
}

#[test]
fn every_file_is_a_flavor() {
    let files = std::fs::read_dir(root().join("templates/openstack")).expect("templates").count();
    assert_eq!(files, OpenStack::default().flavors().len());
}
