//! Bindings, certificate requests, admission, priority and fairness, API services.

use serde_json::Value;

use super::{Kind, age, name};
use crate::table::column::{AGE, Header, NAME, integer, text as column};
use crate::table::human;
use crate::table::read::{at, condition, list, text, text_or};

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    Some(match (group, kind) {
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &BINDING,
        ("certificates.k8s.io", "CertificateSigningRequest") => &SIGNING_REQUEST,
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => &WEBHOOKS,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &VALIDATING_POLICY,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => &MUTATING_POLICY,
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => &POLICY_BINDING,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => &PRIORITY_LEVEL,
        ("apiregistration.k8s.io", "APIService") => &API_SERVICE,
        _ => return None,
    })
}

static BINDING: Kind = Kind::new(
    &[
        NAME,
        column("Role", "role that is granted"),
        AGE,
        column("Users", "users it is granted to").wide(),
        column("Groups", "groups it is granted to").wide(),
        column("ServiceAccounts", "service accounts it is granted to").wide(),
    ],
    |object, now| {
        let role = at(object, &["roleRef"]);
        let subjects = |kind: &str| {
            let names: Vec<String> = list(object, &["subjects"])
                .iter()
                .filter(|subject| subject["kind"] == kind)
                .map(|subject| match kind {
                    "ServiceAccount" => {
                        format!("{}/{}", text(subject, &["namespace"]), text(subject, &["name"]))
                    }
                    _ => text(subject, &["name"]).to_owned(),
                })
                .collect();
            Value::from(names.join(", "))
        };
        vec![
            name(object).into(),
            format!("{}/{}", text(role, &["kind"]), text(role, &["name"])).into(),
            age(object, now),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    },
);

static SIGNING_REQUEST: Kind = Kind::new(
    &[
        NAME,
        AGE,
        column("SignerName", "name of the signer"),
        column("Requestor", "user that created the request"),
        column("RequestedDuration", "requested validity of the certificate"),
        column("Condition", "state of the request"),
    ],
    |object, now| {
        let duration = at(object, &["spec", "expirationSeconds"]).as_i64();
        vec![
            name(object).into(),
            age(object, now),
            text_or(object, &["spec", "signerName"], "<none>").into(),
            text(object, &["spec", "username"]).into(),
            duration.map_or_else(|| "<none>".to_owned(), human::duration).into(),
            signing_status(object).into(),
        ]
    },
);

fn signing_status(request: &Value) -> String {
    let has = |kind| condition(request, &["status", "conditions"], kind).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(request, &["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    status
}

static WEBHOOKS: Kind = Kind::new(&[NAME, integer("Webhooks", "number of webhooks"), AGE], |object, now| {
    vec![name(object).into(), list(object, &["webhooks"]).len().into(), age(object, now)]
});

const PARAM_KIND: Header<'static> = column("ParamKind", "kind of its parameters");

static VALIDATING_POLICY: Kind =
    Kind::new(&[NAME, integer("Validations", "number of rules"), PARAM_KIND, AGE], |object, now| {
        let rules = list(object, &["spec", "validations"]).len();
        vec![name(object).into(), rules.into(), param_kind(object).into(), age(object, now)]
    });

static MUTATING_POLICY: Kind =
    Kind::new(&[NAME, integer("Mutations", "number of rules"), PARAM_KIND, AGE], |object, now| {
        let rules = list(object, &["spec", "mutations"]).len();
        vec![name(object).into(), rules.into(), param_kind(object).into(), age(object, now)]
    });

fn param_kind(policy: &Value) -> String {
    match at(policy, &["spec", "paramKind"]) {
        Value::Null => "<unset>".into(),
        kind => format!("{}/{}", text(kind, &["apiVersion"]), text(kind, &["kind"])),
    }
}

static POLICY_BINDING: Kind = Kind::new(
    &[NAME, column("PolicyName", "policy it binds"), column("ParamRef", "object with its parameters"), AGE],
    |object, now| {
        let reference = at(object, &["spec", "paramRef"]);
        let parameters = match text(reference, &["name"]) {
            "" if reference["selector"].is_object() => {
                crate::table::read::selector_cell(&reference["selector"])
            }
            "" => "<unset>".into(),
            name => format!("{}/{name}", text_or(reference, &["namespace"], "*")),
        };
        vec![
            name(object).into(),
            text(object, &["spec", "policyName"]).into(),
            parameters.into(),
            age(object, now),
        ]
    },
);

static FLOW_SCHEMA: Kind = Kind::new(
    &[
        NAME,
        column("PriorityLevel", "priority level of its requests"),
        column("MatchingPrecedence", "precedence among flow schemas"),
        column("DistinguisherMethod", "how requests are divided into flows"),
        AGE,
        column("MissingPL", "whether the priority level is missing"),
    ],
    |object, now| {
        let dangling = condition(object, &["status", "conditions"], "Dangling");
        vec![
            name(object).into(),
            text(object, &["spec", "priorityLevelConfiguration", "name"]).into(),
            at(object, &["spec", "matchingPrecedence"]).as_i64().unwrap_or_default().into(),
            text_or(object, &["spec", "distinguisherMethod", "type"], "<none>").into(),
            age(object, now),
            dangling.map_or("?", |condition| text(condition, &["status"])).into(),
        ]
    },
);

static PRIORITY_LEVEL: Kind = Kind::new(
    &[
        NAME,
        column("Type", "whether requests are limited"),
        column("NominalConcurrencyShares", "share of the concurrency"),
        column("Queues", "number of queues"),
        column("HandSize", "queues that a flow is assigned to"),
        column("QueueLengthLimit", "requests that a queue can hold"),
        AGE,
    ],
    |object, now| {
        let number = |path: &[&str]| match at(object, path) {
            Value::Null => "<none>".into(),
            number => number.clone(),
        };
        let queuing = |key| number(&["spec", "limited", "limitResponse", "queuing", key]);
        vec![
            name(object).into(),
            text(object, &["spec", "type"]).into(),
            number(&["spec", "limited", "nominalConcurrencyShares"]),
            queuing("queues"),
            queuing("handSize"),
            queuing("queueLengthLimit"),
            age(object, now),
        ]
    },
);

static API_SERVICE: Kind = Kind::new(
    &[
        NAME,
        column("Service", "service that serves the API"),
        column("Available", "whether the API is available"),
        AGE,
    ],
    |object, now| {
        let service = match at(object, &["spec", "service"]) {
            Value::Null => "Local".to_owned(),
            service => format!("{}/{}", text(service, &["namespace"]), text(service, &["name"])),
        };
        let available = condition(object, &["status", "conditions"], "Available");
        let available = available.map_or_else(
            || "Unknown".to_owned(),
            |condition| match (text(condition, &["status"]), text(condition, &["reason"])) {
                (status @ "True", _) | (status, "") => status.to_owned(),
                (status, reason) => format!("{status} ({reason})"),
            },
        );
        vec![name(object).into(), service.into(), available.into(), age(object, now)]
    },
);
