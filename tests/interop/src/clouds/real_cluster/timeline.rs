//! Prints the steps between a manifest and its ready nodes, with their times from the objects.

use anyhow::Result;
use jiff::Timestamp;
use serde_json::Value;

use super::lifecycle::TestCluster;

/// Timestamps of a kind: where they are and what they mean.
struct StampedKind {
    kind: &'static str,
    of: Of,
    moments: &'static [(Stamp, &'static str)],
}

/// Which cluster the object is in.
enum Of {
    Plane,
    Cluster,
}

/// Location of a timestamp.
enum Stamp {
    /// At a JSON pointer.
    At(&'static str),
    /// `lastTransitionTime` of a condition that is true.
    True(&'static str),
}

const CREATED: Stamp = Stamp::At("/metadata/creationTimestamp");

const STAMPED_KINDS: [StampedKind; 7] = [
    StampedKind {
        kind: "kvmclusters",
        of: Of::Plane,
        moments: &[(Stamp::True("Ready"), "network and load balancer are ready")],
    },
    StampedKind {
        kind: "machines",
        of: Of::Plane,
        moments: &[
            (CREATED, "machine is created"),
            (Stamp::True("BootstrapConfigReady"), "boot data is written"),
        ],
    },
    StampedKind { kind: "kvmmachines", of: Of::Plane, moments: &[(Stamp::True("Ready"), "kubeadm is done")] },
    StampedKind {
        kind: "kubeadmcontrolplanes",
        of: Of::Plane,
        moments: &[(Stamp::True("Initialized"), "control plane answers")],
    },
    StampedKind {
        kind: "clusterresourcesetbindings",
        of: Of::Plane,
        moments: &[(Stamp::At("/spec/bindings/0/resources/0/lastAppliedTime"), "network add-on is applied")],
    },
    StampedKind {
        kind: "nodes",
        of: Of::Cluster,
        moments: &[(CREATED, "node is registered"), (Stamp::True("Ready"), "node is ready")],
    },
    StampedKind {
        kind: "pods --namespace=kube-system --selector=app=node-routes",
        of: Of::Cluster,
        moments: &[(Stamp::At("/status/containerStatuses/0/state/running/startedAt"), "network add-on runs")],
    },
];

impl Stamp {
    fn read(&self, object: &Value) -> Option<Timestamp> {
        let stamp = match self {
            Stamp::At(path) => object.pointer(path)?,
            Stamp::True(kind) => {
                let conditions = object["status"]["conditions"].as_array()?;
                let is = |it: &&Value| it["type"] == *kind && it["status"] == "True";
                &conditions.iter().find(is)?["lastTransitionTime"]
            }
        };
        stamp.as_str()?.parse().ok()
    }
}

impl TestCluster {
    /// Prints the timeline since the manifest was applied, to the second.
    pub(super) async fn timeline(&self) -> Result<()> {
        let mut lines = Vec::new();
        for stamped in &STAMPED_KINDS {
            let words: Vec<&str> = std::iter::once("get").chain(stamped.kind.split(' ')).collect();
            let objects = match stamped.of {
                Of::Plane => self.of_plane(&words).await?,
                Of::Cluster => self.of_cluster(&words).await?,
            };
            for object in &objects {
                // Pods are listed under their node.
                let names = [&object["spec"]["nodeName"], &object["metadata"]["name"]];
                let name = names.into_iter().find_map(Value::as_str).unwrap_or_default();
                lines.extend(stamped.moments.iter().filter_map(|(stamp, what)| {
                    let after = stamp.read(object)?.duration_since(self.applied);
                    Some((after.as_secs().max(0), name.to_owned(), *what))
                }));
            }
        }
        lines.sort_by_key(|(after, ..)| *after);
        for (after, name, what) in lines {
            println!("    {after:>3} s  {name}: {what}");
        }
        Ok(())
    }
}
