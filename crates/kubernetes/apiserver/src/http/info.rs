//! Attributes of a request from its method and path.

use std::borrow::Cow;

use ::http::{Method, Uri};
use percent_encoding::percent_decode_str;

/// A parsed request, like upstream's `RequestInfo`, for authorization. [`crate::route`] decides whether it is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestInfo {
    pub method: Method,
    pub is_resource: bool,
    /// Whether the path has an empty segment, as in `/api//v1`. Nothing is served there.
    pub has_empty_segment: bool,
    /// Decoded URL path.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, …; the lower-case method for non-resource requests.
    pub verb: Cow<'static, str>,
    pub group: String,
    pub version: String,
    /// Namespace, or empty. For a Namespace it is its own name.
    pub namespace: String,
    /// Whether the path has `namespaces/<namespace>/` before the resource. False for a Namespace itself.
    pub in_namespace: bool,
    /// Plural resource name.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Object name, or empty. For a collection it is the name in its field selector.
    pub name: String,
    /// Whether the path names one object rather than a collection.
    pub is_item: bool,
    /// The rest of the path after the subresource (`proxy` paths), which is never served.
    pub rest: Vec<String>,
}

/// Subresources of namespaces: `/api/v1/namespaces/x/status` is not a namespaced resource.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl RequestInfo {
    pub fn parse(method: &Method, uri: &Uri) -> Self {
        let path = match uri.path().contains('%') {
            true => percent_decode_str(uri.path()).decode_utf8_lossy().into_owned(),
            false => uri.path().to_owned(),
        };
        let mut info = Self { method: method.clone(), verb: lower_case(method), ..Self::default() };
        info.read(&path, uri.query());
        info.path = path;
        info
    }

    /// Reads the segments of a path.
    fn read(&mut self, path: &str, query: Option<&str>) {
        let all = segments(path);
        if all.contains(&"") {
            self.has_empty_segment = true;
            return;
        }
        let mut parts = match all[..] {
            ["api", version, ref rest @ ..] if !rest.is_empty() => {
                self.version = version.into();
                rest
            }
            ["apis", group, version, ref rest @ ..] if !rest.is_empty() => {
                self.group = group.into();
                self.version = version.into();
                rest
            }
            _ => return,
        };
        self.is_resource = true;

        // Verbs that were once the first part of paths. `proxy` is no longer served, but still authorized.
        let prefix =
            ["watch", "proxy"].into_iter().find(|prefix| parts.len() > 1 && parts.first() == Some(prefix));
        if prefix.is_some() {
            parts = &parts[1..];
        }
        if let ["namespaces", namespace, ref below @ ..] = *parts {
            self.namespace = namespace.into();
            // `/namespaces/x` and `/namespaces/x/status` refer to the namespace itself.
            if below.first().is_some_and(|first| !NAMESPACE_SUBRESOURCES.contains(first)) {
                parts = below;
                self.in_namespace = true;
            }
        }
        let part = |n: usize| parts.get(n).map(|part| (*part).to_owned()).unwrap_or_default();
        (self.resource, self.name, self.subresource) = (part(0), part(1), part(2));
        self.is_item = !self.name.is_empty();
        self.rest = parts.iter().skip(3).map(|p| (*p).to_owned()).collect();

        let verb = match self.method {
            Method::POST => "create",
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "",
        };
        let verb = match (prefix, verb) {
            (Some(prefix), _) => prefix,
            (None, "get") if self.name.is_empty() => {
                // With a field selector on the name, the request is for that object.
                self.name = query.and_then(selected_name).unwrap_or_default();
                if wants_watch(query) { "watch" } else { "list" }
            }
            (None, "delete") if self.name.is_empty() => "deletecollection",
            (None, "get") if self.subresource.is_empty() && wants_watch(query) => "watch",
            (None, verb) => verb,
        };
        self.verb = verb.into();
    }
}

fn lower_case(method: &Method) -> Cow<'static, str> {
    match *method {
        Method::GET => "get".into(),
        Method::POST => "post".into(),
        Method::PUT => "put".into(),
        Method::PATCH => "patch".into(),
        Method::DELETE => "delete".into(),
        ref other => other.as_str().to_lowercase().into(),
    }
}

/// The segments of a path, without trailing slashes.
fn segments(path: &str) -> Vec<&str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.trim_end_matches('/') {
        "" if path.is_empty() => Vec::new(),
        path => {
            // Most paths have six or fewer.
            let mut all = Vec::with_capacity(8);
            all.extend(path.split('/'));
            all
        }
    }
}

fn wants_watch(query: Option<&str>) -> bool {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .any(|(key, value)| key == "watch" && !matches!(&*value, "false" | "0"))
}

/// The name in a `fieldSelector=metadata.name=x`.
fn selected_name(query: &str) -> Option<String> {
    let (_, selector) =
        url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "fieldSelector")?;
    selector.split(',').find_map(|term| {
        let value = term.strip_prefix("metadata.name=")?;
        let value = value.strip_prefix('=').unwrap_or(value);
        (!value.is_empty() && !value.contains('/')).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: Method, uri: &str) -> String {
        let info = RequestInfo::parse(&method, &uri.parse().unwrap());
        if !info.is_resource {
            return format!("{} {}", info.verb, info.path);
        }
        format!(
            "{} {}/{} {} ns={} name={} sub={}",
            info.verb, info.group, info.version, info.resource, info.namespace, info.name, info.subresource
        )
    }

    #[test]
    fn paths_are_taken_apart_as_upstream_does() {
        for (method, uri, want) in [
            (Method::GET, "/version", "get /version"),
            (Method::GET, "/apis/apps/v1", "get /apis/apps/v1"),
            (Method::GET, "/api/v1/namespaces", "list /v1 namespaces ns= name= sub="),
            (Method::GET, "/api/v1/namespaces/a", "get /v1 namespaces ns=a name=a sub="),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update /v1 namespaces ns=a name=a sub=finalize"),
            (Method::GET, "/api/v1/namespaces/a/secrets?watch=1", "watch /v1 secrets ns=a name= sub="),
            (Method::GET, "/api/v1/namespaces/a/secrets/b?watch=true", "watch /v1 secrets ns=a name=b sub="),
            (Method::GET, "/api/v1/secrets?watch=0", "list /v1 secrets ns= name= sub="),
            (Method::GET, "/api/v1/watch/secrets", "watch /v1 secrets ns= name= sub="),
            (Method::DELETE, "/apis/g/v1/namespaces/a/xs", "deletecollection g/v1 xs ns=a name= sub="),
            (Method::PATCH, "/apis/g/v1/xs/b/status", "patch g/v1 xs ns= name=b sub=status"),
            (Method::GET, "/apis/g/v1/xs?fieldSelector=metadata.name%3Db", "list g/v1 xs ns= name=b sub="),
            (Method::DELETE, "/api/v1/namespaces/a/namespaces/b", "delete /v1 namespaces ns=a name=b sub="),
            (Method::DELETE, "/api/v1/watch/namespaces/a/secrets", "watch /v1 secrets ns=a name= sub="),
            (Method::GET, "/api/v1/proxy/namespaces/a/pods/b", "proxy /v1 pods ns=a name=b sub="),
            (Method::GET, "/api/v1/namespaces/a/", "get /v1 namespaces ns=a name=a sub="),
            (Method::GET, "/api/v1/namespaces//secrets", "get /api/v1/namespaces//secrets"),
            (Method::GET, "//api/v1/secrets", "get //api/v1/secrets"),
        ] {
            assert_eq!(parse(method, uri), want, "{uri}");
        }
    }

    #[test]
    fn a_namespace_is_not_in_the_namespace_it_is_named_after() {
        for (uri, in_namespace) in [
            ("/api/v1/namespaces/a", false),
            ("/api/v1/namespaces/a/status", false),
            ("/api/v1/namespaces/a/namespaces/a", true),
            ("/api/v1/namespaces/a/namespaces", true),
            ("/api/v1/watch/namespaces/a/secrets", true),
        ] {
            let info = RequestInfo::parse(&Method::GET, &uri.parse().unwrap());
            assert_eq!((info.namespace.as_str(), info.in_namespace), ("a", in_namespace), "{uri}");
        }
    }

    #[test]
    fn empty_segments_are_noticed_but_for_slashes_at_the_end() {
        for (uri, empty) in [
            ("/", false),
            ("/api/v1/secrets/", false),
            ("/api/v1/secrets//", false),
            ("//", true),
            ("//version", true),
            ("/api//v1/secrets", true),
        ] {
            let info = RequestInfo::parse(&Method::GET, &uri.parse().unwrap());
            assert_eq!(info.has_empty_segment, empty, "{uri}");
        }
    }
}
