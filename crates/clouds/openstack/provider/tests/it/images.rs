//! Images: registered from a URL, and looked up.

use std::time::Duration;

use bytes::Bytes;
use capstan_controller::KindName;
use capstan_harness::{Fault, Violation, World, run};
use capstan_openstack_client::image::{Image, ImageFilter, NewImage};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_sim_openstack::Fault as CloudFault;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::story::Act::{Before, Check, Create, Delete, During};
use crate::story::{CheckResult, Script, failed};

const NAME: &str = "node-v1.36.0";

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("image", what)) }
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// Machines boot an image that the cluster brings along.
fn brings_its_image(body: &mut Value) {
    if body["kind"] == "OpenStackCluster" {
        let properties = json!({"os_distro": "ubuntu", "hw_disk_bus": "virtio", "kube_version": "v1.36.0"});
        let images = json!([{"name": NAME, "url": "https://images.example/node.qcow2", "minDiskGiB": 10,
            "properties": properties}]);
        body["metadata"]["annotations"] = json!({"capstan.dev/openstack-images": images.to_string()});
    }
    use_image(body);
}

fn use_image(body: &mut Value) {
    if body["kind"] == "OpenStackMachineTemplate" {
        body["spec"]["template"]["spec"]["image"]["filter"]["name"] = NAME.into();
    }
}

fn story(acts: &[crate::story::Act]) -> Script {
    Script { bare: true, change: Some(brings_its_image), ..Script::of(acts) }
}

fn conditions(world: &World<'_>) -> Result<String, Violation> {
    let objects = world.objects()?;
    let mut all = objects.list(&KindName::of::<OpenStackCluster>());
    all.extend(objects.list(&KindName::of::<OpenStackServer>()));
    Ok(all.iter().map(|object| object["status"]["conditions"].to_string()).collect())
}

async fn images(cloud: &Cloud) -> Result<Vec<Image>, Violation> {
    let filter = ImageFilter { name: Some(NAME.to_owned()), ..ImageFilter::default() };
    cloud.client().list::<Image>(&filter).await.map_err(failed)
}

#[test]
fn a_cluster_registers_its_image_uses_it_and_takes_it_away() {
    fn registered<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let found = images(cloud).await?;
            let right = |image: &Image| {
                image.visibility == "private"
                    && image.min_disk == 10
                    && image.property("os_distro") == Some("ubuntu")
                    && image.property("capstan-mark").is_some()
            };
            check(found.len() == 1 && found.iter().all(right), format!("{found:?}"))
        })
    }
    goes_well(&story(&[Create, Check(registered), Delete]));
}

#[test]
fn a_download_that_fails_is_reported_and_tried_again() {
    fn fail<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(
            async move { cloud.simulator.inject(CloudFault::FailedImports { times: 1 }).map_err(failed) },
        )
    }
    fn reported<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(Duration::from_secs(90)).await?;
            check(conditions(world)?.contains("could not be downloaded"), conditions(world)?)?;
            check(images(cloud).await?.len() == 1, "it is registered twice")
        })
    }
    goes_well(&story(&[Before(fail), During(reported), Create, Delete]));
}

#[test]
fn a_cloud_without_downloads_is_reported_and_an_upload_is_used() {
    fn off<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            cloud.simulator.set(|settings| settings.import_methods = vec!["glance-direct".to_owned()]);
            Ok(())
        })
    }
    fn uploaded<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(Duration::from_secs(90)).await?;
            check(conditions(world)?.contains("E-OS-UNSUPPORTED"), conditions(world)?)?;
            upload(cloud).await.map(drop)
        })
    }
    fn clear<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            cloud.simulator.forgive();
            check(images(cloud).await?.len() == 1, "there is another image")
        })
    }
    goes_well(&story(&[Before(off), During(uploaded), Create, Check(clear), Delete]));
}

/// An image that somebody uploads.
async fn upload(cloud: &Cloud) -> Result<Image, Violation> {
    let new = NewImage {
        name: NAME.to_owned(),
        disk_format: Some("raw".to_owned()),
        container_format: Some("bare".to_owned()),
        properties: [("kube_version".to_owned(), "v1.36.0".to_owned())].into(),
        ..NewImage::default()
    };
    let client = cloud.client();
    let image: Image = client.create(&new).await.map_err(failed)?;
    client.upload_image(&image.id, Bytes::from_static(b"data")).await.map_err(failed)?;
    Ok(image)
}

#[test]
fn several_images_of_one_name_are_reported_with_their_ids() {
    fn change(body: &mut Value) {
        use_image(body);
    }
    fn twice<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            upload(cloud).await?;
            upload(cloud).await?;
            cloud.simulator.forgive();
            Ok(())
        })
    }
    fn reported<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(Duration::from_secs(300)).await?;
            let (conditions, found) = (conditions(world)?, images(cloud).await?);
            check(conditions.contains("E-OS-AMBIGUOUS"), conditions.clone())?;
            check(
                found.len() == 2 && found.iter().all(|image| conditions.contains(image.id.as_str())),
                conditions,
            )?;
            cloud.client().delete(&found[0].id).await.map(drop).map_err(failed)
        })
    }
    let acts = [Before(twice), During(reported), Create, Delete];
    goes_well(&Script { bare: true, change: Some(change), ..Script::of(&acts) });
}

#[test]
fn no_image_is_registered_twice_or_left_behind_when_the_process_dies_or_an_answer_is_lost() {
    let story = story(&[Create, Delete]);
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let trace = reference.trace.text();
    let number = |verb: &str| -> usize {
        let line = trace.lines().find(|line| line.contains(&format!(": call {verb}"))).expect("a call");
        let number = line.split_whitespace().find_map(|word| word.strip_prefix('#')).expect("a number");
        number.parse().expect("a number")
    };
    for fault in [
        Fault::CrashAfter(number("create-image")),
        Fault::LoseReply(number("create-image")),
        Fault::CrashAfter(number("import-image")),
        Fault::LoseReply(number("import-image")),
        Fault::LoseReply(number("delete-image")),
    ] {
        let report = run(&story, 1, &[fault]);
        assert!(report.violation.is_none(), "{fault:?}: {}", report.transcript());
    }
}
