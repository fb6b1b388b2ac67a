//! Admission policies: what they reject, change, warn about and record.

use capstan_apiserver::auth::User;
use serde_json::{Value, json};

use crate::client::{Client, read};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn policy(kind: &str, name: &str, changes: Value) -> Value {
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["CREATE", "UPDATE"],
        }]},
    });
    for (key, value) in changes.as_object().expect("fields") {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    })
}

fn binding(kind: &str, name: &str, changes: Value) -> Value {
    let mut spec = json!({"policyName": name});
    if kind.starts_with("Validating") {
        spec["validationActions"] = json!(["Deny"]);
    }
    for (key, value) in changes.as_object().expect("fields") {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}Binding"),
        "metadata": {"name": format!("{name}-binding")}, "spec": spec,
    })
}

async fn install(client: &Client, kind: &str, name: &str, spec: Value, bound: Value) {
    let plural = format!("{GROUP}/{}", kind.to_lowercase().replace("policy", "policies"));
    let (code, created) = client.create(&plural, &policy(kind, name, spec)).await;
    assert_eq!(code, 201, "{created}");
    let plural = format!("{GROUP}/{}bindings", kind.to_lowercase());
    let (code, created) = client.create(&plural, &binding(kind, name, bound)).await;
    assert_eq!(code, 201, "{created}");
}

async fn validating(client: &Client, name: &str, spec: Value, bound: Value) {
    install(client, "ValidatingAdmissionPolicy", name, spec, bound).await;
}

async fn mutating(client: &Client, name: &str, mut spec: Value) {
    if spec["reinvocationPolicy"].is_null() {
        spec["reinvocationPolicy"] = json!("Never");
    }
    install(client, "MutatingAdmissionPolicy", name, spec, json!({})).await;
}

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[tokio::test]
async fn a_validation_that_does_not_hold_rejects_with_its_message_and_reason() {
    let client = Client::start().await;
    validating(
        &client,
        "names",
        json!({"validations": [
            {"expression": "object.metadata.name != 'bad'", "messageExpression": "'not ' + object.metadata.name"},
            {"expression": "object.metadata.name != 'worse'", "message": "worse", "reason": "Forbidden"},
            {"expression": "!has(object.data) || !has(object.data.secret)"},
        ]}),
        json!({}),
    )
    .await;
    assert_eq!(client.create(MAPS, &map("good", json!({}))).await.0, 201);
    let (code, refused) = client.create(MAPS, &map("bad", json!({}))).await;
    let text = "ValidatingAdmissionPolicy 'names' with binding 'names-binding' denied request: not bad";
    assert_eq!((code, &refused["reason"]), (422, &json!("Invalid")));
    assert_eq!(refused["message"], format!("configmaps \"bad\" is forbidden: {text}"));
    assert_eq!(refused["details"]["causes"], json!([{"message": text}]));
    let (code, refused) = client.create(MAPS, &map("worse", json!({}))).await;
    assert_eq!((code, &refused["reason"]), (403, &json!("Forbidden")));
    let patch = json!({"data": {"secret": "x"}});
    let (code, refused) = client.patch(&format!("{MAPS}/good"), "application/merge-patch+json", &patch).await;
    assert_eq!(code, 422);
    let message = refused["message"].as_str().expect("a message");
    assert!(
        message.ends_with("denied request: failed expression: !has(object.data) || !has(object.data.secret)"),
        "{message}"
    );

    // A policy is gone with its binding.
    assert_eq!(
        client.delete(&format!("{GROUP}/validatingadmissionpolicybindings/names-binding")).await.0,
        200
    );
    assert_eq!(client.create(MAPS, &map("bad", json!({}))).await.0, 201);
}

#[tokio::test]
async fn a_binding_selects_parameters_by_name_or_label_or_does_without() {
    let client = Client::start().await;
    let limits = |name: &str, max: u32| {
        let mut object = map(name, json!({"max": max.to_string()}));
        object["metadata"]["labels"] = json!({"limits": "yes"});
        object
    };
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "not-limits", "expression": "!has(object.metadata.labels)"}],
        "validations": [{
            "expression": "params == null || size(object.data) <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max",
        }],
    });
    let by_name = json!({"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}});
    validating(&client, "named", spec.clone(), by_name).await;
    let two = || map("two", json!({"a": "1", "b": "2"}));
    let (code, refused) = client.create(MAPS, &two()).await;
    assert_eq!(code, 422);
    let text = refused["message"].as_str().expect("a message");
    assert!(
        text.ends_with("no params found for policy binding with `Deny` parameterNotFoundAction"),
        "{text}"
    );
    // The parameters themselves match the policy too, and are not there before they are created.
    let path = format!("{GROUP}/validatingadmissionpolicybindings/named-binding");
    let allow = json!({"spec": {"paramRef": {"name": "limits", "parameterNotFoundAction": "Allow"}}});
    assert_eq!(client.patch(&path, "application/merge-patch+json", &allow).await.0, 200);
    assert_eq!(client.create(MAPS, &limits("limits", 1)).await.0, 201);
    let (code, refused) = client.create(MAPS, &two()).await;
    assert_eq!(code, 422);
    assert!(refused["message"].as_str().expect("a message").ends_with("denied request: at most 1"));

    let selected = json!({"spec": {"paramRef": {
        "name": null, "selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny",
    }}});
    assert_eq!(client.patch(&path, "application/merge-patch+json", &selected).await.0, 200);
    assert_eq!(client.create(MAPS, &limits("more", 2)).await.0, 201);
    assert_eq!(client.create(MAPS, &two()).await.0, 422, "every selected parameter counts");
    assert_eq!(client.delete(&format!("{MAPS}/limits")).await.0, 200);
    assert_eq!(client.create(MAPS, &two()).await.0, 201);
}

#[tokio::test]
async fn what_cannot_be_evaluated_rejects_unless_failures_are_ignored() {
    let client = Client::start().await;
    let spec = json!({"validations": [{"expression": "object.data.missing == 'x'"}]});
    validating(&client, "strict", spec.clone(), json!({})).await;
    let (code, refused) = client.create(MAPS, &map("a", json!({}))).await;
    assert_eq!(code, 422);
    let text = refused["message"].as_str().expect("a message");
    assert!(
        text.ends_with("expression 'object.data.missing == 'x'' resulted in error: no such key: data"),
        "{text}"
    );
    let path = format!("{GROUP}/validatingadmissionpolicies/strict");
    let ignore = json!({"spec": {"failurePolicy": "Ignore"}});
    assert_eq!(client.patch(&path, "application/merge-patch+json", &ignore).await.0, 200);
    assert_eq!(client.create(MAPS, &map("a", json!({}))).await.0, 201);
    // A kind of parameters that is not served is a failure of the policy.
    let unknown = json!({"spec": {
        "failurePolicy": "Fail", "paramKind": {"apiVersion": "ex.io/v1", "kind": "None"},
    }});
    assert_eq!(client.patch(&path, "application/merge-patch+json", &unknown).await.0, 200);
    let (_, refused) = client.create(MAPS, &map("b", json!({}))).await;
    assert_eq!(
        refused["message"],
        "configmaps \"b\" is forbidden: ValidatingAdmissionPolicy 'strict' denied request: failed to configure \
         policy: failed to find resource referenced by paramKind: 'ex.io/v1, Kind=None'"
    );
    // Policies never see each other, so a bad one can always be removed.
    assert_eq!(client.delete(&path).await.0, 200);
    assert_eq!(client.create(MAPS, &map("b", json!({}))).await.0, 201);
}

#[tokio::test]
async fn bindings_may_warn_and_record_instead_of_rejecting() {
    let (client, dir) = crate::audit::audited().await;
    validating(
        &client,
        "soft.example.com",
        json!({
            "variables": [{"name": "count", "expression": "has(object.data) ? size(object.data) : 0"}],
            "validations": [{"expression": "variables.count > 0", "message": "empty"}],
            "auditAnnotations": [
                {"key": "count", "valueExpression": "'has ' + string(variables.count)"},
                {"key": "nothing", "valueExpression": "null"},
            ],
        }),
        json!({"validationActions": ["Warn", "Audit"]}),
    )
    .await;
    let body = map("a", json!({})).to_string();
    let reply = client.reply("POST", MAPS, &[("content-type", "application/json")], body).await;
    assert_eq!(
        reply.headers()["warning"],
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'soft.example.com' with binding \
         'soft.example.com-binding': empty\""
    );
    assert_eq!(read(reply).await.0, 201);
    let recorded = &crate::audit::events(&dir, MAPS, 1).await[0]["annotations"];
    assert_eq!(recorded["soft.example.com/count"], "has 0");
    assert_eq!(recorded["soft.example.com/nothing"], Value::Null);
    let failure =
        recorded["validation.policy.admission.k8s.io/validation_failure"].as_str().expect("a failure");
    let failure: Value = serde_json::from_str(failure).expect("JSON");
    assert_eq!(
        failure,
        json!([{
            "message": "empty", "policy": "soft.example.com", "binding": "soft.example.com-binding",
            "expressionIndex": 0, "validationActions": ["Warn", "Audit"],
        }])
    );
}

#[tokio::test]
async fn expressions_see_the_request_the_namespace_and_what_the_user_may_do() {
    let client = Client::start().await;
    validating(
        &client,
        "context",
        json!({"validations": [
            {"expression": "request.userInfo.username == 'tester' && request.operation in ['CREATE', 'UPDATE']"},
            {"expression": "namespaceObject.metadata.name == request.namespace && namespaceObject.status.phase == 'Active'"},
            {"expression": "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"},
            {"expression": "authorizer.requestResource.check('delete').allowed()"},
            {"expression": "!authorizer.serviceAccount('default', 'default').path('/metrics').check('get').allowed()"},
            {"expression": "request.operation == 'CREATE' ? oldObject == null : oldObject.metadata.name == object.metadata.name"},
        ]}),
        json!({}),
    )
    .await;
    let (code, created) = client.create(MAPS, &map("a", json!({}))).await;
    assert_eq!(code, 201, "{created}");
    let patch = json!({"data": {"a": "b"}});
    assert_eq!(client.patch(&format!("{MAPS}/a"), "application/merge-patch+json", &patch).await.0, 200);
}

#[tokio::test]
async fn selectors_names_and_exclusions_narrow_a_policy() {
    let client = Client::start().await;
    let rule = |names: Value| {
        json!({
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"],
            "resourceNames": names,
        })
    };
    let spec = json!({
        "matchConstraints": {
            "resourceRules": [rule(json!([]))], "excludeResourceRules": [rule(json!(["spared"]))],
            "objectSelector": {"matchExpressions": [{"key": "exempt", "operator": "DoesNotExist"}]},
        },
        "validations": [{"expression": "false", "message": "no"}],
    });
    let bound = json!({"matchResources": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    }});
    validating(&client, "narrow", spec, bound).await;
    assert_eq!(client.create(MAPS, &map("a", json!({}))).await.0, 422);
    assert_eq!(client.create(MAPS, &map("spared", json!({}))).await.0, 201);
    assert_eq!(client.delete(&format!("{MAPS}/spared")).await.0, 200);
    let mut labelled = map("b", json!({}));
    labelled["metadata"]["labels"] = json!({"exempt": ""});
    assert_eq!(client.create(MAPS, &labelled).await.0, 201);
    assert_eq!(client.create("/api/v1/namespaces/kube-public/configmaps", &map("a", json!({}))).await.0, 201);
}

#[tokio::test]
async fn costs_and_chains_of_variables_are_bounded() {
    let client = Client::start().await;
    let chain: Vec<Value> = (0..300)
        .map(|i| match i {
            0 => json!({"name": "v0", "expression": "1"}),
            _ => json!({"name": format!("v{i}"), "expression": format!("variables.v{} + 1", i - 1)}),
        })
        .collect();
    let spec = json!({"variables": chain, "validations": [{"expression": "variables.v299 == 300"}]});
    validating(&client, "chain", spec, json!({})).await;
    let (code, created) = client.create(MAPS, &map("a", json!({}))).await;
    assert_eq!(code, 201, "{created}");
    // Each expression is cheap enough, all of them together are not.
    let items = "[0,1,2,3,4,5,6,7,8,9]";
    let loops =
        format!("{items}.all(a, {items}.all(b, {items}.all(c, {items}.all(d, {items}.all(e, a >= 0)))))");
    let spec = json!({"validations": vec![json!({"expression": loops}); 40]});
    validating(&client, "loops", spec, json!({})).await;
    let (code, refused) = client.create(MAPS, &map("b", json!({}))).await;
    assert_eq!(code, 422);
    let text = refused["message"].as_str().expect("a message");
    assert!(text.contains("running out of cost budget"), "{text}");
}

#[tokio::test]
async fn types_are_checked_against_the_schemas_of_the_matched_resources() {
    let client = Client::start().await;
    let spec = |expression: &str| {
        json!({
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["*"],
            }]},
            "validations": [{"expression": expression, "messageExpression": "'got ' + string(object.spec.replicas)"}],
        })
    };
    let path = format!("{GROUP}/validatingadmissionpolicies");
    for (name, expression) in [
        ("right", "object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'"),
        ("wrong", "object.spec.replicas > '1'"),
        ("unknown", "object.spec.replica > 1"),
    ] {
        let object = policy("ValidatingAdmissionPolicy", name, spec(expression));
        let (code, created) = client.create(&path, &object).await;
        assert_eq!(code, 201, "{created}");
    }
    let checked = async |name: &str| {
        let checked =
            |policy: &Value| policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        client.until(&format!("{path}/{name}"), |(_, policy)| checked(policy)).await.1["status"].clone()
    };
    assert_eq!(checked("right").await["typeChecking"], json!({}));
    let warnings = &checked("wrong").await["typeChecking"]["expressionWarnings"];
    assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings}");
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[0].expression");
    let text = warnings[0]["warning"].as_str().expect("a warning");
    assert!(text.starts_with("apps/v1, Kind=Deployment: ERROR: <input>:1:22: "), "{text}");
    assert!(text.contains("found no matching overload for '_>_' applied to '(int, string)'"), "{text}");
    let warnings = &checked("unknown").await["typeChecking"]["expressionWarnings"];
    assert!(warnings[0]["warning"].as_str().expect("a warning").contains("undefined field 'replica'"));
}

#[tokio::test]
async fn a_mutation_merges_a_configuration_or_applies_a_patch() {
    let client = Client::start().await;
    let apply = |expression: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    mutating(
        &client,
        "label",
        json!({"mutations": [
            apply("Object{metadata: Object.metadata{labels: {'by': request.userInfo.username}}}"),
            {"patchType": "JSONPatch", "jsonPatch": {"expression":
                "has(object.data) ? [JSONPatch{op: 'test', path: '/data/' + jsonpatch.escapeKey('a/b'), value: 'x'}, \
                  JSONPatch{op: 'add', path: '/data/seen', value: object.metadata.labels['by']}] : []"}},
        ]}),
    )
    .await;
    let (code, created) = client.create(MAPS, &map("a", json!({"keep": "1"}))).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["metadata"]["labels"], json!({"by": "tester"}));
    assert_eq!(created["data"], json!({"keep": "1"}), "a test that does not hold leaves the object alone");
    let mut with_key = map("b", json!({}));
    with_key["data"] = json!({"keep": "1"});
    with_key["binaryData"] = json!({});
    assert_eq!(client.create(MAPS, &with_key).await.0, 201);

    // A field that the kind does not have.
    let unknown = json!({"patchType": "JSONPatch", "jsonPatch": {"expression":
        "object.metadata.name == 'odd' ? [JSONPatch{op: 'add', path: '/odd', value: 1}] : []"}});
    mutating(&client, "odd", json!({"mutations": [unknown]})).await;
    let (code, refused) = client.create(MAPS, &map("odd", json!({}))).await;
    let text = "Internal error occurred: strict decoding error: unknown field \"odd\"";
    assert_eq!((code, &refused["message"]), (500, &json!(text)));

    // What fails names the policy; a missing field is an error, not a change.
    mutating(&client, "broken", json!({"mutations": [apply("Object{data: object.missing}")]})).await;
    let (code, refused) = client.create(MAPS, &map("c", json!({}))).await;
    assert_eq!((code, &refused["reason"]), (403, &json!("Invalid")));
    let text = refused["message"].as_str().expect("a message");
    assert!(
        text.starts_with("policy 'broken' with binding 'broken-binding' denied request: expression"),
        "{text}"
    );
}

#[tokio::test]
async fn a_configuration_may_not_replace_atomic_parts_or_name_a_wrong_type() {
    let client = Client::start().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = |name: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i", "args": ["1"]}]},
            }},
        })
    };
    let spec = |expression: &str| {
        json!({
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                "operations": ["CREATE"],
            }]},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        })
    };
    mutating(&client, "replicas", spec("Object{spec: Object.spec{replicas: 3}}")).await;
    let (code, created) = client.create(deployments, &deployment("a")).await;
    assert_eq!((code, &created["spec"]["replicas"]), (201, &json!(3)));
    for (name, expression, wanted) in [
        (
            "atomic",
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{\
               containers: [Object.spec.template.spec.containers{name: 'c', args: ['2']}]}}}}",
            "may not mutate atomic arrays, maps or structs: .spec.template.spec.containers[0].args",
        ),
        (
            "wrong-type",
            "Object{spec: Object.wrong{replicas: 3}}",
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\"",
        ),
        (
            "unknown-field",
            "Object{spec: Object.spec{replica: 3}}",
            ".spec.replica: field not declared in schema",
        ),
    ] {
        mutating(&client, name, spec(expression)).await;
        let (code, refused) = client.create(deployments, &deployment(name)).await;
        assert_eq!(code, 403, "{refused}");
        let text = refused["message"].as_str().expect("a message");
        assert!(text.contains(wanted), "{text}");
        assert_eq!(client.delete(&format!("{GROUP}/mutatingadmissionpolicies/{name}")).await.0, 200);
    }
}

#[tokio::test]
async fn a_policy_runs_again_if_a_later_one_changed_the_object() {
    let client = Client::start().await;
    let append = |label: &str| {
        let expression = format!(
            "Object{{metadata: Object.metadata{{labels: {{'trace': object.metadata.?labels.trace.orValue('') + '{label}'}}}}}}"
        );
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
    };
    mutating(&client, "a", json!({"mutations": [append("a")], "reinvocationPolicy": "IfNeeded"})).await;
    mutating(&client, "b", json!({"mutations": [append("b")], "reinvocationPolicy": "Never"})).await;
    mutating(&client, "c", json!({"mutations": [append("c")], "reinvocationPolicy": "IfNeeded"})).await;
    let (code, created) = client.create(MAPS, &map("x", json!({}))).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["metadata"]["labels"]["trace"], "abca");
}

#[tokio::test]
async fn only_who_may_read_parameters_may_refer_to_them() {
    let client = Client::start().await;
    let rule = |resources: Value, groups: Value, verbs: Value| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "author"},
        "rules": [rule(json!(["*"]), json!(["admissionregistration.k8s.io"]), json!(["*"]))],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    assert_eq!(client.create(&format!("{roles}/clusterroles"), &role).await.0, 201);
    let bound = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "author"},
        "subjects": [{"kind": "User", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"},
    });
    assert_eq!(client.create(&format!("{roles}/clusterrolebindings"), &bound).await.0, 201);
    let ann = client.as_user(User::new("ann", ["system:authenticated"]));
    let kind = "ValidatingAdmissionPolicy";
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "validations": [{"expression": "true", "messageExpression": "string(params.data)"}],
    });
    let path = format!("{GROUP}/validatingadmissionpolicies");
    let (code, refused) = ann.create(&path, &policy(kind, "leak", spec.clone())).await;
    assert_eq!(code, 422);
    let text = refused["message"].as_str().expect("a message");
    assert!(text.contains("spec.paramKind: Forbidden: user ann must have \"get\" permission"), "{text}");
    assert_eq!(client.create(&path, &policy(kind, "leak", spec)).await.0, 201);
    let reference =
        json!({"paramRef": {"name": "s", "namespace": "default", "parameterNotFoundAction": "Deny"}});
    let bindings = format!("{GROUP}/validatingadmissionpolicybindings");
    let (code, refused) = ann.create(&bindings, &binding(kind, "leak", reference.clone())).await;
    assert_eq!(code, 422);
    let text = refused["message"].as_str().expect("a message");
    assert!(text.contains("spec.paramRef: Forbidden: user ann does not have \"get\" permission"), "{text}");
    assert_eq!(client.create(&bindings, &binding(kind, "leak", reference)).await.0, 201);
}
