//! Sessions of people who came with a password.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::error::ApiError;
use crate::model::identity::{Domain, User};
use crate::model::table::Key;
use crate::params::Params;

/// Sessions by the value of `JSESSIONID`.
#[derive(Default)]
pub(crate) struct Sessions(BTreeMap<String, Session>);

struct Session {
    user: Key<User>,
    key: String,
}

/// What a login brings: the reply and the two cookies.
pub(crate) struct Login {
    pub(crate) body: Value,
    pub(crate) session: String,
    pub(crate) key: String,
}

impl Cloud {
    /// Lets somebody in who knows a password.
    pub(crate) fn log_in(&mut self, params: &Params) -> Result<Login, ApiError> {
        let name = params.get("username").unwrap_or_default();
        let domain = match params.get("domain").filter(|path| !path.is_empty()) {
            None => self.domain_at("/"),
            Some(path) => self.domain_at(path),
        };
        let refused = |text: String| ApiError { exception: None, ..ApiError::denied(text) };
        let Some(domain) = domain else {
            let path = params.get("domain").unwrap_or_default();
            return Err(refused(format!("Unable to find the domain from the path {path}/")));
        };
        let password = params.get("password").unwrap_or_default();
        let user = self.users.iter().find(|user| {
            let account = &self.accounts[user.account];
            user.name == name && account.domain == domain && account.enabled && !account.removed
        });
        let Some(user) = user.filter(|user| !password.is_empty() && user.password == password) else {
            return Err(refused(format!(
                "Failed to authenticate user {name} in domain {}; please provide valid credentials",
                domain.number()
            )));
        };
        let account = &self.accounts[user.account];
        let (session, key) = (self.fresh_uuid(), self.fresh_uuid());
        let body = json!({
            "username": user.name,
            "userid": user.uuid,
            "domainid": self.domains[domain].uuid,
            "timeout": 1800,
            "account": account.name,
            "firstname": user.first_name,
            "lastname": user.last_name,
            "type": account.role.account_type().to_string(),
            "timezone": "UTC",
            "timezoneoffset": "0.0",
            "registered": "false",
            "sessionkey": key,
            "is2faenabled": "false",
            "is2faverified": "true",
            "issuerfor2fa": "CloudStack",
        });
        let held = Session { user: user.key, key: key.clone() };
        self.sessions.0.insert(session.clone(), held);
        Ok(Login { body, session, key })
    }

    pub(crate) fn log_out(&mut self, session: &str) {
        self.sessions.0.remove(session);
    }

    /// Whose session it is. The session key must come twice, as a cookie and as a parameter: the default of
    /// `api.sessionkey.check.locations`. A wrong or missing one ends the session.
    pub(crate) fn session_user(
        &mut self,
        session: &str,
        cookie: Option<&str>,
        parameter: Option<&str>,
    ) -> Option<Key<User>> {
        let held = self.sessions.0.get(session)?;
        let key = Some(held.key.as_str());
        let user = (cookie == key && parameter == key).then_some(held.user);
        if user.is_none() {
            self.log_out(session);
        }
        user
    }

    /// The domain of a path such as `/a/b`.
    fn domain_at(&self, path: &str) -> Option<Key<Domain>> {
        let wanted = format!("ROOT/{}", path.trim_matches('/'));
        let wanted = wanted.trim_end_matches('/');
        self.domains.iter().find(|domain| self.domain_path(domain.key) == wanted).map(|domain| domain.key)
    }
}
