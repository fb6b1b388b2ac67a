//! Attempts to get rights: forged tokens, grants, impersonation, paths that lie about their scope.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};

use super::{Attempt, Target, refused};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub const ALL: &[Attempt] = &[
    Attempt {
        name: "forged tokens",
        expected: "tokens without a signature, with another one, or of another issuer are 401",
        run: |target| Box::pin(forged_tokens(target)),
    },
    Attempt {
        name: "role over everything",
        expected: "a namespace admin cannot grant what the admin lacks, and a Role of many products is cheap",
        run: |target| Box::pin(escalation(target)),
    },
    Attempt {
        name: "binding to cluster-admin",
        expected: "binding a role needs its rights or the verb bind",
        run: |target| Box::pin(binding(target)),
    },
    Attempt {
        name: "impersonation",
        expected: "no impersonation without the verb, whatever the headers",
        run: |target| Box::pin(impersonation(target)),
    },
    Attempt {
        name: "cluster-scoped objects below a namespace",
        expected: "rights in a namespace reach nothing outside of it",
        run: |target| Box::pin(scope(target)),
    },
    Attempt {
        name: "paths in disguise",
        expected: "encoded, doubled and dotted paths lead nowhere else",
        run: |target| Box::pin(paths(target)),
    },
    Attempt {
        name: "certificate for system:masters",
        expected: "a request for a client certificate of that group is rejected",
        run: |target| Box::pin(masters(target)),
    },
    Attempt {
        name: "forged continue token",
        expected: "a token leads to nothing outside of its list",
        run: |target| Box::pin(continue_token(target)),
    },
    Attempt {
        name: "anonymous requests",
        expected: "health and version are public, everything else is not",
        run: |target| Box::pin(anonymous(target)),
    },
];

fn token(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    format!("{}.{}.{}", part(header), part(claims), BASE64.encode(signature))
}

async fn forged_tokens(target: &Target) -> Result<()> {
    let path = "/api/v1/namespaces/kube-system/serviceaccounts/default/token";
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let real = target.api.post(path, &body).await?.success()?;
    let real = real["status"]["token"].as_str().unwrap_or_default().to_owned();
    let parts: Vec<&str> = real.split('.').collect();
    ensure!(parts.len() == 3, "no token");
    let claims: Value = serde_json::from_slice(&BASE64.decode(parts[1])?)?;
    let mut other = claims.clone();
    other["sub"] = "system:serviceaccount:kube-system:clusterrole-aggregation-controller".into();
    let payload = BASE64.encode(other.to_string());
    let none = |alg: &str| token(&json!({"alg": alg, "typ": "JWT"}), &claims, b"");
    let forged = [
        none("none"),
        none("None"),
        none("HS256"),
        token(&json!({"alg": "HS256"}), &claims, &[0; 32]),
        format!("{}.{payload}.{}", parts[0], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}.{}", parts[0], parts[1], BASE64.encode([0; 64])),
        format!("{}.{}.{}", parts[0], parts[1], BASE64.encode([0; 256])),
        "a.b.c".to_owned(),
        ".".repeat(10_000),
    ];
    for forged in forged {
        let headers = [("authorization", format!("Bearer {forged}"))];
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply = target
            .anonymous
            .send(http::Method::GET, "/api/v1/namespaces", &headers, bytes::Bytes::new())
            .await?;
        refused(&forged[..forged.len().min(40)], &reply, &[401])?;
    }
    Ok(())
}

async fn escalation(target: &Target) -> Result<()> {
    target.namespace_of("grower", "escalation", "admin").await?;
    let names = |prefix: &str| (0..60).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let wide = json!({
        "metadata": {"name": "wide"},
        "rules": [{"apiGroups": names("g"), "resources": names("r"), "verbs": names("v"), "resourceNames": names("n")}],
    });
    let everything = json!({
        "metadata": {"name": "everything"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    let path = format!("{RBAC}/namespaces/escalation/roles");
    for role in [wide, everything] {
        refused("a Role", &target.send_as("grower", "POST", &path, Some(role)).await?, &[403, 422])?;
    }
    Ok(())
}

async fn binding(target: &Target) -> Result<()> {
    target.namespace_of("binder", "binding", "admin").await?;
    let binding = |kind: &str, name: &str| {
        json!({
            "metadata": {"name": "grab"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "binder"}],
        })
    };
    let path = format!("{RBAC}/namespaces/binding/rolebindings");
    let to_admin = Some(binding("ClusterRole", "cluster-admin"));
    refused("RoleBinding", &target.send_as("binder", "POST", &path, to_admin.clone()).await?, &[403])?;
    let path = format!("{RBAC}/clusterrolebindings");
    refused("ClusterRoleBinding", &target.send_as("binder", "POST", &path, to_admin).await?, &[403])
}

async fn impersonation(target: &Target) -> Result<()> {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let made = target.api.post(path, &body).await?.success()?;
    let bearer = format!("Bearer {}", made["status"]["token"].as_str().unwrap_or_default());
    let tries: [&[(&str, &str)]; 6] = [
        &[("impersonate-user", "admin")],
        &[("impersonate-user", "system:admin"), ("impersonate-group", "system:masters")],
        &[("impersonate-group", "system:masters")],
        &[("impersonate-uid", "1")],
        &[("impersonate-extra-scopes", "x")],
        &[("impersonate-user", "system:serviceaccount:kube-system:default")],
    ];
    for headers in tries {
        let mut headers = headers.to_vec();
        headers.push(("authorization", bearer.as_str()));
        let reply = target
            .anonymous
            .send(http::Method::GET, "/api/v1/secrets", &headers, bytes::Bytes::new())
            .await?;
        refused("impersonation", &reply, &[400, 403, 500])?;
    }
    Ok(())
}

async fn scope(target: &Target) -> Result<()> {
    target.namespace_of("tenant", "foo", "cluster-admin").await?;
    target.api.post("/api/v1/namespaces", &json!({"metadata": {"name": "bar"}})).await?;
    let patch = Some(json!({"metadata": {"labels": {"x": "y"}}}));
    for (method, path) in [
        ("GET", "/api/v1/namespaces/foo/namespaces"),
        ("GET", "/api/v1/namespaces/foo/namespaces/bar"),
        ("DELETE", "/api/v1/namespaces/foo/namespaces/bar"),
        ("DELETE", "/api/v1/namespaces/foo/namespaces"),
        ("PATCH", "/api/v1/namespaces/foo/namespaces/bar/status"),
        ("PATCH", "/api/v1/namespaces/foo/nodes/n/status"),
        ("PATCH", "/apis/apiextensions.k8s.io/v1/namespaces/foo/customresourcedefinitions/x/status"),
        ("PATCH", "/apis/certificates.k8s.io/v1/namespaces/foo/certificatesigningrequests/n/approval"),
        ("POST", "/apis/authorization.k8s.io/v1/namespaces/foo/subjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/namespaces/foo/tokenreviews"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/foo/clusterroles"),
        ("GET", "/api/v1/watch/namespaces/foo/namespaces"),
        ("GET", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/namespaces/bar"),
        ("GET", "/api/v1/namespaces/bar/secrets"),
    ] {
        let body = if method == "PATCH" || method == "POST" { patch.clone() } else { None };
        let reply = target.send_as("tenant", method, path, body).await?;
        refused(&format!("{method} {path}"), &reply, &[403, 404, 405])?;
    }
    let bar = target.api.get("/api/v1/namespaces/bar").await?.success()?;
    ensure!(bar["status"]["phase"] == "Active", "bar is gone");
    Ok(())
}

async fn paths(target: &Target) -> Result<()> {
    target.namespace_of("walker", "walk", "cluster-admin").await?;
    for path in [
        "/api/v1/namespaces/walk/../bar/secrets",
        "/api/v1/namespaces/walk/%2e%2e/bar/secrets",
        "/api/v1/namespaces/walk%2f..%2fbar/secrets",
        "/api/v1/namespaces//secrets",
        "//api/v1/secrets",
        "/api//v1/secrets",
        "/api/v1/namespaces/walk/secrets/..%2f..%2fbar%2fsecrets",
        "/api/v1/./secrets",
    ] {
        let reply = target.send_as("walker", "GET", path, None).await?;
        refused(path, &reply, &[301, 400, 403, 404])?;
    }
    for path in ["/version", "/api", "/api/v1"] {
        refused(path, &target.send("POST", path, &[], String::new()).await?, &[405])?;
    }
    Ok(())
}

async fn masters(target: &Target) -> Result<()> {
    let key = rcgen::KeyPair::generate()?;
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "me");
    let request = parameters.serialize_request(&key)?.pem()?;
    let body = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "grab"},
        "spec": {
            "request": STANDARD.encode(request), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    });
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    refused("a request", &target.api.post(path, &body).await?, &[403])
}

async fn continue_token(target: &Target) -> Result<()> {
    target.namespace_of("reader", "read", "view").await?;
    for start in ["../kube-system/x", "/../../secrets/x", "kube-system/x", "../../../etc/passwd", "."] {
        let token = BASE64.encode(json!({"v": "meta.k8s.io/v1", "rv": -1, "start": start}).to_string());
        let path = format!("/api/v1/namespaces/read/configmaps?continue={token}");
        let reply = target.send_as("reader", "GET", &path, None).await?;
        if reply.status == 200 {
            for item in reply.json()?["items"].as_array().into_iter().flatten() {
                ensure!(
                    item["metadata"]["namespace"] == "read",
                    "{start} leads to another namespace: {item}"
                );
            }
        } else {
            refused(start, &reply, &[400])?;
        }
    }
    Ok(())
}

async fn anonymous(target: &Target) -> Result<()> {
    for (path, code) in [
        ("/healthz", 200),
        ("/version", 200),
        ("/api", 403),
        ("/openapi/v2", 403),
        ("/metrics", 403),
        ("/api/v1/secrets", 403),
        ("/capstan/v1/backup", 403),
        ("/apis/parity.example.com/v1/widgets", 403),
    ] {
        refused(path, &target.anonymous.get(path).await?, &[code])?;
    }
    Ok(())
}
