//! Versions of nodes, at every moment of an upgrade.

use std::collections::BTreeMap;

use capstan_guest::Site;
use capstan_harness::{Checker, Objects, Step};
use capstan_object::Scope;
use serde_json::Value;

use super::guests;
use crate::kinds::{has_label, in_guest, name};

/// Minor versions that a kubelet may be behind.
const MOST_BEHIND: u64 = 3;

/// S8: control plane nodes are at most one minor version apart; no worker is newer than the oldest API server or more
/// than three minor versions behind the newest; no control plane node is added that is older than the newest.
pub struct VersionsInOrder {
    site: Site,
    /// Newest version of a control plane, and its nodes, by cluster.
    newest: BTreeMap<String, (Version, Vec<String>)>,
}

type Version = (u64, u64, u64);

#[derive(Debug, Clone, PartialEq)]
struct Node {
    name: String,
    control_plane: bool,
    version: Version,
}

impl VersionsInOrder {
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone(), newest: BTreeMap::new() }
    }
}

fn version(text: &str) -> Option<Version> {
    let mut parts = text.trim_start_matches('v').split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

fn node(object: &Value) -> Option<Node> {
    Some(Node {
        name: name(object).to_owned(),
        control_plane: has_label(object, "node-role.kubernetes.io/control-plane"),
        version: version(object["status"]["nodeInfo"]["kubeletVersion"].as_str()?)?,
    })
}

/// Violation of the skew policy, if any.
fn skew(nodes: &[Node]) -> Option<String> {
    let minors = |control_plane: bool| {
        let of_role = nodes.iter().filter(move |node| node.control_plane == control_plane);
        of_role.map(|node| (node.version.1, node.name.as_str()))
    };
    let (oldest, newest) = (minors(true).min()?, minors(true).max()?);
    if newest.0 - oldest.0 > 1 {
        return Some(format!("control plane nodes {} and {} are too far apart", oldest.1, newest.1));
    }
    if let Some((_, ahead)) = minors(false).find(|(minor, _)| *minor > oldest.0) {
        return Some(format!("worker {ahead} is newer than the API server of {}", oldest.1));
    }
    let behind = minors(false).find(|(minor, _)| minor + MOST_BEHIND < newest.0);
    behind.map(|(_, behind)| format!("worker {behind} is too far behind the API server of {}", newest.1))
}

/// A new control plane node that is older than the existing ones.
fn goes_back(newest: Version, known: &[String], nodes: &[Node]) -> Option<String> {
    let came = |node: &&Node| node.control_plane && !known.contains(&node.name);
    let older = nodes.iter().filter(came).find(|node| node.version < newest);
    older.map(|node| {
        format!("control plane node {} was added with an older version than the others have", node.name)
    })
}

impl Checker for VersionsInOrder {
    fn name(&self) -> &'static str {
        "S8"
    }

    fn after(&mut self, _: &Step<'_>, _: &Objects) -> Result<(), String> {
        self.look()
    }

    fn idle(&mut self, _: &Objects) -> Result<(), String> {
        self.look()
    }
}

impl VersionsInOrder {
    fn look(&mut self) -> Result<(), String> {
        let kind = in_guest("Node", "nodes", Scope::Cluster);
        for (cluster, guest) in guests::formed(&self.site) {
            let objects = Objects::of(guest.server());
            let nodes: Vec<Node> = objects.list(&kind).iter().filter_map(node).collect();
            if let Some(wrong) = skew(&nodes) {
                return Err(wrong);
            }
            let (newest, known) = self.newest.entry(cluster).or_default();
            if let Some(wrong) = goes_back(*newest, known, &nodes) {
                return Err(wrong);
            }
            let control_plane = || nodes.iter().filter(|node| node.control_plane);
            *newest = control_plane().map(|node| node.version).max().unwrap_or_default();
            *known = control_plane().map(|node| node.name.clone()).collect();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(control_plane: &[u64], workers: &[u64]) -> Vec<Node> {
        let of = |minors: &[u64], control_plane: bool| -> Vec<Node> {
            let node = |(at, minor): (usize, &u64)| Node {
                name: format!("{control_plane}-{at}"),
                control_plane,
                version: (1, *minor, 0),
            };
            minors.iter().enumerate().map(node).collect()
        };
        let mut all = of(control_plane, true);
        all.extend(of(workers, false));
        all
    }

    #[test]
    fn workers_before_the_control_plane_and_skipped_minors_are_caught() {
        for (what, control_plane, workers, holds) in [
            ("all the same", &[35, 35, 35][..], &[35, 35][..], true),
            ("the control plane on its way", &[35, 36], &[35], true),
            ("the control plane first", &[36, 36], &[35, 36], true),
            ("a worker too early", &[35, 36], &[36], false),
            ("a minor skipped", &[35, 37], &[35], false),
            ("workers three behind", &[38], &[35], true),
            ("workers four behind", &[39], &[35], false),
        ] {
            let found = skew(&nodes(control_plane, workers));
            assert_eq!(found.is_none(), holds, "{what}: {found:?}");
        }
    }

    #[test]
    fn a_step_back_is_caught() {
        let known = ["true-0".to_owned()];
        assert_eq!(goes_back((1, 36, 0), &known, &nodes(&[36, 36], &[])), None);
        assert_eq!(
            goes_back((1, 36, 0), &["true-0".to_owned(), "true-1".to_owned()], &nodes(&[36, 35], &[])),
            None
        );
        assert!(goes_back((1, 36, 0), &known, &nodes(&[36, 35], &[])).is_some());
        assert_eq!(version("v1.36.2"), Some((1, 36, 2)));
    }
}
