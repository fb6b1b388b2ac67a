use capstan_capi_types::bootstrap::{
    InitConfiguration, JoinConfiguration, JoinControlPlane, KubeadmConfigSpec,
};
use serde_json::Value;

use super::render::go_duration;
use super::*;
use crate::Error;
use crate::testing::{cluster, full_spec};

#[test]
fn the_configuration_version_follows_the_kubernetes_version() {
    for (version, expected) in [
        ("v1.22.0", Ok(KubeadmApi::V1Beta3)),
        ("v1.30.14", Ok(KubeadmApi::V1Beta3)),
        ("1.31", Ok(KubeadmApi::V1Beta4)),
        ("v1.31.0-alpha.1", Ok(KubeadmApi::V1Beta4)),
        ("v1.36.3+build.1", Ok(KubeadmApi::V1Beta4)),
        ("v2.0.0", Ok(KubeadmApi::V1Beta4)),
        ("v1.21.9", Err(Error::VersionTooOld("v1.21.9".to_owned()))),
        ("", Err(Error::Version(String::new()))),
        ("v1.x.0", Err(Error::Version("v1.x.0".to_owned()))),
        ("1.2.3.4", Err(Error::Version("1.2.3.4".to_owned()))),
    ] {
        assert_eq!(KubeadmApi::of(version), expected, "{version}");
    }
}

#[test]
fn durations_are_formatted_as_go_does() {
    for (seconds, text) in
        [(0, "0s"), (20, "20s"), (90, "1m30s"), (3600, "1h0m0s"), (15_552_000, "4320h0m0s")]
    {
        assert_eq!(go_duration(seconds), text);
    }
}

#[test]
fn every_field_is_rendered_for_kubeadm_v1beta4() {
    let spec = full_spec();
    insta::assert_snapshot!(
        "cluster-v1beta4",
        cluster_configuration(&spec, &cluster(), "v1.34.1").expect("a document")
    );
    insta::assert_snapshot!(
        "init-v1beta4",
        init_configuration(&spec.init_configuration, "v1.34.1").expect("a document")
    );
    insta::assert_snapshot!(
        "join-v1beta4",
        join_configuration(&spec.join_configuration, "v1.34.1").expect("a document")
    );
}

#[test]
fn fields_missing_in_v1beta3_are_omitted_or_moved() {
    let spec = full_spec();
    insta::assert_snapshot!(
        "cluster-v1beta3",
        cluster_configuration(&spec, &cluster(), "v1.30.4").expect("a document")
    );
    insta::assert_snapshot!(
        "init-v1beta3",
        init_configuration(&spec.init_configuration, "v1.30.4").expect("a document")
    );
    insta::assert_snapshot!(
        "join-v1beta3",
        join_configuration(&spec.join_configuration, "v1.30.4").expect("a document")
    );
}

fn read(document: Result<String, Error>) -> Value {
    serde_saphyr::from_str(&document.expect("a document")).expect("YAML")
}

#[test]
fn an_empty_specification_is_completed_from_the_cluster() {
    let spec = KubeadmConfigSpec::default();
    let document = cluster_configuration(&spec, &cluster(), "v1.34.1").expect("a document");
    insta::assert_snapshot!(document, @r"
    apiVersion: kubeadm.k8s.io/v1beta4
    clusterName: blue
    controlPlaneEndpoint: '10.0.0.10:6443'
    kind: ClusterConfiguration
    kubernetesVersion: v1.34.1
    networking:
      dnsDomain: cluster.local
      podSubnet: '192.168.0.0/16,fd00::/48'
      serviceSubnet: '10.96.0.0/12'
    ");
    assert_eq!(
        read(init_configuration(&InitConfiguration::default(), "v1.34.1"))["kind"],
        "InitConfiguration"
    );
}

#[test]
fn an_endpoint_set_by_the_user_is_kept() {
    let mut spec = KubeadmConfigSpec::default();
    spec.cluster_configuration.control_plane_endpoint = "api.example:443".to_owned();
    let document = read(cluster_configuration(&spec, &cluster(), "v1.34.1"));
    assert_eq!(document["controlPlaneEndpoint"], "api.example:443");
}

#[test]
fn a_control_plane_join_has_its_section_even_without_settings() {
    let join = JoinConfiguration { control_plane: Some(JoinControlPlane::default()), ..Default::default() };
    let document = read(join_configuration(&join, "v1.34.1"));
    assert_eq!(document["controlPlane"], serde_json::json!({}));
    assert!(read(join_configuration(&JoinConfiguration::default(), "v1.34.1")).get("controlPlane").is_none());
}

#[test]
fn no_taints_and_default_taints_differ() {
    let mut init = InitConfiguration::default();
    init.node_registration.name = "a".to_owned();
    assert!(read(init_configuration(&init, "v1.34.1"))["nodeRegistration"].get("taints").is_none());
    init.node_registration.taints = Some(Vec::new());
    assert_eq!(
        read(init_configuration(&init, "v1.34.1"))["nodeRegistration"]["taints"],
        serde_json::json!([])
    );
}
