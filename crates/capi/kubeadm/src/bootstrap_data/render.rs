//! Renders bootstrap data in the format of `spec.format`.

use capstan_capi_types::bootstrap::Format;

use super::data::BootstrapData;
use super::{cloud_config, ignition};
use crate::Error;

impl BootstrapData<'_> {
    pub fn render(&self) -> Result<Vec<u8>, Error> {
        match self.format() {
            Format::CloudConfig => Ok(cloud_config::render(self).into_bytes()),
            Format::Ignition => ignition::render(self),
        }
    }
}
