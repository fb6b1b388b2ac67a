//! Privilege escalation checks: nobody may grant permissions they do not hold. Runs when Roles and bindings are
//! written, before validation.

use capstan_builtin::validation::role_limits;
use capstan_schema::bounded::Texts;
use http::StatusCode;
use serde_json::{Map, Value};

use super::coverage::{TooComplex, uncovered};
use super::policy::{RoleError, text};
use super::rule::{PolicyRule, compacted, quoted_list};
use super::{Rbac, aggregate};
use crate::auth::{Attributes, Authorizer, MASTERS};
use crate::status::{Result, Status};

const GROUP: &str = "rbac.authorization.k8s.io";
/// Most missing permissions in a rejection.
const MAX_SHOWN: usize = 500;

impl Rbac {
    /// Checks a create or update of an RBAC object; other requests pass. `request` is what was authorized (its name
    /// is empty on create), `object` the new object, `old` the stored one. The verbs `escalate` and `bind` are
    /// checked with the server's `authorizer`, which need not be this one.
    pub fn check_escalation(
        &self,
        authorizer: &dyn Authorizer,
        request: &Attributes,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<()> {
        if request.group != GROUP || !request.subresource.is_empty() {
            return Ok(());
        }
        let check = match request.resource.as_str() {
            "roles" | "clusterroles" => Self::check_role,
            "rolebindings" | "clusterrolebindings" => Self::check_binding,
            _ => return Ok(()),
        };
        if request.user.in_group(MASTERS) || old.is_some_and(|old| only_garbage_collection(object, old)) {
            return Ok(());
        }
        check(self, authorizer, request, object, old)
    }

    fn check_role(
        &self,
        authorizer: &dyn Authorizer,
        request: &Attributes,
        role: &Value,
        old: Option<&Value>,
    ) -> Result<()> {
        let may_escalate = Attributes { verb: "escalate".into(), version: "*".into(), ..request.clone() };
        if authorizer.authorize(&may_escalate).allowed() {
            return Ok(());
        }
        let errors = role_limits(role);
        if !errors.is_empty() {
            return Err(Status::invalid(GROUP, text(&role["kind"]), text(&role["metadata"]["name"]), errors));
        }
        self.holds(request, &PolicyRule::list_from_json(role))
            .map_err(|why| why.refused(request, role, "rules"))?;
        let aggregates = |role: &Value| {
            let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
            selectors.is_some_and(|selectors| !selectors.is_empty())
        };
        // An aggregated role collects anything with its labels, so creating or changing one takes all permissions.
        if request.resource == "clusterroles" && (aggregates(role) || old.is_some_and(aggregates)) {
            self.holds(request, &everything()).map_err(|_| {
                forbidden(request, role, "must have cluster-admin privileges to use the aggregationRule")
            })?;
        }
        Ok(())
    }

    fn check_binding(
        &self,
        authorizer: &dyn Authorizer,
        request: &Attributes,
        binding: &Value,
        _: Option<&Value>,
    ) -> Result<()> {
        let role = &binding["roleRef"];
        let (kind, name) = (text(&role["kind"]), text(&role["name"]));
        // Cluster-wide bindings are checked without a namespace even if the request names one.
        let namespace = if request.resource == "rolebindings" { request.namespace.as_str() } else { "" };
        let roles = match kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => "",
        };
        let may_bind = Attributes {
            user: request.user.clone(),
            verb: "bind".into(),
            group: text(&role["apiGroup"]).into(),
            version: "*".into(),
            resource: roles.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Attributes::default()
        };
        if !roles.is_empty() && authorizer.authorize(&may_bind).allowed() {
            return Ok(());
        }
        let rules = self.policy().role(kind, name, namespace).map_err(|error| match error {
            RoleError::NotFound { name, .. } => Status::not_found(GROUP, &request.resource, &name),
            RoleError::UnsupportedKind(_) => {
                Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", error.in_escalation(&request.resource))
            }
        })?;
        self.holds(request, &rules).map_err(|why| why.refused(request, binding, "roleRef"))
    }

    /// Whether the user holds every permission of some rules in the namespace of the request.
    fn holds(&self, request: &Attributes, wanted: &[PolicyRule]) -> Result<(), NotHeld> {
        let (held, errors) = self.rules(&request.user, &request.namespace);
        let missing = uncovered(held.iter().flat_map(|rules| rules.iter()), wanted)?;
        if missing.is_empty() {
            return Ok(());
        }
        let shown = missing.atoms(MAX_SHOWN);
        let unnamed = missing.count() - shown.len();
        let mut lines: Vec<String> = compacted(shown).iter().map(PolicyRule::compact).collect();
        lines.sort();
        lines.dedup();
        let mut lines = lines.into_iter().collect::<Texts>().into_lines();
        if unnamed > 0 {
            lines.push(format!("and {unnamed} more permissions"));
        }
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            request.user.name,
            quoted_list(&request.user.groups),
            lines.join("\n"),
        );
        if !errors.is_empty() {
            let errors = aggregate(errors.iter().map(|e| e.in_escalation(&request.resource)).collect());
            why += &format!("; resolution errors: [{errors}]");
        }
        Err(NotHeld::Missing(why))
    }
}

/// Why a user may not grant some rules.
enum NotHeld {
    /// They do not hold all of them. Has the description of the missing ones.
    Missing(String),
    /// The check takes too many steps.
    TooComplex,
}

impl From<TooComplex> for NotHeld {
    fn from(_: TooComplex) -> Self {
        Self::TooComplex
    }
}

impl NotHeld {
    fn refused(self, request: &Attributes, object: &Value, field: &str) -> Status {
        match self {
            Self::Missing(why) => forbidden(request, object, &why),
            Self::TooComplex => Status::too_large(format!(
                "{field}: the rules overlap in too many ways with those that user {:?} holds to be compared: grant them in \
                 several smaller roles",
                request.user.name
            )),
        }
    }
}

fn forbidden(request: &Attributes, object: &Value, why: &str) -> Status {
    Status::forbidden(GROUP, &request.resource, text(&object["metadata"]["name"]), why)
}

fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    [
        PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() },
        PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() },
    ]
}

/// Whether an update only changes what the garbage collector changes: it must be able to process objects that it
/// could not have written.
fn only_garbage_collection(object: &Value, old: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.as_object().cloned().unwrap_or_default();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                metadata.remove(field);
            }
        }
        drop_empty(object)
    };
    without(object) == without(old)
}

/// Go's semantic equality treats absent and empty as equal.
fn drop_empty(object: Map<String, Value>) -> Map<String, Value> {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    object
        .into_iter()
        .map(|(key, value)| match value {
            Value::Object(fields) => (key, Value::Object(drop_empty(fields))),
            other => (key, other),
        })
        .filter(|(_, value)| !is_empty(value))
        .collect()
}
