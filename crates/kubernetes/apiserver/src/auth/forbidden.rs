//! Messages of 403 responses by the authorizer.

use super::Attributes;
use crate::status::Status;

/// 403 for a request that nothing allows. `reason` is the authorizer's, often empty.
pub fn forbidden(attributes: &Attributes, reason: &str) -> Status {
    // Escapes HTML, since the message contains parts of the request.
    let message = refusal(attributes).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let why = if reason.is_empty() { message } else { format!("{message}: {reason}") };
    Status::forbidden(&attributes.group, &attributes.resource, &attributes.name, why)
}

fn refusal(attributes: &Attributes) -> String {
    let Attributes { user, verb, group, resource, subresource, namespace, path, .. } = attributes;
    let user = &user.name;
    if !attributes.is_resource_request() {
        return format!("User {user:?} cannot {verb} path {path:?}");
    }
    let resource = match subresource.as_str() {
        "" => resource.clone(),
        subresource => format!("{resource}/{subresource}"),
    };
    let scope = match namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::User;

    #[test]
    fn refusals_read_as_upstream() {
        let request = |resource: &str, subresource: &str, namespace: &str, name: &str| Attributes {
            user: User::new("bob", ["x"]).into(),
            verb: "list".into(),
            group: if resource == "deployments" { "apps".into() } else { String::new() },
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
            path: "/a<b>&".into(),
            ..Attributes::default()
        };
        let table = [
            (
                request("secrets", "", "default", ""),
                "",
                r#"secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" in the namespace "default""#,
            ),
            (
                request("deployments", "scale", "", "web"),
                "RBAC: gone",
                r#"deployments.apps "web" is forbidden: User "bob" cannot list resource "deployments/scale" in API group "apps" at the cluster scope: RBAC: gone"#,
            ),
            (request("", "", "", ""), "", r#"forbidden: User "bob" cannot list path "/a&lt;b&gt;&amp;""#),
        ];
        for (request, reason, message) in table {
            let status = forbidden(&request, reason);
            assert_eq!((status.code, status.message.as_str()), (403, message));
        }
    }
}
