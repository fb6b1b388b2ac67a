//! ServiceAccounts as users.

use capstan_schema::meta::{name_is_dns_label, name_is_dns_subdomain};

use super::User;

/// Prefix of every ServiceAccount's user name.
const USER_PREFIX: &str = "system:serviceaccount:";
/// Group of all ServiceAccounts.
pub const ALL_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// Extra key: which credential a request came with.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// Extra key: pod a token is bound to.
pub const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
/// Extra key: uid of that pod.
pub const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// Extra key: node a token is bound to, or its pod runs on.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// Extra key: uid of that node.
pub const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// User name of a ServiceAccount.
pub fn user_name(namespace: &str, name: &str) -> String {
    format!("{USER_PREFIX}{namespace}:{name}")
}

/// Groups of a ServiceAccount.
pub fn groups(namespace: &str) -> Vec<String> {
    vec![ALL_SERVICE_ACCOUNTS.to_owned(), format!("{ALL_SERVICE_ACCOUNTS}:{namespace}")]
}

/// Namespace and name of the ServiceAccount of a user name, if it is one.
pub fn parse_user_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(USER_PREFIX)?.split_once(':')?;
    let valid = !name.contains(':')
        && name_is_dns_label(namespace, false).is_empty()
        && name_is_dns_subdomain(name, false).is_empty();
    valid.then_some((namespace, name))
}

/// The user of a ServiceAccount.
pub fn user(namespace: &str, name: &str, uid: &str) -> User {
    User {
        name: user_name(namespace, name),
        uid: uid.to_owned(),
        groups: groups(namespace),
        ..User::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_user_names_are_service_accounts() {
        for (user, parsed) in [
            ("system:serviceaccount:ns:bot", Some(("ns", "bot"))),
            ("system:serviceaccount:ns:a.b", Some(("ns", "a.b"))),
            ("system:serviceaccount:ns", None),
            ("system:serviceaccount:ns:a:b", None),
            ("system:serviceaccount:n.s:bot", None),
            ("system:serviceaccount::bot", None),
            ("system:serviceaccount:ns:", None),
            ("bob", None),
        ] {
            assert_eq!(parse_user_name(user), parsed, "{user}");
        }
    }
}
