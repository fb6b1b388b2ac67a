//! Registration of the webhooks: conversion in definitions, and webhook configurations.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_capi_plane::Rules;
use capstan_controller::{Client, KindName};
use capstan_object::{Key, Kind, Scope};
use serde_json::{Value, json};

/// Same as upstream; shorter than the API server's own limit.
const TIMEOUT_SECONDS: u32 = 10;

/// How an API server reaches the webhooks.
#[derive(Debug, Clone)]
pub enum WebhookAddress {
    /// Namespace and name of a Service.
    Service(String, String),
    Url {
        /// Without a path.
        url: String,
        host: String,
    },
}

impl WebhookAddress {
    /// `--webhook-url`, else the manager's Service if it runs in the cluster, else loopback.
    pub fn new(args: &super::Args, name: &str, in_cluster: bool) -> Result<Self> {
        let url = match &args.webhook_url {
            Some(url) => url.clone(),
            None if in_cluster => {
                return Ok(Self::Service(args.system_namespace.clone(), format!("{name}-webhooks")));
            }
            None => format!("https://127.0.0.1:{}", args.webhook_port),
        };
        let parsed = url.parse::<http::Uri>().ok();
        let host = parsed.as_ref().and_then(http::Uri::host).map(str::to_owned);
        let host = host.with_context(|| format!("{url} has no host: use --webhook-url https://host:port"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self::Url { url: url.trim_end_matches('/').to_owned(), host })
    }

    /// Names in the serving certificate.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service(namespace, name) => {
                let name = format!("{name}.{namespace}.svc");
                vec![format!("{name}.cluster.local"), name]
            }
            Self::Url { host, .. } => vec![host.clone()],
        }
    }

    /// The address to listen on: loopback if the webhooks are reached over loopback.
    pub fn bind(&self) -> Ipv4Addr {
        match self {
            Self::Url { host, .. } if host.parse().is_ok_and(|it: IpAddr| it.is_loopback()) => {
                Ipv4Addr::LOCALHOST
            }
            _ => Ipv4Addr::UNSPECIFIED,
        }
    }

    fn client_config(&self, path: &str, authorities: &str) -> Value {
        let bundle = STANDARD.encode(authorities);
        match self {
            Self::Service(namespace, name) => json!({
                "service": {"namespace": namespace, "name": name, "path": path, "port": 443},
                "caBundle": bundle,
            }),
            Self::Url { url, .. } => json!({"url": format!("{url}{path}"), "caBundle": bundle}),
        }
    }
}

pub mod path {
    pub const DEFAULT: &str = "/default";
    pub const VALIDATE: &str = "/validate";
    pub const CONVERT: &str = "/convert";
}

/// Sets the conversion webhook in definitions with several versions.
pub fn set_conversion(definitions: &mut [Value], address: &WebhookAddress, authorities: &str) {
    for definition in definitions {
        let versions = definition["spec"]["versions"].as_array().map_or(0, Vec::len);
        if versions > 1 {
            definition["spec"]["conversion"] = json!({
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": address.client_config(path::CONVERT, authorities),
                },
            });
        }
    }
}

/// Writes the webhook configurations of the kinds in `rules`, if they differ.
pub async fn register(
    client: &Client,
    name: &str,
    rules: &Rules,
    address: &WebhookAddress,
    authorities: &str,
) -> Result<()> {
    let kinds = rules.kinds();
    let defaults: Vec<Value> = kinds
        .iter()
        .map(|kind| webhook("default", kind, "", address.client_config(path::DEFAULT, authorities)))
        .collect();
    let validations: Vec<Value> = kinds
        .iter()
        .flat_map(|kind| {
            let config = || address.client_config(path::VALIDATE, authorities);
            let scale = (kind.kind == "KubeadmControlPlane")
                .then(|| webhook("validate-scale", kind, "/scale", config()));
            let mut validate = webhook("validate", kind, "", config());
            if rules.validates_deletion(kind) {
                validate["rules"][0]["operations"] = json!(["CREATE", "UPDATE", "DELETE"]);
            }
            [Some(validate), scale].into_iter().flatten()
        })
        .collect();
    for (kind_name, plural, webhooks) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", defaults),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", validations),
    ] {
        let mut kind = KindName::namespaced("admissionregistration.k8s.io", "v1", kind_name, plural);
        kind.scope = Scope::Cluster;
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind_name,
            "metadata": {"name": name}, "webhooks": webhooks,
        });
        let put = put(client, &kind, &Key::new("", name), body).await;
        put.with_context(|| format!("cannot write the {kind_name} {name}"))?;
    }
    Ok(())
}

async fn put(client: &Client, kind: &KindName, key: &Key, mut desired: Value) -> Result<()> {
    let Some(current) = client.get_raw(kind, key).await? else {
        client.create(kind, "", &desired).await?;
        return Ok(());
    };
    let current: Value = current.parse()?;
    if current["webhooks"] != desired["webhooks"] {
        desired["metadata"] = current["metadata"].clone();
        client.replace(kind, key, None, &desired).await?;
    }
    Ok(())
}

/// One webhook, with all defaults of the API server, so that it compares equal to the stored one.
fn webhook(verb: &str, kind: &Kind, subresource: &str, client_config: Value) -> Value {
    let mut webhook = json!({
        "name": format!("{verb}.{}.{}", kind.kind.to_lowercase(), kind.group),
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {}, "objectSelector": {},
        "rules": [{
            "apiGroups": [kind.group], "apiVersions": [kind.version], "operations": ["CREATE", "UPDATE"],
            "resources": [format!("{}{subresource}", kind.plural)], "scope": "*",
        }],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
    });
    if verb == "default" {
        webhook["reinvocationPolicy"] = "Never".into();
    }
    webhook
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definitions_of_several_versions_are_converted() {
        let one = json!({"spec": {"versions": [{"name": "v1"}]}});
        let two = json!({"spec": {"versions": [{"name": "v1"}, {"name": "v2"}]}});
        let mut definitions = [one.clone(), two];
        set_conversion(
            &mut definitions,
            &WebhookAddress::Url { url: "https://h:1".into(), host: "h".into() },
            "pem",
        );
        assert_eq!(definitions[0], one);
        let config = &definitions[1]["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(*config, json!({"url": "https://h:1/convert", "caBundle": "cGVt"}));
    }
}
