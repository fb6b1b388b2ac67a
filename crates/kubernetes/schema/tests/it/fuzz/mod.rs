//! Properties that hold for any input: no panic, no hang, no unbounded growth. `cargo xtask fuzz` runs them for
//! longer, with random seeds.

mod applies;
mod arbitrary;
mod patches;
mod validation;

use proptest::test_runner::Config;

/// `cases` cases, unless `PROPTEST_CASES` is set.
fn config(cases: u32) -> Config {
    let default = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    Config { cases, failure_persistence: None, ..default }
}
