//! Certificates and the kubeconfig.

use super::*;

#[test]
fn certificates_of_users_are_left_unchanged() {
    let mut test = TestCluster::new(1, "");
    let mut made = TestCluster::new(1, "");
    made.settle();
    let mut given = made.secrets["blue-ca"].clone();
    given.kind = "Opaque".to_owned();
    given.metadata.owner_references.clear();
    test.secrets.insert("blue-ca".to_owned(), given.clone());
    let done = test.settle();
    assert!(!done.iter().any(|text| text.ends_with("secrets fleet/blue-ca")), "{done:?}");
    assert_eq!(test.secrets["blue-ca"], given);
}

#[test]
fn a_lost_ca_is_not_regenerated() {
    let mut test = TestCluster::running(3, "");
    test.secrets.remove("blue-ca");
    assert_eq!(test.settle(), NOTHING);
    let (status, _, message) = test.condition("CertificatesAvailable");
    assert_eq!(status, "False");
    assert_eq!(
        message,
        "Cluster certificate for ca is not available, please check cluster certificate secrets"
    );
    test.control_plane.spec.replicas = Some(5);
    assert_eq!(test.settle(), NOTHING, "nothing could join");
    assert_eq!(test.condition("Available").2, "* Control plane certificates are not available");
}

#[test]
fn the_kubeconfig_is_renewed_at_half_its_lifetime() {
    let mut test = TestCluster::running(1, "");
    let before = test.secrets["blue-kubeconfig"].data.clone();
    test.now = moment("2027-05-01T00:00:00Z");
    assert_eq!(test.settle(), NOTHING);
    test.now = moment("2027-06-01T00:00:00Z");
    assert_eq!(test.settle(), ["patch secrets fleet/blue-kubeconfig"]);
    assert_ne!(test.secrets["blue-kubeconfig"].data, before);
    assert_eq!(test.settle(), NOTHING);
}
