//! Tables of decisions about application credentials.

use std::sync::Arc;

use capstan_capi_types::core::Cluster;
use capstan_controller::{Effect, Look, Patch};
use capstan_object::ObjectMeta;
use capstan_openstack_client::Secret;
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_provider_kit::SecretOutline;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::observe::Held;
use super::{CredentialState, Fresh, NEXT, ROTATION, Rotation, keep, wanted};
use crate::cluster::OpenStackClusters;
use crate::cluster::observed::{CloudState, Seen};
use crate::cluster::plan::{Decision, Plan};

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn cluster(rotation: &str) -> OpenStackCluster {
    let mut cluster =
        OpenStackCluster { metadata: ObjectMeta::named("ns", "c"), ..OpenStackCluster::default() };
    cluster.metadata.uid = "u".to_owned();
    cluster.metadata.annotations.insert(ROTATION.to_owned(), rotation.to_owned());
    cluster
}

fn held(id: &str) -> Held {
    Held { id: id.to_owned(), expires: None, roles: vec!["member".to_owned()] }
}

/// A Secret of the cluster with a credential since the start.
fn secret(number: u64) -> Option<Arc<SecretOutline>> {
    let mut outline = SecretOutline { metadata: ObjectMeta::named("ns", "s"), ..SecretOutline::default() };
    let known = [("number", number.to_string()), ("since", start().to_string()), ("user", "op".to_owned())];
    let known =
        known.map(|(key, value)| (format!("capstan.dev/openstack-application-credential-{key}"), value));
    outline.metadata.annotations.extend(known);
    outline.metadata.owner_references.push(capstan_object::OwnerReference::controlled_by(&cluster("30d")));
    Some(Arc::new(outline))
}

fn state(numbers: &[u64], in_secret: Option<u64>) -> CredentialState {
    CredentialState {
        held: numbers.iter().map(|number| (*number, held(&format!("id{number}")))).collect(),
        secret: in_secret.and_then(secret),
        resources: in_secret.and_then(secret),
        user: "op".to_owned(),
        roles: vec!["member".to_owned()],
        ..CredentialState::default()
    }
}

/// The decision, and what is wrong.
fn decide(
    object: &OpenStackCluster,
    credentials: CredentialState,
    after: SignedDuration,
) -> (Decision, Option<String>) {
    let state = CloudState { credentials, ..CloudState::default() };
    let seen = Seen {
        cluster: Some(Arc::new(Cluster::default())),
        cluster_name: Some("c".to_owned()),
        machines: Vec::new(),
        bastion: None,
        wanted_groups: std::collections::BTreeMap::new(),
        cloud: Ok(CloudState::default()),
    };
    let look: Look<OpenStackClusters> = Look::new(Arc::new(object.clone()), seen, start() + after);
    let mut decision = Decision::rest(&look);
    let wrong = keep(&Plan { look: &look, cluster: "c", state: &state }, &mut decision);
    (decision, wrong)
}

/// What is done, what is wrong, and the number of the next credential.
fn decided(
    object: &OpenStackCluster,
    credentials: CredentialState,
    after: SignedDuration,
) -> (Vec<String>, Option<String>, String) {
    let (decision, wrong) = decide(object, credentials, after);
    let effects = decision.effects.iter().map(|planned| planned.effect.summary()).collect();
    let next = decision.object.metadata.annotations.get(NEXT).cloned().unwrap_or_default();
    (effects, wrong, next)
}

#[test]
fn credentials_are_made_rotated_and_cleaned_up() {
    let make = |number: u64| format!("create-credential capstan-ns-c-u-{number}");
    let delete = |number: u64| format!("delete-credential id{number}");
    let table = [
        ("the first", state(&[], None), DAY, vec![make(1)], "1"),
        ("one in use", state(&[4], Some(4)), DAY, vec![], "5"),
        ("one that is due", state(&[4], Some(4)), DAY * 30, vec![make(5)], "5"),
        ("the one before, at first", state(&[3, 4], Some(4)), DAY / 2, vec![], "5"),
        ("the one before, a day later", state(&[3, 4], Some(4)), DAY, vec![delete(3)], "5"),
        ("one whose secret was lost", state(&[4, 5], Some(4)), DAY * 30, vec![delete(5), make(6)], "6"),
        ("the first one's secret was lost", state(&[1], None), DAY, vec![delete(1), make(2)], "2"),
    ];
    for (what, state, after, expected, next) in table {
        let (effects, wrong, number) = decided(&cluster("30d"), state, after);
        assert_eq!((effects, wrong, number.as_str()), (expected, None, next), "{what}");
    }
}

#[test]
fn a_shared_identity_gives_credentials_to_clusters_only_if_it_says_so() {
    let state = CredentialState { forbidden_by: Some("shared".to_owned()), ..state(&[], None) };
    let (effects, wrong, _) = decided(&cluster("30d"), state, DAY);
    assert_eq!(effects, Vec::<String>::new());
    assert!(wrong.is_some_and(|wrong| wrong.starts_with("E-OS-IDENTITY") && wrong.contains("allowed")));
}

#[test]
fn a_number_is_never_used_again() {
    let mut object = cluster("never");
    object.metadata.annotations.insert(NEXT.to_owned(), "7".to_owned());
    let (effects, _, next) = decided(&object, state(&[], None), DAY);
    assert_eq!((effects, next.as_str()), (vec!["create-credential capstan-ns-c-u-7".to_owned()], "7"));
}

#[test]
fn a_revoked_credential_is_reported_and_only_people_have_it_replaced() {
    let (effects, wrong, _) = decided(&cluster("30d"), state(&[], Some(4)), DAY * 60);
    assert_eq!(effects, Vec::<String>::new());
    let wrong = wrong.unwrap_or_default();
    assert!(wrong.starts_with("E-OS-APP-CREDENTIAL") && wrong.contains("delete the Secret"), "{wrong}");
}

#[test]
fn an_expired_credential_is_reported_and_replaced() {
    let mut state = state(&[4], Some(4));
    state.held.insert(4, Held { expires: Some(start()), ..held("id4") });
    let (effects, wrong, _) = decided(&cluster("never"), state, DAY / 2);
    assert_eq!(effects, ["create-credential capstan-ns-c-u-5"]);
    assert!(wrong.is_some_and(|wrong| wrong.contains("has expired")));
}

#[test]
fn another_user_and_other_roles_of_the_operator_have_it_replaced() {
    let user = CredentialState { user: "another".to_owned(), ..state(&[], Some(4)) };
    assert_eq!(decided(&cluster("never"), user, DAY).0, ["create-credential capstan-ns-c-u-5"]);
    let mut roles = state(&[4], Some(4));
    roles.roles.insert(0, "load-balancer_member".to_owned());
    assert_eq!(decided(&cluster("never"), roles, DAY).0, ["create-credential capstan-ns-c-u-5"]);
    let none = CredentialState { roles: Vec::new(), ..state(&[], None) };
    let (effects, wrong, _) = decided(&cluster("never"), none, DAY);
    assert_eq!(effects, Vec::<String>::new());
    assert!(wrong.is_some_and(|wrong| wrong.contains("grant member")));
}

#[test]
fn a_new_secret_is_written_and_what_belongs_to_others_is_not() {
    let fresh = |number| Fresh { number, id: format!("id{number}"), secret: Secret::new("hidden") };
    let first = CredentialState { fresh: Some(fresh(1)), ..state(&[1], None) };
    let (effects, wrong, _) = decided(&cluster("30d"), first, DAY);
    assert!(wrong.is_none() && effects.iter().all(|effect| effect.starts_with("create ")), "{effects:?}");
    assert!(effects.last().is_some_and(|last| last.ends_with("c-workload-cloud-config")), "{effects:?}");
    let next = CredentialState { fresh: Some(fresh(5)), ..state(&[4, 5], Some(4)) };
    let (effects, wrong, _) = decided(&cluster("30d"), next, DAY * 30);
    assert!(wrong.is_none() && effects.len() == 2, "{effects:?}");
    assert!(effects.iter().all(|effect| effect.starts_with("patch ")), "{effects:?}");
    let mut theirs = state(&[], Some(4));
    let mut outline = SecretOutline::clone(theirs.secret.as_ref().expect("a Secret"));
    outline.metadata.owner_references.clear();
    theirs.secret = Some(Arc::new(outline));
    let (effects, wrong, _) = decided(&cluster("30d"), theirs, DAY);
    assert_eq!(effects, Vec::<String>::new());
    assert!(wrong.is_some_and(|wrong| wrong.contains("has another owner")));
}

#[test]
fn without_the_annotation_everything_of_ours_goes() {
    let mut object = cluster("30d");
    object.metadata.annotations.clear();
    let (effects, wrong, next) = decided(&object, state(&[3, 4], Some(4)), DAY);
    assert_eq!((effects.len(), wrong, next.as_str()), (4, None, ""), "{effects:?}");
}

#[test]
fn the_annotation_has_hours_days_or_never() {
    let read = |text: &str| wanted(&cluster(text).metadata);
    assert_eq!(read("never"), Ok(Some(Rotation::Never)));
    assert_eq!(read("12h"), Ok(Some(Rotation::Every(DAY / 2))));
    assert_eq!(read("30d"), Ok(Some(Rotation::Every(DAY * 30))));
    for wrong in ["", "30", "0h", "-1d", "3651d", "99999999999h", "1w"] {
        assert!(read(wrong).is_err_and(|why| why.contains(ROTATION)), "{wrong}");
    }
}

#[test]
fn the_files_hold_the_credential_and_how_the_cloud_is_reached() {
    let reach = super::cloud_config::Reach {
        name: "capstan".to_owned(),
        auth_url: "https://keystone.example/v3".to_owned(),
        region: Some("RegionOne".to_owned()),
        interface: "public",
        authorities: Some(b"pem".to_vec()),
        unchecked: false,
    };
    let fresh = Fresh { number: 1, id: "i".to_owned(), secret: Secret::new("s\"cret") };
    let files = super::cloud_config::files(&reach, &fresh);
    let text = |name: &str| String::from_utf8(files[name].clone()).expect("text");
    assert_eq!(
        text("cloud.conf"),
        "[Global]\nauth-url=\"https://keystone.example/v3\"\napplication-credential-id=\"i\"\n\
         application-credential-secret=\"s\\\"cret\"\nregion=\"RegionOne\"\nos-endpoint-type=\"public\"\n\
         ca-file=\"/etc/config/cacert\"\n"
    );
    let clouds = capstan_openstack_client::config::Clouds::parse(&text("clouds.yaml"), None, None);
    let cloud = clouds.expect("clouds.yaml").cloud(Some("capstan"), None).expect("a cloud");
    let expected = capstan_openstack_client::Credentials::ApplicationCredential {
        id: "i".to_owned(),
        secret: Secret::new("s\"cret"),
    };
    assert_eq!((cloud.credentials, cloud.region.as_deref()), (expected, Some("RegionOne")));
    let resources = super::cloud_config::resources(&reach, &fresh);
    let manifest: Value = serde_json::from_slice(&resources["cloud-config.yaml"]).expect("JSON");
    assert_eq!(manifest["metadata"]["namespace"], "kube-system");
    assert!(manifest["data"]["cloud.conf"].is_string() && manifest["data"]["cacert"].is_string());
}

#[test]
fn a_replaced_secret_loses_an_authority_that_is_no_longer_trusted() {
    let fresh = Fresh { number: 5, id: "id5".to_owned(), secret: Secret::new("hidden") };
    let credentials = CredentialState { fresh: Some(fresh), ..state(&[4, 5], Some(4)) };
    let (decision, _) = decide(&cluster("30d"), credentials, DAY);
    let patches: Vec<&Value> = decision
        .effects
        .iter()
        .filter_map(|planned| match &planned.effect {
            Effect::Patch { patch: Patch::Merge(body), .. } => Some(body),
            _ => None,
        })
        .collect();
    assert!(patches.iter().all(|body| body["data"].as_object().is_some_and(|data| data["cacert"].is_null())));
    assert_eq!(patches.len(), 2);
}
