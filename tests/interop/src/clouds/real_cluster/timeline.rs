//! Where the seconds go between a manifest and its nodes, as the objects themselves tell it.

use anyhow::Result;
use jiff::Timestamp;
use serde_json::Value;

use super::life::Life;

/// Moments that are stamped on an object: which kind, where the stamp is, and what it means.
struct Told {
    kind: &'static str,
    of: Of,
    moments: &'static [(Stamp, &'static str)],
}

/// Whose object it is.
enum Of {
    Plane,
    Cluster,
}

/// Where a stamp is.
enum Stamp {
    /// At a path of fields.
    At(&'static str),
    /// Where a condition became true.
    True(&'static str),
}

const CREATED: Stamp = Stamp::At("/metadata/creationTimestamp");

const TOLD: [Told; 7] = [
    Told {
        kind: "kvmclusters",
        of: Of::Plane,
        moments: &[(Stamp::True("Ready"), "network and balancer are there")],
    },
    Told {
        kind: "machines",
        of: Of::Plane,
        moments: &[
            (CREATED, "machine is asked for"),
            (Stamp::True("BootstrapConfigReady"), "boot data is written"),
        ],
    },
    Told { kind: "kvmmachines", of: Of::Plane, moments: &[(Stamp::True("Ready"), "kubeadm is done")] },
    Told {
        kind: "kubeadmcontrolplanes",
        of: Of::Plane,
        moments: &[(Stamp::True("Initialized"), "control plane answers")],
    },
    Told {
        kind: "clusterresourcesetbindings",
        of: Of::Plane,
        moments: &[(Stamp::At("/spec/bindings/0/resources/0/lastAppliedTime"), "network add-on is applied")],
    },
    Told {
        kind: "nodes",
        of: Of::Cluster,
        moments: &[(CREATED, "node is registered"), (Stamp::True("Ready"), "node is ready")],
    },
    Told {
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

impl Life {
    /// Prints what happened when since the manifest was applied, to the second.
    pub(super) async fn timeline(&self) -> Result<()> {
        let mut lines = Vec::new();
        for told in &TOLD {
            let words: Vec<&str> = std::iter::once("get").chain(told.kind.split(' ')).collect();
            let objects = match told.of {
                Of::Plane => self.of_plane(&words).await?,
                Of::Cluster => self.of_cluster(&words).await?,
            };
            for object in &objects {
                // What runs on a node is told of the node.
                let names = [&object["spec"]["nodeName"], &object["metadata"]["name"]];
                let name = names.into_iter().find_map(Value::as_str).unwrap_or_default();
                lines.extend(told.moments.iter().filter_map(|(stamp, what)| {
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
