//! Defaults of pods and their parts.

use serde_json::{Value, json};

use super::{Object, child, empty, set, set_number, text};

/// Defaults of a pod that a pod template does not have.
pub(super) fn pod(object: &mut Object) {
    let spec = child(object, "spec");
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(container) = container {
                requests_from_limits(container);
                if host_network {
                    host_ports(container);
                }
            }
        }
    }
    set(spec, "enableServiceLinks", true);
}

fn requests_from_limits(container: &mut Object) {
    let resources = child(container, "resources");
    let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    if !limits.is_empty() {
        let requests = child(resources, "requests");
        for (key, value) in limits {
            requests.entry(key).or_insert(value);
        }
    }
}

fn host_ports(container: &mut Object) {
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port
            && empty(port.get("hostPort"))
            && let Some(number) = port.get("containerPort").cloned()
        {
            port.insert("hostPort".to_owned(), number);
        }
    }
}

pub(super) fn pod_spec(object: &mut Object) {
    set(object, "dnsPolicy", "ClusterFirst");
    set(object, "restartPolicy", "Always");
    set(object, "securityContext", json!({}));
    set(object, "terminationGracePeriodSeconds", 30);
    set(object, "schedulerName", "default-scheduler");
    // The old field name is kept in sync with the new one.
    let account = match text(object, "serviceAccountName") {
        "" => text(object, "serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    if !account.is_empty() {
        object.insert("serviceAccountName".to_owned(), json!(account));
        object.insert("serviceAccount".to_owned(), json!(account));
    }
}

pub(super) fn volume(object: &mut Object) {
    if object.iter().all(|(key, source)| key == "name" || source.is_null()) {
        object.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(Value::Object(image)) = object.get_mut("image") {
        let policy = pull_policy(text(image, "reference"));
        set(image, "pullPolicy", policy);
    }
}

pub(super) fn container(object: &mut Object) {
    let policy = pull_policy(text(object, "image"));
    set(object, "imagePullPolicy", policy);
    set(object, "terminationMessagePath", "/dev/termination-log");
    set(object, "terminationMessagePolicy", "File");
}

pub(super) fn probe(object: &mut Object) {
    set_number(object, "timeoutSeconds", 1);
    set_number(object, "periodSeconds", 10);
    set_number(object, "successThreshold", 1);
    set_number(object, "failureThreshold", 3);
    // A nil service and an empty one are equivalent, but upstream writes it.
    if let Some(Value::Object(grpc)) = object.get_mut("grpc") {
        grpc.entry("service").or_insert_with(|| json!(""));
    }
}

pub(super) fn http_get(object: &mut Object) {
    set(object, "path", "/");
    set(object, "scheme", "HTTP");
}

/// Images with the tag `latest`, or without a tag, are always pulled.
fn pull_policy(image: &str) -> &'static str {
    if latest(image) { "Always" } else { "IfNotPresent" }
}

/// Whether an image reference is valid and its tag is `latest`, explicit or implied.
fn latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let path_start = image.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match image[path_start..].rfind(':') {
        Some(at) => (&image[..path_start + at], &image[path_start + at + 1..]),
        None => (image, "latest"),
    };
    tag == "latest" && valid_name(name)
}

fn valid_name(name: &str) -> bool {
    let (domain, path) = match name.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.bytes().any(|b| b.is_ascii_uppercase()) =>
        {
            (first, rest)
        }
        _ => ("", name),
    };
    let host_ok = domain.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:[]".contains(&b));
    let component_ok = |part: &str| {
        let alnum = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        alnum(part.bytes().next())
            && alnum(part.bytes().last())
            && part.bytes().all(|b| alnum(Some(b)) || b"._-".contains(&b))
    };
    let bare_id = domain.is_empty() && path.len() == 64 && path.bytes().all(|b| b.is_ascii_hexdigit());
    host_ok && !bare_id && path.split('/').all(component_ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_tag_or_digest_are_latest() {
        for (image, wanted) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.25", false),
            ("registry.example.com:5000/a/b", true),
            ("registry.example.com:5000/a/b:1", false),
            ("nginx@sha256:0123456789012345678901234567890123456789012345678901234567890123", false),
            ("", false),
            ("Nginx", false),
            ("a/", false),
        ] {
            assert_eq!(latest(image), wanted, "{image}");
        }
    }
}
