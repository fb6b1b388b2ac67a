//! Claims about any input: nothing panics, nothing hangs, nothing grows without bound.
//! `cargo xtask fuzz` runs them for longer, with random seeds.

mod applies;
mod arbitrary;
mod patches;
mod verdicts;

use proptest::test_runner::Config;

/// `usual` cases, unless `PROPTEST_CASES` says otherwise.
fn config(usual: u32) -> Config {
    let default = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { usual };
    Config { cases, failure_persistence: None, ..default }
}
