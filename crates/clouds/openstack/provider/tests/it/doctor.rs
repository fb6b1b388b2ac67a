//! `capstan doctor`: whether Keystone accepts every credential that an object names.

use std::sync::Arc;

use capstan_controller::KindName;
use capstan_harness::{Violation, World, run};
use capstan_openstack_provider::{Clouds, OpenStack};
use capstan_openstack_types::v1alpha1::{OpenStackClusterIdentity, OpenStackFloatingIPPool};
use capstan_provider_kit::{Provider as _, Severity};
use serde_json::{Value, json};

use crate::cloud::{Cloud, PASSWORD, clouds_yaml};
use crate::manifests::{self, NAMESPACE};
use crate::story::Act::{Check, Create};
use crate::story::{CheckResult, Script, failed};

async fn findings(world: &World<'_>, cloud: &Cloud) -> Result<Vec<(Severity, String)>, Violation> {
    let clouds = Clouds::new(Arc::new(cloud.clone()));
    let found = OpenStack::reaching(clouds.clone()).check(&world.user()?).await;
    let (counted, metrics) = ("service=\"identity\",command=\"identity POST auth\"", clouds.metrics());
    if !metrics.contains(counted) || metrics.contains(PASSWORD) {
        return Err(Violation::new("metrics", metrics));
    }
    Ok(found.into_iter().map(|it| (it.severity, it.what)).collect())
}

async fn create(world: &World<'_>, kind: &KindName, namespace: &str, body: Value) -> Result<(), Violation> {
    world.user()?.create(kind, namespace, &body).await.map(drop).map_err(failed)
}

fn identity(name: &str, secret: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackClusterIdentity",
        "metadata": {"name": name}, "spec": {"secretRef": {"name": secret, "namespace": NAMESPACE}},
    })
}

#[test]
fn credentials_of_identities_and_pools_are_checked_too_and_each_once() {
    fn check<'a>(world: &'a mut World<'_>, cloud: &'a Cloud) -> CheckResult<'a> {
        Box::pin(async move {
            let fine = "OpenStack accepts the credentials in Secret default/openstack-credentials";
            let expected = vec![(Severity::Fine, fine.to_owned())];
            let found = findings(world, cloud).await?;
            if found != expected {
                return Err(Violation::new("doctor", format!("{found:?}")));
            }
            let wrong = clouds_yaml().replace(PASSWORD, "wrong");
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"clouds.yaml": wrong},
                "metadata": {"name": "wrong", "namespace": NAMESPACE}});
            create(world, &manifests::secrets(), NAMESPACE, secret).await?;
            let identities = KindName::of::<OpenStackClusterIdentity>();
            create(world, &identities, "", identity("right", "openstack-credentials")).await?;
            create(world, &identities, "", identity("wrong", "wrong")).await?;
            create(world, &identities, "", identity("void", "void")).await?;
            let pool = json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackFloatingIPPool",
                "metadata": {"name": "pool", "namespace": NAMESPACE},
                "spec": {"reclaimPolicy": "Delete",
                    "identityRef": {"type": "ClusterIdentity", "name": "absent", "cloudName": "capstan"}},
            });
            create(world, &KindName::of::<OpenStackFloatingIPPool>(), NAMESPACE, pool).await?;
            let found = findings(world, cloud).await?;
            for (severity, part) in [
                (Severity::Fine, fine),
                (Severity::Bad, "OpenStackFloatingIPPool pool refers to OpenStackClusterIdentity absent"),
                (Severity::Bad, "Secret default/wrong: E-OS-CREDENTIALS"),
                (Severity::Bad, "Secret default/void: E-OS-SECRET"),
            ] {
                if found.iter().filter(|it| it.0 == severity && it.1.contains(part)).count() != 1 {
                    return Err(Violation::new("doctor", format!("{part} is not in {found:?}")));
                }
            }
            match found.len() == 4 && !format!("{found:?}").contains(PASSWORD) {
                true => Ok(()),
                false => Err(Violation::new("doctor", format!("{found:?}"))),
            }
        })
    }
    let report = run(&Script { bare: true, ..Script::of(&[Create, Check(check)]) }, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}
