//! etcd of the workload clusters.

use std::collections::BTreeMap;

use capstan_capi_types::core::{Machine, label};
use capstan_controller::{EffectOf, KindName};
use capstan_guest::Site;
use capstan_guest::vm::Phase;
use capstan_harness::{Checker, Objects, Step};
use serde_json::Value;

use super::counts::{cluster_stays, control_plane_of};
use super::guests;
use crate::kinds::{has_label, is_deleting, name};

/// S6: no effect costs etcd its quorum; no member is removed while another is unhealthy or a learner; a control plane
/// takes one step at a time.
pub struct KeepsQuorum {
    site: Site,
    /// State before the current step.
    before: BTreeMap<String, Vec<Member>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    name: String,
    votes: bool,
    runs: bool,
}

impl KeepsQuorum {
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone(), before: BTreeMap::new() }
    }

    fn members(&self) -> BTreeMap<String, Vec<Member>> {
        let mut all = BTreeMap::new();
        for (cluster, machines) in guests::clusters(&self.site) {
            let Some((_, guest)) = machines.first() else { continue };
            let runs = |node: &str| {
                let of_node = machines.iter().find(|(vm, _)| vm.node.as_deref() == Some(node));
                of_node.is_some_and(|(vm, _)| vm.phase != Phase::Off)
            };
            let members = guest.etcd_members().into_iter();
            let members = members.map(|member| Member {
                runs: runs(&member.name),
                votes: !member.learner,
                name: member.name,
            });
            all.insert(cluster, members.collect());
        }
        all
    }
}

/// More than half of the voters run.
fn has_quorum(members: &[Member]) -> bool {
    let voters: Vec<&Member> = members.iter().filter(|member| member.votes).collect();
    voters.iter().filter(|member| member.runs).count() * 2 > voters.len()
}

/// What is wrong with a step's effect on etcd.
fn wrong(before: &[Member], after: &[Member]) -> Option<String> {
    if has_quorum(before) && !has_quorum(after) {
        return Some(format!("etcd lost its quorum: {after:?}"));
    }
    let removed: Vec<&Member> =
        before.iter().filter(|member| !after.iter().any(|other| other.name == member.name)).collect();
    let unwell = |member: &&Member| {
        (!member.runs || !member.votes) && !removed.iter().any(|gone| gone.name == member.name)
    };
    match (removed.first(), before.iter().find(unwell)) {
        _ if removed.len() > 1 => {
            Some(format!("several members were removed from etcd at once: {removed:?}"))
        }
        (Some(removed), Some(unwell)) => {
            Some(format!("{} was removed from etcd while {} was unhealthy", removed.name, unwell.name))
        }
        _ => None,
    }
}

/// Machines of a control plane that are joining or being deleted.
fn under_way(machines: &[Value]) -> Vec<&str> {
    let moves = |machine: &&Value| is_deleting(machine) || machine["status"]["nodeRef"]["name"].is_null();
    machines.iter().filter(moves).map(name).collect()
}

impl Checker for KeepsQuorum {
    fn name(&self) -> &'static str {
        "S6"
    }

    fn before(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        self.before = self.members();
        if step.workload {
            return Ok(());
        }
        let machines = KindName::of::<Machine>();
        let (cluster, concerned) = match step.effect {
            EffectOf::Create { kind, key, body }
                if **kind == machines && has_label(body, label::CONTROL_PLANE) =>
            {
                (body["spec"]["clusterName"].clone(), *key)
            }
            EffectOf::Delete { kind, key, .. } if **kind == machines => match objects.get(kind, key) {
                Some(machine) if has_label(&machine, label::CONTROL_PLANE) => {
                    (machine["spec"]["clusterName"].clone(), *key)
                }
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        let cluster = cluster.as_str().unwrap_or_default();
        if !cluster_stays(cluster, objects) {
            return Ok(());
        }
        let all = control_plane_of(cluster, objects);
        match under_way(&all).into_iter().find(|other| *other != concerned.name) {
            Some(other) => Err(format!("{} begins to change while {other} still changes", concerned.name)),
            None => Ok(()),
        }
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let now = self.members();
        for (cluster, after) in &now {
            let Some(before) = self.before.get(cluster) else { continue };
            if cluster_stays(cluster, objects)
                && let Some(wrong) = wrong(before, after)
            {
                return Err(wrong);
            }
        }
        self.before = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(text: &str) -> Vec<Member> {
        // Upper case votes, lower case is a learner, `!` marks a dead member.
        let mut members: Vec<Member> = Vec::new();
        for c in text.chars() {
            match (c, members.last_mut()) {
                ('!', Some(last)) => last.runs = false,
                _ => members.push(Member {
                    name: c.to_ascii_lowercase().to_string(),
                    votes: c.is_uppercase(),
                    runs: true,
                }),
            }
        }
        members
    }

    #[test]
    fn quorum_loss_and_removal_beside_an_unhealthy_member_are_caught() {
        for (what, before, after, holds) in [
            ("nothing happens", "ABC", "ABC", true),
            ("one of three goes", "ABC", "AB", true),
            ("the dead one goes", "AB!C", "AC", true),
            ("a healthy one goes beside a dead one", "AB!C", "AB!", false),
            ("a healthy one goes beside a learner", "ABCd", "ABd", false),
            ("a member dies", "AB", "AB!", false),
            ("two go at once", "ABC", "A", false),
            ("one joins", "AB", "ABc", true),
            ("it had no quorum anyway", "A!B!C", "A!B!C", true),
        ] {
            let found = wrong(&members(before), &members(after));
            assert_eq!(found.is_none(), holds, "{what}: {found:?}");
        }
    }

    #[test]
    fn machines_that_join_or_are_deleted_are_under_way() {
        let home = json!({"metadata": {"name": "home"}, "status": {"nodeRef": {"name": "n"}}});
        let coming = json!({"metadata": {"name": "coming"}});
        let mut going = home.clone();
        going["metadata"] = json!({"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(under_way(&[home, coming, going]), ["coming", "going"]);
    }
}
