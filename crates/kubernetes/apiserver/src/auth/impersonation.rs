//! Impersonation: the `Impersonate-*` headers.
//!
//! Since 1.36 upstream first tries constrained impersonation (permission to impersonate in some mode, and permission
//! for this very request in that mode), then the older permission to do anything as somebody. A rejection names the
//! first missing permission. Upstream caches per user which mode worked last and tries it first; here the order is
//! fixed, so rejections do not depend on history.

use std::collections::BTreeMap;

use capstan_schema::meta::name_is_dns_subdomain;
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;

use super::service_account::{self, NODE_NAME, parse_user_name};
use super::{ANONYMOUS, AUTHENTICATED, Attributes, Authorizer, MASTERS, UNAUTHENTICATED, User, forbidden};
use crate::http::names::{IMPERSONATE_GROUP, IMPERSONATE_UID, IMPERSONATE_USER};
use crate::status::{Result, Status};

const EXTRA_PREFIX: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";
/// From this many values on, permission for all of a kind is checked before each single one.
const MANY: usize = 4;

/// The effective user of a request: the one in the `Impersonate-*` headers if `request.user` may impersonate them for
/// this request, or `None` without such headers.
pub fn impersonated(
    headers: &HeaderMap,
    request: &Attributes,
    authorizer: &dyn Authorizer,
) -> Result<Option<User>> {
    let wanted = wanted(headers);
    if wanted.name.is_empty() {
        if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
            return Ok(None);
        }
        return Err(Status::bad_request(format!(
            "requested {} without impersonating a user name",
            go_syntax(&wanted)
        )));
    }
    let mut refusal = None;
    for mode in
        [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy]
    {
        if !mode.applies(&wanted, &request.user) {
            continue;
        }
        match (Check { mode, authorizer, request, wanted: &wanted }).run() {
            Ok(user) => return Ok(Some(user)),
            Err(status) => refusal = refusal.or(Some(status)),
        }
    }
    Err(refusal.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

fn wanted(headers: &HeaderMap) -> User {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &HeaderName| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            // A key that is not valid percent-encoding is used unchanged.
            let decoded = percent_decode_str(key).decode_utf8();
            let key = decoded.map_or_else(|_| key.to_owned(), |key| key.into_owned());
            extra.entry(key).or_default().push(text(value));
        }
    }
    User {
        name: first(&IMPERSONATE_USER),
        uid: first(&IMPERSONATE_UID),
        groups: headers.get_all(&IMPERSONATE_GROUP).iter().map(text).collect(),
        extra,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn verb(self) -> String {
        match self {
            Self::Legacy => "impersonate".into(),
            mode => format!("impersonate:{}", mode.name()),
        }
    }

    fn applies(self, wanted: &User, requestor: &User) -> bool {
        let name_only = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME).map(Vec::as_slice);
                name_only
                    && parse_user_name(&requestor.name).is_some()
                    && node.is_some_and(|node| matches!(own, Some([own]) if own == node))
            }
            Self::ArbitraryNode => name_only && node.is_some(),
            Self::ServiceAccount => name_only && parse_user_name(&wanted.name).is_some(),
            Self::UserInfo => node.is_none() && parse_user_name(&wanted.name).is_none(),
            Self::Legacy => true,
        }
    }
}

/// The check of one impersonation mode.
struct Check<'a> {
    mode: Mode,
    authorizer: &'a dyn Authorizer,
    request: &'a Attributes,
    wanted: &'a User,
}

impl Check<'_> {
    fn run(&self) -> Result<User> {
        if self.mode != Mode::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), self.request.verb).into();
            self.allowed(&Attributes { verb, ..self.request.clone() })?;
        }
        let mut user = self.wanted.clone();
        self.may_be_user(&mut user)?;
        if !self.wanted.uid.is_empty() {
            self.allowed(&self.right(AUTHENTICATION, "uids", &self.wanted.uid))?;
        }
        self.may_be_in_groups()?;
        self.may_have_extra()?;
        let group = match user.name == ANONYMOUS {
            true => Some(UNAUTHENTICATED),
            false => (!user.in_group(UNAUTHENTICATED)).then_some(AUTHENTICATED),
        };
        if let Some(group) = group.filter(|group| !user.in_group(group)) {
            user.groups.push(group.to_owned());
        }
        Ok(user)
    }

    fn may_be_user(&self, user: &mut User) -> Result<()> {
        let name = &self.wanted.name;
        let mut right = self.right(self.user_group(), "users", name);
        if self.mode != Mode::Legacy
            && let Some(node) = node_name(name)
        {
            right.resource = "nodes".into();
            // Permission to impersonate the node one runs on does not depend on the node's name.
            right.name = if self.mode == Mode::AssociatedNode { "*".into() } else { node.to_owned() };
            user.groups = vec!["system:nodes".into()];
        }
        if let Some((namespace, account)) = parse_user_name(name) {
            right.resource = "serviceaccounts".into();
            right.namespace = namespace.to_owned();
            right.name = account.to_owned();
            if self.wanted.groups.is_empty() {
                user.groups = service_account::groups(namespace);
            }
        }
        self.allowed(&right)
    }

    fn may_be_in_groups(&self) -> Result<()> {
        let groups = &self.wanted.groups;
        let right = |name: &str| self.right(self.user_group(), "groups", name);
        if self.mode != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                return Err(forbidden(&right(""), "impersonating the empty string group is not allowed"));
            }
            if self.wanted.in_group(MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(forbidden(&right(MASTERS), why));
            }
            if groups.len() >= MANY && self.allowed(&right("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.allowed(&right(group)))
    }

    fn may_have_extra(&self) -> Result<()> {
        let extra = &self.wanted.extra;
        let right = |key: &str, value: &str| Attributes {
            subresource: key.to_owned(),
            ..self.right(AUTHENTICATION, "userextras", value)
        };
        if self.mode != Mode::Legacy {
            if let Some(why) = extra.iter().find_map(|(key, values)| illegal_extra(key, values)) {
                return Err(forbidden(&right("", ""), &why));
            }
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.allowed(&right("*", "*")).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            values.iter().try_for_each(|value| self.allowed(&right(key, value)))?;
        }
        Ok(())
    }

    /// Users and groups were in the core group before constrained impersonation.
    fn user_group(&self) -> &'static str {
        if self.mode == Mode::Legacy { "" } else { AUTHENTICATION }
    }

    fn right(&self, group: &str, resource: &str, name: &str) -> Attributes {
        Attributes {
            user: self.request.user.clone(),
            verb: self.mode.verb().into(),
            group: group.to_owned(),
            version: "v1".into(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }

    fn allowed(&self, right: &Attributes) -> Result<()> {
        let decision = self.authorizer.authorize(right);
        if decision.allowed() { Ok(()) } else { Err(forbidden(right, decision.reason())) }
    }
}

fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| name_is_dns_subdomain(name, false).is_empty())
}

/// Why an extra field cannot be used in constrained impersonation.
fn illegal_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".into());
    }
    // Upstream requires `domain/path`.
    let (domain, path) = key.split_once('/').unwrap_or((key, ""));
    if path.is_empty() || !name_is_dns_subdomain(domain, false).is_empty() {
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key:?}: must be a domain-prefixed path (such as \"acme.io/foo\")"
        ));
    }
    if key.to_lowercase() != key {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
    }
    values
        .iter()
        .any(String::is_empty)
        .then(|| "impersonating the empty string value in extra is not allowed".into())
}

/// The requested user in Go's syntax, as in the message.
fn go_syntax(user: &User) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
        format!("[]string{{{}}}", items.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".into() } else { list(&user.groups) };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let entry = |(key, values): (&String, &Vec<String>)| format!("{key:?}:{}", list(values));
            let entries: Vec<String> = user.extra.iter().map(entry).collect();
            format!("map[string][]string{{{}}}", entries.join(", "))
        }
    };
    format!("&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.name, user.uid)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::auth::{Decision, RulesForUser};

    /// Allows the listed permissions: `verb resource[/subresource] name`.
    struct Rights(&'static [&'static str]);

    impl Authorizer for Rights {
        fn authorize(&self, asked: &Attributes) -> Decision {
            let separator = if asked.subresource.is_empty() { "" } else { "/" };
            let right =
                format!("{} {}{separator}{} {}", asked.verb, asked.resource, asked.subresource, asked.name);
            let reason = String::new();
            match self.0.contains(&right.trim_end()) {
                true => Decision::Allow { reason },
                false => Decision::NoOpinion { reason },
            }
        }

        fn rules_for(&self, _: &User, _: &str) -> RulesForUser {
            RulesForUser::default()
        }
    }

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.to_lowercase().parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        let mut headers = HeaderMap::new();
        headers.extend(list.iter().map(pair));
        headers
    }

    fn listing_pods() -> Attributes {
        Attributes {
            user: User::new("eve", ["x"]).into(),
            verb: "list".into(),
            resource: "pods".into(),
            namespace: "default".into(),
            ..Attributes::default()
        }
    }

    fn become_user(list: &[(&str, &str)], rights: &'static [&'static str]) -> Result<Option<User>> {
        let mut all = HeaderMap::new();
        for pair in list {
            for (name, value) in headers(&[*pair]) {
                all.append(name.unwrap(), value);
            }
        }
        impersonated(&all, &listing_pods(), &Rights(rights))
    }

    #[test]
    fn without_headers_there_is_no_impersonation() {
        assert_eq!(become_user(&[], &[]).unwrap(), None);
    }

    #[test]
    fn the_older_right_suffices_and_groups_follow_from_the_user() {
        type Row = (&'static [(&'static str, &'static str)], &'static [&'static str], User);
        let table: [Row; 5] = [
            (
                &[("Impersonate-User", "bob")],
                &["impersonate users bob"],
                User::new("bob", ["system:authenticated"]),
            ),
            (
                &[("Impersonate-User", "system:anonymous")],
                &["impersonate users system:anonymous"],
                User::new("system:anonymous", ["system:unauthenticated"]),
            ),
            (
                &[("Impersonate-User", "system:serviceaccount:ns:bot")],
                &["impersonate serviceaccounts bot"],
                User::new(
                    "system:serviceaccount:ns:bot",
                    ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
                ),
            ),
            (
                &[("Impersonate-User", "bob"), ("Impersonate-Group", "g"), ("Impersonate-Uid", "7")],
                &["impersonate users bob", "impersonate groups g", "impersonate uids 7"],
                User { uid: "7".into(), ..User::new("bob", ["g", "system:authenticated"]) },
            ),
            (
                &[("Impersonate-User", "bob"), ("Impersonate-Extra-Acme.io%2Fteam", "a")],
                &["impersonate users bob", "impersonate userextras/acme.io/team a"],
                User {
                    extra: [("acme.io/team".to_owned(), vec!["a".to_owned()])].into(),
                    ..User::new("bob", ["system:authenticated"])
                },
            ),
        ];
        for (list, rights, user) in table {
            assert_eq!(become_user(list, rights).unwrap(), Some(user), "{list:?}");
        }
    }

    #[test]
    fn constrained_impersonation_needs_the_way_and_the_request() {
        let way = "impersonate:user-info users bob";
        let request = "impersonate-on:user-info:list pods";
        let bob = [("Impersonate-User", "bob")];
        assert!(
            become_user(&bob, &["impersonate:user-info users bob", "impersonate-on:user-info:list pods"])
                .is_ok()
        );
        for rights in
            [&["impersonate:user-info users bob"] as &'static [_], &["impersonate-on:user-info:list pods"]]
        {
            assert!(become_user(&bob, rights).is_err(), "{way} {request}");
        }
        // Even with every permission, constrained impersonation cannot become a member of system:masters.
        let master = [("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")];
        let rights = &[
            "impersonate:user-info users bob",
            "impersonate-on:user-info:list pods",
            "impersonate:user-info groups system:masters",
        ];
        assert_eq!(
            become_user(&master, rights).unwrap_err().message,
            "groups.authentication.k8s.io \"system:masters\" is forbidden: User \"eve\" cannot impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: impersonating the system:masters group is not allowed"
        );
    }

    #[test]
    fn refusals_name_the_first_missing_right() {
        for (user, message) in [
            (
                "bob",
                "pods is forbidden: User \"eve\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"default\"",
            ),
            (
                "system:serviceaccount:ns:bot",
                "pods is forbidden: User \"eve\" cannot impersonate-on:serviceaccount:list resource \"pods\" in API group \"\" in the namespace \"default\"",
            ),
            (
                "system:node:n1",
                "pods is forbidden: User \"eve\" cannot impersonate-on:arbitrary-node:list resource \"pods\" in API group \"\" in the namespace \"default\"",
            ),
        ] {
            let refusal = become_user(&[("Impersonate-User", user)], &[]).unwrap_err();
            assert_eq!((refusal.code, refusal.message.as_str()), (403, message));
        }
    }

    #[test]
    fn groups_and_extras_without_a_user_are_a_bad_request() {
        for (header, shown) in [
            (("Impersonate-Group", "g"), r#"UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)"#),
            (("Impersonate-Uid", "7"), r#"UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)"#),
            (
                ("Impersonate-Extra-Foo", "x"),
                r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"foo":[]string{"x"}}"#,
            ),
        ] {
            let refusal = become_user(&[header], &[]).unwrap_err();
            let message = format!(
                "requested &user.DefaultInfo{{Name:\"\", {shown}}} without impersonating a user name"
            );
            assert_eq!((refusal.code, refusal.message), (400, message));
        }
    }
}
