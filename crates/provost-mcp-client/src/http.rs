//! Messages to and from an address, by streamable HTTP.

use std::collections::HashMap;
use std::time::Duration;

use mcp_reqwest::header::{HeaderName, HeaderValue};
use mcp_reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::{ExposeSecret as _, SecretString};

use crate::stdio::MESSAGE_BYTES_MAX;

const CONNECT_MAX: Duration = Duration::from_secs(10);

/// The transport to an address.
///
/// # Errors
/// When a header isn't one.
pub(crate) fn transport(
    url: &str,
    headers: &[(String, SecretString)],
) -> Result<StreamableHttpClientTransport<mcp_reqwest::Client>, String> {
    // One that is there stays; all of this process are the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // An address that sends elsewhere would get the headers sent there too.
    let client = mcp_reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_MAX)
        .build()
        .map_err(|error| crate::stdio::with_causes(&error))?;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name} is no name of a header"))?;
        let mut value = HeaderValue::from_str(value.expose_secret())
            .map_err(|_| format!("the value for the header {name} has characters that no header may have"))?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = custom;
    config.max_sse_event_size = MESSAGE_BYTES_MAX;
    config.max_json_response_size = MESSAGE_BYTES_MAX;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
