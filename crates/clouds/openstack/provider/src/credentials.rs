//! Application credentials of the operator's user, shared by all clusters whose credentials are of that user.

use std::sync::Arc;
use std::time::Duration;

use capstan_openstack_client::Error;
use capstan_openstack_client::identity::ApplicationCredential;

use crate::project::Access;

impl Access {
    /// The user's application credentials, not older than `age`.
    pub(crate) async fn application_credentials(
        &self,
        age: Duration,
    ) -> Result<Arc<Vec<ApplicationCredential>>, Error> {
        let user = self.client.token().await?.user().id.clone();
        let listing = self.project.application_credentials(&user);
        listing.read(self.project.age(age), self.client.application_credentials()).await
    }

    /// What is known of them does not count any more.
    pub(crate) async fn forget_application_credentials(&self) {
        // Without a token nothing was listed.
        if let Ok(token) = self.client.token().await {
            self.project.application_credentials(&token.user().id).forget().await;
        }
    }
}
