//! Boot data as it travels: filled in, perhaps compressed.

use capstan_cloudstack_client::UserData;

use crate::code;
use crate::error::CloudError;

/// Name of the machine in boot data, for cloud-init's templates.
const HOST_NAME: &str = "ds.meta_data.hostname";
/// Name of the failure domain in boot data.
const FAILURE_DOMAIN: &str = "ds.meta_data.failuredomain";

/// User data of a machine: what its order says, applied to its boot data.
pub(super) fn render(
    data: Vec<u8>,
    host_name: &str,
    failure_domain: &str,
    compress: bool,
) -> Result<UserData, CloudError> {
    let data = match String::from_utf8(data) {
        Ok(text) => filled_in(&text, host_name, failure_domain).into_bytes(),
        Err(other) => other.into_bytes(),
    };
    let packed = if compress { UserData::gzip(&data) } else { UserData::plain(&data) };
    packed.map_err(|error| CloudError::new(code::BOOT_DATA, "BootData", error.to_string()))
}

/// What cloud-init cannot know itself is put in its place, as CAPC does it.
fn filled_in(text: &str, host_name: &str, failure_domain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from.find("}}");
        match end.filter(|end| from[2..*end].trim() == HOST_NAME) {
            Some(end) => {
                out.push_str(host_name);
                rest = &from[end + 2..];
            }
            None => {
                out.push_str("{{");
                rest = &from[2..];
            }
        }
    }
    out.push_str(rest);
    out.replace(FAILURE_DOMAIN, failure_domain)
}

#[cfg(test)]
mod tests {
    use super::filled_in;

    #[test]
    fn boot_data_is_filled_in_as_capc_does_it() {
        for (text, filled) in [
            ("name: '{{ ds.meta_data.hostname }}'", "name: 'm-1'"),
            ("{{ds.meta_data.hostname}}{{ds.meta_data.failuredomain}}", "m-1{{fd1}}"),
            ("zone=ds.meta_data.failuredomain", "zone=fd1"),
            (
                "{{ ds.meta_data.instance_id }} {{ local_hostname }}",
                "{{ ds.meta_data.instance_id }} {{ local_hostname }}",
            ),
            ("{{ open", "{{ open"),
            ("{{{{ ds.meta_data.hostname }}", "{{m-1"),
        ] {
            assert_eq!(filled_in(text, "m-1", "fd1"), filled, "{text}");
        }
    }
}
