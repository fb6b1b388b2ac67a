//! Domains, accounts and users.

use serde_json::{Value, json};

use super::{domain_admin, job, root_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Submission, success};
use crate::model::identity::{Account, Domain, Limits, RoleType, User};
use crate::model::table::Key;

pub(super) const COMMANDS: &[Command] = &[
    domain_admin(sync("listDomains", "id:domain name level:number listall:flag", list_domains)),
    root_admin(sync("createDomain", "name! parentdomainid:domain networkdomain", create_domain)),
    root_admin(job("deleteDomain", "id:domain! cleanup:flag", "admin.domain.DeleteDomainCmd", delete_domain)),
    sync(
        "listAccounts",
        "id:account name domainid:domain accounttype:number state listall:flag",
        list_accounts,
    ),
    domain_admin(sync(
        "createAccount",
        "accounttype:number username! password! firstname! lastname! email! account domainid:domain \
         roleid:role",
        create_account,
    )),
    domain_admin(job(
        "disableAccount",
        "id:account account domainid:domain lock:flag!",
        "admin.account.DisableAccountCmd",
        disable_account,
    )),
    domain_admin(sync("enableAccount", "id:account account domainid:domain", enable_account)),
    domain_admin(sync("lockAccount", "account! domainid:domain!", lock_account)),
    domain_admin(job("deleteAccount", "id:account!", "admin.account.DeleteAccountCmd", delete_account)),
    sync(
        "listUsers",
        "id:user username account domainid:domain state listall:flag accounttype:number",
        list_users,
    ),
    root_admin(sync("getUser", "userapikey!", get_user)),
    sync("getUserKeys", "id:user!", get_user_keys),
    sync("registerUserKeys", "id:user! startdate:date enddate:date", register_user_keys),
];

fn list_domains(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let own = cloud.accounts[call.caller.account].domain;
    let everything = call.is("listall") || call.text("id").is_some();
    let shown = cloud
        .domains
        .iter()
        .filter(|domain| {
            let within = cloud.is_within(domain.key, own);
            within
                && (everything || call.caller.is_root() || domain.key == own)
                && call.selects(&cloud.domains, "id", domain.key)
                && call.names("name", &domain.name)
                && call.keyword_in(&[&domain.name])
        })
        .map(|domain| cloud.show_domain(domain.key))
        .collect();
    Ok(Answer::List("domain", shown))
}

fn create_domain(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let name = call.text("name").unwrap_or_default().to_owned();
    let parent = call.key(&cloud.domains, "parentdomainid");
    let parent = parent.or_else(|| cloud.domains.iter().next().map(|domain| domain.key));
    if cloud.domains.iter().any(|domain| domain.parent == parent && domain.name.eq_ignore_ascii_case(&name)) {
        return Err(ApiError::invalid(format!(
            "Domain with name [{name}] already exists for the parent with ID [{}].",
            parent.map_or(0, Key::number)
        )));
    }
    let network_domain = call.filled("networkdomain").map(str::to_owned);
    let it = Domain { name, parent, network_domain, limits: Limits::default() };
    let uuid = cloud.fresh_uuid();
    let key = cloud.domains.insert(uuid, cloud.now, it);
    Ok(Answer::Object("domain", cloud.show_domain(key)))
}

fn delete_domain(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let domain = call.the(&cloud.domains, "id")?;
    let cleanup = call.is("cleanup");
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        let within: Vec<_> = cloud
            .accounts
            .iter()
            .filter(|account| cloud.is_within(account.domain, domain))
            .map(|account| account.key)
            .collect();
        let below = cloud.domains.iter().any(|other| other.parent == Some(domain));
        if !cleanup && (below || !within.is_empty()) {
            return Err(ApiError::runtime(format!(
                "Delete failed on domain {}; Please make sure all users and sub domains have been removed from the \
                 domain before deleting",
                cloud.domains[domain].name
            )));
        }
        for account in within {
            cloud.remove_account(account);
        }
        cloud.domains.remove(domain);
        Ok(success())
    });
    Ok(Answer::Job(submission.about("Domain")))
}

fn list_accounts(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    if let Some(account) = call.key(&cloud.accounts, "id") {
        cloud.allow(call.caller, account)?;
    }
    let scope = cloud.scope(call)?;
    let shown = cloud
        .accounts
        .iter()
        .filter(|account| {
            // The system's own account is nobody's business.
            account.name != "system"
                && cloud.shows(call, scope, account.key)
                && call.selects(&cloud.accounts, "id", account.key)
                && call.names("name", &account.name)
                && call.keyword_in(&[&account.name])
                && call.number("accounttype").is_none_or(|kind| kind == account.role.account_type())
                && call.names("state", if account.enabled { "enabled" } else { "disabled" })
        })
        .map(|account| cloud.show_account(account.key, call.caller))
        .collect();
    Ok(Answer::List("account", shown))
}

fn create_account(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let text = |name: &str| call.text(name).unwrap_or_default();
    let caller_domain = cloud.accounts[call.caller.account].domain;
    let domain = call.key(&cloud.domains, "domainid").unwrap_or(caller_domain);
    if !call.caller.is_root() && !cloud.is_within(domain, caller_domain) {
        return Err(ApiError::not_yours());
    }
    let taken = cloud.users.iter().any(|user| {
        user.name.eq_ignore_ascii_case(text("username")) && cloud.accounts[user.account].domain == domain
    });
    if taken {
        return Err(ApiError::invalid(format!(
            "The user {} already exists in domain {}",
            text("username"),
            cloud.domains[domain].name
        )));
    }
    let role = RoleType::of_account_type(call.number("accounttype").unwrap_or(0))
        .ok_or_else(|| ApiError::invalid("Invalid account type"))?;
    let name = call.filled("account").unwrap_or(text("username")).to_owned();
    let account = cloud.add_account(&name, domain, role, false);
    let person = (text("firstname"), text("lastname"));
    cloud.add_user(account, text("username"), text("password"), person, Some(text("email")));
    Ok(Answer::Object("account", cloud.show_account(account, call.caller)))
}

/// The account that a command of an admin is about.
fn named_account(cloud: &Cloud, call: &Call) -> Result<Key<Account>> {
    let found = match call.key(&cloud.accounts, "id") {
        Some(account) => Some(account),
        None => call
            .key(&cloud.domains, "domainid")
            .and_then(|domain| cloud.account_named(call.text("account")?, domain)),
    };
    let account = found.ok_or_else(|| ApiError::invalid("Unable to find active account by accountId"))?;
    cloud.allow(call.caller, account)?;
    Ok(account)
}

fn disable_account(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let account = named_account(cloud, call)?;
    let (caller, uuid) = (call.caller, cloud.accounts[account].uuid.clone());
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        cloud.accounts[account].enabled = false;
        Ok(json!({"account": cloud.show_account(account, caller)}))
    });
    Ok(Answer::Job(submission.about_the("Account", &uuid)))
}

fn enable_account(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let account = named_account(cloud, call)?;
    cloud.accounts[account].enabled = true;
    Ok(Answer::Object("account", cloud.show_account(account, call.caller)))
}

fn lock_account(_: &mut Cloud, _: &Call) -> Result<Answer> {
    Err(ApiError::runtime(
        "LockAccount does not lock Accounts. Its implementation is disabled. Use DisableAccount instead.",
    ))
}

fn delete_account(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let account = call.the(&cloud.accounts, "id")?;
    cloud.allow(call.caller, account)?;
    let uuid = cloud.accounts[account].uuid.clone();
    let submission = Submission::once(cloud.settings.timings.network, move |cloud, _| {
        cloud.remove_account(account);
        Ok(success())
    });
    Ok(Answer::Job(submission.about_the("Account", &uuid)))
}

impl Cloud {
    /// Removes an account with everything it owns.
    fn remove_account(&mut self, account: Key<Account>) {
        let vms: Vec<_> = self.vms.iter().filter(|vm| vm.account == account).map(|vm| vm.key).collect();
        for vm in vms {
            self.power_off(vm);
            self.expunge(vm);
        }
        let volumes: Vec<_> =
            self.volumes.iter().filter(|volume| volume.account == account).map(|volume| volume.key).collect();
        for volume in volumes {
            self.volumes.remove(volume);
        }
        let networks: Vec<_> = self
            .networks
            .iter()
            .filter(|network| network.account == account)
            .map(|network| network.key)
            .collect();
        for network in networks {
            self.remove_network(network);
        }
        let groups: Vec<_> = self
            .affinity_groups
            .iter()
            .filter(|group| group.account == account)
            .map(|group| group.key)
            .collect();
        for group in groups {
            self.remove_affinity_group(group);
        }
        let users: Vec<_> =
            self.users.iter().filter(|user| user.account == account).map(|user| user.key).collect();
        for user in users {
            self.users.remove(user);
        }
        self.tags.retain(|tag| tag.account != account);
        self.accounts.remove(account);
    }
}

fn list_users(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    if let Some(user) = call.key(&cloud.users, "id")
        && !cloud.may_operate(call.caller, cloud.users[user].account)
    {
        return Err(ApiError::denied("Calling user is not authorized to see the user requested by id"));
    }
    let scope = cloud.scope(call)?;
    let shown = cloud
        .users
        .iter()
        .filter(|user| {
            cloud.shows(call, scope, user.account)
                && call.selects(&cloud.users, "id", user.key)
                && call.names("username", &user.name)
                && call.keyword_in(&[&user.name, &user.first_name, &user.last_name])
        })
        .map(|user| cloud.show_user(user.key, call.caller))
        .collect();
    Ok(Answer::List("user", shown))
}

fn get_user(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let wanted = call.text("userapikey");
    let user = cloud
        .users
        .iter()
        .find(|user| user.keys.as_ref().map(|keys| keys.api.as_str()) == wanted)
        .ok_or_else(|| ApiError::invalid("User by the specified API key doesn't exist"))?;
    let mut shown = cloud.show_user(user.key, call.caller);
    if let Value::Object(fields) = &mut shown {
        fields.remove("apikeyaccess");
    }
    Ok(Answer::Object("user", shown))
}

/// A user whom the caller may act for.
fn own_user(cloud: &Cloud, call: &Call) -> Result<Key<User>> {
    let user = call.the(&cloud.users, "id")?;
    cloud.allow(call.caller, cloud.users[user].account)?;
    Ok(user)
}

fn get_user_keys(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let user = own_user(cloud, call)?;
    let mut shown = json!({"apikeyaccess": true});
    if let Some(keys) = &cloud.users[user].keys {
        shown["apikey"] = json!(keys.api);
        shown["secretkey"] = json!(keys.secret);
    }
    Ok(Answer::Object("userkeys", shown))
}

fn register_user_keys(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let user = own_user(cloud, call)?;
    cloud.issue_keys(user);
    let keys = cloud.users[user].keys.as_ref();
    let shown = keys.map_or(Value::Null, |keys| json!({"apikey": keys.api, "secretkey": keys.secret}));
    Ok(Answer::Object("userkeys", shown))
}
