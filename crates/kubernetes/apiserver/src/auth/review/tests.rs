//! Reviews give the same results as upstream.

use std::sync::Arc;

use capstan_env::Env;
use capstan_pki::Pki;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::auth::rbac::{Rbac, bootstrap_policy};
use crate::auth::testing::Objects;
use crate::auth::{Authenticator, ServiceAccountTokens, User, bucket};

fn env() -> Env {
    Env::simulated(|| Timestamp::from_second(1_800_000_000).unwrap(), 1)
}

fn rbac() -> Rbac {
    let objects = Objects::default();
    for object in bootstrap_policy() {
        let bucket = match object["kind"].as_str() {
            Some("ClusterRole") => bucket::CLUSTER_ROLES,
            _ => bucket::CLUSTER_ROLE_BINDINGS,
        };
        objects.put(bucket, object.clone());
    }
    Rbac::new(Arc::new(objects))
}

#[test]
fn access_reviews_have_the_decision_and_its_reason() {
    let rbac = rbac();
    let bob = User::new("bob", ["system:authenticated"]);
    let pods = json!({"verb": "get", "resource": "pods"});
    let own = |spec: Value| self_subject_access_review(&rbac, &bob, json!({"spec": spec}));
    let other = |spec: Value| subject_access_review(&rbac, json!({"spec": spec}));
    let local = |spec: Value| local_subject_access_review(&rbac, "ns", json!({"spec": spec}));
    let reason = "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\"";
    let table = [
        (own(json!({"resourceAttributes": pods})), json!({"allowed": false})),
        (
            own(json!({"nonResourceAttributes": {"path": "/api", "verb": "get"}})),
            json!({"allowed": true, "reason": reason}),
        ),
        (other(json!({"groups": ["system:masters"], "resourceAttributes": pods})), json!({"allowed": true})),
        (
            local(
                json!({"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "ns"}}),
            ),
            json!({"allowed": false}),
        ),
    ];
    for (answer, status) in table {
        assert_eq!(answer.unwrap()["status"], status);
    }
}

#[test]
fn malformed_access_reviews_are_rejected_with_upstreams_texts() {
    let rbac = rbac();
    let pods = json!({"verb": "get", "resource": "pods"});
    let path = json!({"verb": "get", "path": "/x"});
    let table = [
        (
            subject_access_review(&rbac, json!({"spec": {"resourceAttributes": pods}})),
            ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ),
        (
            subject_access_review(
                &rbac,
                json!({
                    "metadata": {"name": "x"},
                    "spec": {"user": "a", "resourceAttributes": pods, "nonResourceAttributes": path},
                }),
            ),
            ".authorization.k8s.io \"\" is invalid: [spec.nonResourceAttributes: Invalid value: {\"Path\":\"/x\",\"Verb\":\"get\"}: cannot be specified in combination with resourceAttributes, metadata: Invalid value: {\"name\":\"x\"}: must be empty]",
        ),
        (
            self_subject_access_review(&rbac, &User::anonymous(), json!({"spec": {}})),
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            local_subject_access_review(
                &rbac,
                "default",
                json!({"spec": {"user": "a", "resourceAttributes": {"namespace": "x"}}}),
            ),
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"x\": must match metadata.namespace",
        ),
        (
            self_subject_rules_review(&rbac, &User::anonymous(), &json!({"spec": {}})),
            "no namespace on request",
        ),
    ];
    for (answer, message) in table {
        assert_eq!(answer.unwrap_err().message, message);
    }
}

#[test]
fn a_rules_review_lists_the_rules_of_the_user() {
    let question = json!({"apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "default"}});
    let answer = self_subject_rules_review(&rbac(), &User::anonymous(), &question).unwrap();
    assert_eq!(
        answer,
        json!({
            "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {}, "spec": {},
            "status": {
                "resourceRules": [],
                "nonResourceRules": [{
                    "verbs": ["get"],
                    "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
                }],
                "incomplete": false,
            },
        })
    );
}

#[test]
fn identity_reviews_leave_out_what_is_empty() {
    let (env, objects) = (env(), Arc::new(Objects::default()));
    let pki = Arc::new(Pki::ephemeral(env.clone()));
    let tokens = ServiceAccountTokens::new(pki, objects.clone(), env.clone(), "iss", vec![]);
    let authenticator = Authenticator::new(Arc::new(tokens), objects, env.clone())
        .with_token("secret", User::new("ada", ["devs"]));
    let review = |spec: Value| token_review(&authenticator, json!({"spec": spec}));
    assert_eq!(
        review(json!({"token": "garbage"})).unwrap()["status"],
        json!({"user": {}, "error": "invalid bearer token"})
    );
    assert_eq!(
        review(json!({"token": "secret"})).unwrap()["status"],
        json!({
            "authenticated": true, "audiences": ["iss"],
            "user": {"username": "ada", "groups": ["devs", "system:authenticated"]},
        })
    );
    assert_eq!(review(json!({})).unwrap_err().message, "token is required for TokenReview in authentication");
    assert_eq!(
        self_subject_review(&env, &User::new("ada", ["devs"]), "authentication.k8s.io/v1"),
        json!({
            "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": "2027-01-15T08:00:00Z"},
            "status": {"userInfo": {"username": "ada", "groups": ["devs"]}},
        })
    );
}
