//! Domains, accounts, users, projects and their limits.

use serde_json::{Value, json};

use super::{Fields, time};
use crate::call::Caller;
use crate::cloud::Cloud;
use crate::model::identity::{Account, Domain, Project, Resource, User};
use crate::model::table::Key;

impl Cloud {
    pub(crate) fn show_domain(&self, key: Key<Domain>) -> Value {
        let row = &self.domains[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "level": self.domain_path(key).matches('/').count(),
            "haschild": self.domains.iter().any(|domain| domain.parent == Some(key)),
            "path": self.domain_path(key),
            "state": "Active",
            "hasannotations": false,
        }));
        for resource in Resource::ALL {
            let max = row.limits.get(resource).unwrap_or(-1);
            let used = self
                .accounts
                .iter()
                .filter(|account| self.is_within(account.domain, key))
                .map(|account| self.used(account.key, resource))
                .sum();
            put_limit(&mut fields, resource, max, used);
        }
        if let Some(parent) = row.parent {
            let parent = &self.domains[parent];
            fields
                .put("parentdomainid", parent.uuid.as_str())
                .put("parentdomainname", parent.name.as_str())
                .put("created", time(row.created));
        }
        fields.maybe("networkdomain", row.network_domain.as_deref());
        fields.done()
    }

    /// `sub`: to somebody who may see settings of the account.
    pub(crate) fn show_account(&self, key: Key<Account>, caller: Caller) -> Value {
        let row = &self.accounts[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "accounttype": row.role.account_type(),
            "roleid": self.roles.get(&row.role),
            "roletype": row.role.type_name(),
            "rolename": row.role.role_name(),
            "domainid": self.domains[row.domain].uuid,
            "domain": self.domains[row.domain].name,
            "domainpath": self.domain_path(row.domain),
            "state": if row.enabled { "enabled" } else { "disabled" },
            "created": time(row.created),
            "isdefault": row.default,
            "groups": [],
        }));
        self.put_limits(&mut fields, key);
        let users: Vec<Value> = self
            .users
            .iter()
            .filter(|user| user.account == key)
            .map(|user| {
                let mut user = Fields::of(self.show_user(user.key, caller));
                user.0.remove("apikeyaccess");
                user.done()
            })
            .collect();
        fields.put("user", users);
        if caller.is_root() {
            fields.put("apikeyaccess", "INHERIT");
        }
        fields.job(self, &row.uuid);
        fields.done()
    }

    fn put_limits(&self, fields: &mut Fields, key: Key<Account>) {
        for resource in Resource::ALL {
            put_limit(fields, resource, self.limit(key, resource), self.used(key, resource));
        }
        let running = |wanted| {
            self.vms
                .iter()
                .filter(|vm| vm.account == key && vm.state.counts() && vm.state.occupies() == wanted)
                .count()
        };
        fields.put("vmrunning", running(true)).put("vmstopped", running(false));
    }

    pub(crate) fn show_user(&self, key: Key<User>, caller: Caller) -> Value {
        let row = &self.users[key];
        let account = &self.accounts[row.account];
        let domain = &self.domains[account.domain];
        let below = account.domain != self.accounts[caller.account].domain
            && self.is_within(account.domain, self.accounts[caller.account].domain);
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "username": row.name,
            "firstname": row.first_name,
            "lastname": row.last_name,
            "created": time(row.created),
            "state": "enabled",
            "account": account.name,
            "accountid": account.uuid,
            "accounttype": account.role.account_type(),
            "usersource": "native",
            "roleid": self.roles.get(&account.role),
            "roletype": account.role.type_name(),
            "rolename": account.role.role_name(),
            "domainid": domain.uuid,
            "domain": domain.name,
            "iscallerchilddomain": below,
            "isdefault": account.default && row.name == "admin",
            "is2faenabled": false,
            "is2famandated": false,
        }));
        fields
            .maybe("email", row.email.as_deref())
            .maybe("apikey", row.keys.as_ref().map(|keys| keys.api.as_str()));
        if caller.is_root() {
            fields.put("apikeyaccess", "INHERIT");
        }
        fields.done()
    }

    pub(crate) fn show_project(&self, key: Key<Project>) -> Value {
        let row = &self.projects[key];
        let mut fields = Fields::of(json!({
            "id": row.uuid,
            "name": row.name,
            "displaytext": row.display_text,
            "domainid": self.domains[row.domain].uuid,
            "domain": self.domains[row.domain].name,
            "owner": [{"account": self.accounts[row.owner].name}],
            "projectaccountname": self.accounts[row.account].name,
            "state": if row.active { "Active" } else { "Suspended" },
            "tags": self.short_tags(&row.uuid),
            "created": time(row.created),
        }));
        self.put_limits(&mut fields, row.account);
        // Projects do not hold projects.
        for part in ["limit", "total", "available"] {
            fields.0.remove(&format!("project{part}"));
        }
        fields.done()
    }

    pub(crate) fn show_limit(&self, key: Key<Account>, resource: Resource) -> Value {
        let mut fields = Fields::of(json!({
            "resourcetype": resource.number().to_string(),
            "resourcetypename": resource.name(),
            "max": self.limit(key, resource),
        }));
        fields.owner(self, key);
        fields.done()
    }

    pub(crate) fn show_domain_limit(&self, key: Key<Domain>, resource: Resource) -> Value {
        let row = &self.domains[key];
        json!({
            "domainid": row.uuid,
            "domain": row.name,
            "domainpath": self.domain_path(key),
            "resourcetype": resource.number().to_string(),
            "resourcetypename": resource.name(),
            "max": row.limits.get(resource).unwrap_or(-1),
        })
    }

    pub(crate) fn show_count(&self, key: Key<Account>, resource: Resource) -> Value {
        let mut fields = Fields::of(json!({
            "resourcetype": resource.number().to_string(),
            "resourcetypename": resource.name(),
            "resourcecount": self.used(key, resource),
        }));
        fields.owner(self, key);
        fields.done()
    }
}

fn put_limit(fields: &mut Fields, resource: Resource, max: i64, used: i64) {
    let short = resource.short();
    // Secondary storage alone is counted in fractions.
    let fraction = resource == Resource::SecondaryStorage;
    let text = |number: i64| if number < 0 { "Unlimited".to_owned() } else { number.to_string() };
    let left = if max < 0 { -1 } else { (max - used).max(0) };
    let available = if fraction && left >= 0 { format!("{left}.0") } else { text(left) };
    fields.put(&format!("{short}limit"), text(max)).put(&format!("{short}available"), available);
    if fraction {
        #[expect(clippy::cast_precision_loss, reason = "gibibytes")]
        fields.put(&format!("{short}total"), used as f64);
    } else {
        fields.put(&format!("{short}total"), used);
    }
}
