//! Properties checked after every effect. The tests break each property with a defective controller, store or server:
//! a checker that catches nothing proves nothing.
//!
//! | property | checker |
//! |---|---|
//! | S1 one live machine per owner, S2 never more children than allowed | [`AtMost`] |
//! | S3 only resources with our mark are touched | [`OnlyOwned`] |
//! | S4 no finalizer is removed while a resource of the object exists or may appear | [`FinalizersGuard`] |
//! | S5 intent before call | [`IntentsFirst`] |
//! | S10 nothing while paused | [`NothingWhilePaused`] |
//! | S11 a deleting owner gets no children | [`NoChildrenWhileDeleting`] |
//! | S12 no decision on state older than our own writes | [`FollowsOwnWrites`] |
//! | A1 compare-and-swap is exact, A3 nothing acknowledged is lost | [`Acknowledged`] |
//! | A2 watches are ordered and unique, A4 list and watch agree | [`History`] for the store, [`WatchStreams`] for the server |
//!
//! L1 and L2 (the controllers become idle, and then write nothing) are checked by
//! [`World::run_until_idle`](crate::World::run_until_idle).

mod cloud;
mod fence;
mod history;
mod rules;
mod watch_streams;

use capstan_controller::{ApiError, EffectOf, KindName, ObjectRef};
use capstan_object::Key;
use jiff::Timestamp;

pub use cloud::{AtMost, Cloud, FinalizersGuard, Mutation, OnlyOwned, Resource};
pub use fence::FollowsOwnWrites;
pub use history::{Acknowledged, History};
pub use rules::{IntentsFirst, NoChildrenWhileDeleting, NothingWhilePaused};
pub use watch_streams::WatchStreams;

use crate::Objects;
use crate::watch_tap::{Collection, WatchEvent};

/// An effect, before or after it happens.
pub struct Step<'a> {
    /// Number of the effect in the run.
    pub number: usize,
    pub at: Timestamp,
    /// Name of the controller.
    pub actor: &'a str,
    pub effect: &'a EffectOf<'a>,
    /// Response that the controller gets; an ambiguous error if the response is lost.
    pub result: Result<&'a [u8], &'a ApiError>,
    /// The effect is in a workload cluster; checkers get the objects of the management cluster.
    pub workload: bool,
}

/// A property that must hold at every moment.
pub trait Checker: Send {
    /// The property, such as `S1`.
    fn name(&self) -> &'static str;

    /// Called before an effect.
    fn before(&mut self, _step: &Step<'_>, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }

    /// Called after an effect, failed or not.
    fn after(&mut self, _step: &Step<'_>, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }

    /// Called when a controller reads an object from a cache.
    fn read(&mut self, _actor: &str, _kind: &KindName, _key: &Key, _version: u64) -> Result<(), String> {
        Ok(())
    }

    /// Called when a controller has decided about an object; `read` are the versions the decision is based on.
    fn decided(
        &mut self,
        _actor: &str,
        _object: &ObjectRef,
        _read: &[(KindName, Key, u64)],
    ) -> Result<(), String> {
        Ok(())
    }

    /// Called for every event on a watch. `watch` is unique within its process.
    fn watch_event(
        &mut self,
        _watch: u64,
        _collection: &Collection,
        _event: &WatchEvent,
        _objects: &Objects,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Called when a process has restarted from its disk.
    fn booted(&mut self, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }

    /// Called when the controllers have become idle.
    fn idle(&mut self, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }
}
