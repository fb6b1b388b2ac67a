//! Why a cluster is not as wanted: one chain of causes, from what was asked for to the first fact that blocks.

use capstan_object::{Condition, Time};
use serde::Serialize;

use crate::part::code;
use crate::{Part, Standing, Tree};

/// One link of the chain: a part, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// `Kind/name`.
    pub part: String,
    /// The condition that speaks.
    pub condition: String,
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Since when.
    pub since: Option<Time>,
}

/// The fact that blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The part that is stuck.
    pub part: String,
    /// It goes, and something keeps it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub going: bool,
    /// Its error code, if it carries one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether something failed, rather than is not there yet.
    pub failed: bool,
    /// What its words mean, where Cluster API has no code for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

/// Whose turn it is, and what they can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Advice {
    /// Who can go on.
    pub turn: &'static str,
    /// How.
    pub mend: &'static str,
}

/// Words of Cluster API's conditions, which any of its controllers may have written, and what they mean to whoever
/// waits.
const ADVICE: [(&str, Advice); 4] = [
    (
        "disruption budget",
        Advice {
            turn: "user",
            mend: "have the Pods' owner run more copies, or lower what the PodDisruptionBudget demands; \
                   spec.deletion.nodeDrainTimeoutSeconds of the Machine ends the wait by force",
        },
    ),
    (
        "Waiting for a Node with spec.providerID",
        Advice {
            turn: "cluster",
            mend: "if it takes longer than a boot: read the machine's console (`capstan console`, or the cloud's own) \
                   for what kubeadm says, correct the bootstrap configuration, and delete the Machine",
        },
    ),
    (
        "does not exist",
        Advice { turn: "user", mend: "make what does not exist, or correct the reference to it" },
    ),
    ("spec.paused", Advice { turn: "user", mend: "`capstan resume` has controllers go on" }),
];

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// From what was asked about down to the cause.
    pub chain: Vec<Link>,
    /// What blocks.
    pub cause: Cause,
}

/// Follows what is not as wanted from the top of a tree down to where nothing below it explains it; `None` if all is
/// well.
pub fn why(tree: &Tree) -> Option<Why> {
    let mut at = open(tree)?;
    let mut chain = vec![link(&at.part)];
    while let Some(child) = worst(at) {
        at = child;
        chain.push(link(&at.part));
    }
    let code = at.part.complaint().and_then(code).map(str::to_owned);
    let failed = code.is_some() || at.part.standing() == Standing::Failing;
    let words = chain.last().map(|link| link.message.as_str()).unwrap_or_default();
    let advice = ADVICE.iter().find(|(says, _)| words.contains(says)).map(|(_, advice)| *advice);
    let advice = advice.filter(|_| code.is_none());
    let going = at.part.deleted.is_some();
    Some(Why { chain, cause: Cause { part: at.part.title(), going, code, failed, advice } })
}

/// The tree itself if anything in it is not as wanted.
fn open(tree: &Tree) -> Option<&Tree> {
    (!settled(&tree.part) || tree.children.iter().any(|child| open(child).is_some())).then_some(tree)
}

fn settled(part: &Part) -> bool {
    matches!(part.standing(), Standing::Well | Standing::Silent)
}

/// The child that explains it: one that fails before one that waits, what is needed first before what comes after. What
/// goes is explained by what still stands below it, unless nobody has asked that to go yet and it says itself why not.
fn worst(tree: &Tree) -> Option<&Tree> {
    let goes = tree.part.deleted.is_some();
    let says = tree.part.complaint().is_some_and(|complaint| !complaint.message.is_empty());
    let asked = tree.children.iter().any(|child| child.part.deleted.is_some());
    let stands = goes && (asked || !says);
    let open = tree.children.iter().filter(|child| stands || open(child).is_some());
    open.enumerate()
        .min_by_key(|(place, child)| (!fails(child), settled(&child.part), *place))
        .map(|(_, child)| child)
}

fn fails(tree: &Tree) -> bool {
    tree.part.standing() == Standing::Failing || tree.children.iter().any(fails)
}

fn link(part: &Part) -> Link {
    let complaint: Option<&Condition> = part.complaint();
    Link {
        part: part.title(),
        condition: complaint.map(|says| says.kind.clone()).unwrap_or_default(),
        reason: complaint.map(|says| says.reason.clone()).unwrap_or_default(),
        message: match complaint {
            Some(says) => says.message.clone(),
            None if part.deleted.is_some() => {
                format!("waits for its finalizers: {}", part.finalizers.join(", "))
            }
            None if part.unseen => "its controller has not seen the last change yet".to_owned(),
            None => String::new(),
        },
        since: complaint.map(|says| says.last_transition_time).or(part.deleted),
    }
}
