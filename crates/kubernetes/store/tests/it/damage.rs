//! Bit rot, and files that are missing, truncated, replaced, or of another release.

use capstan_store::{Expect, OpenError, Options, SimDisk, Store, disk::Disk, salvage};

use crate::support::{Model, Plain, Salvage, overwrite, put, run};

const WINDOW: u64 = 8;
const MANIFEST: &str = "MANIFEST";

fn options() -> Options {
    Options { history_revisions: WINDOW, checkpoint_bytes: 400, segment_bytes: 400, ..Options::default() }
}

/// A store with at least two segments that starts from a snapshot.
fn filled(seed: u64, close: bool) -> (SimDisk, Model) {
    let (disk, model) = written(seed, 30, close);
    let names = disk.list().unwrap();
    let count = |prefix| names.iter().filter(|name| name.starts_with(prefix)).count();
    assert!(count("wal-") >= 2 && count("snap-") >= 2, "{names:?}");
    (disk, model)
}

fn written(seed: u64, writes: usize, close: bool) -> (SimDisk, Model) {
    let disk = SimDisk::new(seed);
    let mut model = Model::default();
    run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        for step in 0..writes {
            let write = put("b", &format!("k{}", step % 4), &format!("value {step}"), Expect::Any);
            model.commit(std::slice::from_ref(&write));
            store.write(write).await.unwrap();
        }
        if close {
            store.close().await;
        }
    });
    (disk, model)
}

/// Opens a copy of the disk after some damage.
fn opened(disk: &SimDisk, harm: impl FnOnce(&SimDisk)) -> Result<Plain, OpenError> {
    let copy = disk.copied();
    harm(&copy);
    Store::open(copy, options())
}

/// Every significant byte, and some of the zeros after them.
fn offsets(content: &[u8]) -> Vec<usize> {
    let end = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    (0..end).chain((end..content.len()).step_by(211)).collect()
}

fn named<'a>(names: &'a [String], prefix: &str) -> Vec<&'a String> {
    names.iter().filter(|name| name.starts_with(prefix)).collect()
}

/// Damage to a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Delete,
    Empty,
    /// Truncates it to so many bytes.
    Cut(usize),
    /// Replaces it with the file of the same name of another store.
    Replace,
}

impl Harm {
    fn all(length: usize) -> Vec<Self> {
        let cuts = (1..length).step_by((length / 40).max(1)).chain([length - 1]);
        [Self::Delete, Self::Empty, Self::Replace].into_iter().chain(cuts.map(Self::Cut)).collect()
    }

    fn apply(self, disk: &SimDisk, name: &str, other: &SimDisk) {
        match self {
            Self::Delete => disk.remove(name).unwrap(),
            Self::Empty => disk.open(name).unwrap().truncate(0).unwrap(),
            Self::Cut(length) => disk.open(name).unwrap().truncate(length as u64).unwrap(),
            Self::Replace => overwrite(disk, name, &other.content(name).unwrap()),
        }
    }
}

#[test]
fn a_file_that_is_missing_cut_off_or_replaced_is_named_with_advice() {
    for (writes, close) in [(30, true), (30, false), (3, true), (3, false)] {
        let (disk, model) = written(1, writes, close);
        let (other, _) = written(2, writes, close);
        let names: Vec<_> = disk.list().unwrap().into_iter().filter(|name| name != "RESERVE").collect();
        assert!(names.contains(&MANIFEST.to_owned()));
        for name in &names {
            for harm in Harm::all(disk.content(name).unwrap().len()) {
                let what = format!("{harm:?} of {name}, {writes} writes, closed: {close}");
                let copy = disk.copied();
                harm.apply(&copy, name, &other);
                let before = copy.copied();
                let error =
                    Store::<()>::open(copy.clone(), options()).err().unwrap_or_else(|| panic!("{what}"));
                let expected = match harm {
                    Harm::Delete => matches!(&error, OpenError::Missing { file } if file == name),
                    // Of a manifest and one file, either may be the foreign one.
                    Harm::Replace if names.len() == 2 => matches!(&error, OpenError::Foreign { .. }),
                    Harm::Replace => matches!(&error, OpenError::Foreign { file } if file == name),
                    Harm::Empty | Harm::Cut(_) if name == MANIFEST => {
                        matches!(&error, OpenError::Damaged { file, .. } if file == name)
                    }
                    Harm::Empty | Harm::Cut(_) => {
                        matches!(&error, OpenError::Shortened { file, .. } if file == name)
                    }
                };
                assert!(expected, "{what}: {error}");
                assert!(error.to_string().contains("capstan store salvage"), "{error}");
                for name in before.list().unwrap() {
                    assert_eq!(before.content(&name), copy.content(&name), "{what}: {name} was changed");
                }
                let saved = match salvage(&copy, None) {
                    Ok(saved) => saved,
                    Err(OpenError::Nothing) if writes == 3 && name.starts_with("wal-") => continue,
                    Err(error) => panic!("{what}: {error}"),
                };
                if names.len() == 2 && matches!(harm, Harm::Replace) {
                    assert!(!saved.files.is_empty() && !saved.is_complete(), "{what}: {saved:?}");
                    continue;
                }
                assert!(saved.files.iter().any(|(file, _)| file == name), "{what}: {saved:?}");
                Salvage(&saved).check(&model, &what);
            }
        }
    }
}

#[test]
fn the_reserve_is_not_needed() {
    let (disk, model) = filled(1, false);
    for harm in [Harm::Delete, Harm::Empty, Harm::Cut(100)] {
        model.check(&opened(&disk, |copy| harm.apply(copy, "RESERVE", copy)).unwrap(), WINDOW);
    }
}

#[test]
fn after_a_clean_stop_a_flipped_bit_anywhere_is_detected_or_harmless() {
    let (disk, model) = filled(1, true);
    let mut detected = 0;
    for name in disk.list().unwrap() {
        for offset in offsets(&disk.content(&name).unwrap()) {
            let mask = 1 << (offset % 8);
            match opened(&disk, |copy| copy.flip(&name, offset, mask)) {
                // A newer snapshot has the same data with less history.
                Ok(store) => model.check_from(&store, store.compacted()),
                Err(OpenError::Damaged { file, .. }) => {
                    detected += 1;
                    assert_eq!(file, name, "the damaged file is named");
                    let copy = disk.copied();
                    copy.flip(&name, offset, mask);
                    let saved = salvage(&copy, None).unwrap();
                    assert!(
                        name == MANIFEST || saved.files.iter().any(|(file, _)| *file == name),
                        "{saved:?}"
                    );
                    Salvage(&saved).check(&model, &format!("{name} at {offset}"));
                }
                Err(other) => panic!("{name} at {offset}: {other}"),
            }
        }
    }
    assert!(detected > 300, "{detected}");
}

#[test]
fn a_flipped_bit_before_the_newest_snapshot_is_reported_and_does_not_prevent_a_start() {
    let (disk, model) = filled(1, true);
    let names = disk.list().unwrap();
    let newest = named(&names, "snap-").last().unwrap()[5..25].parse::<u64>().unwrap();
    let segments = named(&names, "wal-");
    let firsts: Vec<u64> = segments.iter().map(|name| name[4..24].parse().unwrap()).collect();
    let older: Vec<_> =
        segments.iter().zip(firsts.iter().skip(1)).filter(|(_, next)| **next <= newest + 1).collect();
    assert!(!older.is_empty(), "{names:?}");
    for (name, _) in older {
        for offset in offsets(&disk.content(name).unwrap()) {
            let copy = disk.copied();
            copy.flip(name, offset, 4);
            let store: Plain = Store::open(copy.clone(), options()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(store.metrics().damaged_files, 1, "{name} at {offset}");
            model.check_from(&store, store.compacted());
            drop(store);
            let again: Plain = Store::open(copy.power_loss(), options()).unwrap();
            assert_eq!(again.metrics().damaged_files, 0, "the damaged file is gone");
            model.check_from(&again, again.compacted());
        }
    }
}

#[test]
fn after_a_crash_a_flipped_bit_costs_at_most_the_last_commit() {
    let (disk, model) = filled(1, false);
    let mut without_last = model.clone();
    without_last.transactions.pop();
    let mut lost = 0;
    for name in disk.list().unwrap() {
        for offset in offsets(&disk.content(&name).unwrap()) {
            match opened(&disk, |copy| copy.flip(&name, offset, 0x10)) {
                Ok(store) if store.revision() == model.revision() => {
                    model.check_from(&store, store.compacted())
                }
                Ok(store) => {
                    lost += 1;
                    // It looks like a commit interrupted by the crash.
                    without_last.check(&store, WINDOW);
                }
                Err(OpenError::Damaged { .. }) => {}
                Err(other) => panic!("{name} at {offset}: {other}"),
            }
        }
    }
    assert!((50..120).contains(&lost), "only bytes of the last frame: {lost}");
}

#[test]
fn a_segment_that_the_manifest_does_not_know_is_an_error_if_it_has_commits() {
    let (disk, _) = written(1, 3, true);
    let manifest = disk.content(MANIFEST).unwrap();
    let disk = disk.restart();
    run(async {
        let store: Plain = Store::open(disk.clone(), options()).unwrap();
        for _ in 0..10 {
            store.write(put("b", "k", "later", Expect::Any)).await.unwrap();
        }
    });
    let error = opened(&disk, |copy| overwrite(copy, MANIFEST, &manifest)).err().unwrap();
    assert!(matches!(error, OpenError::Unlisted { .. } | OpenError::Shortened { .. }), "{error}");
}

#[test]
fn a_file_of_another_store_beside_ours_is_named() {
    let (disk, _) = filled(1, true);
    let (other, _) = filled(2, true);
    for name in other.list().unwrap().iter().filter(|name| name.ends_with(".log") || name.ends_with(".bin")) {
        let (stem, end) = name.split_at(name.len() - 6);
        let renamed = format!("{stem}77{}", &end[2..]);
        let copy = disk.copied();
        overwrite(&copy, &renamed, &other.content(name).unwrap());
        let error = Store::<()>::open(copy, options()).err().unwrap();
        assert!(matches!(&error, OpenError::Foreign { file } if *file == renamed), "{name}: {error}");
    }
}

#[test]
fn a_newer_format_is_refused_with_the_way_out() {
    let (disk, _) = written(1, 3, true);
    let names = disk.list().unwrap();
    let newest_segment = named(&names, "wal-").pop().unwrap();
    // Without a manifest, whose checksums would be wrong once a header is changed.
    let older = crate::support::of_the_previous_release(&disk);
    let copy = older.copied();
    let file = copy.open(newest_segment).unwrap();
    let mut header = [0; 32];
    file.read_at(0, &mut header).unwrap();
    header[8] = 9;
    let checksum = crc32fast::hash(&header[..28]);
    header[28..].copy_from_slice(&checksum.to_le_bytes());
    file.write_at(0, &header).unwrap();
    let error = Store::<()>::open(copy, options()).map(|_| ()).unwrap_err().to_string();
    let expected =
        format!("{newest_segment} has format 9, this program reads up to 3: use the newer program");
    assert_eq!(error, expected);
}
