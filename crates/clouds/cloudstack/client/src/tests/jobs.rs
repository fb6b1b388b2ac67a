use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Reply, Script, refusal};
use crate::commands::{CreateTags, DeleteNetwork, DeployVirtualMachine, DestroyVirtualMachine, TagPair};
use crate::model::{MachineState, ResourceType};
use crate::{Class, Code, ErrorKind, JobId, JobState, Patience, Policy};

fn deploy() -> DeployVirtualMachine {
    DeployVirtualMachine::new("z".into(), "o".into(), "t".into())
}

fn job(status: u8, code: u16, result: Value) -> Reply {
    Reply::Ok(
        json!({ "jobid": "j", "jobstatus": status, "jobprocstatus": 0, "jobresultcode": code, "jobresult": result }),
    )
}

fn running() -> Reply {
    Reply::Ok(json!({ "jobid": "j", "jobstatus": 0, "jobprocstatus": 0, "jobresultcode": 0 }))
}

/// A server whose jobs end after so many questions.
fn server(questions: usize, end: impl Fn() -> Reply + Send + Sync + 'static) -> Arc<Script> {
    Script::new(move |seen, before| match seen.command.as_str() {
        "queryAsyncJobResult" if before >= questions => end(),
        "queryAsyncJobResult" => running(),
        _ => Reply::Ok(json!({ "id": "v", "jobid": "j" })),
    })
}

#[tokio::test(start_paused = true)]
async fn a_job_gives_its_id_first_and_its_result_when_it_ends() {
    let script = server(4, || {
        job(1, 0, json!({ "virtualmachine": { "id": "v", "state": "Running", "cpunumber": 2 }}))
    });
    let client = script.client();
    let submitted = client.start(&deploy()).await.unwrap();
    assert_eq!((submitted.job.as_str(), submitted.id.unwrap().as_str()), ("j", "v"));
    let machine = client.wait::<DeployVirtualMachine>(&submitted.job).await.unwrap();
    assert_eq!((machine.state, machine.cpunumber), (Some(MachineState::Running), Some(2)));
    assert_eq!(script.count("queryAsyncJobResult"), 4);
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_from_the_id_alone() {
    let script = server(1, || job(1, 0, json!({ "success": true })));
    let client = script.client();
    let id = JobId::from("j");
    assert_eq!(client.poll::<DeleteNetwork>(&id).await.unwrap(), JobState::Running);
    client.wait::<DeleteNetwork>(&id).await.unwrap();
    assert_eq!(script.count("deleteNetwork"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_an_error_with_its_code_and_id_and_not_ambiguous() {
    let script = server(2, || job(2, 530, json!({ "errorcode": 533, "errortext": "No destination found" })));
    let error = script.client().run(&deploy()).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::InsufficientCapacity));
    assert_eq!(error.class(), Class::Capacity);
    assert_eq!(error.job, Some(JobId::from("j")));
    assert!(!error.is_ambiguous() && !error.is_retryable());
    assert_eq!(
        error.to_string(),
        "deployVirtualMachine: the job failed: insufficient capacity (533): No destination found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_without_a_readable_reason_still_failed() {
    for (status, result) in [(2, json!("null pointer")), (2, Value::Null), (3, Value::Null), (2, json!({}))] {
        let script = server(1, move || job(status, 530, result.clone()));
        let error = script.client().run(&deploy()).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::Internal), "{error}");
        assert!(matches!(*error.kind, ErrorKind::JobFailed(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_says_success_false_failed() {
    let script = server(1, || job(1, 0, json!({ "success": "false", "displaytext": "half of it" })));
    let tags = vec![TagPair::new("k", "v")];
    let command = CreateTags { resourceids: vec!["r".into()], resourcetype: ResourceType::Network, tags };
    let error = script.client().run(&command).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().text, "half of it");
}

#[tokio::test(start_paused = true)]
async fn a_machine_expunged_with_its_destruction_has_no_id_any_more() {
    let left =
        json!({ "virtualmachine": { "securitygroup": [], "nic": [], "affinitygroup": [], "tags": [] }});
    let script = server(1, move || job(1, 0, left.clone()));
    let destroy = DestroyVirtualMachine { id: "v".into(), expunge: Some(true), volumeids: Vec::new() };
    assert_eq!(script.client().run(&destroy).await.unwrap().id, None);
}

#[tokio::test(start_paused = true)]
async fn patience_ends_with_the_jobs_id_and_an_ambiguous_error() {
    let script = server(usize::MAX, running);
    let jobs = Patience { total: Duration::from_secs(60), ..Patience::default() };
    let begun = Instant::now();
    let error = script.client_with(Policy { jobs, ..Policy::default() }).run(&deploy()).await.unwrap_err();
    assert_eq!(error.class(), Class::Pending);
    assert!(error.is_ambiguous() && error.is_retryable());
    assert_eq!(error.job, Some(JobId::from("j")));
    assert!(begun.elapsed() < Duration::from_secs(71));
    // 0.3 s, growing by half to 10 s: a minute is a dozen questions.
    assert!((8..=14).contains(&script.count("queryAsyncJobResult")), "{}", script.seen().len());
}

#[tokio::test(start_paused = true)]
async fn questions_that_go_unanswered_are_no_end_of_the_job() {
    let script = Script::new(|seen, before| match (seen.command.as_str(), before) {
        ("queryAsyncJobResult", 1..=9) => Reply::Broken { never_sent: false },
        ("queryAsyncJobResult", _) => job(1, 0, json!({ "virtualmachine": { "id": "v" }})),
        _ => Reply::Ok(json!({ "id": "v", "jobid": "j" })),
    });
    assert_eq!(script.client().run(&deploy()).await.unwrap().id.as_str(), "v");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_the_server_does_not_know_is_ambiguous_at_once() {
    let script = Script::new(|seen, _| match seen.command.as_str() {
        "queryAsyncJobResult" => refusal(431, 9999, "entity does not exist"),
        _ => Reply::Ok(json!({ "jobid": "j" })),
    });
    let error = script.client().run(&deploy()).await.unwrap_err();
    assert_eq!(error.class(), Class::Parameter);
    assert!(error.is_ambiguous(), "what became of the command is not known");
}

/// Forty jobs that run for a minute; number 7 fails, and the list shows who is still running.
fn crowd(listing: bool) -> Arc<Script> {
    let begun = parking_lot::Mutex::new(None::<Instant>);
    Script::new(move |seen, before| {
        let begun = *begun.lock().get_or_insert_with(Instant::now);
        let over = begun.elapsed() > Duration::from_secs(60);
        match seen.command.as_str() {
            "listAsyncJobs" if !listing => refusal(432, 9999, "not for you"),
            "listAsyncJobs" if over => Reply::Ok(json!({})),
            "listAsyncJobs" => {
                let jobs: Vec<Value> =
                    (0..40).map(|n| json!({ "jobid": format!("j{n}"), "jobstatus": 0 })).collect();
                Reply::Ok(json!({ "count": 40, "asyncjobs": jobs }))
            }
            "queryAsyncJobResult" if !over => running(),
            "queryAsyncJobResult" if seen.get("jobid") == "j7" => job(2, 530, json!({ "errorcode": 530 })),
            "queryAsyncJobResult" => job(1, 0, json!({ "virtualmachine": { "id": "v" }})),
            _ => Reply::Ok(json!({ "jobid": format!("j{before}") })),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn many_jobs_are_watched_by_one_list_and_no_failure_is_missed() {
    for (listing, most) in [(true, 130), (false, 600)] {
        let script = crowd(listing);
        let client = script.client();
        let command = deploy();
        let results = join_all((0..40).map(|_| client.run(&command))).await;
        let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].job, Some(JobId::from("j7")));
        let questions = script.count("queryAsyncJobResult") + script.count("listAsyncJobs");
        assert!(questions < most, "{listing}: {questions}");
        assert!(script.count("listAsyncJobs") <= if listing { 40 } else { 1 });
    }
}
