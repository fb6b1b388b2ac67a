//! `docs/dev/attacks.md`: every attempt, what is expected, and the test that shows it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;

use super::{Attempt, attempts};

/// Attempts that are tests of a crate: name, file, test.
pub const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "answers of a workload cluster without end are cut off",
        "crates/kubernetes/controller/src/client/hostile_tests.rs",
        "an_answer_without_end_is_cut_off_and_the_error_says_whose_it_was_and_what_to_do",
    ),
    (
        "a watch of a workload cluster without a newline is cut off",
        "crates/kubernetes/controller/src/client/hostile_tests.rs",
        "a_watch_without_a_newline_is_cut_off",
    ),
    (
        "one hostile cluster cannot take the memory of others",
        "crates/kubernetes/controller/src/client/hostile_tests.rs",
        "one_cluster_cannot_take_what_another_one_needs",
    ),
    (
        "1,000 silent clusters do not delay a healthy one",
        "crates/kubernetes/controller/src/clusters/silent_tests.rs",
        "a_thousand_silent_clusters_do_not_delay_one_that_answers",
    ),
    (
        "a Secret of another namespace is used only with a grant",
        "crates/capi/plane/tests/it/secrets.rs",
        "whoever_may_not_read_a_secret_may_not_have_it_used",
    ),
    (
        "labels of a topology give nobody the use of a Secret",
        "crates/capi/plane/tests/it/secrets.rs",
        "a_patch_of_a_class_may_not_use_what_its_template_does_not_name",
    ),
    (
        "a class of another namespace lends no Secrets",
        "crates/capi/plane/tests/it/secrets.rs",
        "a_class_of_another_namespace_lends_no_secrets",
    ),
    (
        "a status that a user wrote deletes no Cluster of another namespace",
        "crates/doors/lifecycle/src/cluster/tests.rs",
        "the_cluster_of_cluster_api_is_deleted_if_it_was_made_for_this_one",
    ),
    (
        "credentials of a registry mirror need the right to read them",
        "crates/doors/lifecycle/src/admission/tests.rs",
        "a_mirror_with_credentials_uses_the_secret_of_the_operators",
    ),
    (
        "names and messages of a server reach a terminal without control characters",
        "crates/view/tests/it/tables.rs",
        "cells_have_no_control_characters_of_a_server",
    ),
    (
        "a kubeconfig from a Secret reads no file and runs no program",
        "crates/kubernetes/controller/src/remote/kubeconfig.rs",
        "a_kubeconfig_of_somebody_else_reads_no_file",
    ),
    (
        "a store file that is missing, cut off or replaced is named",
        "crates/kubernetes/store/tests/it/damage.rs",
        "a_file_that_is_missing_cut_off_or_replaced_is_named_with_advice",
    ),
    (
        "a flipped bit before the newest snapshot does not prevent a start",
        "crates/kubernetes/store/tests/it/damage.rs",
        "a_flipped_bit_before_the_newest_snapshot_is_reported_and_does_not_prevent_a_start",
    ),
    (
        "a webhook cannot move an object or change its kind",
        "crates/kubernetes/apiserver/src/admission/webhook/identity_tests.rs",
        "a_patch_cannot_move_an_object_or_make_it_another_kind",
    ),
    (
        "requests beyond the limit are 429",
        "crates/kubernetes/apiserver/tests/it/flow_control.rs",
        "a_level_with_queues_lets_requests_wait_for_a_seat",
    ),
    (
        "on a full disk deletes work",
        "crates/kubernetes/apiserver/tests/it/full_disk.rs",
        "on_a_full_disk_deletes_work_and_writes_work_again_when_there_is_space",
    ),
    (
        "a lost key of the token issuer is not replaced silently",
        "crates/kubernetes/pki/src/tests.rs",
        "a_lost_key_is_an_error_until_a_new_one_is_accepted",
    ),
    (
        "a store with objects gets no new keys in silence",
        "capstan/tests/it/stores.rs",
        "a_store_with_objects_gets_no_new_keys_in_silence",
    ),
    (
        "a write of one among 3,000 bindings parses one",
        "crates/kubernetes/apiserver/src/auth/rbac/tests.rs",
        "a_change_of_one_binding_among_thousands_parses_one",
    ),
    (
        "a watcher that does not read holds little memory",
        "crates/kubernetes/apiserver/tests/it/watches.rs",
        "a_watcher_that_does_not_read_holds_little_of_what_it_missed",
    ),
    (
        "a connection whose client does not read is closed, whatever else it does",
        "crates/kubernetes/apiserver/src/front/unread_tests.rs",
        "a_connection_whose_client_does_not_read_is_closed_although_it_sends_requests",
    ),
    (
        "a write whose client leaves is finished and recorded",
        "crates/kubernetes/apiserver/src/front/leaving_tests.rs",
        "a_write_is_recorded_although_its_client_resets_the_stream",
    ),
    (
        "a list in another form decodes one object at a time",
        "crates/kubernetes/apiserver/tests/it/attacks/lists.rs",
        "lists_that_are_not_sent_as_they_are_stored",
    ),
    (
        "large bodies that a slow webhook holds stay within their room",
        "crates/kubernetes/apiserver/tests/it/attacks/held.rs",
        "bodies_that_slow_admission_holds",
    ),
    (
        "one user cannot open any number of watches",
        "crates/kubernetes/apiserver/tests/it/watches.rs",
        "a_user_who_has_too_many_watches_open_gets_a_429_until_one_ends",
    ),
    (
        "a server whose watches break is asked ever less often",
        "crates/kubernetes/controller/src/cache/reflector.rs",
        "a_server_whose_watches_do_not_last_is_asked_ever_less_often",
    ),
    (
        "user data of a machine cannot inject commands",
        "crates/clouds/kvm/src/namespace/boot.rs",
        "user_data_cannot_inject_commands",
    ),
    (
        "every kind, subresource, verb and path form keeps its scope",
        "crates/kubernetes/apiserver/tests/it/scope.rs",
        "permissions_in_one_namespace_reach_nothing_else_by_any_path",
    ),
    (
        "a JSON patch cannot move a long list again and again",
        "crates/kubernetes/schema/src/patch/json.rs",
        "work_at_the_front_of_a_long_list_is_bounded",
    ),
    (
        "a strategic merge patch cannot merge a long list again and again",
        "crates/kubernetes/schema/src/patch/strategic/tests.rs",
        "a_long_list_is_not_merged_for_each_of_many_entries",
    ),
    (
        "the keys that a patch retains are looked up",
        "crates/kubernetes/schema/src/patch/strategic/tests.rs",
        "retained_keys_are_looked_up_not_searched",
    ),
    ("selectors have limits", "crates/kubernetes/apiserver/src/http/options.rs", "selectors_are_bounded"),
    (
        "a watch with long selectors counts as several",
        "crates/kubernetes/apiserver/src/watches.rs",
        "a_watch_with_long_selectors_counts_as_several",
    ),
    (
        "bodies that are sent slowly leave room for others",
        "crates/kubernetes/apiserver/src/memory/receiving.rs",
        "slow_senders_hold_half_of_the_room_and_others_are_served",
    ),
    (
        "many bodies of a few KiB stay within their room",
        "crates/kubernetes/apiserver/src/memory/mod.rs",
        "bodies_of_a_few_kib_are_counted_too",
    ),
    (
        "the audit log has no values of a Secret",
        "crates/kubernetes/apiserver/tests/it/audit.rs",
        "an_error_that_quotes_a_secret_is_recorded_without_its_values",
    ),
    (
        "a list in the audit log decodes one object at a time",
        "crates/kubernetes/apiserver/tests/it/attacks/lists.rs",
        "lists_that_are_recorded_in_the_audit_log",
    ),
    (
        "an audit log that ends with a very long line is continued",
        "crates/kubernetes/audit/src/log/tests.rs",
        "a_log_that_ends_with_a_very_long_line_is_continued",
    ),
];

pub fn path() -> PathBuf {
    crate::cargo::root().join("docs/dev/attacks.md")
}

/// What was found of each attempt, by its row in the page up to the result. An attempt whose expectation changes has
/// another row, and no result until it is run.
pub type Found = BTreeMap<String, String>;

pub const NOT_RUN: &str = "not run";

/// The results that the page has.
pub fn written() -> Found {
    let page = std::fs::read_to_string(path()).unwrap_or_default();
    let rows = page.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | "));
    rows.map(|(row, result)| (row.to_owned(), result.to_owned())).collect()
}

/// The row of an attempt, up to its result.
pub fn row(attempt: &Attempt) -> String {
    format!("| {} | {}", attempt.name, attempt.expected)
}

/// Writes the page, with the results of a run where there are some.
pub fn write(run: Found) -> Result<()> {
    let mut found = written();
    found.extend(run);
    Ok(std::fs::write(path(), page(&found))?)
}

pub fn page(found: &Found) -> String {
    let mut out = String::new();
    let mut line = |text: &str| writeln!(out, "{text}").unwrap_or_default();
    line("# Attacks\n");
    line(
        "What reviewers tried against the server. `cargo xtask attacks` repeats it against the real binary with 1 GiB of",
    );
    line(
        "address space and 256 open files; after every attempt the server must be alive and ready. Attempts that need no",
    );
    line(
        "process of their own are tests of the crates. `cargo xtask crash --damage` kills the server and damages its files,",
    );
    line(
        "`cargo xtask fuzz` feeds its decoders random input. `cargo xtask attacks --write-docs` writes this page: the result",
    );
    line("is what its run found.\n");
    line("## Against the running server\n");
    line("| attempt | expected | result |\n|---|---|---|");
    for attempt in attempts() {
        let row = row(attempt);
        line(&format!("{row} | {} |", found.get(&row).map_or(NOT_RUN, String::as_str)));
    }
    line("\n## In tests of the crates\n");
    line("| expected | test |\n|---|---|");
    for (expected, file, test) in ELSEWHERE {
        line(&format!("| {expected} | `{test}` in `{file}` |"));
    }
    out
}
