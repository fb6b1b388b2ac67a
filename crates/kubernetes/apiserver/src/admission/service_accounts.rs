//! Service accounts of Pods: each Pod has one that exists, and its containers mount a token of it.

use std::sync::Arc;
use std::time::Duration;

use capstan_env::Env;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{Admission, AdmissionAttributes, Operation, Representations};
use crate::auth::{ObjectSource, bucket, key};
use crate::status::Result;

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const VOLUME: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Tokens are renewed hourly; the extra seconds identify these volumes, as upstream.
const TOKEN_SECONDS: u32 = 3607;
/// The default account of a new namespace is created a moment after it.
const ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Upstream's plugin of this name, without `enforce-mountable-secrets`.
pub struct ServiceAccountAdmission {
    objects: Arc<dyn ObjectSource>,
    env: Env,
}

impl ServiceAccountAdmission {
    pub fn new(objects: Arc<dyn ObjectSource>, env: Env) -> Arc<Self> {
        Arc::new(Self { objects, env })
    }

    async fn account(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let attempts = if name == DEFAULT { ATTEMPTS } else { 1 };
        for attempt in 0..attempts {
            if attempt > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            if let Some(account) = self.objects.get(bucket::SERVICE_ACCOUNTS, &key(namespace, name)) {
                return Some(account);
            }
        }
        None
    }

    async fn complete(&self, attributes: &mut AdmissionAttributes) -> Result<()> {
        let Some(mut pod) = attributes.object.take() else { return Ok(()) };
        let completed = self.complete_pod(attributes, &mut pod).await;
        attributes.object = Some(pod);
        completed.map_err(|why| attributes.forbidden(why))
    }

    async fn complete_pod(&self, attributes: &AdmissionAttributes, pod: &mut Value) -> Result<(), String> {
        if !pod["metadata"]["annotations"][MIRROR].is_null() {
            return check_mirror(pod);
        }
        let name = pod["spec"]["serviceAccountName"].as_str().filter(|name| !name.is_empty());
        let name = name.unwrap_or(DEFAULT).to_owned();
        let namespace = &attributes.namespace;
        pod["spec"]["serviceAccountName"] = name.as_str().into();
        // The older name of the field always has the same value.
        pod["spec"]["serviceAccount"] = name.as_str().into();
        let Some(account) = self.account(namespace, &name).await else {
            return Err(format!(
                "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
            ));
        };
        let mounts = [&pod["spec"], &*account];
        let mounts = mounts.iter().find_map(|object| object["automountServiceAccountToken"].as_bool());
        if mounts.unwrap_or(true) {
            self.mount_token(pod);
        }
        if pod["spec"]["imagePullSecrets"].as_array().is_none_or(Vec::is_empty)
            && let Some(secrets) = account["imagePullSecrets"].as_array().filter(|all| !all.is_empty())
        {
            pod["spec"]["imagePullSecrets"] = secrets.clone().into();
        }
        Ok(())
    }

    /// Mounts a token in every container that has nothing at its place.
    fn mount_token(&self, pod: &mut Value) {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let present = volumes
            .filter_map(|volume| volume["name"].as_str())
            .find(|name| name.starts_with(VOLUME))
            .map(str::to_owned);
        let name = present.clone().unwrap_or_else(|| format!("{VOLUME}{}", self.env.name_suffix()));
        let mut needed = false;
        for list in ["initContainers", "containers"] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let mounts = container["volumeMounts"].as_array().into_iter().flatten();
                if mounts.into_iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                    continue;
                }
                let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
                push(&mut container["volumeMounts"], mount);
                needed = true;
            }
        }
        if needed && present.is_none() {
            push(&mut pod["spec"]["volumes"], token_volume(&name));
        }
    }
}

/// Appends to a list that may be absent.
pub(super) fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]}},
            ],
        },
    })
}

/// Mirror Pods show what a kubelet runs by itself: they have no rights in the cluster.
fn check_mirror(pod: &Value) -> Result<(), String> {
    let spec = &pod["spec"];
    if spec["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty()) {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    if mentions(spec, &["secretName", "secretKeyRef", "secretRef", "imagePullSecrets"]) {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    if mentions(spec, &["serviceAccountToken"]) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned());
    }
    Ok(())
}

/// Whether an object has one of these fields at any depth. Bodies have a limited depth.
fn mentions(value: &Value, fields: &[&str]) -> bool {
    match value {
        Value::Object(map) => {
            map.iter().any(|(key, value)| fields.contains(&key.as_str()) || mentions(value, fields))
        }
        Value::Array(items) => items.iter().any(|item| mentions(item, fields)),
        _ => false,
    }
}

/// Whether the request creates a Pod.
pub(super) fn creates_pod(attributes: &AdmissionAttributes) -> bool {
    attributes.operation == Operation::Create && is_pod(attributes)
}

/// Whether the request is for a Pod itself.
pub(super) fn is_pod(attributes: &AdmissionAttributes) -> bool {
    attributes.resource.group.is_empty()
        && attributes.resource.resource == "pods"
        && attributes.subresource.is_empty()
}

impl Admission for ServiceAccountAdmission {
    fn mutate<'a>(
        &'a self,
        attributes: &'a mut AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        if creates_pod(attributes) {
            Box::pin(self.complete(attributes))
        } else {
            Box::pin(std::future::ready(Ok(())))
        }
    }
}
