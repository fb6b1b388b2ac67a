//! Properties of cloud resources that the controllers create.

use std::collections::BTreeMap;

use capstan_controller::{EffectOf, KindName};
use capstan_object::Key;
use serde_json::Value;

use super::{Checker, Step};
use crate::Objects;

/// A resource in a cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub id: String,
    /// Uid of the object whose ownership mark it carries; `None` if it carries none of ours.
    pub owner: Option<String>,
}

/// A change of a cloud resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    pub verb: String,
    /// The resource before the change.
    pub resource: Resource,
}

/// A simulated cloud as checkers see it: complete and without delay.
pub trait Cloud: Send {
    /// All resources, including those being created or destroyed.
    fn resources(&self) -> Vec<Resource>;

    /// The changes of existing resources since the last call.
    fn mutations(&mut self) -> Vec<Mutation>;
}

type Bound = Box<dyn Fn(&str, &Objects) -> Option<usize> + Send>;

/// S1, S2: an owner never has more resources than allowed.
pub struct AtMost<C> {
    name: &'static str,
    cloud: C,
    bound: Bound,
}

impl<C: Cloud> AtMost<C> {
    /// `bound` returns how many resources an owner (by uid) may have; `None` for unknown owners.
    pub fn new(
        name: &'static str,
        cloud: C,
        bound: impl Fn(&str, &Objects) -> Option<usize> + Send + 'static,
    ) -> Self {
        Self { name, cloud, bound: Box::new(bound) }
    }
}

impl<C: Cloud> Checker for AtMost<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn after(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let mut by_owner: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for resource in self.cloud.resources() {
            if let Some(owner) = resource.owner {
                by_owner.entry(owner).or_default().push(resource.id);
            }
        }
        for (owner, ids) in by_owner {
            if let Some(bound) = (self.bound)(&owner, objects)
                && ids.len() > bound
            {
                return Err(format!("owner {owner} may have {bound} but has {}", ids.join(", ")));
            }
        }
        Ok(())
    }
}

/// S3: only resources with our mark are changed or destroyed.
pub struct OnlyOwned<C>(pub C);

impl<C: Cloud> Checker for OnlyOwned<C> {
    fn name(&self) -> &'static str {
        "S3"
    }

    fn after(&mut self, _: &Step<'_>, _: &Objects) -> Result<(), String> {
        match self.0.mutations().into_iter().find(|mutation| mutation.resource.owner.is_none()) {
            Some(mutation) => {
                Err(format!("{} of {}, which has no mark of ours", mutation.verb, mutation.resource.id))
            }
            None => Ok(()),
        }
    }
}

/// S4: no finalizer is removed while a resource of the object exists or may still appear.
pub struct FinalizersGuard<C> {
    cloud: C,
    kind: KindName,
    finalizer: String,
    /// Uids of the objects that had the finalizer when last checked.
    guarded: BTreeMap<Key, String>,
}

impl<C: Cloud> FinalizersGuard<C> {
    pub fn new(cloud: C, kind: KindName, finalizer: &str) -> Self {
        Self { cloud, kind, finalizer: finalizer.to_owned(), guarded: BTreeMap::new() }
    }

    fn guarded_now(&self, objects: &Objects) -> BTreeMap<Key, String> {
        let has = |object: &Value| {
            let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
            finalizers.into_iter().any(|name| name == self.finalizer.as_str())
        };
        objects
            .list(&self.kind)
            .iter()
            .filter(|object| has(object))
            .filter_map(|object| {
                let text = |field: &str| object["metadata"][field].as_str();
                let key = Key::new(text("namespace").unwrap_or_default(), text("name")?);
                Some((key, text("uid")?.to_owned()))
            })
            .collect()
    }

    /// The object whose finalizers an effect changes. Finalizers that users remove meanwhile are not the controllers'
    /// doing.
    fn finalized<'a>(&self, effect: &EffectOf<'a>) -> Option<&'a Key> {
        let (kind, key, body) = match effect {
            EffectOf::Patch { kind, key, patch, .. } => (kind, key, patch.body()),
            EffectOf::Replace { kind, key, body, .. } => (kind, key, *body),
            _ => return None,
        };
        (**kind == self.kind && body["metadata"].get("finalizers").is_some()).then_some(*key)
    }
}

impl<C: Cloud> Checker for FinalizersGuard<C> {
    fn name(&self) -> &'static str {
        "S4"
    }

    fn before(&mut self, _: &Step<'_>, objects: &Objects) -> Result<(), String> {
        // Steps overlap: this state may already include a write whose response is still in flight.
        let now = self.guarded_now(objects);
        self.guarded.extend(now);
        Ok(())
    }

    fn after(&mut self, step: &Step<'_>, objects: &Objects) -> Result<(), String> {
        let now = self.guarded_now(objects);
        let gone = self.finalized(step.effect).filter(|key| !now.contains_key(*key));
        let gone = gone.and_then(|key| self.guarded.remove(key));
        self.guarded.extend(now);
        let Some(uid) = gone else { return Ok(()) };
        match self.cloud.resources().into_iter().find(|resource| resource.owner.as_ref() == Some(&uid)) {
            Some(left) => Err(format!("the finalizer of {uid} was removed while {} exists", left.id)),
            None => Ok(()),
        }
    }
}
