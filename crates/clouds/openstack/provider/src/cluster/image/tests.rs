//! Tables of decisions about images.

use std::sync::Arc;

use capstan_controller::Look;
use capstan_object::ObjectMeta;
use capstan_openstack_client::image::ImageStatus;
use capstan_openstack_types::v1beta2::OpenStackCluster;
use jiff::{SignedDuration, Timestamp};

use super::observe::OwnImage;
use super::{IMAGES, ImageState, keep, removal, wanted};
use crate::cluster::OpenStackClusters;
use crate::cluster::observed::{CloudState, Seen};
use crate::cluster::plan::{Decision, Plan};

const ONE: &str = r#"[{"name": "node", "url": "https://images.example/node.qcow2"}]"#;

fn cluster(images: &str) -> OpenStackCluster {
    let mut cluster =
        OpenStackCluster { metadata: ObjectMeta::named("ns", "c"), ..OpenStackCluster::default() };
    cluster.metadata.uid = "u".to_owned();
    cluster.metadata.annotations.insert(IMAGES.to_owned(), images.to_owned());
    cluster
}

fn decided(images: &str, state: ImageState) -> (Vec<String>, Option<String>) {
    let state = CloudState { images: state, ..CloudState::default() };
    let seen = Seen {
        cluster: None,
        cluster_name: Some("c".to_owned()),
        machines: Vec::new(),
        bastion: None,
        wanted_groups: std::collections::BTreeMap::new(),
        cloud: Ok(CloudState::default()),
    };
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
    let look: Look<OpenStackClusters> = Look::new(Arc::new(cluster(images)), seen, now);
    let mut decision: Decision = Decision::rest(&look);
    let wrong = keep(&Plan { look: &look, cluster: "c", state: &state }, &mut decision);
    (decision.effects.iter().map(|planned| planned.effect.summary()).collect(), wrong)
}

fn own(status: ImageStatus, failed: Option<i64>) -> ImageState {
    let failed = failed.map(|minutes| {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(60 - minutes);
        (at, "no route".to_owned())
    });
    let image = OwnImage { id: "i".to_owned(), name: "node".to_owned(), status, failed };
    ImageState { ours: vec![image], ..ImageState::default() }
}

#[test]
fn an_image_is_registered_imported_and_then_left_alone() {
    let there = ImageState { usable: ["node".to_owned()].into(), ..ImageState::default() };
    let table = [
        ("somebody's", there, vec![]),
        ("none", ImageState::default(), vec!["create-image node"]),
        ("registered", own(ImageStatus::Queued, None), vec!["import-image i"]),
        ("importing", own(ImageStatus::Importing, None), vec![]),
        ("failed a while ago", own(ImageStatus::Queued, Some(6)), vec!["import-image i"]),
        ("killed", own(ImageStatus::Killed, None), vec!["delete-image i"]),
    ];
    for (what, state, expected) in table {
        let (effects, wrong) = decided(ONE, state);
        assert_eq!((effects, wrong), (expected.iter().map(|it| (*it).to_owned()).collect(), None), "{what}");
    }
}

#[test]
fn a_failed_import_is_reported_with_the_url_until_it_is_tried_again() {
    let (effects, wrong) = decided(ONE, own(ImageStatus::Queued, Some(1)));
    assert_eq!(effects, Vec::<String>::new());
    let wrong = wrong.unwrap_or_default();
    assert!(
        wrong.starts_with("E-OS-IMAGE-IMPORT") && wrong.contains("https://images.example/node.qcow2"),
        "{wrong}"
    );
}

#[test]
fn a_cloud_that_does_not_download_is_reported() {
    let state = ImageState { downloads: Some(false), ..ImageState::default() };
    let (effects, wrong) = decided(ONE, state);
    assert_eq!(effects, Vec::<String>::new());
    assert!(wrong.is_some_and(|wrong| wrong.starts_with("E-OS-UNSUPPORTED")));
}

#[test]
fn only_images_that_nobody_needs_are_deleted() {
    let unused = own(ImageStatus::Active, None);
    assert_eq!(decided("[]", unused).0, ["delete-image i"]);
    let used = ImageState { in_use: ["i".to_owned()].into(), ..own(ImageStatus::Active, None) };
    assert_eq!(decided("[]", used).0, Vec::<String>::new());
    let shared = ImageState { shared: ["node".to_owned()].into(), ..own(ImageStatus::Active, None) };
    assert!(removal(&shared).is_empty());
    assert_eq!(removal(&own(ImageStatus::Active, None)).len(), 1);
}

#[test]
fn a_wrong_annotation_is_refused_with_the_field() {
    for (text, field) in [
        ("{", "JSON list"),
        (r#"[{"name": "a"}]"#, "url"),
        (r#"[{"name": "", "url": "https://h/i"}]"#, "[0].name"),
        (r#"[{"name": "a", "url": "https://u:p@h/i"}]"#, "[0].url"),
        (r#"[{"name": "a", "url": "file:///etc/passwd"}]"#, "[0].url"),
        (r#"[{"name": "a", "url": "https://h/i", "diskFormat": "tar"}]"#, "[0].diskFormat"),
        (r#"[{"name": "a", "url": "https://h/i", "properties": {"owner": "me"}}]"#, "properties.owner"),
        (r#"[{"name": "a", "url": "https://h/i", "colour": 1}]"#, "colour"),
        (r#"[{"name": "a", "url": "https://h/i"}, {"name": "a", "url": "https://h/j"}]"#, "[1].name"),
    ] {
        let why = wanted(&cluster(text).metadata).expect_err(text);
        assert!(why.contains(field), "{text}: {why}");
    }
}
