//! Files with arbitrary changes must open or be refused: no panic, no hang, no memory. `cargo xtask fuzz` runs this for
//! longer, with random seeds.

use capstan_store::{Expect, Options, SimDisk, Store, disk::Disk};
use proptest::prelude::*;

use crate::support::{Plain, put, run};

/// `cases` cases, unless `PROPTEST_CASES` is set.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

fn options() -> Options {
    Options { history_revisions: 8, checkpoint_bytes: 400, segment_bytes: 400, ..Options::default() }
}

fn filled() -> SimDisk {
    let disk = SimDisk::new(1);
    run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        for step in 0..20 {
            store.write(put("b", &format!("k{}", step % 4), &format!("v{step}"), Expect::Any)).await.unwrap();
        }
        store.close().await;
    });
    disk
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn fuzz_a_store_with_any_bytes_in_any_file_opens_or_is_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<Vec<u8>>()), 1..5)
    ) {
        let disk = filled();
        let names = disk.list().unwrap();
        for (file, at, bytes) in changes {
            let name = &names[file.index(names.len())];
            let file = disk.open(name).unwrap();
            let size = usize::try_from(file.size().unwrap()).unwrap();
            file.write_at(at.index(size.max(1)) as u64, &bytes).unwrap();
        }
        let opened: Result<Plain, _> = Store::open(disk, options());
        drop(opened);
    }
}
