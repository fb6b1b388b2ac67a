//! The bootstrap policy: default roles and bindings whose subjects exist on a management plane or in a simulated
//! workload cluster. Roles of upstream components that never run here (scheduler, DNS, volume provisioners, the
//! controllers of kube-controller-manager) are left out.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::rule::PolicyRule;

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
const READ_WRITE: &[&str] =
    &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

const APPS: &str = "apps";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";
const CORE: &str = "";
const DISCOVERY: &str = "discovery.k8s.io";
const EVENTS: &str = "events.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const STORAGE: &str = "storage.k8s.io";

/// ClusterRoles, then ClusterRoleBindings, to create or reconcile at startup. Aggregated roles have their rules and
/// come after the roles they aggregate, so that the aggregation controller finds nothing to change meanwhile.
pub fn bootstrap_policy() -> &'static [Value] {
    static POLICY: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let mut roles = cluster_roles();
        gather(&mut roles);
        // A role that aggregates another has at least the rules of that one.
        roles.sort_by_key(|role| match role.get("aggregationRule") {
            Some(_) => role["rules"].as_array().map_or(0, Vec::len),
            None => 0,
        });
        roles.extend(cluster_role_bindings());
        roles
    });
    &POLICY
}

/// Aggregates rules until nothing changes: `admin` aggregates `edit`, which aggregates `view`.
fn gather(roles: &mut [Value]) {
    loop {
        let all: Vec<std::sync::Arc<Value>> = roles.iter().cloned().map(Into::into).collect();
        let mut changed = false;
        for role in roles.iter_mut() {
            if let Some(rules) = super::aggregated_rules(role, &all) {
                role["rules"] = rules;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

fn sorted(items: &[&str]) -> Vec<String> {
    let mut items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
    items.sort();
    items
}

fn on(verbs: &[&str], groups: &[&str], resources: &[&str]) -> PolicyRule {
    PolicyRule {
        verbs: sorted(verbs),
        api_groups: sorted(groups),
        resources: sorted(resources),
        ..PolicyRule::default()
    }
}

fn named(mut rule: PolicyRule, name: &str) -> PolicyRule {
    rule.resource_names = vec![name.to_owned()];
    rule
}

fn paths(verbs: &[&str], urls: &[&str]) -> PolicyRule {
    PolicyRule { verbs: sorted(verbs), non_resource_urls: sorted(urls), ..PolicyRule::default() }
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}

fn role(name: &str, rules: &[PolicyRule]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata(name),
        "rules": rules.iter().map(PolicyRule::to_json).collect::<Vec<_>>(),
    })
}

fn aggregate_to(mut role: Value, target: &str) -> Value {
    role["metadata"]["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{target}")] = "true".into();
    role
}

fn aggregating(name: &str) -> Value {
    let label = format!("rbac.authorization.k8s.io/aggregate-to-{name}");
    let mut role = role(name, &[]);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    role
}

fn cluster_roles() -> Vec<Value> {
    let signer = |name: &str, signer: &str| {
        role(
            &format!("system:certificates.k8s.io:{name}-approver"),
            &[named(on(&["approve"], &[CERTIFICATES], &["signers"]), &format!("kubernetes.io/{signer}"))],
        )
    };
    let nodes = |name: &str| {
        role(
            &format!("system:certificates.k8s.io:certificatesigningrequests:{name}"),
            &[on(&["create"], &[CERTIFICATES], &[&format!("certificatesigningrequests/{name}")])],
        )
    };
    vec![
        role("cluster-admin", &[on(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])]),
        aggregating("admin"),
        aggregate_to(aggregating("edit"), "admin"),
        aggregate_to(aggregating("view"), "edit"),
        aggregate_to(role("system:aggregate-to-admin", &admin_rules()), "admin"),
        aggregate_to(role("system:aggregate-to-edit", &edit_rules()), "edit"),
        aggregate_to(role("system:aggregate-to-view", &view_rules()), "view"),
        role(
            "system:auth-delegator",
            &[
                on(&["create"], &[AUTHENTICATION], &["tokenreviews"]),
                on(&["create"], &[AUTHORIZATION], &["subjectaccessreviews"]),
            ],
        ),
        role(
            "system:basic-user",
            &[
                on(&["create"], &[AUTHORIZATION], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
                on(&["create"], &[AUTHENTICATION], &["selfsubjectreviews"]),
            ],
        ),
        nodes("nodeclient"),
        nodes("selfnodeclient"),
        signer("kube-apiserver-client", "kube-apiserver-client"),
        signer("kube-apiserver-client-kubelet", "kube-apiserver-client-kubelet"),
        signer("kubelet-serving", "kubelet-serving"),
        signer("legacy-unknown", "legacy-unknown"),
        role(
            "system:discovery",
            &[paths(
                &["get"],
                &[
                    "/livez",
                    "/readyz",
                    "/healthz",
                    "/version",
                    "/version/",
                    "/openapi",
                    "/openapi/*",
                    "/api",
                    "/api/*",
                    "/apis",
                    "/apis/*",
                ],
            )],
        ),
        role(
            "system:monitoring",
            &[
                paths(
                    &["get"],
                    &[
                        "/metrics",
                        "/metrics/slis",
                        "/livez",
                        "/readyz",
                        "/healthz",
                        "/livez/*",
                        "/readyz/*",
                        "/healthz/*",
                        "/flagz",
                        "/statusz",
                    ],
                ),
                on(&["get"], &[CORE], &["nodes/metrics"]),
            ],
        ),
        role("system:node", &node_rules()),
        role(
            "system:node-bootstrapper",
            &[on(&["create", "get", "list", "watch"], &[CERTIFICATES], &["certificatesigningrequests"])],
        ),
        role(
            "system:node-proxier",
            &[
                on(&["list", "watch"], &[CORE], &["services", "endpoints"]),
                on(READ, &[CORE], &["nodes"]),
                on(&["create", "update", "patch"], &[CORE, EVENTS], &["events"]),
                on(&["list", "watch"], &[NETWORKING], &["servicecidrs"]),
                on(&["list", "watch"], &[DISCOVERY], &["endpointslices"]),
            ],
        ),
        role(
            "system:public-info-viewer",
            &[paths(&["get"], &["/livez", "/readyz", "/healthz", "/version", "/version/"])],
        ),
        role(
            "system:service-account-issuer-discovery",
            &[paths(
                &["get"],
                &[
                    "/.well-known/openid-configuration",
                    "/.well-known/openid-configuration/",
                    "/openid/v1/jwks",
                    "/openid/v1/jwks/",
                ],
            )],
        ),
    ]
}

fn cluster_role_bindings() -> Vec<Value> {
    let bind = |role: &str, subjects: &[(&str, &str)]| {
        let mut binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": metadata(role),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        });
        if !subjects.is_empty() {
            binding["subjects"] = subjects
                .iter()
                .map(|(kind, name)| json!({"apiGroup": RBAC, "kind": kind, "name": name}))
                .collect();
        }
        binding
    };
    let authenticated = ("Group", "system:authenticated");
    vec![
        bind("cluster-admin", &[("Group", "system:masters")]),
        bind("system:basic-user", &[authenticated]),
        bind("system:discovery", &[authenticated]),
        bind("system:monitoring", &[("Group", "system:monitoring")]),
        // Without subjects, as upstream: here the user that adds a node decides to trust it.
        bind("system:node", &[]),
        bind("system:node-proxier", &[("User", "system:kube-proxy")]),
        bind("system:public-info-viewer", &[authenticated, ("Group", "system:unauthenticated")]),
        bind("system:service-account-issuer-discovery", &[("Group", "system:serviceaccounts")]),
    ]
}

fn admin_rules() -> Vec<PolicyRule> {
    vec![
        on(&["create"], &[AUTHORIZATION], &["localsubjectaccessreviews"]),
        on(READ_WRITE, &[RBAC], &["roles", "rolebindings"]),
    ]
}

fn edit_rules() -> Vec<PolicyRule> {
    vec![
        on(
            READ,
            &[CORE],
            &["pods/attach", "pods/proxy", "pods/exec", "pods/portforward", "secrets", "services/proxy"],
        ),
        on(&["impersonate"], &[CORE], &["serviceaccounts"]),
        on(WRITE, &[CORE], &["pods", "pods/attach", "pods/proxy", "pods/exec", "pods/portforward"]),
        on(&["create"], &[CORE], &["pods/eviction"]),
        on(
            WRITE,
            &[CORE],
            &[
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "serviceaccounts",
                "services",
                "services/proxy",
                "persistentvolumeclaims",
                "configmaps",
                "secrets",
            ],
        ),
        on(&["create"], &[CORE], &["serviceaccounts/token"]),
        on(WRITE, &[CORE, EVENTS], &["events"]),
        on(
            WRITE,
            &[APPS],
            &[
                "statefulsets",
                "statefulsets/scale",
                "daemonsets",
                "deployments",
                "deployments/scale",
                "deployments/rollback",
                "replicasets",
                "replicasets/scale",
            ],
        ),
        on(WRITE, &["autoscaling"], &["horizontalpodautoscalers"]),
        on(WRITE, &["batch"], &["jobs", "cronjobs"]),
        on(
            WRITE,
            &["extensions"],
            &[
                "daemonsets",
                "deployments",
                "deployments/scale",
                "deployments/rollback",
                "ingresses",
                "replicasets",
                "replicasets/scale",
                "replicationcontrollers/scale",
                "networkpolicies",
            ],
        ),
        on(WRITE, &["policy"], &["poddisruptionbudgets"]),
        on(WRITE, &[NETWORKING], &["networkpolicies", "ingresses"]),
        on(READ_WRITE, &[COORDINATION], &["leases"]),
        on(WRITE, &[RESOURCE], &["resourceclaims", "resourceclaimtemplates"]),
    ]
}

fn view_rules() -> Vec<PolicyRule> {
    vec![
        on(
            READ,
            &[CORE],
            &[
                "pods",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "serviceaccounts",
                "services",
                "services/status",
                "endpoints",
                "persistentvolumeclaims",
                "persistentvolumeclaims/status",
                "configmaps",
            ],
        ),
        on(
            READ,
            &[CORE],
            &[
                "limitranges",
                "resourcequotas",
                "bindings",
                "pods/status",
                "resourcequotas/status",
                "namespaces/status",
                "replicationcontrollers/status",
                "pods/log",
            ],
        ),
        on(READ, &[CORE], &["namespaces"]),
        on(READ, &[CORE, EVENTS], &["events"]),
        on(READ, &[DISCOVERY], &["endpointslices"]),
        on(
            READ,
            &[APPS],
            &[
                "controllerrevisions",
                "statefulsets",
                "statefulsets/status",
                "statefulsets/scale",
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/status",
                "deployments/scale",
                "replicasets",
                "replicasets/status",
                "replicasets/scale",
            ],
        ),
        on(READ, &["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
        on(READ, &["batch"], &["jobs", "cronjobs", "cronjobs/status", "jobs/status"]),
        on(
            READ,
            &["extensions"],
            &[
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/scale",
                "deployments/status",
                "ingresses",
                "ingresses/status",
                "replicasets",
                "replicasets/scale",
                "replicasets/status",
                "replicationcontrollers/scale",
                "networkpolicies",
            ],
        ),
        on(READ, &["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
        on(READ, &[NETWORKING], &["networkpolicies", "ingresses", "ingresses/status"]),
        on(READ, &[RESOURCE], &["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]),
    ]
}

fn node_rules() -> Vec<PolicyRule> {
    vec![
        on(&["create"], &[AUTHENTICATION], &["tokenreviews"]),
        on(&["create"], &[AUTHORIZATION], &["subjectaccessreviews", "localsubjectaccessreviews"]),
        on(READ, &[CORE], &["services"]),
        on(&["create", "get", "list", "watch"], &[CORE], &["nodes"]),
        on(&["update", "patch"], &[CORE], &["nodes/status"]),
        on(&["update", "patch"], &[CORE], &["nodes"]),
        on(&["create", "update", "patch"], &[CORE, EVENTS], &["events"]),
        on(READ, &[CORE], &["pods"]),
        on(&["create", "delete"], &[CORE], &["pods"]),
        on(&["update", "patch"], &[CORE], &["pods/status"]),
        on(&["create"], &[CORE], &["pods/eviction"]),
        on(READ, &[CORE], &["secrets", "configmaps"]),
        on(&["get"], &[CORE], &["persistentvolumeclaims", "persistentvolumes"]),
        on(&["get"], &[CORE], &["endpoints"]),
        on(&["create", "get", "list", "watch"], &[CERTIFICATES], &["certificatesigningrequests"]),
        on(&["get", "create", "update", "patch", "delete"], &[COORDINATION], &["leases"]),
        on(&["get"], &[STORAGE], &["volumeattachments"]),
        on(&["create"], &[CORE], &["serviceaccounts/token"]),
        on(&["get", "update", "patch"], &[CORE], &["persistentvolumeclaims/status"]),
        on(READ, &[STORAGE], &["csidrivers"]),
        on(&["get", "create", "update", "patch", "delete"], &[STORAGE], &["csinodes"]),
        on(READ, &["node.k8s.io"], &["runtimeclasses"]),
        on(&["get"], &[RESOURCE], &["resourceclaims"]),
        on(&["deletecollection"], &[RESOURCE], &["resourceslices"]),
        on(&["get"], &[CORE], &["serviceaccounts"]),
    ]
}
