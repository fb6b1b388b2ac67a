//! Bodies that are accepted, and held for long by whatever decides on them.

use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_apiserver::admission::{Admission, AdmissionAttributes, Representations};
use capstan_apiserver::auth::{Authorizer, ObjectSource};
use capstan_apiserver::config::Kinds;
use capstan_apiserver::conversion::Conversions;
use capstan_apiserver::status::Result;
use futures::future::{BoxFuture, join_all};

use super::bodies::{WIDGETS, define_widgets, repeated, widget};
use super::confined_with;

/// Admission that takes as long as a webhook may.
struct Slow;

impl Admission for Slow {
    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        _: &'a dyn Representations,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async {
            if attributes.resource.resource == "widgets" {
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
            Ok(())
        })
    }
}

struct SlowKinds;

impl Kinds for SlowKinds {
    fn admission(&self, _: &Arc<dyn ObjectSource>, _: &Arc<dyn Authorizer>) -> Vec<Arc<dyn Admission>> {
        vec![Arc::new(Slow)]
    }

    fn conversions(&self, known: Conversions, _: &Arc<dyn ObjectSource>) -> Conversions {
        known
    }
}

#[test]
fn bodies_that_slow_admission_holds() {
    let config = || Config::in_memory().with_kinds(Arc::new(SlowKinds));
    confined_with(module_path!(), "bodies_that_slow_admission_holds", config, |client| async move {
        define_widgets(&client).await;
        // Each takes 55 MiB when it is decoded.
        let body = widget(&format!("\"any\":{{\"l\":[{}]}}", repeated(r#"{"":0}"#, 600_000)));
        let path = format!("{WIDGETS}?dryRun=All");
        let json = [("content-type", "application/json")];
        let replies = (0..24).map(|_| client.reply("POST", &path, &json, body.clone()));
        let codes: Vec<u16> = join_all(replies).await.iter().map(|reply| reply.status().as_u16()).collect();
        let answered = codes.iter().filter(|code| **code == 201).count();
        assert!(answered >= 4 && codes.iter().all(|code| matches!(code, 201 | 429)), "{codes:?}");
        // All room is given back.
        assert_eq!(client.reply("POST", &path, &json, body).await.status(), 201);
    });
}
