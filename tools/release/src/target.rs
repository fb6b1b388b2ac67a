//! Processors that releases are made for, and what a program says of itself.

use anyhow::{Context, Result, bail, ensure};

/// A processor by the names that Rust, Debian and OCI have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub triple: &'static str,
    /// In Debian, OCI and the names of our files.
    pub architecture: &'static str,
    /// Its number in the head of an ELF file.
    pub machine: u16,
    /// The C compiler that Debian has for it, for what is not Rust in our dependencies.
    pub c_compiler: &'static str,
    /// Debian's package of it.
    pub c_package: &'static str,
    /// Flags of that compiler. GCC for glibc calls a library for atomics that musl does not have.
    pub c_flags: &'static str,
}

pub const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        architecture: "amd64",
        machine: 62,
        c_compiler: "musl-gcc",
        c_package: "musl-tools",
        c_flags: "",
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        architecture: "arm64",
        machine: 183,
        c_compiler: "aarch64-linux-gnu-gcc",
        c_package: "gcc-aarch64-linux-gnu",
        c_flags: "-mno-outline-atomics -U_FORTIFY_SOURCE",
    },
];

pub fn find(triple: &str) -> Result<Target> {
    let known = TARGETS.map(|target| target.triple).join(", ");
    let found = TARGETS.into_iter().find(|target| target.triple == triple);
    found.with_context(|| format!("{triple}: no target of releases; known are {known}"))
}

/// Whether a program brings its libraries along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    Static,
    /// It names a loader, which the image has not got.
    Dynamic,
}

/// For which processor a program is, and how it is linked.
pub fn of_program(bytes: &[u8]) -> Result<(Target, Linked)> {
    let head = bytes.get(..64).context("too short for a program")?;
    ensure!(head.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF program");
    let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let machine = short(18);
    let Some(target) = TARGETS.into_iter().find(|target| target.machine == machine) else {
        bail!("ELF machine {machine} is none that releases are made for");
    };
    let table = usize::try_from(u64::from_le_bytes(head[32..40].try_into()?))?;
    let (size, count) = (usize::from(short(54)), usize::from(short(56)));
    const INTERPRETER: [u8; 4] = 3_u32.to_le_bytes();
    for index in 0..count {
        let at = table + index * size;
        let kind = bytes.get(at..at + 4).context("its program headers are cut off")?;
        if kind == INTERPRETER {
            return Ok((target, Linked::Dynamic));
        }
    }
    Ok((target, Linked::Static))
}

/// The smallest file that is read as a program: nothing but a head and one program header.
#[cfg(test)]
pub fn sample(target: Target, linked: Linked) -> Vec<u8> {
    let mut bytes = vec![0_u8; 64 + 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&target.machine.to_le_bytes());
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56] = 1;
    bytes[64] = if linked == Linked::Dynamic { 3 } else { 1 };
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_names_its_processor_and_its_linking() {
        for target in TARGETS {
            for linked in [Linked::Static, Linked::Dynamic] {
                assert_eq!(of_program(&sample(target, linked)).unwrap(), (target, linked));
            }
        }
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let mut cut = sample(TARGETS[0], Linked::Static);
        cut.truncate(64);
        let mut foreign = sample(TARGETS[0], Linked::Static);
        foreign[18] = 3;
        for bytes in [b"#!/bin/sh\n".to_vec(), cut, foreign] {
            assert!(of_program(&bytes).is_err());
        }
    }

    #[test]
    fn this_very_test_is_a_program_with_a_loader() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        if cfg!(all(target_env = "gnu", target_arch = "x86_64")) {
            assert_eq!(of_program(&own).unwrap(), (TARGETS[0], Linked::Dynamic));
        }
    }
}
