//! `/etc/kubernetes/pki` of a machine, as its API server and etcd use it.

use std::sync::Arc;

use capstan_env::Env;
use capstan_pki::{Authority, Credential, Leaf, Pki, PkiError, PrivateKey, forget_sessions, tls_time};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::Value;

use super::kubeadm::config::service_address;
use crate::request::{Files, KubeadmError, NodeRequest};

/// The TLS configuration of one control plane machine.
pub(super) struct Serving {
    pub(super) api: Arc<ServerConfig>,
    pub(super) etcd: Arc<ServerConfig>,
}

pub(super) fn text<'a>(pki: &'a Files, path: &str) -> Result<&'a str, KubeadmError> {
    let missing = || {
        failed(format!(
            "failed to load certificate: open /etc/kubernetes/pki/{path}: no such file or directory"
        ))
    };
    let bytes = pki.get(path).ok_or_else(missing)?;
    std::str::from_utf8(bytes).map_err(|_| failed(format!("/etc/kubernetes/pki/{path}: no PEM")))
}

/// A certificate with its key, by the path without `.crt` and `.key`.
fn credential(pki: &Files, path: &str) -> Result<Credential, KubeadmError> {
    let (certificate, key) = (text(pki, &format!("{path}.crt"))?, text(pki, &format!("{path}.key"))?);
    Credential::from_pem(certificate, key).map_err(|error| unusable(path, &error))
}

/// The CA and the service account key of a cluster.
pub(super) fn cluster_pki(pki: &Files, env: &Env) -> Result<Arc<Pki>, KubeadmError> {
    let authority = Authority::new(credential(pki, "ca")?);
    let token_key = PrivateKey::from_pem(text(pki, "sa.key")?).map_err(|error| unusable("sa", &error))?;
    Ok(Arc::new(Pki::given(authority, token_key, env.clone())))
}

/// The TLS configuration of a machine, from its certificates. If only the CAs exist, kubeadm signs the rest.
pub(super) fn sign_and_serve(
    pki: &Pki,
    files: &Files,
    configuration: &Value,
    node: &NodeRequest,
    env: &Env,
) -> Result<Serving, KubeadmError> {
    let signed = |authority: &str, leaf: &str, names: Vec<String>| {
        if files.contains_key(&format!("{leaf}.crt")) {
            return credential(files, leaf);
        }
        let authority = Authority::new(credential(files, authority)?);
        authority.issue(env, &Leaf::Server { names }).map_err(|error| unusable(leaf, &error))
    };
    let api = signed("ca", "apiserver", api_names(configuration, node))?;
    let etcd = signed("etcd/ca", "etcd/server", etcd_names(node))?;
    serve_with(pki, &api, files, &etcd, env)
}

fn serve_with(
    pki: &Pki,
    api: &Credential,
    files: &Files,
    etcd: &Credential,
    env: &Env,
) -> Result<Serving, KubeadmError> {
    Ok(Serving {
        api: pki.server_config_with(api).map_err(|error| unusable("apiserver", &error))?,
        etcd: etcd_config(files, etcd, env)?,
    })
}

/// etcd accepts only clients with a certificate of its own CA.
fn etcd_config(files: &Files, serving: &Credential, env: &Env) -> Result<Arc<ServerConfig>, KubeadmError> {
    let broken =
        |what: &dyn std::fmt::Display| failed(format!("failure loading etcd/server certificate: {what}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(credential(files, "etcd/ca")?.certificate).map_err(|error| broken(&error))?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| broken(&error))?;
    let mut config = ServerConfig::builder_with_details(provider, tls_time(env))
        .with_safe_default_protocol_versions()
        .map_err(|error| broken(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![serving.certificate.clone()], serving.key.to_rustls())
        .map_err(|error| broken(&error))?;
    forget_sessions(&mut config);
    Ok(Arc::new(config))
}

/// Names in the certificate of the API server, as kubeadm sets them.
fn api_names(configuration: &Value, node: &NodeRequest) -> Vec<String> {
    let networking = &configuration["networking"];
    let domain = networking["dnsDomain"].as_str().filter(|text| !text.is_empty()).unwrap_or("cluster.local");
    let mut names = vec![
        node.name.clone(),
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
        format!("kubernetes.default.svc.{domain}"),
        node.address.to_string(),
        service_address(configuration, 1),
    ];
    if let Some(endpoint) = configuration["controlPlaneEndpoint"].as_str().filter(|text| !text.is_empty()) {
        names.push(endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host).to_owned());
    }
    let more = configuration["apiServer"]["certSANs"].as_array().into_iter().flatten();
    names.extend(more.filter_map(Value::as_str).map(str::to_owned));
    names.sort();
    names.dedup();
    names
}

fn etcd_names(node: &NodeRequest) -> Vec<String> {
    ["localhost", "127.0.0.1", "::1", &node.name, &node.address.to_string()].map(str::to_owned).to_vec()
}

fn unusable(path: &str, error: &PkiError) -> KubeadmError {
    failed(format!("failure loading {path} certificate: {error}"))
}

fn failed(why: String) -> KubeadmError {
    KubeadmError { phase: "certs", why }
}
