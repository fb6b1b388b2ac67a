//! The authorizer, the escalation check, aggregation and bootstrap policy with stored objects.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::auth::testing::Objects;
use crate::auth::{AUTHENTICATED, bucket};

fn rule_json(verbs: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": resources, "verbs": verbs})
}

fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, namespace: Option<&str>, role: (&str, &str), subjects: &[Value]) -> Value {
    let mut binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
        "subjects": subjects,
    });
    if let Some(namespace) = namespace {
        binding["metadata"]["namespace"] = namespace.into();
    }
    binding
}

fn user(name: &str, groups: &[&str]) -> User {
    User::new(name, groups.iter().copied())
}

fn request(user: &User, verb: &str, resource: &str, namespace: &str) -> Attributes {
    Attributes {
        user: user.clone().into(),
        verb: verb.to_owned().into(),
        resource: resource.into(),
        namespace: namespace.into(),
        ..Attributes::default()
    }
}

#[test]
fn decisions_name_the_binding_that_allows_and_the_roles_that_are_missing() {
    let objects = Objects::default();
    let reader = [rule_json(&["get"], &["pods"])];
    objects.put(bucket::CLUSTER_ROLES, cluster_role("reader", &reader));
    objects.put(
        bucket::ROLES,
        json!({"metadata": {"name": "local", "namespace": "ns"}, "rules": [rule_json(&["list"], &["pods"])]}),
    );
    objects.put(
        bucket::CLUSTER_ROLE_BINDINGS,
        binding("readers", None, ("ClusterRole", "reader"), &[json!({"kind": "Group", "name": "devs"})]),
    );
    objects.put(
        bucket::CLUSTER_ROLE_BINDINGS,
        binding("broken", None, ("ClusterRole", "gone"), &[json!({"kind": "User", "name": "eve"})]),
    );
    objects.put(
        bucket::ROLE_BINDINGS,
        binding("locals", Some("ns"), ("Role", "local"), &[json!({"kind": "ServiceAccount", "name": "bot"})]),
    );
    objects.put(
        bucket::ROLE_BINDINGS,
        binding("lost", Some("ns"), ("Role", "absent"), &[json!({"kind": "User", "name": "eve"})]),
    );
    let rbac = Rbac::new(Arc::new(objects));
    let allow = |reason: &str| Decision::Allow { reason: reason.into() };
    let deny = |reason: &str| Decision::NoOpinion { reason: reason.into() };
    let bot = user("system:serviceaccount:ns:bot", &[]);
    let eve = user("eve", &[]);
    let table = [
        (
            request(&user("ada", &["devs"]), "get", "pods", "x"),
            allow(r#"RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "devs""#),
        ),
        (request(&user("ada", &["devs"]), "delete", "pods", "x"), deny("")),
        (
            request(&bot, "list", "pods", "ns"),
            allow(r#"RBAC: allowed by RoleBinding "locals/ns" of Role "local" to ServiceAccount "bot/ns""#),
        ),
        (request(&bot, "list", "pods", "other"), deny("")),
        (request(&bot, "list", "pods", ""), deny("")),
        (
            request(&eve, "get", "pods", ""),
            deny(r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#),
        ),
        (
            request(&eve, "get", "pods", "ns"),
            deny(
                r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "absent" not found]"#,
            ),
        ),
        (request(&user("root", &[MASTERS]), "delete", "secrets", "ns"), allow("")),
    ];
    for (request, decision) in table {
        assert_eq!(rbac.authorize(&request), decision, "{request:?}");
    }
}

#[test]
fn a_policy_change_counts_from_the_next_request() {
    let objects = Arc::new(Objects::default());
    let rbac = Rbac::new(objects.clone());
    let ada = user("ada", &[]);
    assert!(!rbac.authorize(&request(&ada, "get", "pods", "")).allowed());
    objects.put(bucket::CLUSTER_ROLES, cluster_role("reader", &[rule_json(&["get"], &["pods"])]));
    objects.put(
        bucket::CLUSTER_ROLE_BINDINGS,
        binding("b", None, ("ClusterRole", "reader"), &[json!({"kind": "User", "name": "ada"})]),
    );
    assert!(rbac.authorize(&request(&ada, "get", "pods", "")).allowed());
}

/// A policy in which ada may write RBAC objects and read pods in namespace `ns`.
#[test]
fn a_change_of_one_binding_among_thousands_parses_one() {
    let objects = Arc::new(Objects::default());
    objects.put(bucket::CLUSTER_ROLES, cluster_role("reader", &[rule_json(&["get"], &["pods"])]));
    let bound = |name: &str, to: &str| {
        binding(name, None, ("ClusterRole", "reader"), &[json!({"kind": "User", "name": to})])
    };
    for n in 0..3000 {
        objects.put(bucket::CLUSTER_ROLE_BINDINGS, bound(&format!("b{n}"), &format!("u{n}")));
    }
    let rbac = Rbac::new(objects.clone());
    let allowed = |name: &str| {
        matches!(rbac.authorize(&request(&user(name, &[]), "get", "pods", "")), Decision::Allow { .. })
    };
    assert!(allowed("u7") && !allowed("new"));
    let at_first = objects.parsed();
    for n in 0..10 {
        objects.put(bucket::CLUSTER_ROLE_BINDINGS, bound("b7", &format!("new{n}")));
        assert!(allowed(&format!("new{n}")) && !allowed("u7"));
    }
    assert_eq!(objects.parsed() - at_first, 10);
    objects.delete(bucket::CLUSTER_ROLE_BINDINGS, "b8");
    assert!(!allowed("u8") && allowed("u9"));
    objects.put(bucket::CLUSTER_ROLES, cluster_role("reader", &[]));
    assert!(!allowed("u9"), "bindings resolve a changed role again");
    assert_eq!(objects.parsed() - at_first, 11);
}

fn plane() -> (Arc<Objects>, Rbac) {
    let objects = Arc::new(Objects::default());
    for object in bootstrap_policy() {
        let bucket = match object["kind"].as_str() {
            Some("ClusterRole") => bucket::CLUSTER_ROLES,
            _ => bucket::CLUSTER_ROLE_BINDINGS,
        };
        objects.put(bucket, object.clone());
    }
    let admin_of_ns = [json!({"kind": "User", "name": "ada"})];
    objects.put(bucket::ROLE_BINDINGS, binding("ada", Some("ns"), ("ClusterRole", "admin"), &admin_of_ns));
    let rbac = Rbac::new(objects.clone());
    (objects, rbac)
}

fn write_of(user: &User, resource: &str, namespace: &str) -> Attributes {
    Attributes { group: "rbac.authorization.k8s.io".into(), ..request(user, "create", resource, namespace) }
}

#[test]
fn granting_what_is_not_held_is_refused_with_the_missing_rules() {
    let (_, rbac) = plane();
    let ada = user("ada", &[AUTHENTICATED]);
    let role = |rules: Value| json!({"metadata": {"name": "r", "namespace": "ns"}, "rules": rules});
    let bind = |kind: &str, name: &str| binding("b", Some("ns"), (kind, name), &[]);
    let nodes = json!([
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]);
    type Answer = Result<(), (u16, &'static str)>;
    let table: [(&str, Value, Answer); 6] = [
        ("roles", role(json!([rule_json(&["get", "list"], &["pods", "secrets"])])), Ok(())),
        (
            "roles",
            role(nodes),
            Err((
                403,
                "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"ada\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}",
            )),
        ),
        ("rolebindings", bind("ClusterRole", "view"), Ok(())),
        (
            "rolebindings",
            bind("ClusterRole", "cluster-admin"),
            Err((
                403,
                "rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"ada\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}",
            )),
        ),
        (
            "rolebindings",
            bind("Role", "gone"),
            Err((404, "rolebindings.rbac.authorization.k8s.io \"gone\" not found")),
        ),
        ("rolebindings", bind("Robot", "x"), Err((500, "unsupported role reference kind: \"Robot\""))),
    ];
    for (resource, object, expected) in table {
        let answer = rbac.check_escalation(&rbac, &write_of(&ada, resource, "ns"), &object, None);
        let answer = answer.as_ref().map(|&()| ()).map_err(|status| (status.code, status.message.as_str()));
        assert_eq!(answer, expected, "{object}");
    }
    let root = user("root", &[MASTERS]);
    let everything = bind("ClusterRole", "cluster-admin");
    assert!(rbac.check_escalation(&rbac, &write_of(&root, "rolebindings", "ns"), &everything, None).is_ok());
}

#[test]
fn the_verbs_escalate_and_bind_lift_the_check_for_what_they_name() {
    let (objects, rbac) = plane();
    let lifting = |verb: &str| {
        json!({
            "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "roles"],
            "verbs": [verb], "resourceNames": ["cluster-admin", "r"],
        })
    };
    objects.put(bucket::CLUSTER_ROLES, cluster_role("binder", &[lifting("bind")]));
    objects.put(bucket::CLUSTER_ROLES, cluster_role("escalator", &[lifting("escalate")]));
    for name in ["binder", "escalator"] {
        let subject = [json!({"kind": "User", "name": name})];
        objects.put(bucket::CLUSTER_ROLE_BINDINGS, binding(name, None, ("ClusterRole", name), &subject));
    }
    let (binder, escalator) = (user("binder", &[]), user("escalator", &[]));
    let bind = |role: &str| binding("b", None, ("ClusterRole", role), &[]);
    let check = |who: &User, resource: &str, object: &Value, name: &str| {
        let request = Attributes { name: name.into(), ..write_of(who, resource, "") };
        rbac.check_escalation(&rbac, &request, object, None).is_ok()
    };
    assert!(check(&binder, "clusterrolebindings", &bind("cluster-admin"), ""));
    assert!(!check(&binder, "clusterrolebindings", &bind("view"), ""));
    let role = cluster_role("r", &[rule_json(&["get"], &["nodes"])]);
    assert!(check(&escalator, "clusterroles", &role, "r"));
    // A create has no object name, so a permission limited to a name does not apply.
    assert!(!check(&escalator, "clusterroles", &role, ""));
    assert!(!check(&binder, "clusterroles", &role, "r"));
}

#[test]
fn aggregation_rules_take_all_rights_to_set_and_to_change() {
    let (objects, rbac) = plane();
    objects.put(
        bucket::CLUSTER_ROLES,
        cluster_role("clusterroles", &[json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})]),
    );
    let subject = [json!({"kind": "User", "name": "ada"})];
    objects.put(bucket::CLUSTER_ROLE_BINDINGS, binding("a", None, ("ClusterRole", "clusterroles"), &subject));
    let lesser = user("ada", &[]);
    let plain = cluster_role("r", &[]);
    let mut aggregating = plain.clone();
    aggregating["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    // `escalate` is among all verbs, so this user passes; one who only has `get` does not.
    assert!(rbac.check_escalation(&rbac, &write_of(&lesser, "clusterroles", ""), &aggregating, None).is_ok());
    let eve = user("eve", &[]);
    let text = "clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: must have cluster-admin privileges to use the aggregationRule";
    for (object, old) in [(&aggregating, None), (&plain, Some(&aggregating))] {
        let refusal =
            rbac.check_escalation(&rbac, &write_of(&eve, "clusterroles", ""), object, old).unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (403, text));
    }
}

#[test]
fn finalizers_and_owners_of_a_role_may_be_changed_by_any_user() {
    let (_, rbac) = plane();
    let eve = user("eve", &[]);
    let old = cluster_role("r", &[rule_json(&["*"], &["*"])]);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["x"]);
    new["metadata"]["ownerReferences"] = json!([{"uid": "u"}]);
    new["metadata"]["labels"] = json!({});
    assert!(rbac.check_escalation(&rbac, &write_of(&eve, "clusterroles", ""), &new, Some(&old)).is_ok());
    new["metadata"]["labels"] = json!({"a": "b"});
    assert!(rbac.check_escalation(&rbac, &write_of(&eve, "clusterroles", ""), &new, Some(&old)).is_err());
}

#[test]
fn bootstrap_policy_lets_anonymous_users_see_health_and_users_discover() {
    let (_, rbac) = plane();
    let get = |user: &User, path: &str| {
        rbac.authorize(&Attributes {
            user: user.clone().into(),
            verb: "get".into(),
            path: path.into(),
            ..Attributes::default()
        })
        .allowed()
    };
    let (stranger, ada) = (User::anonymous(), user("ada", &[AUTHENTICATED]));
    assert!(get(&stranger, "/healthz") && get(&stranger, "/version"));
    assert!(!get(&stranger, "/api") && !get(&stranger, "/metrics"));
    assert!(get(&ada, "/apis/apps/v1") && !get(&ada, "/metrics"));
    assert!(rbac.authorize(&request(&ada, "delete", "secrets", "ns")).allowed());
    assert!(!rbac.authorize(&request(&ada, "delete", "secrets", "default")).allowed());
}

#[test]
fn aggregating_roles_gather_in_name_order_without_repeating() {
    let labelled = |name: &str, rules: &[Value]| {
        let mut role = cluster_role(name, rules);
        role["metadata"]["labels"] = json!({"team": "a"});
        Arc::new(role)
    };
    let (get, list) = (rule_json(&["get"], &["pods"]), rule_json(&["list"], &["pods"]));
    let all = [
        labelled("z", std::slice::from_ref(&get)),
        labelled("b", &[list.clone(), get.clone()]),
        Arc::new(cluster_role("unlabelled", &[rule_json(&["delete"], &["pods"])])),
    ];
    let mut role = cluster_role("sum", &[]);
    assert_eq!(aggregated_rules(&role, &all), None);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"team": "a"}}]});
    let rules = aggregated_rules(&role, &all).unwrap();
    assert_eq!(rules, json!([list, get]));
    role["rules"] = rules;
    assert_eq!(aggregated_rules(&role, &all), None);
}

#[test]
fn reconciliation_adds_what_is_missing_and_leaves_what_was_added() {
    let expected =
        bootstrap_policy().iter().find(|o| o["metadata"]["name"] == "system:auth-delegator").unwrap();
    assert_eq!(reconcile(None, expected), Reconciliation::Create(expected.clone()));
    assert_eq!(reconcile(Some(expected), expected), Reconciliation::Nothing);

    let mut edited = expected.clone();
    edited["rules"] = json!([expected["rules"][0], rule_json(&["get"], &["pods"])]);
    edited["metadata"]["labels"] = json!({"own": "x"});
    let Reconciliation::Update(mended) = reconcile(Some(&edited), expected) else { panic!("no update") };
    assert_eq!(
        mended["rules"],
        json!([expected["rules"][0], rule_json(&["get"], &["pods"]), expected["rules"][1]])
    );
    assert_eq!(
        mended["metadata"]["labels"],
        json!({"own": "x", "kubernetes.io/bootstrapping": "rbac-defaults"})
    );
    edited["metadata"]["annotations"] = json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
    assert_eq!(reconcile(Some(&edited), expected), Reconciliation::Nothing);

    let bound = bootstrap_policy().iter().find(|o| o["kind"] == "ClusterRoleBinding").unwrap();
    let mut other = bound.clone();
    other["roleRef"]["name"] = "view".into();
    assert_eq!(reconcile(Some(&other), bound), Reconciliation::Recreate(bound.clone()));
    other = bound.clone();
    other["subjects"] = json!([{"kind": "User", "name": "ada"}]);
    let Reconciliation::Update(mended) = reconcile(Some(&other), bound) else { panic!("no update") };
    assert_eq!(mended["subjects"].as_array().unwrap().len(), 2);
}

pub(super) fn any_rule() -> impl Strategy<Value = PolicyRule> {
    let of = |items: &'static [&'static str]| {
        proptest::collection::vec(proptest::sample::select(items).prop_map(str::to_owned), 0..3)
    };
    (
        of(&["get", "list", "*"]),
        of(&["", "apps", "*"]),
        of(&["pods", "pods/log", "nodes/log", "*/log", "*"]),
        of(&["a", "b"]),
        of(&["/x", "/x/*", "/x/y", "*"]),
    )
        .prop_map(|(verbs, api_groups, resources, resource_names, non_resource_urls)| {
            // A rule has either resources or paths, as validation requires.
            match resources.is_empty() || api_groups.is_empty() {
                true => PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() },
                false => PolicyRule { verbs, api_groups, resources, resource_names, ..PolicyRule::default() },
            }
        })
}

/// Every request that the vocabulary of [`any_rule`] can distinguish.
fn every_request() -> Vec<Attributes> {
    let mut requests = Vec::new();
    for verb in ["get", "list", "delete"] {
        for group in ["", "apps", "batch"] {
            for (resource, subresource) in
                [("pods", ""), ("pods", "log"), ("nodes", "log"), ("nodes", ""), ("x", "log"), ("x", "y")]
            {
                for name in ["", "a", "b", "c"] {
                    requests.push(Attributes {
                        verb: verb.to_owned().into(),
                        group: group.into(),
                        resource: resource.into(),
                        subresource: subresource.into(),
                        name: name.into(),
                        ..Attributes::default()
                    });
                }
            }
        }
        for path in ["/x", "/x/y", "/x/z", "/w"] {
            requests.push(Attributes {
                verb: verb.to_owned().into(),
                path: path.into(),
                ..Attributes::default()
            });
        }
    }
    requests
}

proptest! {
    #[test]
    fn permissions_that_are_not_held_cannot_be_granted(
        held in proptest::collection::vec(any_rule(), 0..4),
        wanted in proptest::collection::vec(any_rule(), 1..3),
    ) {
        if coverage::uncovered(&held, &wanted).unwrap().is_empty() {
            for request in every_request() {
                let allows = |rules: &[PolicyRule]| rules.iter().any(|rule| rule.allows(&request));
                prop_assert!(!allows(&wanted) || allows(&held), "{request:?}");
            }
        }
    }

    #[test]
    fn everybody_can_grant_what_they_hold(held in proptest::collection::vec(any_rule(), 0..4)) {
        prop_assert!(coverage::uncovered(&held, &held).unwrap().is_empty());
    }
}
