//! A recorded sequence: its initial state, its final state, and every step between.

use anyhow::{Context, Result, bail};
use capstan_capi_core::machine_deployment::rollout::Strategy;
use capstan_object::IntOrString;
use regex::Regex;

use super::world::{Deployment, Machine, Planner, Set, Toleration, World};

pub struct Golden {
    pub name: String,
    lines: Vec<String>,
}

impl Golden {
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let name = lines.next().and_then(|line| line.strip_prefix("## ")).context("no title")?.to_owned();
        Ok(Self { name, lines: lines.map(str::to_owned).collect() })
    }

    /// The steps without their explanations, whose wording differs.
    pub fn steps(&self) -> Vec<&str> {
        self.lines
            .iter()
            .map(String::as_str)
            .filter(|line| !line.is_empty() && !line.trim_start().starts_with("- Reason:"))
            .collect()
    }

    /// The seed, if the order is random.
    pub fn seed(&self) -> Result<Option<i64>> {
        let Some((_, rest)) = self.name.split_once("random(") else { return Ok(None) };
        Ok(Some(rest.trim_end_matches(')').parse().with_context(|| self.name.clone())?))
    }

    fn number(&self, pattern: &str) -> Result<Option<i32>> {
        let text = self.lines.iter().chain(std::iter::once(&self.name)).map(String::as_str);
        let pattern = Regex::new(pattern)?;
        let found = text.filter_map(|line| pattern.captures(line)).next();
        found.map(|found| found[1].parse().with_context(|| self.name.clone())).transpose()
    }

    /// The lines of a state: the indented ones after its heading.
    fn state(&self, heading: &str) -> Result<Vec<&str>> {
        let from =
            self.lines.iter().position(|line| line == heading).with_context(|| format!("no {heading}"))?;
        Ok(self.lines[from + 1..]
            .iter()
            .map(String::as_str)
            .take_while(|line| line.starts_with(' '))
            .collect())
    }

    /// The sets and machines at the end of the sequence.
    pub fn final_state(&self) -> Result<Vec<&str>> {
        self.state("[Test] Final state")
    }

    /// The initial world. The recording does not name the template that a set was created from. Sets were created in
    /// order, one template each, and the deployment uses the one after the first set's, or after the second's if the
    /// template changed during the rollout.
    pub fn world(&self, planner: Planner) -> Result<World> {
        let state = self.state("[Test] Initial state")?;
        let [deployment, sets @ ..] = state.as_slice() else { bail!("{}: no initial state", self.name) };
        let counts =
            Regex::new(r"^ *\w+: (\d+)/(\d+) replicas, (\d+) available, (\d+) upToDate(?: \((.*)\))?$")?;
        let read = |line: &str| -> Result<([i32; 4], Vec<u32>)> {
            let found = counts.captures(line).with_context(|| format!("{}: {line}", self.name))?;
            let mut numbers = [0; 4];
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = found[at + 1].parse()?;
            }
            let names = found.get(5).map_or("", |names| names.as_str());
            let machines = names.split(',').filter(|name| !name.is_empty());
            Ok((numbers, machines.map(|name| name[1..].parse()).collect::<Result<_, _>>()?))
        };
        let ([replicas, desired, available, up_to_date], _) = read(deployment)?;
        let strategy = match (self.number(r"MaxSurge=(\d+)")?, self.number(r"MaxUnavailable=(\d+)")?) {
            (Some(surge), Some(unavailable)) => Strategy::RollingUpdate {
                max_surge: IntOrString::Int(surge),
                max_unavailable: IntOrString::Int(unavailable),
            },
            _ => Strategy::OnDelete,
        };
        let tolerate = if self.name.contains("scale up") {
            Some(Toleration::Unavailable)
        } else {
            self.name.contains("scale down").then_some(Toleration::Surge)
        };
        let mut world = World {
            deployment: Deployment {
                version: if self.name.contains("change spec") { 3 } else { 2 },
                desired,
                replicas,
                available,
                up_to_date,
                strategy,
                in_place: self.name.starts_with("In-place"),
                tolerate,
                user_unavailable: self.number(r"maxUserUnavailable (\d+)")?.unwrap_or(0),
            },
            sets: Vec::new(),
            next_machine: 0,
            planner,
            may_delete: false,
            log: Vec::new(),
        };
        for (line, number) in sets.iter().zip(1..) {
            let ([replicas, wanted, available, up_to_date], machines) = read(line)?;
            world.next_machine = world.next_machine.max(machines.iter().copied().max().unwrap_or(0));
            let machines = machines.into_iter().map(|machine| Machine::new(machine, number)).collect();
            let annotations = std::collections::BTreeMap::new();
            world.sets.push(Set {
                number,
                version: number,
                wanted,
                replicas,
                available,
                up_to_date,
                annotations,
                machines,
            });
        }
        Ok(world)
    }
}
