//! Tokens: issue, validate, revoke.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{INCORRECT, absent, catalog, challenge, denied, roles_of, same_name, unauthorized};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Caller, Fail, Handled, Reply};

/// What an authentication method established.
struct Login {
    user: Object,
    methods: Vec<String>,
    credential: Option<Object>,
    /// Of the token that this one comes from: audit id and expiry.
    parent: Option<(Value, i64)>,
    scope: Scope,
}

enum Scope {
    None,
    Project(String),
    System,
    Trust(Object),
}

pub(crate) fn issue(cloud: &mut Cloud, call: &Call) -> Handled {
    if call.header("content-type").is_some_and(|kind| !kind.starts_with("application/json")) {
        return Err(Fail::bad(format!("Expecting to find auth in request body. {INCORRECT}")));
    }
    let auth = super::body(call, "auth")?;
    let Some(identity) = auth.object("identity") else {
        return Err(Fail::bad(format!("Expecting to find identity in auth. {INCORRECT}")));
    };
    if !identity.contains_key("methods") {
        return Err(Fail::bad(missing_methods(identity)));
    }
    let methods = identity.texts("methods");
    let Some(method) = methods.first() else { return Err(unauthorized()) };
    let mut login = match *method {
        "password" => by_password(cloud, identity)?,
        "token" => by_token(cloud, identity)?,
        "application_credential" => by_credential(cloud, identity, &auth)?,
        _ => {
            let text = "Attempted to authenticate with an unsupported method.";
            let methods = json!({"methods": ["password", "token", "application_credential"]});
            let body = json!({"error": {"code": 401, "message": text, "title": "Unauthorized", "identity": methods}});
            let reply = Reply::json(401, body)
                .with("www-authenticate", challenge(cloud))
                .with("vary", "X-Auth-Token");
            return Err(Fail::reply(reply));
        }
    };
    if login.credential.is_none() {
        login.scope = scope(cloud, &auth, &login.user)?;
    }
    let token = store(cloud, &login)?;
    let with_catalog = call.param("nocatalog").is_none();
    let body = render(cloud, &token, with_catalog);
    Ok(Reply::json(201, json!({"token": body})).with("x-subject-token", token.text("id")))
}

/// Keystone quotes its own schema here.
fn missing_methods(identity: &Object) -> String {
    let indent = |n: usize| " ".repeat(n);
    let mut text = String::from(
        "Invalid input for field 'identity': 'methods' is a required property\n\nFailed validating 'required' in schema['properties']['identity']:\n    {'type': 'object',\n     'properties': {'methods': {'type': 'array',\n",
    );
    text += &format!("{}'items': {{'type': 'string'}}}},\n", indent(32));
    text += &format!("{}'password': {{'type': 'object',\n", indent(20));
    text += &format!("{}'properties': {{'user': {{'type': 'object',\n", indent(33));
    text += &format!("{}'properties': {{'id': {{'type': 'string'}},\n", indent(57));
    text += &format!("{}'name': {{'type': 'string'}},\n", indent(72));
    text += &format!("{}'password': {{'type': 'string'}},\n", indent(72));
    text += &format!("{}'domain': {{'type': 'object',\n", indent(72));
    text += &format!("{}'properties': {{'id': {{'type': 'string'}},\n", indent(83));
    text += &format!("{}'name': {{'type': 'string'}}}}}}}}}}}},\n", indent(98));
    text += &format!("{}'token': {{'type': 'object',\n", indent(20));
    text += &format!("{}'properties': {{'id': {{'type': 'string'}}}},\n", indent(30));
    text += &format!(
        "{}'required': ['id']}}}},\n     'required': ['methods']}}\n\nOn instance['identity']:\n    ",
        indent(30)
    );
    text + &crate::wire::repr(&Value::Object(identity.clone()))
}

fn expecting(what: &str, at: &str) -> Fail {
    Fail::bad(format!("Expecting to find {what} in {at}. {INCORRECT}"))
}

/// A user by id, or by name and domain.
fn named_user(cloud: &Cloud, user: &Object) -> Result<Option<Object>, Fail> {
    if let Some(id) = user.get("id").and_then(Value::as_str) {
        return Ok(cloud.get("users", id).cloned());
    }
    if !user.contains_key("name") {
        return Err(expecting("name", "user"));
    }
    let domain = user.object("domain").ok_or_else(|| expecting("domain", "user"))?;
    let Some(domain) = find_domain(cloud, domain) else { return Ok(None) };
    Ok(cloud
        .all("users")
        .find(|it| it.text("domain_id") == domain && same_name(it.text("name"), user.text("name")))
        .cloned())
}

fn find_domain(cloud: &Cloud, domain: &Object) -> Option<String> {
    cloud
        .all("domains")
        .find(|it| match domain.get("id").and_then(Value::as_str) {
            Some(id) => it.text("id") == id,
            None => same_name(it.text("name"), domain.text("name")),
        })
        .map(|it| it.text("id").to_owned())
}

fn by_password(cloud: &Cloud, identity: &Object) -> Result<Login, Fail> {
    let password = identity.object("password").ok_or_else(|| expecting("password", "identity"))?;
    let user = password.object("user").ok_or_else(|| expecting("user", "password"))?;
    let found = named_user(cloud, user)?.filter(|found| {
        found.flag("enabled") && found.text("_password") == Cloud::digest(user.text("password"))
    });
    let user = found.ok_or_else(unauthorized)?;
    Ok(Login {
        user,
        methods: vec!["password".to_owned()],
        credential: None,
        parent: None,
        scope: Scope::None,
    })
}

fn by_token(cloud: &Cloud, identity: &Object) -> Result<Login, Fail> {
    let id = identity
        .object("token")
        .map(|token| token.text("id"))
        .ok_or_else(|| expecting("token", "identity"))?;
    let token = cloud.get("tokens", id).filter(|token| is_valid(cloud, token));
    let token = token.ok_or_else(|| Fail::missing("Could not recognize Fernet token"))?;
    if token.has("credential") || token.has("trust") {
        let text = "Using a delegated token to create another token is not allowed.";
        return Err(Fail::forbidden(format!(
            "You are not authorized to perform the requested action: {text}."
        )));
    }
    let user = cloud.get("users", token.text("user")).cloned().ok_or_else(unauthorized)?;
    let mut methods: Vec<String> = token.texts("methods").into_iter().map(str::to_owned).collect();
    if !methods.iter().any(|method| method == "token") {
        methods.push("token".to_owned());
    }
    let audit = token.list("audit_ids").last().cloned().unwrap_or_default();
    Ok(Login {
        user,
        methods,
        credential: None,
        parent: Some((audit, token.number("expires"))),
        scope: Scope::None,
    })
}

fn by_credential(cloud: &Cloud, identity: &Object, auth: &Object) -> Result<Login, Fail> {
    let given = identity
        .object("application_credential")
        .ok_or_else(|| expecting("application_credential", "identity"))?;
    let credential = match given.get("id").and_then(Value::as_str) {
        Some(id) => match cloud.get("application_credentials", id) {
            Some(found) => found.clone(),
            // Recorded: the reply to a credential that was deleted is another than to one that lost a role.
            None if cloud.get("lost_credentials", id).is_some() => return Err(unauthorized()),
            None => return Err(absent("Application Credential", id)),
        },
        None => {
            if !given.contains_key("name") {
                return Err(expecting("name or id", "application_credential"));
            }
            let user = given.object("user").ok_or_else(|| expecting("user", "application_credential"))?;
            let user = named_user(cloud, user)?.ok_or_else(unauthorized)?;
            let found = cloud.all("application_credentials").find(|it| {
                it.text("user_id") == user.text("id") && same_name(it.text("name"), given.text("name"))
            });
            found.cloned().ok_or_else(unauthorized)?
        }
    };
    if credential.text("_secret") != Cloud::digest(given.text("secret")) {
        return Err(unauthorized());
    }
    if credential.number("_expires") > 0 && credential.number("_expires") <= cloud.now.as_millisecond() {
        return Err(unauthorized());
    }
    let user = cloud.get("users", credential.text("user_id")).filter(|user| user.flag("enabled")).cloned();
    let user = user.ok_or_else(unauthorized)?;
    if auth.contains_key("scope") {
        let text = "Application credentials cannot request a scope.";
        let body = json!({"error": {"code": 401, "message": text, "title": "Unauthorized", "identity": {"methods": ["application_credential"], "application_credential": {}}}});
        let reply =
            Reply::json(401, body).with("www-authenticate", challenge(cloud)).with("vary", "X-Auth-Token");
        return Err(Fail::reply(reply));
    }
    let scope = match credential.get("project_id").and_then(Value::as_str) {
        None => Scope::None,
        Some(project) => {
            // It dies with the roles that it was made with.
            let held = roles_of(cloud, user.text("id"), project);
            let wanted = credential.list("roles");
            if held.is_empty()
                || !wanted.iter().all(|role| held.iter().any(|(id, _)| role["id"] == id.as_str()))
            {
                return Err(unauthorized());
            }
            Scope::Project(project.to_owned())
        }
    };
    let methods = vec!["application_credential".to_owned()];
    Ok(Login { user, methods, credential: Some(credential), parent: None, scope })
}

fn scope(cloud: &Cloud, auth: &Object, user: &Object) -> Result<Scope, Fail> {
    let user_id = user.text("id");
    let usable = |project: &Object| {
        let id = project.text("id");
        project.flag("enabled") && !roles_of(cloud, user_id, id).is_empty()
    };
    match auth.get("scope") {
        None | Some(Value::Null) => {
            let default =
                cloud.get("projects", user.text("default_project_id")).filter(|project| usable(project));
            Ok(default.map_or(Scope::None, |project| Scope::Project(project.text("id").to_owned())))
        }
        Some(Value::String(_)) => Ok(Scope::None),
        Some(Value::Object(scope)) => {
            if scope.contains_key("system") {
                return if user.flag("_system") { Ok(Scope::System) } else { Err(unauthorized()) };
            }
            if let Some(trust) = scope.object("OS-TRUST:trust") {
                let trust =
                    cloud.get("trusts", trust.text("id")).filter(|it| it.text("trustee_user_id") == user_id);
                return trust.cloned().map(Scope::Trust).ok_or_else(unauthorized);
            }
            if scope.contains_key("domain") {
                return Err(unauthorized());
            }
            let Some(project) = scope.object("project") else {
                return Err(expecting("project or domain", "scope"));
            };
            let found = match project.get("id").and_then(Value::as_str) {
                Some(id) => cloud.get("projects", id),
                None => {
                    if !project.contains_key("name") {
                        return Err(expecting("id or name", "project"));
                    }
                    let domain = project.object("domain").ok_or_else(|| expecting("domain", "project"))?;
                    let domain = find_domain(cloud, domain).ok_or_else(unauthorized)?;
                    cloud.all("projects").find(|it| {
                        it.text("domain_id") == domain && same_name(it.text("name"), project.text("name"))
                    })
                }
            };
            let project = found.filter(|project| usable(project)).ok_or_else(unauthorized)?;
            Ok(Scope::Project(project.text("id").to_owned()))
        }
        Some(_) => Err(Fail::bad(format!("Expecting to find valid scope. {INCORRECT}"))),
    }
}

fn store(cloud: &mut Cloud, login: &Login) -> Result<Object, Fail> {
    let lifetime = i64::try_from(cloud.settings.token_lifetime.as_millis()).unwrap_or(i64::MAX / 2);
    let mut expires = cloud.now.as_millisecond() + lifetime;
    let mut audit = vec![json!(audit_id(cloud))];
    if let Some((parent, until)) = &login.parent {
        audit.push(parent.clone());
        expires = *until;
    }
    let mut token = object(json!({
        "id": format!("gAAAAA{}{}", cloud.hex(), cloud.hex()),
        "user": login.user.text("id"),
        "methods": login.methods,
        "audit_ids": audit,
        "issued": cloud.now.as_millisecond(),
    }));
    match &login.scope {
        Scope::None => {}
        Scope::Project(project) => {
            token.insert("project".to_owned(), json!(project));
        }
        Scope::System => {
            token.insert("system".to_owned(), json!(true));
        }
        Scope::Trust(trust) => {
            token.insert("project".to_owned(), trust["project_id"].clone());
            token.insert("trust".to_owned(), trust["id"].clone());
            if trust.flag("impersonation") {
                token.insert("user".to_owned(), trust["trustor_user_id"].clone());
            }
        }
    }
    if let Some(credential) = &login.credential {
        token.insert("credential".to_owned(), credential["id"].clone());
        let until = credential.number("_expires");
        if until > 0 {
            expires = expires.min(until);
        }
    }
    token.insert("expires".to_owned(), json!(expires));
    cloud.put("tokens", token.clone());
    Ok(token)
}

fn audit_id(cloud: &Cloud) -> String {
    let hex = cloud.hex();
    let bytes: Vec<u8> =
        (0..16).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap_or_default()).collect();
    URL_SAFE_NO_PAD.encode(bytes)
}

fn time(millis: i64) -> String {
    Timestamp::from_millisecond(millis).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}

fn render(cloud: &Cloud, token: &Object, with_catalog: bool) -> Value {
    let user = cloud.get("users", token.text("user")).cloned().unwrap_or_default();
    let domain = json!({"id": "default", "name": "Default"});
    let mut body = json!({
        "methods": token["methods"],
        "user": {"domain": domain, "id": user.text("id"), "name": user.text("name"), "password_expires_at": null},
        "audit_ids": token["audit_ids"],
        "expires_at": time(token.number("expires")),
        "issued_at": time(token.number("issued")),
    });
    let scoped = token.has("project") || token.has("system");
    if let Some(project) = cloud.get("projects", token.text("project")) {
        body["project"] = json!({"domain": domain, "id": project.text("id"), "name": project.text("name")});
        if !token.has("trust") {
            body["is_domain"] = json!(false);
        }
    }
    if token.flag("system") {
        body["system"] = json!({"all": true});
    }
    if let Some(trust) = cloud.get("trusts", token.text("trust")) {
        body["OS-TRUST:trust"] = json!({
            "id": trust["id"],
            "trustor_user": {"id": trust["trustor_user_id"]},
            "trustee_user": {"id": trust["trustee_user_id"]},
            "impersonation": trust["impersonation"],
        });
    }
    if scoped {
        body["roles"] = roles(cloud, token)
            .into_iter()
            .map(|(id, name)| match token.has("trust") {
                true => cloud.get("roles", &id).map_or(Value::Null, |role| Value::Object(role.clone())),
                false => json!({"id": id, "name": name}),
            })
            .collect();
        if with_catalog {
            body["catalog"] = catalog::catalog(cloud);
        }
    }
    if let Some(credential) = cloud.get("application_credentials", token.text("credential")) {
        let mut shown = json!({"id": credential["id"], "name": credential["name"], "restricted": !credential.flag("unrestricted")});
        if let Some(rules) = credential.get("access_rules") {
            shown["access_rules"] = rules.clone();
        }
        body["application_credential"] = shown;
    }
    body
}

/// Roles of a token, as (id, name).
fn roles(cloud: &Cloud, token: &Object) -> Vec<(String, String)> {
    let named = |object: Option<&Object>| -> Vec<String> {
        object
            .map(|it| {
                it.list("roles").iter().filter_map(|role| Some(role["id"].as_str()?.to_owned())).collect()
            })
            .unwrap_or_default()
    };
    if token.flag("system") {
        let names = ["admin", "manager", "member", "reader"];
        return names
            .iter()
            .filter_map(|name| {
                Some((cloud.find("roles", "name", name)?.text("id").to_owned(), (*name).to_owned()))
            })
            .collect();
    }
    let mut held = roles_of(cloud, token.text("user"), token.text("project"));
    if token.has("credential") {
        let only = named(cloud.get("application_credentials", token.text("credential")));
        held.retain(|(id, _)| only.contains(id));
    }
    if token.has("trust") {
        let only = named(cloud.get("trusts", token.text("trust")));
        let direct: Vec<_> = held.iter().filter(|(id, _)| only.contains(id)).cloned().collect();
        let member = direct.iter().any(|(_, name)| name == "member" || name == "admin");
        held.retain(|(id, name)| only.contains(id) || (member && name == "reader"));
    }
    held
}

fn is_valid(cloud: &Cloud, token: &Object) -> bool {
    !token.flag("revoked") && token.number("expires") > cloud.now.as_millisecond()
}

/// Who a token stands for, as Keystone itself checks it.
pub(crate) fn authenticate(cloud: &Cloud, token: Option<&str>) -> Result<Caller, Fail> {
    let token = token.and_then(|id| cloud.get("tokens", id)).filter(|token| is_valid(cloud, token));
    let token = token.ok_or_else(unauthorized)?;
    let gone = |kind: &str, field: &str, word: &str| match token.has(field)
        && cloud.get(kind, token.text(field)).is_none()
    {
        true => Err(absent(word, token.text(field))),
        false => Ok(()),
    };
    gone("application_credentials", "credential", "Application Credential")?;
    gone("users", "user", "user")?;
    gone("projects", "project", "project")?;
    gone("trusts", "trust", "trust")?;
    Ok(caller(cloud, token))
}

fn caller(cloud: &Cloud, token: &Object) -> Caller {
    let credential = cloud.get("application_credentials", token.text("credential"));
    let roles = match token.has("project") || token.flag("system") {
        true => roles(cloud, token).into_iter().map(|(_, name)| name).collect(),
        false => Vec::new(),
    };
    Caller {
        user: token.text("user").to_owned(),
        project: token.get("project").and_then(Value::as_str).map(str::to_owned),
        roles,
        credential: token.get("credential").and_then(Value::as_str).map(str::to_owned),
        restricted: credential.is_some_and(|it| !it.flag("unrestricted")),
    }
}

/// Who a token stands for, as the other services check it: a validation is cached, so a token that was revoked since is
/// still accepted for a while, with the roles that it had.
pub(crate) fn authenticate_cached(cloud: &mut Cloud, service: &str, id: Option<&str>) -> Option<Caller> {
    let id = id?;
    let token = cloud.get("tokens", id)?.clone();
    let now = cloud.now.as_millisecond();
    if token.number("expires") <= now {
        return None;
    }
    let key = format!("{service} {id}");
    let fresh = i64::try_from(cloud.settings.token_cache.as_millis()).unwrap_or(i64::MAX);
    if let Some(cached) = cloud.get("validations", &key).filter(|it| now - it.number("at") < fresh) {
        return Some(Caller {
            user: cached.text("user").to_owned(),
            project: cached.get("project").and_then(Value::as_str).map(str::to_owned),
            roles: cached.texts("roles").into_iter().map(str::to_owned).collect(),
            credential: None,
            restricted: false,
        });
    }
    let caller = authenticate(cloud, Some(id)).ok()?;
    // Access rules need a service type in the middleware's configuration; without one every such token is refused.
    if cloud.get("application_credentials", token.text("credential")).is_some_and(|it| it.has("access_rules"))
    {
        return None;
    }
    cloud.put(
        "validations",
        object(json!({"id": key, "at": now, "user": caller.user, "project": caller.project, "roles": caller.roles})),
    );
    Some(caller)
}

pub(super) fn validate(cloud: &Cloud, call: &Call) -> Handled {
    let token = subject(cloud, call)?;
    let allow_expired = call.param("allow_expired").is_some_and(|value| value != "0");
    if token.flag("revoked") || (token.number("expires") <= cloud.now.as_millisecond() && !allow_expired) {
        return Err(Fail::missing("Failed to validate token"));
    }
    if call.header("x-auth-token") != Some(token.text("id"))
        && !call.caller.is_admin()
        && !call.caller.has("service")
    {
        return Err(denied("validate_token"));
    }
    let body = render(cloud, token, call.param("nocatalog").is_none());
    Ok(Reply::ok(json!({"token": body})).with("x-subject-token", token.text("id")))
}

fn subject<'a>(cloud: &'a Cloud, call: &Call) -> Result<&'a Object, Fail> {
    let id = call.header("x-subject-token").ok_or_else(|| Fail::missing("No token in the request"))?;
    cloud.get("tokens", id).ok_or_else(|| Fail::missing("Failed to validate token"))
}

pub(super) fn revoke(cloud: &mut Cloud, call: &Call) -> Handled {
    let token = subject(cloud, call)?;
    let own = token.text("user") == call.caller.user;
    if token.flag("revoked") || token.number("expires") <= cloud.now.as_millisecond() {
        return Err(Fail::missing("Failed to validate token"));
    }
    if !own && !call.caller.is_admin() {
        return Err(denied("revoke_token"));
    }
    let id = token.text("id").to_owned();
    cloud.set("tokens", &id, "revoked", true);
    Ok(Reply::empty(204))
}
