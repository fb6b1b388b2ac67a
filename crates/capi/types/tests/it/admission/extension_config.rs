//! ExtensionConfigs.

use super::*;

fn config() -> Value {
    json!({
        "metadata": { "name": "ext" },
        "spec": { "clientConfig": { "url": "https://example.org/base" }, "namespaceSelector": {} },
    })
}

#[test]
fn extension_configs() {
    let service = |service: Value| json!({ "spec": { "clientConfig": { "url": null, "service": service } } });
    let with_url = |url: &str| json!({ "spec": { "clientConfig": { "url": url } } });
    created(
        RUNTIME,
        "ExtensionConfig",
        &config(),
        &[
            (
                json!({ "spec": { "clientConfig": { "url": null } } }),
                &["spec.clientConfig: Required value: either url or service must be defined"],
            ),
            (
                json!({ "spec": { "clientConfig": { "service": { "name": "s", "namespace": "n" } } } }),
                &["spec.clientConfig: Forbidden: only one of url or service can be defined"],
            ),
            (
                with_url("http://example.org"),
                &[
                    "spec.clientConfig.url: Invalid value: \"http://example.org\": 'https' is the only allowed URL scheme, e.g. https://example.com",
                ],
            ),
            (
                with_url("example"),
                &[
                    "spec.clientConfig.url: Invalid value: \"example\": must be a valid URL, e.g. https://example.com: invalid URI for request",
                ],
            ),
            (
                with_url("https://user:password@example.org"),
                &[
                    "spec.clientConfig.url: Invalid value: \"https://user:password@example.org\": user information, query parameters and fragments are not allowed",
                ],
            ),
            (service(json!({ "name": "s", "namespace": "n", "path": "/p", "port": 8443 })), &[]),
            (
                service(json!({ "name": "s", "namespace": "n", "path": "p", "port": 70000 })),
                &[
                    "spec.clientConfig.service.path: Invalid value: \"p\": must start with \"/\" to be a valid URL path",
                    "spec.clientConfig.service.port: Invalid value: 70000: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                json!({ "spec": { "namespaceSelector": null } }),
                &["spec.namespaceSelector: Required value: must be defined"],
            ),
        ],
    );
    let dotted = patched(&config(), &json!({ "metadata": { "name": "a.b" } }));
    let errors = errors_of(RUNTIME, "ExtensionConfig", &dotted, None, &Features::ALL);
    assert!(errors[0].contains("ExtensionConfig name should be a valid DNS1123 label name"), "{errors:?}");
    let off = errors_of(RUNTIME, "ExtensionConfig", &config(), None, &Features::UPSTREAM);
    assert_eq!(off, ["spec: Forbidden: can be set only if the RuntimeSDK feature flag is enabled"]);
}

#[test]
fn defaults_of_extension_configs() {
    let given = json!({ "spec": { "clientConfig": { "service": { "name": "s", "namespace": "n" } } } });
    let defaulted = defaulted(RUNTIME, "ExtensionConfig", given, None);
    assert_eq!(defaulted["spec"]["clientConfig"]["service"]["port"], 443);
    assert_eq!(defaulted["spec"]["namespaceSelector"], json!({}));
}

#[test]
fn the_secret_of_the_authority_counts_as_used() {
    let annotations = json!({ "runtime.cluster.x-k8s.io/inject-ca-from-secret": "ns/ca" });
    let config = patched(&config(), &json!({ "metadata": { "annotations": annotations } }));
    let used = (rules(RUNTIME, "ExtensionConfig").expect("rules").secrets)(&config).expect("Secrets");
    assert_eq!(used.iter().map(|it| it.secret.to_string()).collect::<Vec<_>>(), ["ns/ca"]);
}
