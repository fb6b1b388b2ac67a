//! Maintains the `default` ServiceAccount and the `kube-root-ca.crt` ConfigMap in every namespace.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::keyed::{Keyed, Progress};
use crate::call::Call;
use crate::controllers::Committed;
use crate::http::options::{WriteKind, WriteOptions};
use crate::ownership;
use crate::parts::ServerParts;
use crate::pipeline::create_object;
use crate::pipeline::{Change, Step, change};
use crate::status::Result;

const ROOT_CA: &str = "kube-root-ca.crt";

/// The buckets that this controller watches.
pub(crate) fn watches(bucket: &str) -> bool {
    matches!(bucket, "/namespaces" | "/serviceaccounts" | "/configmaps")
}

pub(crate) struct Accounts;

impl Keyed for Accounts {
    const WORK: &'static str = "creating the default objects of a namespace";

    fn initial_keys(&self, parts: &ServerParts) -> BTreeSet<String> {
        parts.store.snapshot("/namespaces").range("", None).map(|e| e.key.to_string()).collect()
    }

    fn on_change(&self, _: &ServerParts, change: &Committed, dirty: &mut BTreeSet<String>) {
        match (&*change.bucket, change.key.split_once('/')) {
            ("/namespaces", None) => {
                dirty.insert(change.key.to_string());
            }
            ("/serviceaccounts", Some((namespace, "default")))
            | ("/configmaps", Some((namespace, ROOT_CA))) => {
                dirty.insert(namespace.to_owned());
            }
            _ => {}
        }
    }

    async fn reconcile(&mut self, parts: &Arc<ServerParts>, namespace: &str) -> Result<Progress> {
        create_defaults(parts, namespace).await?;
        Ok(Progress::Done)
    }
}

async fn create_defaults(parts: &Arc<ServerParts>, namespace: &str) -> Result<()> {
    let Some(entry) = parts.store.get("/namespaces", namespace) else { return Ok(()) };
    if entry.digest().terminating {
        return Ok(());
    }
    let registry = parts.registry.load_full();
    let call = |plural: &str, name: &str| {
        let resource = registry.find("", "v1", plural)?.clone();
        Some(parts.internal_call("system:kube-controller-manager", resource, namespace, name))
    };
    if parts.store.get("/serviceaccounts", &format!("{namespace}/default")).is_none()
        && let Some(call) = call("serviceaccounts", "default")
    {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        });
        ignore_existing(create_object(&call, account, &WriteOptions::default(), WriteKind::Create).await)?;
    }
    if let Some(call) = call("configmaps", ROOT_CA) {
        let wanted = RootCa { pem: parts.root_ca.clone(), namespace: namespace.to_owned() };
        match parts.store.get("/configmaps", &format!("{namespace}/{ROOT_CA}")) {
            Some(entry) => {
                let current: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
                if current["data"]["ca.crt"] != *wanted.pem {
                    change(&call, &wanted, &WriteOptions::default(), WriteKind::Update).await?;
                }
            }
            None => {
                let object = ownership::update(&call, None, wanted.object(), &call.manager("")).await?;
                ignore_existing(
                    create_object(&call, object, &WriteOptions::default(), WriteKind::Create).await,
                )?;
            }
        }
    }
    Ok(())
}

fn ignore_existing<T>(outcome: Result<T>) -> Result<()> {
    match outcome {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

struct RootCa {
    pem: Arc<str>,
    namespace: String,
}

impl RootCa {
    fn object(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": ROOT_CA, "namespace": self.namespace,
                "annotations": {"kubernetes.io/description":
                    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                     endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                     guaranteed across distributions of Kubernetes clusters."},
            },
            "data": {"ca.crt": &*self.pem},
        })
    }
}

impl Change for RootCa {
    fn step(&self, call: &Call, current: &Value) -> Result<Step> {
        let mut object = current.clone();
        object["data"] = json!({"ca.crt": &*self.pem});
        Ok(Step::Write { object, manager: call.manager("") })
    }

    fn create(&self, call: &Call) -> Result<Option<Step>> {
        Ok(Some(Step::Write { object: self.object(), manager: call.manager("") }))
    }
}
