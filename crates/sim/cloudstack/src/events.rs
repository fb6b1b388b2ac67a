//! The event log: what was ordered in an account, by whom, and how it ended.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::call::Call;
use crate::catalog::Kind;
use crate::cloud::Cloud;
use crate::jobs::Job;
use crate::model::identity::{Account, User};
use crate::model::table::Key;

/// Events kept at most; the oldest go first, as with `event.purge.delay`.
const KEPT: usize = 5000;

pub(crate) struct LogEntry {
    /// Number of the entry, never reused.
    pub(crate) number: u64,
    pub(crate) at: Timestamp,
    /// In whose log it is. That an order was scheduled is, for most commands, in the log of the owner of its resource; that it
    /// began and ended is in the log of the account that gave it.
    pub(crate) account: Key<Account>,
    pub(crate) user: Key<User>,
    pub(crate) kind: &'static str,
    pub(crate) state: &'static str,
    pub(crate) failed: bool,
    pub(crate) command: &'static str,
}

impl LogEntry {
    pub(crate) fn uuid(&self) -> String {
        format!("e0000000-0000-4000-8000-{:012x}", self.number)
    }
}

/// The event log of a cloud.
#[derive(Default)]
pub(crate) struct EventLog {
    written: u64,
    entries: VecDeque<LogEntry>,
}

impl EventLog {
    /// Entries that were ever written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Entries, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &LogEntry> {
        self.entries.iter()
    }
}

/// The event type of an asynchronous command.
fn kind(command: &str) -> Option<&'static str> {
    Some(match command {
        "createLoadBalancerRule" => "LB.CREATE",
        "deleteLoadBalancerRule" => "LB.DELETE",
        "updateLoadBalancerRule" => "LB.UPDATE",
        "assignToLoadBalancerRule" => "LB.ASSIGN.TO.RULE",
        "removeFromLoadBalancerRule" => "LB.REMOVE.FROM.RULE",
        "createFirewallRule" => "FIREWALL.OPEN",
        "deleteFirewallRule" => "FIREWALL.CLOSE",
        "createEgressFirewallRule" => "FIREWALL.EGRESS.OPEN",
        "deleteEgressFirewallRule" => "FIREWALL.EGRESS.CLOSE",
        "createRoutingFirewallRule" => "ROUTING.IPV4.FIREWALL.RULE.CREATE",
        "deleteRoutingFirewallRule" => "ROUTING.IPV4.FIREWALL.RULE.DELETE",
        "createPortForwardingRule" => "NET.RULEADD",
        "deletePortForwardingRule" => "NET.RULEDELETE",
        "associateIpAddress" => "NET.IPASSIGN",
        "disassociateIpAddress" => "NET.IPRELEASE",
        "createNetworkACLList" => "NETWORK.ACL.CREATE",
        "deleteNetworkACLList" => "NETWORK.ACL.DELETE",
        "replaceNetworkACLList" => "NETWORK.ACL.REPLACE",
        "createNetworkACL" => "NETWORK.ACL.ITEM.CREATE",
        "updateNetworkACLItem" => "NETWORK.ACL.ITEM.UPDATE",
        "deleteNetworkACL" => "NETWORK.ACL.ITEM.DELETE",
        "createVPC" => "VPC.CREATE",
        "updateVPC" => "VPC.UPDATE",
        "deleteVPC" => "VPC.DELETE",
        "updateNetwork" => "NETWORK.UPDATE",
        "restartNetwork" => "NETWORK.RESTART",
        "deleteNetwork" => "NETWORK.DELETE",
        "deployVirtualMachine" => "VM.CREATE",
        "destroyVirtualMachine" => "VM.DESTROY",
        "startVirtualMachine" => "VM.START",
        "stopVirtualMachine" => "VM.STOP",
        "rebootVirtualMachine" => "VM.REBOOT",
        "expungeVirtualMachine" => "VM.EXPUNGE",
        "createVolume" => "VOLUME.CREATE",
        "attachVolume" => "VOLUME.ATTACH",
        "detachVolume" => "VOLUME.DETACH",
        "createAffinityGroup" => "AG.CREATE",
        "deleteAffinityGroup" => "AG.DELETE",
        "createTags" => "CREATE_TAGS",
        "deleteTags" => "DELETE_TAGS",
        _ => return None,
    })
}

/// Commands whose resource is made before its job begins, which the log shows too.
const CREATED: [&str; 5] = [
    "createFirewallRule",
    "createEgressFirewallRule",
    "createRoutingFirewallRule",
    "createNetworkACL",
    "createVPC",
];

/// Commands that name whoever calls as the owner of what they are about: the owner's log shows nothing of an
/// administrator's call, not even that it was scheduled.
const OF_THE_CALLER: [&str; 8] = [
    "createFirewallRule",
    "createEgressFirewallRule",
    "createPortForwardingRule",
    "createNetworkACL",
    "updateNetworkACLItem",
    "deleteNetworkACL",
    "deleteNetworkACLList",
    "replaceNetworkACLList",
];

impl Cloud {
    /// The account whose log shows that a call was scheduled: that of what the call is about, for most commands.
    pub(crate) fn concerned(&self, call: &Call) -> Key<Account> {
        if OF_THE_CALLER.contains(&call.command.name) {
            return call.caller.account;
        }
        let owner = |kind: &str, id: &str| match kind {
            "lb" => self.lb_rules.find(id).map(|key| self.lb_rules[key].account),
            "firewall" => self.firewall_rules.find(id).map(|key| self.firewall_rules[key].account),
            "forwarding" => self.forwardings.find(id).map(|key| self.forwardings[key].account),
            "ip" => self.ips.find(id).and_then(|key| self.ips[key].held.as_ref().map(|held| held.account)),
            "network" => self.networks.find(id).map(|key| self.networks[key].account),
            "vpc" => self.vpcs.find(id).map(|key| self.vpcs[key].account),
            "vm" => self.vms.find(id).map(|key| self.vms[key].account),
            "volume" => self.volumes.find(id).map(|key| self.volumes[key].account),
            _ => None,
        };
        let named = call.command.parameters().find_map(|parameter| match parameter.kind {
            Kind::Entity(kind) => owner(kind, call.text(parameter.name)?),
            _ => None,
        });
        named.or_else(|| self.owner(call).ok()).unwrap_or(call.caller.account)
    }

    pub(crate) fn log_begin(&mut self, job: Key<Job>) {
        if CREATED.contains(&self.jobs[job].command.name) {
            self.log(job, "Created", false);
        }
        self.log(job, "Scheduled", false);
        self.log(job, "Started", false);
    }

    pub(crate) fn log_end(&mut self, job: Key<Job>) {
        let failed = matches!(self.jobs[job].outcome, Some(Err(_)));
        self.log(job, "Completed", failed);
    }

    fn log(&mut self, job: Key<Job>, state: &'static str, failed: bool) {
        let row = &self.jobs[job];
        let Some(kind) = kind(row.command.name) else { return };
        let account = if state == "Scheduled" { row.concerned } else { row.account };
        let (user, command) = (row.user, row.command.name);
        let log = &mut self.log;
        log.written += 1;
        let number = log.written;
        log.entries.push_back(LogEntry { number, at: self.now, account, user, kind, state, failed, command });
        while log.entries.len() > KEPT {
            log.entries.pop_front();
        }
    }
}
