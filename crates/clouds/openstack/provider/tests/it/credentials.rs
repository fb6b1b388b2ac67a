//! Application credentials of clusters.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_controller::{Deletion, KindName, Patch};
use capstan_harness::{Fault, Violation, World, run};
use capstan_object::Key;
use capstan_openstack_client::config::Clouds;
use capstan_openstack_client::identity::NewApplicationCredential;
use capstan_openstack_client::{Class, Client, Credentials};
use capstan_openstack_types::v1beta2::OpenStackCluster;
use capstan_sim_openstack::{Fault as CloudFault, Service, Target};
use serde_json::{Value, json};

use crate::cloud::{Cloud, TENANT};
use crate::manifests::{self, NAME, NAMESPACE};
use crate::story::Act::{Before, Check, Create, Delete};
use crate::story::{CheckResult, Script, failed};

const ROTATION: &str = "capstan.dev/openstack-application-credential";
const SECRET: &str = "stacky-workload-cloud-config";

fn check(holds: bool, what: impl Into<String>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new("credential", what)) }
}

/// Replaced every four hours; the one before stays for one more.
fn with_credential(body: &mut Value) {
    if body["kind"] == "OpenStackCluster" {
        body["metadata"]["annotations"] = json!({ROTATION: "4h"});
    }
}

fn story(acts: &[crate::story::Act]) -> Script {
    Script { bare: true, change: Some(with_credential), ..Script::of(acts) }
}

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

/// The numbers of the cluster's credentials in Keystone.
fn numbers(cloud: &Cloud) -> Vec<String> {
    let names = cloud.names("application_credentials");
    let mut numbers: Vec<String> = names
        .iter()
        .filter_map(|name| {
            name.strip_prefix("capstan-default-stacky-")?.rsplit('-').next().map(str::to_owned)
        })
        .collect();
    numbers.sort();
    numbers
}

fn file(world: &World<'_>, secret: &str, name: &str) -> Result<String, Violation> {
    let key = Key::new(NAMESPACE, secret);
    let object = world.objects()?.get(&manifests::secrets(), &key).ok_or_else(|| failed("no Secret"))?;
    let data = STANDARD.decode(object["data"][name].as_str().unwrap_or_default()).map_err(failed)?;
    String::from_utf8(data).map_err(failed)
}

/// The workload by the credentials that it was given, and their secret.
fn workload(world: &World<'_>, cloud: &Cloud) -> Result<(Client, String), Violation> {
    let clouds = Clouds::parse(&file(world, SECRET, "clouds.yaml")?, None, None).map_err(failed)?;
    let settings = clouds.cloud(Some(TENANT), None).map_err(failed)?;
    let Credentials::ApplicationCredential { secret, .. } = &settings.credentials else {
        return Err(failed("no application credential"));
    };
    let secret = secret.expose().to_owned();
    Ok((cloud.client_of(settings), secret))
}

fn clusters(world: &World<'_>) -> Result<String, Violation> {
    let all = world.objects()?.list(&KindName::of::<OpenStackCluster>());
    Ok(all.iter().map(ToString::to_string).collect())
}

#[test]
fn a_cluster_has_a_restricted_credential_that_is_rotated_and_goes_with_it() {
    fn usable<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            check(numbers(cloud) == ["1"], format!("{:?}", numbers(cloud)))?;
            let (client, secret) = workload(world, cloud)?;
            let token = client.token().await.map_err(failed)?;
            let mut roles: Vec<&str> = token.roles().iter().map(|role| role.name.as_str()).collect();
            roles.sort_unstable();
            check(roles == ["load-balancer_member", "member"], format!("{roles:?}"))?;
            let new =
                NewApplicationCredential { name: "more".to_owned(), ..NewApplicationCredential::default() };
            let refused = client.create_application_credential(&new).await.map_err(|error| error.class());
            check(refused == Err(Class::Permission), "it may make others")?;
            let resources = file(world, "stacky-workload-cloud-config-resources", "cloud-config.yaml")?;
            let resources: Value = serde_json::from_str(&resources).map_err(failed)?;
            check(resources["metadata"]["name"] == "cloud-config", format!("{resources}"))?;
            let events = KindName::namespaced("", "v1", "Event", "events");
            let events: String = world.objects()?.list(&events).iter().map(ToString::to_string).collect();
            check(!clusters(world)?.contains(&secret) && !events.contains(&secret), "the secret is shown")
        })
    }
    fn rotated<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            world.pass(Duration::from_secs(4 * 3600 + 300)).await?;
            check(numbers(cloud) == ["1", "2"], format!("{:?}", numbers(cloud)))?;
            let (client, _) = workload(world, cloud)?;
            world.pass(Duration::from_secs(3600 + 300)).await?;
            check(numbers(cloud) == ["2"], format!("{:?}", numbers(cloud)))?;
            client.token().await.map(drop).map_err(failed)
        })
    }
    fn removed<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            annotate(world, &Value::Null).await?;
            world.run_until_idle().await?;
            check(numbers(cloud).is_empty(), format!("{:?}", numbers(cloud)))?;
            check(file(world, SECRET, "clouds.yaml").is_err(), "the Secret is there")?;
            annotate(world, &json!("never")).await?;
            world.run_until_idle().await?;
            check(numbers(cloud) == ["3"], format!("{:?}", numbers(cloud)))
        })
    }
    goes_well(&story(&[Create, Check(usable), Check(rotated), Check(removed), Delete]));
}

async fn annotate(world: &World<'_>, rotation: &Value) -> Result<(), Violation> {
    let change = Patch::Merge(json!({"metadata": {"annotations": {ROTATION: rotation}}}));
    let (kind, key) = (KindName::of::<OpenStackCluster>(), Key::new(NAMESPACE, NAME));
    world.user()?.patch(&kind, &key, None, &change).await.map(drop).map_err(failed)
}

#[test]
fn a_credential_whose_answer_was_lost_is_replaced_by_the_next() {
    fn lose<'a>(_: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let on = Target {
                service: Some(Service::Identity),
                method: Some("POST".to_owned()),
                path: Some("application_credentials".to_owned()),
                times: Some(1),
                ..Target::default()
            };
            cloud.simulator.inject(CloudFault::LostReply { on }).map_err(failed)
        })
    }
    fn second<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            check(numbers(cloud) == ["2"], format!("{:?}", numbers(cloud)))?;
            workload(world, cloud)?.0.token().await.map(drop).map_err(failed)
        })
    }
    goes_well(&story(&[Before(lose), Create, Check(second), Delete]));
}

#[test]
fn no_credential_is_left_behind_when_the_process_dies_or_an_answer_is_lost() {
    let story = story(&[Create, Delete]);
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let trace = reference.trace.text();
    let line = trace.lines().find(|line| line.contains(": call create-credential")).expect("a call");
    let number = line.split_whitespace().find_map(|word| word.strip_prefix('#')).expect("a number");
    let number: usize = number.parse().expect("a number");
    for fault in [
        Fault::CrashAfter(number),
        Fault::LoseReply(number),
        // The Secrets are written next.
        Fault::CrashAfter(number + 1),
        Fault::CrashAfter(number + 2),
        Fault::LoseReply(number + 1),
    ] {
        let report = run(&story, 1, &[fault]);
        assert!(report.violation.is_none(), "{fault:?}: {}", report.transcript());
    }
}

#[test]
fn a_revoked_credential_is_reported_and_made_again_once_its_secret_is_deleted() {
    fn revoked<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let client = cloud.client();
            for held in client.application_credentials().await.map_err(failed)? {
                client.delete_application_credential(&held.id).await.map_err(failed)?;
            }
            world.pass(Duration::from_secs(180)).await?;
            check(clusters(world)?.contains("E-OS-APP-CREDENTIAL"), clusters(world)?)?;
            check(numbers(cloud).is_empty(), "it is made again")?;
            let key = Key::new(NAMESPACE, SECRET);
            let secrets = manifests::secrets();
            world.user()?.delete(&secrets, &key, &Deletion::default()).await.map_err(failed)?;
            world.run_until_idle().await?;
            check(numbers(cloud) == ["2"], format!("{:?}", numbers(cloud)))?;
            check(!clusters(world)?.contains("E-OS-APP-CREDENTIAL"), clusters(world)?)
        })
    }
    goes_well(&story(&[Create, Check(revoked), Delete]));
}

async fn set_clouds(world: &World<'_>, text: &str) -> Result<(), Violation> {
    let key = Key::new(NAMESPACE, "openstack-credentials");
    let patch = Patch::Merge(json!({"stringData": {"clouds.yaml": text}}));
    world.user()?.patch(&manifests::secrets(), &key, None, &patch).await.map(drop).map_err(failed)
}

#[test]
fn restricted_credentials_of_the_operator_are_reported_with_the_mend() {
    fn restricted<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let new =
                NewApplicationCredential { name: "op".to_owned(), ..NewApplicationCredential::default() };
            let client = cloud.client();
            let made = client.create_application_credential(&new).await.map_err(failed)?;
            let secret = made.secret.as_ref().map(|secret| secret.expose().to_owned()).unwrap_or_default();
            let text = format!(
                "clouds: {{{TENANT}: {{auth_type: v3applicationcredential, region_name: RegionOne, auth: {{auth_url: \
                 'http://cloud.example/identity/v3', application_credential_id: {}, application_credential_secret: {secret}}}}}}}",
                made.id
            );
            set_clouds(world, &text).await?;
            annotate(world, &json!("30d")).await?;
            world.pass(Duration::from_secs(180)).await?;
            let reported = clusters(world)?;
            check(reported.contains("E-OS-APP-CREDENTIAL") && reported.contains("--unrestricted"), reported)?;
            set_clouds(world, &crate::cloud::clouds_yaml()).await?;
            client.delete_application_credential(&made.id).await.map_err(failed)?;
            world.pass(Duration::from_secs(600)).await?;
            check(!clusters(world)?.contains("E-OS-APP-CREDENTIAL"), clusters(world)?)?;
            check(numbers(cloud).len() == 1, format!("{:?}", numbers(cloud)))
        })
    }
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(restricted), Delete]) });
}

#[test]
fn a_wrong_rotation_is_reported_with_the_values_that_there_are() {
    fn reported<'a>(world: &'a mut World<'_>, _: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            annotate(world, &json!("sometimes")).await?;
            world.pass(Duration::from_secs(60)).await?;
            check(clusters(world)?.contains("such as 30d, or never"), clusters(world)?)
        })
    }
    goes_well(&Script { bare: true, ..Script::of(&[Create, Check(reported), Delete]) });
}
