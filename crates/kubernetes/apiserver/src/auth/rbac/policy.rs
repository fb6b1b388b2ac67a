//! The stored policy, indexed by subject. Immutable.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::bootstrap_policy;
use super::rule::PolicyRule;
use crate::auth::{ObjectSource, User, bucket};

/// Rules of a role, or why they cannot be resolved.
type RoleRules = Result<Arc<[PolicyRule]>, RoleError>;

/// Why a role reference cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RoleError {
    NotFound { kind: RoleKind, name: String },
    UnsupportedKind(String),
}

/// Kinds of roles that a binding may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RoleKind {
    Role,
    ClusterRole,
}

impl RoleError {
    /// As in the authorizer's message: upstream's lister names the singular.
    pub(super) fn in_denial(&self) -> String {
        match self {
            Self::NotFound { kind: RoleKind::Role, name } => not_found("role", name),
            Self::NotFound { kind: RoleKind::ClusterRole, name } => not_found("clusterrole", name),
            Self::UnsupportedKind(kind) => unsupported(kind),
        }
    }

    /// As in the message of the escalation check: upstream reads the store, which names the resource of the request.
    pub(super) fn in_escalation(&self, resource: &str) -> String {
        match self {
            Self::NotFound { name, .. } => not_found(resource, name),
            Self::UnsupportedKind(kind) => unsupported(kind),
        }
    }
}

fn not_found(resource: &str, name: &str) -> String {
    format!("{resource}.rbac.authorization.k8s.io {name:?} not found")
}

fn unsupported(kind: &str) -> String {
    format!("unsupported role reference kind: {kind:?}")
}

/// One binding with its role resolved.
#[derive(Debug)]
pub(super) struct Binding {
    stored: Arc<StoredBinding>,
    pub(super) rules: RoleRules,
}

/// A binding as it is stored. Parsed once for each change of it.
#[derive(Debug)]
struct StoredBinding {
    /// `ClusterRoleBinding "x" of ClusterRole "y"`.
    description: String,
    /// Empty for a ClusterRoleBinding.
    namespace: String,
    subjects: Vec<Subject>,
    role_kind: String,
    role: String,
}

#[derive(Debug)]
struct Subject {
    who: SubjectName,
    /// `Group "system:masters"`, `ServiceAccount "name/namespace"`.
    description: String,
}

#[derive(Debug)]
enum SubjectName {
    User(String),
    Group(String),
}

impl Binding {
    /// The binding as the reason in access reviews. Names the first subject that applies.
    pub(super) fn describe(&self, user: &User) -> String {
        let applies = |subject: &&Subject| match &subject.who {
            SubjectName::User(name) => *name == user.name,
            SubjectName::Group(group) => user.in_group(group),
        };
        let subject = self.stored.subjects.iter().find(applies);
        let subject = subject.map(|subject| subject.description.as_str()).unwrap_or_default();
        format!("{} to {subject}", self.stored.description)
    }
}

/// Bindings of one scope, indexed by subject.
#[derive(Debug, Default)]
struct Scope {
    bindings: Vec<Binding>,
    by_user: HashMap<String, Vec<usize>>,
    by_group: HashMap<String, Vec<usize>>,
}

impl Scope {
    fn add(&mut self, binding: Binding) {
        let position = self.bindings.len();
        for subject in &binding.stored.subjects {
            let positions = match &subject.who {
                SubjectName::User(name) => self.by_user.entry(name.clone()).or_default(),
                SubjectName::Group(name) => self.by_group.entry(name.clone()).or_default(),
            };
            if positions.last() != Some(&position) {
                positions.push(position);
            }
        }
        self.bindings.push(binding);
    }

    /// Bindings that apply to a user, sorted by name.
    fn applying(&self, user: &User) -> impl Iterator<Item = &Binding> {
        let by_group = user.groups.iter().filter_map(|group| self.by_group.get(group));
        let mut positions: Vec<usize> =
            self.by_user.get(&user.name).into_iter().chain(by_group).flatten().copied().collect();
        positions.sort_unstable();
        positions.dedup();
        positions.into_iter().map(|position| &self.bindings[position])
    }
}

/// All stored roles and bindings at one revision.
#[derive(Debug, Default)]
pub(super) struct Policy {
    revisions: [u64; 4],
    roles: HashMap<(RoleKind, String), Arc<[PolicyRule]>>,
    cluster: Scope,
    namespaces: HashMap<String, Scope>,
    parsed: Parsed,
}

/// What the entries of the store were parsed to, for the next policy: a change of one binding among thousands parses
/// one.
#[derive(Debug, Default)]
struct Parsed {
    roles: HashMap<Arc<str>, Revised<Role>>,
    cluster_roles: HashMap<Arc<str>, Revised<Role>>,
    bindings: HashMap<Arc<str>, Revised<Arc<StoredBinding>>>,
    cluster_bindings: HashMap<Arc<str>, Revised<Arc<StoredBinding>>>,
}

/// A value with the revision of the entry that it was parsed from.
type Revised<T> = (u64, T);

#[derive(Debug, Clone)]
struct Role {
    key: (RoleKind, String),
    rules: Arc<[PolicyRule]>,
}

const BUCKETS: [&str; 4] =
    [bucket::ROLES, bucket::CLUSTER_ROLES, bucket::ROLE_BINDINGS, bucket::CLUSTER_ROLE_BINDINGS];

impl Policy {
    /// Whether nothing was written since it was built.
    pub(super) fn is_current(&self, source: &dyn ObjectSource) -> bool {
        BUCKETS.iter().zip(self.revisions).all(|(name, seen)| source.bucket_revision(name) == seen)
    }

    /// Reads the stored policy; `before` is an earlier one of the same store. Revisions are read before the objects: a
    /// write in between makes the result look outdated, never current.
    pub(super) fn read(source: &dyn ObjectSource, before: Option<&Self>) -> Self {
        let mut policy =
            Self { revisions: BUCKETS.map(|name| source.bucket_revision(name)), ..Self::default() };
        let parsed = before.map(|before| &before.parsed);
        let role = |kind| move |object: &Value| Role::from_json(kind, object);
        policy.parsed.roles =
            parse(source, bucket::ROLES, parsed.map(|all| &all.roles), role(RoleKind::Role), |role| {
                policy.roles.insert(role.key.clone(), role.rules.clone());
            });
        policy.parsed.cluster_roles = parse(
            source,
            bucket::CLUSTER_ROLES,
            parsed.map(|all| &all.cluster_roles),
            role(RoleKind::ClusterRole),
            |role| {
                policy.roles.insert(role.key.clone(), role.rules.clone());
            },
        );
        let binding = |object: &Value| Arc::new(StoredBinding::from_json(object));
        let mut bindings = Vec::new();
        policy.parsed.cluster_bindings = parse(
            source,
            bucket::CLUSTER_ROLE_BINDINGS,
            parsed.map(|all| &all.cluster_bindings),
            binding,
            |binding| bindings.push(binding.clone()),
        );
        policy.parsed.bindings =
            parse(source, bucket::ROLE_BINDINGS, parsed.map(|all| &all.bindings), binding, |binding| {
                bindings.push(binding.clone());
            });
        for stored in bindings {
            let rules = policy.role(&stored.role_kind, &stored.role, &stored.namespace);
            let scope = match stored.namespace.as_str() {
                "" => &mut policy.cluster,
                namespace => policy.namespaces.entry(namespace.to_owned()).or_default(),
            };
            scope.add(Binding { stored, rules });
        }
        policy
    }

    /// The rules of a role reference in a binding of a namespace (`None`: cluster-wide).
    pub(super) fn role(&self, kind: &str, name: &str, namespace: &str) -> RoleRules {
        let kind = match kind {
            "Role" => RoleKind::Role,
            "ClusterRole" => RoleKind::ClusterRole,
            other => return Err(RoleError::UnsupportedKind(other.to_owned())),
        };
        self.roles
            .get(&role_key(kind, namespace, name))
            .cloned()
            .ok_or_else(|| RoleError::NotFound { kind, name: name.to_owned() })
    }

    /// Bindings that apply to a user in a namespace (`None`: cluster-wide ones only).
    pub(super) fn applying<'a>(
        &'a self,
        user: &User,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Binding> + use<'a> {
        let local = (!namespace.is_empty()).then(|| self.namespaces.get(namespace)).flatten();
        let cluster: Vec<_> = self.cluster.applying(user).collect();
        let local: Vec<_> = local.into_iter().flat_map(|scope| scope.applying(user)).collect();
        cluster.into_iter().chain(local)
    }
}

/// Parses the entries of a bucket, except those that `before` has at the same revision, and hands each to `take` in key
/// order.
fn parse<T: Clone>(
    source: &dyn ObjectSource,
    bucket: &str,
    before: Option<&HashMap<Arc<str>, Revised<T>>>,
    from_json: impl Fn(&Value) -> T,
    mut take: impl FnMut(&T),
) -> HashMap<Arc<str>, Revised<T>> {
    let mut all = HashMap::new();
    source.visit(bucket, &mut |entry| {
        let same = before.and_then(|before| before.get(entry.key)).filter(|(at, _)| *at == entry.revision);
        let value = match same {
            Some((_, value)) => value.clone(),
            None => match (entry.parse)() {
                Some(object) => from_json(&object),
                None => return,
            },
        };
        take(&value);
        all.insert(entry.key.clone(), (entry.revision, value));
    });
    all
}

impl Role {
    fn from_json(kind: RoleKind, role: &Value) -> Self {
        let key = role_key(kind, namespace(role), text(&role["metadata"]["name"]));
        Self { key, rules: rules(role) }
    }
}

impl StoredBinding {
    fn from_json(binding: &Value) -> Self {
        let (name, namespace) = (text(&binding["metadata"]["name"]), namespace(binding));
        let (role_kind, role) = (text(&binding["roleRef"]["kind"]), text(&binding["roleRef"]["name"]));
        let (kind, place) = match namespace {
            "" => ("ClusterRoleBinding", name.to_owned()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        let subjects = binding["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            description: format!("{kind} {place:?} of {role_kind} {role:?}"),
            namespace: namespace.to_owned(),
            subjects: subjects.iter().filter_map(|subject| Subject::from_json(subject, namespace)).collect(),
            role_kind: role_kind.to_owned(),
            role: role.to_owned(),
        }
    }
}

impl Subject {
    /// `None` for subjects that never match.
    fn from_json(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let (kind, name) = (text(&subject["kind"]), text(&subject["name"]));
        let who = match kind {
            "User" => SubjectName::User(name.to_owned()),
            "Group" => SubjectName::Group(name.to_owned()),
            "ServiceAccount" => {
                let namespace = match text(&subject["namespace"]) {
                    "" => binding_namespace,
                    namespace => namespace,
                };
                if namespace.is_empty() {
                    return None;
                }
                return Some(Self {
                    who: SubjectName::User(format!("system:serviceaccount:{namespace}:{name}")),
                    description: format!("{kind} {:?}", format!("{name}/{namespace}")),
                });
            }
            _ => return None,
        };
        Some(Self { who, description: format!("{kind} {name:?}") })
    }
}

/// The rules of a role. Rules of the bootstrap policy are shared by all servers of the process.
fn rules(role: &Value) -> Arc<[PolicyRule]> {
    type BootstrapRules = HashMap<&'static str, (&'static Value, Arc<[PolicyRule]>)>;
    static BOOTSTRAP_RULES: LazyLock<BootstrapRules> = LazyLock::new(|| {
        let roles = bootstrap_policy().iter().filter(|object| object["kind"] == "ClusterRole");
        let shared = |role: &'static Value| {
            (text(&role["metadata"]["name"]), (&role["rules"], PolicyRule::list_from_json(role).into()))
        };
        roles.map(shared).collect()
    });
    match BOOTSTRAP_RULES.get(text(&role["metadata"]["name"])) {
        Some((same, rules)) if **same == role["rules"] => rules.clone(),
        _ => PolicyRule::list_from_json(role).into(),
    }
}

fn role_key(kind: RoleKind, namespace: &str, name: &str) -> (RoleKind, String) {
    match kind {
        RoleKind::Role => (kind, format!("{namespace}/{name}")),
        RoleKind::ClusterRole => (kind, name.to_owned()),
    }
}

fn namespace(object: &Value) -> &str {
    text(&object["metadata"]["namespace"])
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
