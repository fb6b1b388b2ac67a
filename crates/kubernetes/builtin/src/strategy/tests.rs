use super::*;

fn created(group: &str, kind: &str, mut object: Value) -> Value {
    prepare_create(group, kind, &mut object);
    object
}

fn updated(group: &str, kind: &str, subresource: &str, mut new: Value, old: &Value) -> Value {
    prepare_update(group, kind, subresource, &mut new, old);
    new
}

#[test]
fn a_new_namespace_is_active_and_held_by_its_finalizer() {
    assert_eq!(
        created(
            "",
            "Namespace",
            json!({"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Terminating"}})
        ),
        json!({
            "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"}
        })
    );
}

#[test]
fn a_new_budget_has_the_status_go_writes() {
    let budget =
        created("policy", "PodDisruptionBudget", json!({"metadata": {}, "spec": {}, "status": {"x": 1}}));
    assert_eq!(
        budget["status"],
        json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
    );
    assert_eq!(budget["metadata"]["generation"], 1);
}

#[test]
fn status_and_spec_change_only_through_their_own_endpoints() {
    let old = json!({"metadata": {"generation": 3, "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
    let new = json!({"metadata": {"labels": {"a": "c"}}, "spec": {"replicas": 2}, "status": {"replicas": 2}});
    assert_eq!(
        updated("apps", "ReplicaSet", "", new.clone(), &old),
        json!({"metadata": {"generation": 4, "labels": {"a": "c"}}, "spec": {"replicas": 2}, "status": {"replicas": 1}})
    );
    assert_eq!(
        updated("apps", "Deployment", "status", new, &old),
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 2}})
    );
}

#[test]
fn generation_counts_only_changes_of_what_it_covers() {
    let old = json!({"metadata": {"generation": 1, "annotations": {"a": "1"}}, "spec": {}});
    let new = json!({"metadata": {"generation": 1, "annotations": {"a": "2"}}, "spec": {}});
    for (kind, wanted) in [("Deployment", 2), ("StatefulSet", 1)] {
        assert_eq!(updated("apps", kind, "", new.clone(), &old)["metadata"]["generation"], wanted, "{kind}");
    }
    let slice =
        |address: &str| json!({"metadata": {"generation": 1}, "endpoints": [{"addresses": [address]}]});
    let changed = updated("discovery.k8s.io", "EndpointSlice", "", slice("1.1.1.2"), &slice("1.1.1.1"));
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[test]
fn the_generation_saturates() {
    let last =
        |changed: bool| json!({"metadata": {"generation": i64::MAX}, "spec": {"podInfoOnMount": changed}});
    for (group, kind, wanted) in [("storage.k8s.io", "CSIDriver", i64::MIN), ("apps", "Deployment", i64::MAX)]
    {
        let after = updated(group, kind, "", last(true), &last(false));
        assert_eq!(after["metadata"]["generation"], wanted, "{kind}");
    }
}

#[test]
fn a_job_selects_the_pods_it_labels() {
    let job =
        created("batch", "Job", json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {}}}));
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
}

#[test]
fn times_of_conditions_come_from_the_clock_passed_in() {
    let old = json!({"status": {}});
    let mut new =
        json!({"status": {"conditions": [{"type": "Approved", "status": "True", "lastUpdateTime": null}]}});
    stamp_update(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "approval",
        &mut new,
        &old,
        "2024-01-01T00:00:00Z",
    );
    assert_eq!(new["status"]["conditions"][0]["lastTransitionTime"], "2024-01-01T00:00:00Z");
    assert_eq!(new["status"]["conditions"][0]["lastUpdateTime"], "2024-01-01T00:00:00Z");
}
