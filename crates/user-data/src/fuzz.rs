//! Arbitrary user data must neither panic, hang nor fill memory. `cargo xtask fuzz` runs this for longer, with random
//! seeds.

use proptest::prelude::*;
use serde_json::json;

use crate::{Metadata, base64, gunzip, read};

/// `cases` cases, unless `PROPTEST_CASES` is set.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

fn try_all(bytes: &[u8]) {
    const LIMIT: usize = 64 * 1024;
    let metadata = Metadata::new(&json!({"local_hostname": "h"}), &json!({"x": 1}));
    let _ = read(bytes, &metadata);
    let _ = base64(bytes);
    if let Ok(plain) = gunzip(bytes, LIMIT) {
        assert!(plain.len() <= LIMIT);
    }
}

/// Lines of cloud-config, Ignition and templates.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "#cloud-config",
            "## template: jinja",
            "#!/bin/sh",
            "{\"ignition\":{\"version\":\"3.4.0\"}}",
            "write_files:",
            "- path: /a",
            "  content: |",
            "    {{ ds.meta_data.x }}",
            "  encoding: gz+b64",
            "  permissions: '0644'",
            "runcmd:",
            "- [a, b]",
            "- {x: [",
            "users: &a [*a]",
            "{% if x %}",
            "{{",
            "}}",
            "{% endif %}",
            "  owner: r:r",
        ])
        .prop_map(str::to_owned),
        ".{0,20}",
    ]
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn fuzz_any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        try_all(&bytes);
        let compressed = [&[0x1f, 0x8b, 8, 0][..], &bytes].concat();
        try_all(&compressed);
    }

    #[test]
    fn fuzz_any_lines_are_read_or_refused(lines in prop::collection::vec(line(), 0..20)) {
        try_all(lines.join("\n").as_bytes());
    }
}
