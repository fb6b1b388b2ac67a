//! Flow schemas: which requests belong to which priority level, and to which flow in it.

use capstan_builtin::flowcontrol;
use http::HeaderValue;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::auth::{ObjectSource, User, bucket, service_account};
use crate::http::info::RequestInfo;

#[derive(Debug)]
pub(super) struct FlowSchema {
    name: String,
    /// As a response names it; none if it is no text for a header.
    pub uid: Option<HeaderValue>,
    pub level: String,
    precedence: i64,
    distinguisher: Distinguisher,
    rules: Vec<PolicyRule>,
}

#[derive(Debug, Clone, Copy)]
enum Distinguisher {
    None,
    User,
    Namespace,
}

#[derive(Debug)]
struct PolicyRule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

#[derive(Debug)]
enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
    Unknown,
}

#[derive(Debug)]
struct ResourceRule {
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    namespaces: Vec<String>,
    cluster_scope: bool,
}

#[derive(Debug)]
struct PathRule {
    verbs: Vec<String>,
    paths: Vec<String>,
}

/// The stored schemas and the mandatory ones if they are missing, in the order in which they match.
pub(super) fn read(source: &dyn ObjectSource) -> Vec<FlowSchema> {
    let mut schemas: Vec<FlowSchema> =
        source.list(bucket::FLOW_SCHEMAS).iter().map(|object| FlowSchema::from_json(object)).collect();
    for object in flowcontrol::bootstrap().iter().filter(|o| o.mandatory && o.kind == "FlowSchema") {
        if !schemas.iter().any(|schema| schema.name == object.name) {
            schemas.push(FlowSchema::from_json(&object.object()));
        }
    }
    schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
    schemas
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl FlowSchema {
    fn from_json(object: &Value) -> Self {
        let spec = &object["spec"];
        Self {
            name: text(&object["metadata"]["name"]),
            uid: HeaderValue::from_str(&text(&object["metadata"]["uid"])).ok(),
            level: text(&spec["priorityLevelConfiguration"]["name"]),
            precedence: spec["matchingPrecedence"].as_i64().unwrap_or(1000),
            distinguisher: match spec["distinguisherMethod"]["type"].as_str() {
                Some("ByUser") => Distinguisher::User,
                Some("ByNamespace") => Distinguisher::Namespace,
                _ => Distinguisher::None,
            },
            rules: spec["rules"].as_array().into_iter().flatten().map(PolicyRule::from_json).collect(),
        }
    }

    /// Whether a request belongs here.
    pub fn matches(&self, info: &RequestInfo, user: &User) -> bool {
        self.rules.iter().any(|rule| {
            rule.subjects.iter().any(|subject| subject.matches(user))
                && match info.is_resource {
                    true => rule.resources.iter().any(|rule| rule.matches(info)),
                    false => rule.paths.iter().any(|rule| rule.matches(info)),
                }
        })
    }

    /// The hash of the flow of a request: its user or namespace, within the schema.
    pub fn flow(&self, info: &RequestInfo, user: &User) -> u64 {
        let distinguisher = match self.distinguisher {
            Distinguisher::None => "",
            Distinguisher::User => user.name.as_str(),
            Distinguisher::Namespace => info.namespace.as_str(),
        };
        let hash =
            Sha256::new().chain_update(&self.name).chain_update([0]).chain_update(distinguisher).finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        u64::from_le_bytes(first)
    }
}

impl PolicyRule {
    fn from_json(rule: &Value) -> Self {
        let list = |key: &str| rule[key].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            subjects: list("subjects").iter().map(Subject::from_json).collect(),
            resources: list("resourceRules")
                .iter()
                .map(|rule| ResourceRule {
                    verbs: texts(&rule["verbs"]),
                    groups: texts(&rule["apiGroups"]),
                    resources: texts(&rule["resources"]),
                    namespaces: texts(&rule["namespaces"]),
                    cluster_scope: rule["clusterScope"].as_bool().unwrap_or_default(),
                })
                .collect(),
            paths: list("nonResourceRules")
                .iter()
                .map(|rule| PathRule { verbs: texts(&rule["verbs"]), paths: texts(&rule["nonResourceURLs"]) })
                .collect(),
        }
    }
}

impl Subject {
    fn from_json(subject: &Value) -> Self {
        match subject["kind"].as_str() {
            Some("User") => Self::User(text(&subject["user"]["name"])),
            Some("Group") => Self::Group(text(&subject["group"]["name"])),
            Some("ServiceAccount") => Self::ServiceAccount {
                namespace: text(&subject["serviceAccount"]["namespace"]),
                name: text(&subject["serviceAccount"]["name"]),
            },
            _ => Self::Unknown,
        }
    }

    fn matches(&self, user: &User) -> bool {
        match self {
            Self::User(name) => name == "*" || *name == user.name,
            Self::Group(name) => name == "*" || user.in_group(name),
            Self::ServiceAccount { namespace, name } => service_account::parse_user_name(&user.name)
                .is_some_and(|(ns, account)| ns == namespace && (name == "*" || account == name)),
            Self::Unknown => false,
        }
    }
}

fn contains(list: &[String], item: &str) -> bool {
    list.iter().any(|known| known == "*" || known == item)
}

impl ResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        let resource = match info.subresource.as_str() {
            "" => info.resource.clone(),
            subresource => format!("{}/{subresource}", info.resource),
        };
        contains(&self.verbs, &info.verb)
            && contains(&self.resources, &resource)
            && contains(&self.groups, &info.group)
            && match info.namespace.as_str() {
                "" => self.cluster_scope,
                namespace => contains(&self.namespaces, namespace),
            }
    }
}

impl PathRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        contains(&self.verbs, &info.verb)
            && self.paths.iter().any(|path| {
                let below = path.trim_end_matches('*').trim_end_matches('/');
                path == "*"
                    || *path == info.path
                    || info.path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'))
            })
    }
}

#[cfg(test)]
mod tests {
    use ::http::{Method, Uri};

    use super::*;
    use crate::auth::testing::Objects;

    #[test]
    fn requests_go_to_the_levels_that_upstream_suggests() {
        let objects = Objects::default();
        for object in flowcontrol::bootstrap().iter().filter(|object| object.kind == "FlowSchema") {
            objects.put(bucket::FLOW_SCHEMAS, object.object());
        }
        let schemas = read(&objects);
        let table = [
            ("system:masters", "x", "GET", "/api/v1/pods", "exempt"),
            ("system:authenticated", "jane", "GET", "/readyz", "probes"),
            ("system:authenticated", "jane", "GET", "/readyz/ping", "probes"),
            ("system:authenticated", "jane", "GET", "/readyzz", "global-default"),
            ("system:authenticated", "jane", "GET", "/api/v1/pods", "global-default"),
            ("system:nodes", "n", "PATCH", "/api/v1/nodes/n/status", "system-node-high"),
            ("system:nodes", "n", "GET", "/api/v1/pods", "system-nodes"),
            (
                "",
                "system:kube-scheduler",
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
                "system-leader-election",
            ),
            ("", "system:kube-scheduler", "GET", "/api/v1/pods", "kube-scheduler"),
            (
                "system:serviceaccounts",
                "system:serviceaccount:kube-system:a",
                "GET",
                "/api/v1/pods",
                "kube-system-service-accounts",
            ),
            (
                "system:serviceaccounts",
                "system:serviceaccount:kube-systems:a",
                "GET",
                "/api/v1/pods",
                "service-accounts",
            ),
        ];
        for (group, user, method, path, wanted) in table {
            let info = RequestInfo::parse(
                &method.parse::<Method>().expect("a method"),
                &path.parse::<Uri>().expect("a path"),
            );
            let user = User::new(user, [group]);
            let found = schemas.iter().find(|schema| schema.matches(&info, &user));
            assert_eq!(found.map(|schema| schema.name.as_str()), Some(wanted), "{} {path}", user.name);
        }
    }
}
