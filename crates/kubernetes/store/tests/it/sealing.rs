//! Encryption of values on disk, with a cipher that is easy to see through.

use std::{sync::Arc, time::SystemTime};

use capstan_store::{
    Backup, Cipher, CipherError, Expect, OpenError, Options, SimDisk, Store, disk::Disk, salvage, survey,
};

use crate::support::{Model, Plain, delete, overwrite, put, run, set};

/// Adds its number to every byte, and a checksum over context and value.
struct Toy {
    keys: Vec<u8>,
    is_reachable: bool,
}

impl Toy {
    fn options(keys: &[u8]) -> Options {
        let cipher: Arc<dyn Cipher> = Arc::new(Self { keys: keys.to_vec(), is_reachable: true });
        Options { segment_bytes: 600, cipher: Some(cipher), ..Options::default() }
    }
}

fn checksum(context: &[u8], value: &[u8]) -> u8 {
    context.iter().chain(value).fold(7, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(*byte))
}

impl Cipher for Toy {
    fn covers(&self, bucket: &str) -> bool {
        bucket == "b"
    }

    fn overhead(&self) -> usize {
        2
    }

    fn seal(&self, _: &str, context: &[u8], value: &[u8], out: &mut Vec<u8>) {
        out.push(self.keys[0]);
        out.extend(value.iter().map(|byte| byte.wrapping_add(self.keys[0])));
        out.push(checksum(context, value));
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let key = sealed[0];
        if !self.is_reachable {
            return Err(CipherError::Unavailable("the key service is down".into()));
        }
        if !self.keys.contains(&key) {
            return Err(CipherError::UnknownKey(format!("key {key}")));
        }
        let value: Vec<u8> = sealed[1..sealed.len() - 1].iter().map(|byte| byte.wrapping_sub(key)).collect();
        if checksum(context, &value) != sealed[sealed.len() - 1] {
            return Err(CipherError::Refused(format!("key {key}")));
        }
        Ok(value)
    }

    fn is_current(&self, sealed: &[u8]) -> bool {
        sealed[0] == self.keys[0]
    }
}

/// Names of the files that contain a text.
fn files_with(disk: &SimDisk, text: &str) -> Vec<String> {
    let has = |name: &String| {
        let content = disk.content(name).unwrap_or_default();
        content.windows(text.len()).any(|part| part == text.as_bytes())
    };
    disk.list().unwrap().into_iter().filter(has).collect()
}

/// Sealed with each key, and plain ones of the covered bucket.
fn counts(disk: &SimDisk) -> (Vec<u8>, usize) {
    let (mut keys, mut plain) = (Vec::new(), 0);
    survey(disk, &mut |value| match value.sealed {
        Some(sealed) => keys.push(sealed[0]),
        None => plain += usize::from(value.bucket == "b"),
    })
    .unwrap();
    keys.sort_unstable();
    keys.dedup();
    (keys, plain)
}

async fn fill(store: &Plain) {
    for step in 0..12 {
        set(store, &format!("k{step}"), "hunter2").await.unwrap();
    }
    store.write(delete("b", "k1", Expect::Any)).await.unwrap();
    store.write(put("c", "open", "not covered", Expect::Any)).await.unwrap();
    store.checkpoint().await.unwrap();
    set(store, "k2", "hunter2 again").await.unwrap();
}

#[test]
fn no_file_and_no_backup_contains_a_sealed_value() {
    let disk = SimDisk::new(1);
    let store: Plain = Store::open(disk.clone(), Toy::options(&[3])).unwrap();
    run(fill(&store));
    assert_eq!(files_with(&disk, "hunter2"), Vec::<String>::new());
    assert!(!files_with(&disk, "not covered").is_empty());
    let mut backup = Vec::new();
    store.backup(&mut backup).unwrap();
    assert!(!backup.windows(7).any(|part| part == b"hunter2"));
    assert_eq!(store.get("b", "k2").unwrap().value, "hunter2 again 16");
    run(store.close());
    drop(store);

    let again: Plain = Store::open(disk.clone(), Toy::options(&[3])).unwrap();
    assert_eq!(again.get("b", "k2").unwrap().value, "hunter2 again 16");
    assert_eq!(again.get("b", "k3").unwrap().value, "hunter2 5");
    assert_eq!(again.metrics().stale_values, 0);

    let summary = Backup::verify(&mut &backup[..]).unwrap();
    assert_eq!((summary.revision, summary.entries, summary.sealed), (16, 12, 11));
    let error = Backup::read(&mut &backup[..], None).err().unwrap();
    assert!(matches!(&error, OpenError::Sealed { reason: CipherError::NoKey, .. }), "{error}");
    let toy = Toy { keys: vec![3], is_reachable: true };
    let read = Backup::read(&mut &backup[..], Some(&toy)).unwrap();
    let restored = SimDisk::new(2);
    let cipher = Toy::options(&[5]).cipher;
    read.begin(restored.clone(), SystemTime::UNIX_EPOCH, cipher).unwrap().finish().unwrap();
    assert_eq!(files_with(&restored, "hunter2"), Vec::<String>::new());
    assert_eq!(counts(&restored), (vec![5], 0));
}

#[test]
fn a_start_without_the_key_names_what_cannot_be_read_and_changes_nothing() {
    let disk = SimDisk::new(1);
    let store: Plain = Store::open(disk.clone(), Toy::options(&[3])).unwrap();
    run(async {
        fill(&store).await;
        store.close().await;
    });
    drop(store);
    let content = |disk: &SimDisk| -> Vec<_> {
        disk.list().unwrap().into_iter().map(|name| (disk.content(&name), name)).collect()
    };
    let before = content(&disk);
    let down: Arc<dyn Cipher> = Arc::new(Toy { keys: vec![3], is_reachable: false });
    let cases = [
        (Options::default(), "no encryption key is configured"),
        (Toy::options(&[4]), "they are encrypted with key 3, which is not configured"),
        (Options { cipher: Some(down), ..Options::default() }, "the key service is down"),
    ];
    for (options, reason) in cases {
        let error = Store::<()>::open(disk.clone(), options).err().unwrap();
        let OpenError::Sealed { sealed, reason: found } = &error else { panic!("{error}") };
        assert_eq!(found.to_string(), reason);
        assert!(["11 b", "12 b"].contains(&sealed.to_string().as_str()), "{sealed}");
        assert!(content(&disk) == before, "{reason}: the files changed");
    }
    let saved = salvage(&disk, None).unwrap();
    assert!(!saved.is_complete());
    assert_eq!((saved.sealed.len(), saved.backup.entries()), (11, 1));
    let toy = Toy { keys: vec![3], is_reachable: true };
    let saved = salvage(&disk, Some(&toy)).unwrap();
    assert!(saved.is_complete(), "{saved:?}");
    assert_eq!(saved.backup.entries(), 12);
}

#[test]
fn a_value_moved_to_another_key_is_refused() {
    let disk = SimDisk::new(1);
    let store: Plain = Store::open(disk.clone(), Toy::options(&[3])).unwrap();
    run(set(&store, "aa", "hunter2")).unwrap();
    run(set(&store, "ab", "hunter3")).unwrap();
    let mut backup = Vec::new();
    store.backup(&mut backup).unwrap();
    let toy = Toy { keys: vec![3], is_reachable: true };
    assert!(Backup::read(&mut &backup[..], Some(&toy)).is_ok());
    // Swaps the names and repairs the checksums, as somebody without the key can.
    for at in 0..backup.len() - 2 {
        match &backup[at..at + 2] {
            b"aa" => backup[at + 1] = b'b',
            b"ab" => backup[at + 1] = b'a',
            _ => {}
        }
    }
    let (head, payload) = backup.split_at_mut(32 + 12);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[28..40]);
    hasher.update(payload);
    head[40..44].copy_from_slice(&hasher.finalize().to_le_bytes());
    let error = Backup::read(&mut &backup[..], Some(&toy)).err().unwrap();
    assert!(matches!(&error, OpenError::Sealed { reason: CipherError::Refused(_), .. }), "{error}");
    assert!(error.to_string().contains("2 b"), "{error}");
}

#[test]
fn resealing_moves_everything_to_the_first_key_and_removes_what_the_others_sealed() {
    for keys in [None, Some(3)] {
        let disk = SimDisk::new(1);
        let before = keys.map_or_else(Options::default, |key| Toy::options(&[key]));
        let store: Plain = Store::open(disk.clone(), before).unwrap();
        run(async {
            fill(&store).await;
            store.close().await;
        });
        drop(store);
        let store: Plain = Store::open(disk.clone(), Toy::options(&[9, 3])).unwrap();
        assert!(store.metrics().stale_values > 11, "{}", store.metrics().stale_values);
        run(set(&store, "k3", "hunter2")).unwrap();
        let (used, _) = counts(&disk);
        assert!(used.contains(&9) && (keys.is_none() || used.contains(&3)), "{used:?}");
        run(store.reseal()).unwrap();
        assert_eq!(counts(&disk), (vec![9], 0));
        assert_eq!(files_with(&disk, "hunter2"), Vec::<String>::new());
        assert_eq!(store.compacted(), store.revision());
        run(set(&store, "k4", "hunter4")).unwrap();
        drop(store);
        let store: Plain = Store::open(disk.power_loss(), Toy::options(&[9])).unwrap();
        assert_eq!(store.metrics().stale_values, 0);
        assert_eq!(store.get("b", "k4").unwrap().value, "hunter4 19");
        assert_eq!(store.get("b", "k2").unwrap().value, "hunter2 again 16");
    }
}

#[test]
fn a_loss_of_power_at_any_operation_while_resealing_loses_nothing() {
    let original = SimDisk::new(1);
    let mut model = Model::default();
    let store: Plain = Store::open(original.clone(), Toy::options(&[3])).unwrap();
    for step in 0..12 {
        let write = put("b", &format!("k{}", step % 5), &format!("value {step}"), Expect::Any);
        model.commit(std::slice::from_ref(&write));
        run(store.write(write)).unwrap();
    }
    run(store.close());
    drop(store);
    for operation in 0.. {
        let mut done = true;
        for seed in 0..4 {
            let disk = original.copied().reseeded(seed);
            disk.crash_at(disk.operations() + operation);
            done &= match Store::<()>::open(disk.clone(), Toy::options(&[9, 3])) {
                Ok(store) => run(store.reseal()).is_ok() && disk.operations() > 0,
                Err(_) => false,
            };
            let disk = disk.power_loss();
            let store: Plain = Store::open(disk.clone(), Toy::options(&[9, 3]))
                .unwrap_or_else(|error| panic!("operation {operation}, seed {seed}: {error}"));
            for (key, value) in model.at("b", model.revision()) {
                assert_eq!(store.get("b", &key).unwrap().value, value, "operation {operation}");
            }
            // It is resumed by doing it again.
            run(store.reseal()).unwrap();
            assert_eq!(counts(&disk), (vec![9], 0), "operation {operation}, seed {seed}");
        }
        if done {
            assert!(operation > 10, "{operation}");
            break;
        }
    }
}

#[test]
fn a_key_that_only_the_history_needs_does_not_prevent_a_start() {
    let disk = SimDisk::new(1);
    let store: Plain = Store::open(disk.clone(), Toy::options(&[3])).unwrap();
    run(fill(&store));
    drop(store);
    let store: Plain = Store::open(disk.clone(), Toy::options(&[9, 3])).unwrap();
    run(async {
        set(&store, "k5", "hunter5").await.unwrap();
        store.checkpoint().await.unwrap();
        set(&store, "k6", "hunter6").await.unwrap();
    });
    drop(store);
    assert_eq!(counts(&disk).0, [3, 9]);
    let store: Plain = Store::open(disk.clone(), Toy::options(&[9])).unwrap();
    assert_eq!(store.get("b", "k2").unwrap().value, "hunter2 again 16");
    assert_eq!(store.get("b", "k6").unwrap().value, "hunter6 18");
    assert_eq!(counts(&disk), (vec![9], 0));
}

#[test]
fn damage_of_a_sealed_value_is_reported_as_damage() {
    let disk = SimDisk::new(1);
    let store: Plain = Store::open(disk.clone(), Toy::options(&[3])).unwrap();
    run(async {
        set(&store, "k", "hunter2").await.unwrap();
        set(&store, "l", "hunter2").await.unwrap();
        store.close().await;
    });
    drop(store);
    let name = "wal-00000000000000000002.log";
    let mut bytes = disk.content(name).unwrap();
    bytes[90] ^= 1;
    overwrite(&disk, name, &bytes);
    let error = Store::<()>::open(disk, Toy::options(&[3])).err().unwrap();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}
