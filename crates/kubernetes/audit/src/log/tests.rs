//! Logs that are written, rotated, cut, changed and continued.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::*;
use crate::{Level, Stage, UserInfo, VerifyError, verify};

pub(crate) fn event(id: usize) -> Event {
    Event {
        kind: Event::KIND,
        api_version: Event::API_VERSION,
        level: Level::Metadata,
        audit_id: format!("id-{id}"),
        stage: Stage::ResponseComplete,
        request_uri: "/api/v1/pods".to_owned(),
        verb: "list".to_owned(),
        user: UserInfo { username: "admin".to_owned(), ..UserInfo::default() },
        impersonated_user: None,
        source_ips: Vec::new(),
        user_agent: String::new(),
        object_ref: None,
        response_status: None,
        request_object: None,
        response_object: None,
        request_received_timestamp: Timestamp::UNIX_EPOCH,
        stage_timestamp: Timestamp::UNIX_EPOCH,
        annotations: BTreeMap::new(),
    }
}

fn options(dir: &tempfile::TempDir) -> LogOptions {
    LogOptions {
        path: dir.path().join("audit.log"),
        max_bytes: 1 << 20,
        max_backups: 0,
        max_age: Duration::ZERO,
    }
}

fn write(options: &LogOptions, ids: std::ops::Range<usize>) {
    let log = AuditLog::open(options.clone()).expect("a log");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        for id in ids {
            log.record(&event(id)).await;
        }
    });
    assert_eq!(log.failures(), 0);
}

#[test]
fn a_log_continues_its_chain_over_restarts_and_rotations() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = LogOptions { max_bytes: 2000, ..options(&dir) };
    write(&options, 0..7);
    write(&options, 7..20);
    let report = verify(&options.path).expect("whole");
    assert!(report.files.len() > 3, "{report:?}");
    assert_eq!((report.first, report.last), (1, 20));

    // A new file after the current one was rotated away by hand.
    let name = dir.path().join("audit-2099-01-01T00-00-00.000.log");
    std::fs::rename(&options.path, name).expect("renamed");
    write(&options, 20..21);
    assert_eq!(verify(&options.path).expect("whole").last, 21);
}

#[test]
fn lines_are_events_that_any_tool_reads() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&dir);
    write(&options, 0..1);
    let text = std::fs::read_to_string(&options.path).expect("the file");
    let line: serde_json::Value = serde_json::from_str(text.trim_end()).expect("JSON");
    assert_eq!((&line["seq"], &line["kind"]), (&serde_json::json!(1), &serde_json::json!("Event")));
    assert_eq!(line["requestReceivedTimestamp"], "1970-01-01T00:00:00.000000Z");
    assert_eq!((&line["auditID"], &line["stage"]), (&"id-0".into(), &"ResponseComplete".into()));
}

#[test]
fn only_so_many_rotated_files_are_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = LogOptions { max_bytes: 600, max_backups: 3, ..options(&dir) };
    write(&options, 0..30);
    let report = verify(&options.path).expect("whole");
    assert_eq!((report.files.len(), report.last), (4, 30));
    assert!(report.first > 1, "{report:?}");
}

#[test]
fn what_a_crash_cut_short_is_removed_and_the_chain_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&dir);
    write(&options, 0..3);
    let text = std::fs::read(&options.path).expect("the file");
    std::fs::write(&options.path, &text[..text.len() - 9]).expect("cut");
    assert!(matches!(verify(&options.path), Err(VerifyError::Broken { line: 3, .. })));
    write(&options, 3..4);
    assert_eq!(verify(&options.path).expect("whole").last, 3);
}

#[test]
fn a_changed_removed_added_or_moved_line_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&dir);
    write(&options, 0..5);
    let text = std::fs::read_to_string(&options.path).expect("the file");
    let lines: Vec<&str> = text.lines().collect();
    let changed = lines[2].replace("admin", "nobody");
    let first = lines[0].replace("admin", "nobody");
    for (what, tampered, problem) in [
        ("changed", vec![lines[0], lines[1], &changed, lines[3], lines[4]], "event 3 was changed"),
        ("first changed", vec![&first, lines[1]], "event 1 was changed"),
        ("removed", vec![lines[0], lines[1], lines[3], lines[4]], "event 4 follows event 2"),
        ("moved", vec![lines[0], lines[2], lines[1], lines[3]], "event 3 follows event 1"),
        ("added", vec![lines[0], lines[1], lines[1], lines[2]], "event 2 follows event 2"),
        ("foreign", vec![lines[0], "{}"], "is not a line of an audit log"),
    ] {
        std::fs::write(&options.path, tampered.join("\n") + "\n").expect("written");
        let error = verify(&options.path).expect_err(what).to_string();
        assert!(error.contains(problem), "{what}: {error}");
    }
    // A cut at the end shows in the number and the hash only.
    std::fs::write(&options.path, lines[..3].join("\n") + "\n").expect("written");
    assert_eq!(verify(&options.path).expect("a shorter log").last, 3);
}

#[test]
fn a_file_that_is_no_log_is_not_appended_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&dir);
    std::fs::write(&options.path, "a letter\n").expect("written");
    assert!(matches!(AuditLog::open(options.clone()), Err(LogError::Foreign { .. })));
    assert_eq!(std::fs::read_to_string(&options.path).expect("the file"), "a letter\n");
}

#[test]
fn events_that_cannot_be_written_are_counted_and_leave_the_chain_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&dir);
    write(&options, 0..2);
    let line = chain::last_line(&options.path).expect("a file").expect("a line");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full disk");
    let mut writer = Writer {
        files: Files::on(full, options.clone()),
        chain: Chain::after(&line).expect("a chain"),
        failures: Arc::default(),
        reported: None,
    };
    let before = writer.chain.clone();
    let mut batch = Batch::new(&writer.chain);
    assert!(batch.add(b"{}", 10));
    writer.write(batch);
    assert_eq!(writer.failures.load(Ordering::Relaxed), 1);
    assert_eq!(writer.chain, before);
    writer.files = Files::open(options.clone()).expect("files");
    let mut batch = Batch::new(&writer.chain);
    assert!(batch.add(b"{}", 10));
    writer.write(batch);
    assert_eq!(verify(&options.path).expect("whole").last, 3);
}

#[test]
fn nobody_else_reads_the_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&dir);
    write(&options, 0..1);
    let mode = std::fs::metadata(&options.path).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn long_events_wait_for_the_file_by_their_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = AuditLog::open(options(&dir)).expect("a log");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        assert!(log.room_for(LONG).await.is_none());
        let held = log.room_for(LONG_BACKLOG).await.expect("a long event takes room");
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, log.room_for(LONG + 1)).await.is_err(), "there is none left");
        drop(held);
        let long = Event { user_agent: "x".repeat(10 << 20), ..event(0) };
        for _ in 0..8 {
            log.record(&long).await;
        }
        while log.0.room.available_permits() < LONG_BACKLOG {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    drop(log);
    assert_eq!(verify(&dir.path().join("audit.log")).expect("whole").last, 8);
}

#[test]
fn a_log_that_ends_with_a_very_long_line_is_continued() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&dir);
    write(&options, 0..1);
    let log = AuditLog::open(options.clone()).expect("a log");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(log.record(&Event { user_agent: "x".repeat(65 << 20), ..event(1) }));
    drop(log);
    write(&options, 2..3);
    assert_eq!(verify(&options.path).expect("whole").last, 3);
}
