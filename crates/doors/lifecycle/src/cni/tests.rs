//! What a cluster gets from which source.

use serde_json::{Value, json};

use super::*;

fn cluster(cilium: Value) -> Cluster {
    let object = json!({
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {
            "kubernetesVersion": "1.33", "controlPlaneConfiguration": {"count": 1},
            "clusterNetwork": {
                "cniConfig": {"cilium": cilium},
                "pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]},
            },
        },
    });
    serde_json::from_value(object).expect("a cluster")
}

fn with_calico(mut cluster: Cluster) -> Cluster {
    cluster.metadata.annotations.insert(annotation::CNI.to_owned(), "calico".to_owned());
    cluster
}

fn chart() -> Source {
    Source::Chart(Chart { reference: "/charts/it".to_owned(), version: None, content: Some("1".to_owned()) })
}

fn order(cni: &Cni, cluster: &Cluster) -> Order {
    match cni.plan(cluster).expect("a plan").input {
        Input::Order(order) => order,
        Input::Manifests(text) => panic!("no chart: {text}"),
    }
}

#[test]
fn settings_that_manifests_cannot_follow_are_named() {
    let manifests = Source::Manifests("".into());
    for (cni, whose) in [
        (Cni::default(), "the built-in CNI"),
        (Cni::default().with_cilium(manifests), "the manifests of --lifecycle-cni"),
    ] {
        let plan = |settings: Value| cni.plan(&cluster(settings)).map(drop);
        assert_eq!(plan(json!({"policyEnforcementMode": "default", "routingMode": "overlay"})), Ok(()));
        for (field, value) in [
            ("policyEnforcementMode", json!("always")),
            ("routingMode", json!("direct")),
            ("cniExclusive", json!(false)),
            ("helmValues", json!({"debug": {}})),
        ] {
            let why = plan(json!({field: value})).expect_err(field);
            assert!(why.contains(&format!("{whose} cannot follow {field}: ")), "{why}");
        }
    }
}

#[test]
fn a_chart_follows_the_settings_of_the_cluster() {
    let cni = Cni::default().with_cilium(chart());
    for (settings, path, expected) in [
        (json!({}), "/ipam/mode", json!("kubernetes")),
        (json!({}), "/routingMode", json!("tunnel")),
        (json!({}), "/operator/replicas", json!(1)),
        (json!({"policyEnforcementMode": "always"}), "/policyEnforcementMode", json!("always")),
        (json!({"egressMasqueradeInterfaces": "eth0"}), "/egressMasqueradeInterfaces", json!("eth0")),
        (json!({"cniExclusive": false}), "/cni/exclusive", json!(false)),
        (json!({"routingMode": "direct"}), "/routingMode", json!("native")),
        (json!({"routingMode": "direct"}), "/autoDirectNodeRoutes", json!(true)),
        (json!({"routingMode": "direct"}), "/tunnelProtocol", Value::Null),
        (
            json!({"routingMode": "direct", "ipv4NativeRoutingCIDR": "10.0.0.0/8"}),
            "/ipv4NativeRoutingCIDR",
            json!("10.0.0.0/8"),
        ),
        // A range that is not routed natively is no value, as in EKS Anywhere.
        (json!({"ipv4NativeRoutingCIDR": "10.0.0.0/8"}), "/ipv4NativeRoutingCIDR", Value::Null),
        (json!({"helmValues": {"a": 1}, "cniExclusive": false}), "", json!({"a": 1})),
    ] {
        let values = order(&cni, &cluster(settings.clone())).values;
        assert_eq!(values.pointer(path).unwrap_or(&Value::Null), &expected, "{settings} {path}");
    }
    for always in [
        json!({"policyEnforcementMode": "always"}),
        json!({"helmValues": {"policyEnforcementMode": "always"}}),
    ] {
        let extra = order(&cni, &cluster(always)).extra.expect("a policy");
        assert_eq!(extra["metadata"]["name"], "allow-all-kube-system");
    }
}

#[test]
fn what_is_installed_is_another_if_what_it_is_made_from_is() {
    let digest = |source: Source, settings: Value| {
        Cni::default().with_cilium(source).plan(&cluster(settings)).expect("a plan").digest()
    };
    let chart_of = |content: &str| {
        Source::Chart(Chart { reference: "c".to_owned(), version: None, content: Some(content.to_owned()) })
    };
    let one = digest(chart_of("1"), json!({}));
    assert_eq!(one, digest(chart_of("1"), json!({})));
    assert_ne!(one, digest(chart_of("2"), json!({})));
    assert_ne!(one, digest(chart_of("1"), json!({"cniExclusive": false})));
    assert_ne!(one, digest(Source::BuiltIn, json!({})));
}

#[test]
fn the_check_of_a_version_renders_with_the_image_of_the_installation() {
    let values = values::preflight(json!({"image": {"tag": "v1"}, "operator": {"replicas": 1}}));
    let expected = json!({
        "image": {"tag": "v1"}, "agent": false, "operator": {"replicas": 1, "enabled": false},
        "preflight": {"enabled": true, "image": {"tag": "v1"}, "tolerations": [{"operator": "Exists"}]},
    });
    assert_eq!(values, expected);
    // What is no object gives way.
    assert_eq!(values::preflight(json!({"operator": true}))["operator"], json!({"enabled": false}));
}

#[test]
fn calico_is_chosen_by_an_annotation_if_the_operator_has_it() {
    let own = with_calico(cluster(json!({})));
    let why = Cni::default().plan(&own).map(drop).expect_err("no manifests");
    assert!(why.contains("start it with --lifecycle-cni calico=SOURCE"), "{why}");
    let cni = Cni { cilium: Source::BuiltIn, calico: Some(chart()) };
    let order = order(&cni, &own);
    assert_eq!(order.values["installation"]["calicoNetwork"]["ipPools"], json!([{"cidr": "192.168.0.0/16"}]));
    assert_eq!(order.extra.expect("a namespace")["metadata"]["name"], "tigera-operator");
    let why = cni.plan(&with_calico(cluster(json!({"cniExclusive": true})))).map(drop).expect_err("Cilium's");
    assert!(why.contains("Calico cannot follow cniExclusive"), "{why}");
    let mut wrong = own;
    wrong.metadata.annotations.insert(annotation::CNI.to_owned(), "flannel".to_owned());
    let why = cni.plan(&wrong).map(drop).expect_err("unknown");
    assert_eq!(why, "the annotation capstan.dev/lifecycle-cni is \"flannel\": use cilium or calico");
}

#[test]
fn flags_name_a_cni_or_mean_cilium() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n").expect("written");
    let file = file.display().to_string();
    let flags = |flags: &[String]| Cni::of_flags(flags);
    let both = flags(&[file.clone(), format!("calico={file}")]).expect("sources");
    assert!(matches!((&both.cilium, &both.calico), (Source::Manifests(_), Some(Source::Manifests(_)))));
    assert_eq!(flags(&[]), Ok(Cni::default()));
    let twice = flags(&[file.clone(), format!("cilium={file}")]);
    assert_eq!(twice, Err("cilium is defined twice".to_owned()));
}
