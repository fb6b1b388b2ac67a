//! The discovery kubeconfig of a joining machine, used instead of a bootstrap token.

use capstan_capi_types::bootstrap::{
    File, FileDiscovery, KubeConfigAuthExec, KubeConfigAuthProvider, KubeConfigCluster,
};
use serde_json::{Map, Value, json};

use crate::yaml;

/// The kubeconfig as a file, if the discovery configures one. Server and CA must be set already.
pub fn discovery_kubeconfig(discovery: &FileDiscovery) -> Option<File> {
    let config = &discovery.kube_config;
    if *config == Default::default() {
        return None;
    }
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "default",
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "clusters": [{"name": "default", "cluster": cluster(&config.cluster)}],
        "users": [{"name": "default", "user": user(&config.user.auth_provider, &config.user.exec)}],
    });
    Some(File {
        path: discovery.kube_config_path.clone(),
        owner: "root:root".to_owned(),
        permissions: "0640".to_owned(),
        content: yaml::document(&document),
        ..File::default()
    })
}

fn cluster(cluster: &KubeConfigCluster) -> Value {
    let mut out = Map::new();
    for (key, value) in [
        ("server", &cluster.server),
        ("tls-server-name", &cluster.tls_server_name),
        ("certificate-authority-data", &cluster.certificate_authority_data),
        ("proxy-url", &cluster.proxy_url),
    ] {
        if !value.is_empty() {
            out.insert(key.to_owned(), value.clone().into());
        }
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        out.insert("insecure-skip-tls-verify".to_owned(), true.into());
    }
    out.into()
}

fn user(provider: &KubeConfigAuthProvider, exec: &KubeConfigAuthExec) -> Value {
    let mut out = Map::new();
    if *provider != KubeConfigAuthProvider::default() {
        out.insert("auth-provider".to_owned(), json!({"name": provider.name, "config": provider.config}));
    }
    if *exec != KubeConfigAuthExec::default() {
        let version = match exec.api_version.as_str() {
            "" => "client.authentication.k8s.io/v1",
            version => version,
        };
        let env: Vec<Value> =
            exec.env.iter().map(|env| json!({"name": env.name, "value": env.value})).collect();
        out.insert(
            "exec".to_owned(),
            json!({
                "command": exec.command, "args": exec.args, "env": env, "apiVersion": version,
                "provideClusterInfo": exec.provide_cluster_info.unwrap_or(false), "interactiveMode": "Never",
            }),
        );
    }
    out.into()
}
