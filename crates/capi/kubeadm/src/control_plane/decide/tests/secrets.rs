//! Certificates and the kubeconfig.

use super::*;

#[test]
fn certificates_that_users_gave_are_left_as_they_are() {
    let mut world = World::new(1, "");
    let mut made = World::new(1, "");
    made.settle();
    let mut given = made.secrets["blue-ca"].clone();
    given.kind = "Opaque".to_owned();
    given.metadata.owner_references.clear();
    world.secrets.insert("blue-ca".to_owned(), given.clone());
    let done = world.settle();
    assert!(!done.iter().any(|text| text.ends_with("secrets fleet/blue-ca")), "{done:?}");
    assert_eq!(world.secrets["blue-ca"], given);
}

#[test]
fn an_authority_that_is_lost_is_not_made_again() {
    let mut world = World::running(3, "");
    world.secrets.remove("blue-ca");
    assert_eq!(world.settle(), NOTHING);
    let (status, _, message) = world.condition("CertificatesAvailable");
    assert_eq!(status, "False");
    assert_eq!(
        message,
        "Cluster certificate for ca is not available, please check cluster certificate secrets"
    );
    world.control_plane.spec.replicas = Some(5);
    assert_eq!(world.settle(), NOTHING, "nothing could join");
    assert_eq!(world.condition("Available").2, "* Control plane certificates are not available");
}

#[test]
fn the_kubeconfig_is_renewed_at_half_its_life() {
    let mut world = World::running(1, "");
    let before = world.secrets["blue-kubeconfig"].data.clone();
    world.now = moment("2027-05-01T00:00:00Z");
    assert_eq!(world.settle(), NOTHING);
    world.now = moment("2027-06-01T00:00:00Z");
    assert_eq!(world.settle(), ["patch secrets fleet/blue-kubeconfig"]);
    assert_ne!(world.secrets["blue-kubeconfig"].data, before);
    assert_eq!(world.settle(), NOTHING);
}
