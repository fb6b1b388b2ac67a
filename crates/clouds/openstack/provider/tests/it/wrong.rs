//! Failures that a user or operator has to fix: each is reported with its code, and the cluster goes on after the fix.

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::image::{Image, ImageFilter, NewImage};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_sim_openstack::{Fault, Service, Target};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::manifests::{self, NAMESPACE};
use crate::story::Act::{Create, Delete, During};
use crate::story::{CheckResult, Script, failed, patch};

/// The text of the conditions of all objects of a kind.
fn conditions(world: &World<'_>, kind: &KindName) -> Result<String, Violation> {
    let all = world.objects()?.list(kind);
    Ok(all.iter().map(|object| object["status"]["conditions"].to_string()).collect::<Vec<_>>().join("\n"))
}

pub fn reports(world: &World<'_>, code: &str) -> Result<(), Violation> {
    let clusters = conditions(world, &KindName::of::<OpenStackCluster>())?;
    let servers = conditions(world, &KindName::of::<OpenStackServer>())?;
    match clusters.contains(code) || servers.contains(code) {
        true => Ok(()),
        false => Err(Violation::new("reported", format!("{code} is in neither {clusters} nor {servers}"))),
    }
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

fn bare(mishap: crate::story::Mishap) -> Script {
    Script { bare: true, ..Script::of(&[During(mishap), Create, Delete]) }
}

async fn set_secret(world: &World<'_>, data: Value) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, "openstack-credentials");
    let patch = capstan_controller::Patch::Merge(json!({"stringData": data}));
    world.user()?.patch(&manifests::secrets(), &key, None, &patch).await.map(drop).map_err(failed)
}

#[test]
fn rejected_credentials_are_reported_and_used_again_once_they_are_right() {
    fn mishap<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let right = crate::cloud::clouds_yaml();
            let wrong = right.replace(crate::cloud::PASSWORD, "wrong-password");
            set_secret(world, json!({"clouds.yaml": wrong})).await?;
            world.pass(std::time::Duration::from_secs(120)).await?;
            reports(world, "E-OS-CREDENTIALS")?;
            set_secret(world, json!({"clouds.yaml": "clouds: {}"})).await?;
            world.pass(std::time::Duration::from_secs(120)).await?;
            reports(world, "E-OS-SECRET")?;
            set_secret(world, json!({"clouds.yaml": right})).await
        })
    }
    goes_well(&bare(mishap));
}

#[test]
fn an_external_network_with_a_typo_can_be_corrected() {
    fn change(body: &mut Value) {
        if body["kind"] == "OpenStackCluster" {
            body["spec"]["externalNetwork"] = json!({"filter": {"name": "publik"}});
        }
    }
    fn mishap<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(std::time::Duration::from_secs(60)).await?;
            reports(world, "E-OS-NOTFOUND: spec.externalNetwork")?;
            let fields = json!({"externalNetwork": {"id": null, "filter": {"name": "public"}}});
            patch::<OpenStackCluster>(world, manifests::NAME, json!({"spec": fields})).await
        })
    }
    goes_well(&Script { change: Some(change), ..bare(mishap) });
}

/// A service answers everything with an error for five minutes.
async fn fails(
    world: &mut World<'_>,
    cloud: &Cloud,
    (service, status, code): (Service, u16, &str),
) -> Result<(), Violation> {
    let on = Target { service: Some(service), ..Target::default() };
    cloud.simulator.inject(Fault::Error { on, status, message: String::new() }).map_err(failed)?;
    world.pass(std::time::Duration::from_secs(300)).await?;
    reports(world, code)?;
    cloud.simulator.heal();
    Ok(())
}

#[test]
fn a_service_that_is_down_is_reported_and_asked_again() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(fails(world, cloud, (Service::Network, 503, "E-OS-UNREACHABLE")))
    }
    goes_well(&bare(mishap));
}

#[test]
fn a_missing_role_is_reported_until_it_is_given() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(fails(world, cloud, (Service::Network, 403, "E-OS-PERMISSION")))
    }
    goes_well(&bare(mishap));
}

#[test]
fn a_load_balancer_that_fails_is_created_again() {
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            cloud.simulator.inject(Fault::FailedLoadBalancers { times: 1 }).map_err(failed)?;
            world.pass(std::time::Duration::from_secs(50)).await?;
            reports(world, "E-OS-LOADBALANCER")
        })
    }
    goes_well(&bare(mishap));
}

#[test]
fn an_identity_that_does_not_allow_the_namespace_is_reported_until_it_does() {
    fn change(body: &mut Value) {
        if body["kind"] == "OpenStackCluster" {
            body["spec"]["identityRef"] =
                json!({"type": "ClusterIdentity", "name": "shared", "cloudName": "capstan"});
        }
    }
    fn mishap<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(std::time::Duration::from_secs(60)).await?;
            reports(world, "E-OS-IDENTITY")?;
            let kind = KindName::of::<capstan_openstack_types::v1alpha1::OpenStackClusterIdentity>();
            let selector = |name: &str| json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
            let body = |name: &str| {
                json!({
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackClusterIdentity",
                    "metadata": {"name": "shared"},
                    "spec": {"secretRef": {"name": "openstack-credentials", "namespace": NAMESPACE},
                        "namespaceSelector": selector(name)},
                })
            };
            world.user()?.create(&kind, "", &body("elsewhere")).await.map_err(failed)?;
            world.pass(std::time::Duration::from_secs(60)).await?;
            reports(world, "does not allow namespace default")?;
            let patch =
                capstan_controller::Patch::Merge(json!({"spec": {"namespaceSelector": selector(NAMESPACE)}}));
            let key = Key::new("", "shared");
            world.user()?.patch(&kind, &key, None, &patch).await.map(drop).map_err(failed)
        })
    }
    goes_well(&Script { change: Some(change), ..bare(mishap) });
}

/// Members do not see subnets of external networks. An administrator can name one, or show it to the project.
#[test]
fn a_subnet_of_the_router_that_no_filter_matches_is_reported_and_not_ignored() {
    fn change(body: &mut Value) {
        if body["kind"] == "OpenStackCluster" {
            let subnet = json!({"filter": {"name": "public-subnet-of-others"}});
            body["spec"]["managedRouter"] =
                json!({"externalIPs": [{"fixedIP": "127.100.1.20", "subnet": subnet}]});
        }
    }
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(std::time::Duration::from_secs(60)).await?;
            reports(world, "E-OS-NOTFOUND")?;
            reports(world, "spec.managedRouter.externalIPs[0].subnet")?;
            match cloud.names("routers").is_empty() {
                true => Ok(()),
                false => Err(failed("a router was created without its address")),
            }
        })
    }
    fn deleted<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(crate::story::delete(world, cloud))
    }
    let acts =
        [crate::story::Act::Apply, crate::story::Act::Check(mishap), crate::story::Act::Check(deleted)];
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&acts) });
}

#[test]
fn an_image_that_does_not_exist_is_reported_until_it_is_there() {
    const MISSING: &str = "ubuntu-2404-kube-v1.36.0-late";
    fn change(body: &mut Value) {
        if body["kind"] == "OpenStackMachineTemplate" {
            body["spec"]["template"]["spec"]["image"]["filter"]["name"] = MISSING.into();
        }
    }
    fn mishap<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(std::time::Duration::from_secs(300)).await?;
            reports(world, "E-OS-NOTFOUND")?;
            reports(world, MISSING)?;
            let client = cloud.client();
            let properties = [("kube_version".to_owned(), "v1.36.0".to_owned())].into();
            let new = NewImage {
                name: MISSING.to_owned(),
                disk_format: Some("raw".to_owned()),
                container_format: Some("bare".to_owned()),
                properties,
                ..NewImage::default()
            };
            let made: Image = client.create(&new).await.map_err(failed)?;
            client.upload_image(&made.id, bytes::Bytes::from_static(b"data")).await.map_err(failed)
        })
    }
    fn remove<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let client = cloud.client();
            let filter = ImageFilter { name: Some(MISSING.to_owned()), ..ImageFilter::default() };
            for image in client.list::<Image>(&filter).await.map_err(failed)? {
                client.delete::<Image>(&image.id).await.map_err(failed)?;
            }
            Ok(())
        })
    }
    let acts = [During(mishap), Create, crate::story::Act::Check(remove), Delete];
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&acts) });
}
