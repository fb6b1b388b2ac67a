//! What must hold, checked after every effect. Each property has a controller, a store or a server that breaks it in
//! the tests: a checker that catches nothing proves nothing.
//!
//! | property | checker |
//! |---|---|
//! | S1 one live machine per owner, S2 never more children than allowed | [`AtMost`] |
//! | S3 only what is ours is touched | [`OnlyOurs`] |
//! | S4 no finalizer goes while something of the object exists or may appear | [`FinalizersGuard`] |
//! | S5 intent before call | [`IntentsFirst`] |
//! | S10 nothing while paused | [`NothingWhilePaused`] |
//! | S11 a deleting owner gets no children | [`NoChildrenOfTheDying`] |
//! | S12 no decision on state older than our own writes | [`FollowsOwnWrites`] |
//! | A1 compare-and-swap is exact, A3 nothing acknowledged is lost | [`Acknowledged`] |
//! | A2 watches are ordered and unique, A4 list and watch are the state | [`History`] of the store, [`Heard`] of the server |
//!
//! L1 and L2, that the plane comes to rest and then writes nothing, are [`World::rest`](crate::World::rest) itself.

mod cloud;
mod fence;
mod heard;
mod history;
mod rules;

use capstan_controller::{ApiError, EffectOf, KindName, ObjectRef};
use capstan_object::Key;
use jiff::Timestamp;

pub use cloud::{AtMost, Cloud, FinalizersGuard, Mutation, OnlyOurs, Resource};
pub use fence::FollowsOwnWrites;
pub use heard::Heard;
pub use history::{Acknowledged, History};
pub use rules::{IntentsFirst, NoChildrenOfTheDying, NothingWhilePaused};

use crate::Objects;
use crate::wire::{Collection, Told};

/// An effect about to happen or just happened.
pub struct Step<'a> {
    /// Its number in the run.
    pub number: usize,
    /// When.
    pub at: Timestamp,
    /// Which controller.
    pub actor: &'a str,
    /// What.
    pub effect: &'a EffectOf<'a>,
    /// What the controller hears; an ambiguous error if it hears nothing.
    pub result: Result<&'a [u8], &'a ApiError>,
    /// It happens in a workload cluster, whose objects are not those that checkers are given.
    pub workload: bool,
}

/// A property that must hold at every moment.
pub trait Checker: Send {
    /// The property, such as `S1`.
    fn name(&self) -> &'static str;

    /// An effect is about to happen.
    fn before(&mut self, _step: &Step<'_>, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }

    /// An effect happened or failed.
    fn after(&mut self, _step: &Step<'_>, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }

    /// A controller reads an object from a cache, in this version.
    fn read(&mut self, _actor: &str, _kind: &KindName, _key: &Key, _version: u64) -> Result<(), String> {
        Ok(())
    }

    /// A controller decided about an object, having read these versions.
    fn decided(
        &mut self,
        _actor: &str,
        _object: &ObjectRef,
        _read: &[(KindName, Key, u64)],
    ) -> Result<(), String> {
        Ok(())
    }

    /// The process hears something of its server on a watch, which has a number in its process.
    fn told(
        &mut self,
        _watch: u64,
        _collection: &Collection,
        _told: &Told,
        _objects: &Objects,
    ) -> Result<(), String> {
        Ok(())
    }

    /// A process started on what its disk holds.
    fn booted(&mut self, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }

    /// The plane has come to rest.
    fn at_rest(&mut self, _objects: &Objects) -> Result<(), String> {
        Ok(())
    }
}
