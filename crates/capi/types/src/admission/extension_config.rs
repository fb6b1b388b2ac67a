//! `ExtensionConfig`.

use capstan_object::{Key, LabelSelector};
use capstan_schema::meta;

use super::common::{selector, shown};
use super::{Admission, Features, FieldError, SecretUse};
use crate::runtime::ExtensionConfig;
use crate::runtime::extension_config::INJECT_CA_FROM_SECRET;

/// Port of a Service without one.
const DEFAULT_PORT: i32 = 443;

impl Admission for ExtensionConfig {
    fn default(&mut self, _old: Option<&Self>) -> Result<(), FieldError> {
        self.spec.namespace_selector.get_or_insert_with(LabelSelector::default);
        let service = &mut self.spec.client_config.service;
        if service.is_defined() {
            service.port.get_or_insert(DEFAULT_PORT);
        }
        Ok(())
    }

    fn validate(&self, _old: Option<&Self>, features: &Features) -> Vec<FieldError> {
        if !features.runtime_sdk {
            let message = "can be set only if the RuntimeSDK feature flag is enabled";
            return vec![FieldError::forbidden("spec", message)];
        }
        let mut errors = Vec::new();
        let name = self.metadata.name.as_str();
        let problems = meta::dns1123_label(name);
        if !problems.is_empty() {
            let message = format!(
                "ExtensionConfig name should be a valid DNS1123 label name: [{}]",
                problems.join(" ")
            );
            errors.push(FieldError::invalid("metadata.name", name, message));
        }
        validate_client(self, &mut errors);
        match &self.spec.namespace_selector {
            None => errors.push(FieldError::required("spec.namespaceSelector", "must be defined")),
            Some(labels) => {
                if let Err(problem) = selector(labels) {
                    errors.push(FieldError::invalid("spec.namespaceSelector", shown(labels), problem));
                }
            }
        }
        errors
    }

    fn secrets(&self) -> Vec<SecretUse> {
        let annotation = self.metadata.annotations.get(INJECT_CA_FROM_SECRET);
        let secret = annotation.and_then(|text| text.split_once('/'));
        let used = secret.map(|(namespace, name)| SecretUse {
            path: format!("metadata.annotations[{INJECT_CA_FROM_SECRET}]"),
            secret: Key::new(namespace, name),
        });
        used.into_iter().collect()
    }
}

fn validate_client(config: &ExtensionConfig, errors: &mut Vec<FieldError>) {
    let path = "spec.clientConfig";
    let client = &config.spec.client_config;
    let service = &client.service;
    match (client.url.is_empty(), service.is_defined()) {
        (true, false) => errors.push(FieldError::required(path, "either url or service must be defined")),
        (false, true) => {
            errors.push(FieldError::forbidden(path, "only one of url or service can be defined"));
        }
        _ => {}
    }
    if !client.url.is_empty()
        && let Err(problem) = validate_url(&client.url)
    {
        errors.push(FieldError::invalid(format!("{path}.url"), client.url.as_str(), problem));
    }
    if !service.is_defined() {
        return;
    }
    for (field, value, problems) in [
        ("name", service.name.as_str(), meta::dns1035_label(&service.name)),
        ("namespace", service.namespace.as_str(), meta::dns1123_label(&service.namespace)),
    ] {
        let field = format!("{path}.service.{field}");
        if value.is_empty() {
            errors.push(FieldError::required(field.as_str(), "must not be empty"));
        }
        for problem in problems {
            errors.push(FieldError::invalid(field.as_str(), value, problem));
        }
    }
    if !service.path.is_empty() && !service.path.starts_with('/') {
        errors.push(FieldError::invalid(
            format!("{path}.service.path"),
            service.path.as_str(),
            "must start with \"/\" to be a valid URL path",
        ));
    }
    if let Some(port) = service.port.filter(|port| !(1..=65535).contains(port)) {
        let message = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{path}.service.port"), port, message));
    }
}

/// Only what a call can be made to: no credentials, no query, no fragment.
fn validate_url(url: &str) -> Result<(), String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("must be a valid URL, e.g. https://example.com: invalid URI for request".to_owned());
    };
    if scheme != "https" {
        return Err("'https' is the only allowed URL scheme, e.g. https://example.com".to_owned());
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("must be a valid URL, e.g. https://example.com: host missing or invalid".to_owned());
    }
    match host.contains('@') || rest.contains(['?', '#']) {
        true => Err("user information, query parameters and fragments are not allowed".to_owned()),
        false => Ok(()),
    }
}
