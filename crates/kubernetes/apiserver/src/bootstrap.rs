//! The objects every cluster has from its first moment.

use serde_json::{Value, json};

use crate::auth::rbac;
use crate::http::options::{WriteKind, WriteOptions};
use crate::object::Meta;
use crate::server::Server;
use crate::status::Result;
use crate::verbs::create::create_object;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates what is missing. Safe to call at every start.
pub(crate) async fn bootstrap(server: &Server) -> Result<()> {
    for namespace in NAMESPACES {
        ensure(
            server,
            "",
            "namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        )
        .await?;
    }
    for object in rbac::bootstrap_policy() {
        let plural = format!("{}s", object["kind"].as_str().unwrap_or_default().to_lowercase());
        ensure(server, "rbac.authorization.k8s.io", &plural, object.clone()).await?;
    }
    ensure(server, "", "services", kubernetes_service()).await
}

/// The service clients look for the API under: the first address of upstream's default service range.
fn kubernetes_service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP",
        },
    })
}

async fn ensure(server: &Server, group: &str, plural: &str, mut object: Value) -> Result<()> {
    let shared = server.shared();
    let registry = shared.registry.load_full();
    let Some(resource) = registry.find(group, "v1", plural).cloned() else { return Ok(()) };
    let key = crate::object::key(object.namespace(), object.name());
    if shared.store.get(&resource.bucket, &key).is_some() {
        return Ok(());
    }
    let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
    let call = shared.internal_call("system:apiserver", resource.clone(), &namespace, &name);
    // What is built here has only known fields; settling fills in the defaults.
    let _ = crate::strategy::settle(&resource, &mut object, &mut Vec::new());
    let object = crate::ownership::update(&call, None, object, &call.manager("")).await?;
    match create_object(&call, object, &WriteOptions::default(), WriteKind::Create).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}
