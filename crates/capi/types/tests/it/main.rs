//! Tests of the kinds of Cluster API.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod conversion;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod wire;
