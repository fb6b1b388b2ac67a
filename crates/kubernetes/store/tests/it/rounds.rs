//! Many crashes, with files deleted, truncated and replaced between them: every loss is reported, and there are no
//! false alarms.

use capstan_store::{Expect, OpenError, Options, SimDisk, Store, disk::Disk};

use crate::support::{Model, Plain, Salvage, delete, overwrite, put, run};

const ROUNDS: u64 = 500;

fn options() -> Options {
    Options { history_revisions: 20, checkpoint_bytes: 900, segment_bytes: 500, ..Options::default() }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// Damages a file so that data is lost. `None` if there was nothing to lose.
fn harm(disk: &SimDisk, other: &SimDisk, random: &mut Random) -> Option<String> {
    let names: Vec<_> = disk.list().unwrap().into_iter().filter(|name| name != "RESERVE").collect();
    let name = names[random.below(names.len() as u64) as usize].clone();
    let length = disk.content(&name).unwrap().len() as u64;
    match random.below(4) {
        0 => disk.remove(&name).unwrap(),
        1 if length > 0 => disk.open(&name).unwrap().truncate(0).unwrap(),
        2 if length > 0 => disk.open(&name).unwrap().truncate(random.below(length)).unwrap(),
        // Of a manifest and one file, either may be the foreign one.
        3 if names.len() > 2 => {
            let kind = &name[..3];
            let theirs = other.list().unwrap().into_iter().find(|other| other.starts_with(kind))?;
            overwrite(disk, &name, &other.content(&theirs).unwrap());
        }
        _ => return None,
    }
    Some(name)
}

fn step(random: &mut Random, model: &Model) -> capstan_store::Write {
    let key = format!("k{}", random.below(6));
    if random.below(4) == 0 && model.entry("b", &key).is_some() {
        delete("b", &key, Expect::Any)
    } else {
        put("b", &key, &"x".repeat(random.below(300) as usize), Expect::Any)
    }
}

#[test]
fn every_loss_is_reported_and_none_is_silent() {
    let other = SimDisk::new(99);
    run(async {
        let store: Plain = Store::open(other.clone(), options()).unwrap();
        for _ in 0..20 {
            store.write(put("b", "other", "v", Expect::Any)).await.unwrap();
        }
        store.close().await;
    });
    let mut random = Random(7);
    let mut disk = SimDisk::new(7);
    let mut model = Model::default();
    let (mut harmed, mut reported) = (0, 0);
    for round in 0..ROUNDS {
        let store: Plain = Store::open(disk.clone(), options())
            .unwrap_or_else(|error| panic!("round {round}: false alarm: {error}"));
        model.check_now(&store, &format!("round {round}"));
        disk.crash_at(disk.operations() + random.below(60));
        let mut attempted = model.clone();
        run(async {
            for _ in 0..12 {
                let write = step(&mut random, &model);
                attempted.commit(std::slice::from_ref(&write));
                if store.write(write).await.is_err() {
                    break;
                }
                model = attempted.clone();
            }
        });
        drop(store);
        disk = if random.below(2) == 0 { disk.power_loss() } else { disk.restart() };
        // The state after the crash, before further damage.
        let sound: Plain = Store::open(disk.copied(), options())
            .unwrap_or_else(|error| panic!("round {round}: false alarm: {error}"));
        if sound.revision() != model.revision() {
            model = attempted;
        }
        model.check_now(&sound, &format!("round {round}"));
        if random.below(2) == 0 {
            continue;
        }
        let copy = disk.copied();
        // Leftovers of a crash are not part of the store.
        let listed = String::from_utf8(copy.content("MANIFEST").unwrap_or_default()).unwrap();
        let Some(name) = harm(&copy, &other, &mut random) else { continue };
        if name != "MANIFEST" && !listed.contains(&name) {
            continue;
        }
        harmed += 1;
        match Store::<()>::open(copy.clone(), options()) {
            // Reserved space of a sealed segment is no loss, nor is a store without commits.
            Ok(store) => {
                model.check_now(&store, &format!("round {round}: {name} was harmed, nobody noticed"))
            }
            Err(error) => {
                reported += 1;
                assert!(error.to_string().contains(&name), "round {round}: {name}: {error}");
                match capstan_store::salvage(&copy, None) {
                    Ok(saved) => Salvage(&saved).check(&model, &format!("round {round}: {name}")),
                    Err(error) => assert!(matches!(error, OpenError::Nothing), "{error}"),
                }
            }
        }
    }
    assert!(harmed > 150 && reported + 10 > harmed, "{reported} of {harmed}");
}
