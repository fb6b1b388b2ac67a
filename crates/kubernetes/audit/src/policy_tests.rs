//! What rules match, as upstream's checker has it.

use super::*;

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["/healthz*", /version]}
- {level: None, users: ["system:kube-proxy"], verbs: [watch], resources: [{group: "", resources: [endpoints, services]}]}
- {level: Metadata, resources: [{group: "", resources: [secrets, serviceaccounts/token]}]}
- {level: Request, resources: [{group: "", resources: ["pods/*"]}]}
- {level: RequestResponse, namespaces: [kube-system], resources: [{group: ""}], omitStages: [ResponseStarted], omitManagedFields: true}
- {level: Metadata, resources: [{group: apps, resources: ["*/scale"], resourceNames: [web]}]}
- {level: Request, userGroups: [operators]}
"#;

fn request<'a>(group: &'a str, resource: &'a str, subresource: &'a str) -> Request<'a> {
    Request { is_resource: true, verb: "get", group, resource, subresource, ..Request::default() }
}

#[test]
fn the_first_rule_that_matches_counts() {
    let policy = Policy::parse(POLICY).unwrap();
    let groups = ["operators".to_owned()];
    let table = [
        (Request { path: "/healthz/ping", verb: "get", ..Request::default() }, Level::None),
        (Request { path: "/versions", verb: "get", ..Request::default() }, Level::None),
        (Request { path: "/versions", groups: &groups, ..Request::default() }, Level::Request),
        (request("", "secrets", ""), Level::Metadata),
        (request("", "serviceaccounts", "token"), Level::Metadata),
        (request("", "serviceaccounts", ""), Level::None),
        (request("", "pods", "log"), Level::Request),
        (request("", "pods", ""), Level::Request),
        (request("other", "secrets", ""), Level::None),
        (Request { namespace: "kube-system", ..request("", "configmaps", "") }, Level::RequestResponse),
        (Request { namespace: "default", ..request("", "configmaps", "") }, Level::None),
        (Request { name: "web", ..request("apps", "deployments", "scale") }, Level::Metadata),
        (Request { name: "db", ..request("apps", "deployments", "scale") }, Level::None),
        (
            Request {
                user: "system:kube-proxy",
                verb: "watch",
                groups: &groups,
                ..request("", "endpoints", "")
            },
            Level::None,
        ),
    ];
    for (request, level) in table {
        assert_eq!(policy.decide(&request).level, level, "{request:?}");
    }
}

#[test]
fn stages_are_omitted_by_the_policy_and_by_the_rule() {
    let policy = Policy::parse(POLICY).unwrap();
    let decision = policy.decide(&Request { namespace: "kube-system", ..request("", "configmaps", "") });
    let stages = [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete];
    assert_eq!(stages.map(|stage| decision.records(stage)), [false, false, true]);
    assert!(decision.omit_managed_fields);
    let nothing = policy.decide(&request("apps", "deployments", ""));
    assert!(!nothing.records(Stage::ResponseComplete));
}

#[test]
fn a_bad_policy_is_refused_with_the_field() {
    let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
    for (text, expected) in [
        ("apiVersion: v1\nkind: Policy\nrules: []".to_owned(), "apiVersion: must be"),
        (format!("{head}rules: []"), "rules: a policy without rules"),
        (format!("{head}rules: [{{level: All}}]"), "unknown variant"),
        (format!("{head}rules: [{{level: None, user: [a]}}]"), "unknown field"),
        (
            format!("{head}rules: [{{level: None, namespaces: [a], nonResourceURLs: [/]}}]"),
            "rules[0].nonResourceURLs: rules cannot",
        ),
        (format!("{head}rules: [{{level: None, nonResourceURLs: [a]}}]"), "nonResourceURLs[0]: must begin"),
        (
            format!("{head}rules: [{{level: None, nonResourceURLs: ['/a*b']}}]"),
            "nonResourceURLs[0]: * is allowed",
        ),
        (
            format!("{head}rules: [{{level: None, resources: [{{resourceNames: [a]}}]}}]"),
            "rules[0].resources[0].resourceNames",
        ),
        (
            format!("{head}rules: [{{level: None, resources: [{{group: apps/v1}}]}}]"),
            "rules[0].resources[0].group",
        ),
        ("rules".to_owned(), "not valid YAML"),
    ] {
        let error = Policy::parse(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn the_default_policy_leaves_out_health_checks_only() {
    let policy = Policy::metadata();
    assert_eq!(policy.decide(&request("", "secrets", "")).level, Level::Metadata);
    assert_eq!(policy.decide(&Request { path: "/readyz", ..Request::default() }).level, Level::None);
    assert_eq!(policy.decide(&Request { path: "/api", ..Request::default() }).level, Level::Metadata);
}
