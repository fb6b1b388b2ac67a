use capstan_view::{Paint, age, draw, draw_within};
use serde_json::json;

use crate::cluster::{change, healthy, now, object, set_conditions, tree};

fn drawn(objects: &[serde_json::Value], all: bool) -> String {
    draw(&tree(objects), all, now(), Paint::Plain)
}

#[test]
fn a_healthy_cluster_is_collapsed_to_its_first_level() {
    assert_eq!(
        drawn(&healthy(), false),
        "Cluster/demo                    Available  2m0s\n\
         ├─ SimCluster/demo              Ready  2m0s\n\
         └─ KubeadmControlPlane/demo-cp  Available  3/3  v1.36.3  2m0s\n"
    );
}

#[test]
fn a_waiting_part_is_expanded_and_its_healthy_siblings_share_a_row() {
    let mut objects = healthy();
    set_conditions(
        &mut objects,
        "Machine/demo-cp-b",
        &[
            ("Ready", "False", "NotReady", "summed up"),
            ("BootstrapConfigReady", "True", "Ready", ""),
            ("InfrastructureReady", "False", "Booting", "the machine boots"),
        ],
    );
    assert_eq!(
        drawn(&objects, false),
        "Cluster/demo                      Available  2m0s\n\
         ├─ SimCluster/demo                Ready  2m0s\n\
         └─ KubeadmControlPlane/demo-cp    Available  3/3  v1.36.3  2m0s\n\
         \u{20}  ├─ 2 × Machine                 Ready  demo-cp-a, demo-cp-c\n\
         \u{20}  └─ Machine/demo-cp-b           Waiting  2m0s  InfrastructureReady: the machine boots (since 30s)\n\
         \u{20}     ├─ KubeadmConfig/demo-cp-b  Ready  2m0s\n\
         \u{20}     └─ SimMachine/demo-cp-b     Ready  2m0s\n"
    );
}

#[test]
fn of_machines_with_the_same_problem_one_is_expanded_and_the_others_share_a_row() {
    let mut objects = healthy();
    for name in ["demo-cp-a", "demo-cp-b", "demo-cp-c"] {
        let says = format!("E-CS-QUOTA: no room for {name}");
        set_conditions(&mut objects, &format!("Machine/{name}"), &[("Ready", "False", "Refused", &says)]);
    }
    let drawn = drawn(&objects, false);
    let rows: Vec<&str> = drawn.lines().skip(3).collect();
    assert_eq!(rows.len(), 4, "{drawn}");
    assert!(rows[0].contains("Machine/demo-cp-a") && rows[1].contains("KubeadmConfig/demo-cp-a"), "{drawn}");
    assert!(
        rows[3].contains("2 × Machine") && rows[3].ends_with("Failing  same problem: demo-cp-b, demo-cp-c"),
        "{drawn}"
    );
}

#[test]
fn a_tree_fits_its_terminal() {
    let mut objects = healthy();
    let message =
        "the machine is being created and waits for an address that the cloud assigns to it after a while";
    set_conditions(&mut objects, "SimMachine/demo-cp-b", &[("Ready", "False", "Booting", message)]);
    set_conditions(&mut objects, "Machine/demo-cp-b", &[("Ready", "False", "NotReady", "")]);
    let tree = tree(&objects);
    let draw = |size| draw_within(&tree, now(), Paint::Plain, size);
    let large = draw((200, 40));
    assert_eq!(large.join("\n") + "\n", capstan_view::draw(&tree, false, now(), Paint::Plain));
    for (width, height) in [(200, 40), (80, 24), (60, 10), (40, 6), (20, 3), (10, 1)] {
        let lines = draw((width, height));
        assert!(lines.len() <= height, "{width}×{height}: {lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}×{height}: {lines:#?}");
    }
    let wrapped = draw((60, 24)).join(" ");
    let words: Vec<&str> = wrapped.split_whitespace().collect();
    assert!(words.join(" ").contains(message), "wrapped, not cut: {wrapped}");
    let narrow = draw((60, large.len() + 1)).join("\n");
    assert!(
        narrow.contains("SimMachine/demo-cp-b") && narrow.contains("healthy parts are not shown"),
        "{narrow}"
    );
}

#[test]
fn nothing_is_collapsed_on_request() {
    let all = drawn(&healthy(), true);
    assert_eq!(all.lines().count(), 12, "{all}");
    assert!(
        all.contains("      ├─ KubeadmConfig/demo-cp-c") && all.contains("      └─ SimMachine/demo-cp-c"),
        "{all}"
    );
}

#[test]
fn a_rollout_is_shown_on_a_healthy_part() {
    let mut objects = healthy();
    set_conditions(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[
            ("Available", "True", "Available", ""),
            ("RollingOut", "True", "RollingOut", "1 of 3 machines is of an old version"),
        ],
    );
    let drawn = drawn(&objects, false);
    assert!(drawn.contains("RollingOut: 1 of 3 machines is of an old version"), "{drawn}");
}

#[test]
fn a_part_that_is_being_deleted_is_shown_as_deleting() {
    let mut objects = healthy();
    change(&mut objects, "Cluster/demo", |cluster| {
        cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:50Z");
    });
    assert!(drawn(&objects, false).starts_with("Cluster/demo"), "the root is shown");
    assert!(drawn(&objects, false).lines().next().is_some_and(|line| line.contains("Deleting")));
}

#[test]
fn messages_are_cut_to_one_bounded_line_without_control_characters() {
    let mut objects = healthy();
    let nasty = format!("a\n\u{1b}[31mb{}", "c".repeat(10_000));
    set_conditions(&mut objects, "SimCluster/demo", &[("Ready", "False", "Odd", &nasty)]);
    let drawn = drawn(&objects, false);
    assert_eq!(drawn.lines().count(), 3, "{drawn}");
    assert!(!drawn.contains('\u{1b}') && drawn.lines().all(|line| line.chars().count() < 300), "{drawn}");
}

#[test]
fn names_and_versions_of_a_tree_have_no_control_characters_of_a_server() {
    let mut objects = healthy();
    set_conditions(&mut objects, "KubeadmControlPlane/demo-cp", &[("Ready\u{9b}2J", "False", "Odd", "")]);
    change(&mut objects, "KubeadmControlPlane/demo-cp", |object| {
        object["metadata"]["name"] = "demo\u{1b}[2J\n\u{202e}cp".into();
        object["spec"]["version"] = "v1\u{7}".into();
    });
    change(&mut objects, "Cluster/demo", |object| {
        object["spec"]["topology"] = json!({"classRef": {"name": "q\u{1b}c"}, "version": "v1\nv2"});
    });
    let plain = drawn(&objects, true);
    assert!(plain.contains("KubeadmControlPlane/demo[2J cp") && plain.contains("qc, v1 v2"), "{plain:?}");
    let bad = |character: char| character != '\n' && character.is_control() || character == '\u{202e}';
    assert!(!plain.contains(bad), "{plain:?}");
    let lines = draw_within(&tree(&objects), now(), Paint::Colours, (200, 50));
    assert!(lines.iter().all(|line| !line.contains("\u{1b}[2J") && !line.contains('\n')), "{lines:?}");
}

#[test]
fn colours_are_only_for_terminals() {
    let coloured = draw(&tree(&healthy()), false, now(), Paint::Colours);
    assert!(coloured.contains("\u{1b}[32mAvailable\u{1b}[0m"), "{coloured}");
}

#[test]
fn a_cycle_of_owners_ends() {
    let mut objects = healthy();
    objects.push(object("Widget", "a", "Widget/b", &[]));
    objects.push(object("Widget", "b", "Widget/a", &[]));
    change(&mut objects, "Cluster/demo", |cluster| {
        cluster["metadata"]["ownerReferences"][0]["uid"] = json!("Machine/demo-cp-a");
    });
    assert_eq!(drawn(&objects, true).lines().count(), 12);
}

#[test]
fn ages_have_one_or_two_units() {
    let at = |text: &str| capstan_object::Time::new(text.parse().expect("a moment"));
    for (since, expected) in [
        ("2026-01-01T00:01:59Z", "1s"),
        ("2026-01-01T00:00:01Z", "119s"),
        ("2025-12-31T23:55:30Z", "6m30s"),
        ("2025-12-31T23:00:00Z", "62m"),
        ("2025-12-31T20:00:00Z", "4h"),
        ("2025-12-01T00:00:00Z", "31d"),
        ("2026-01-02T00:00:00Z", "0s"),
    ] {
        assert_eq!(age(at(since), now()), expected, "{since}");
    }
}
