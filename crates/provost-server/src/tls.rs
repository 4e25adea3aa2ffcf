//! TLS with a certificate of the user's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::listen::ServerError;

/// A certificate and its key, in files of PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, with those that lead to its authority behind it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What makes connections secure. The files are read once.
///
/// # Errors
/// When a file can't be read, or key and certificate don't fit.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServerError> {
    let cant = |path: &Path, why: String| ServerError::Tls { path: path.to_owned(), why };
    let read = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<CertificateDer<'_>>, _>>);
    let chain = read.map_err(|error| cant(&files.certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(cant(&files.certificate, "there is no certificate in it".to_owned()));
    }
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| cant(&files.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    let config = config.map_err(|error| cant(&files.certificate, error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
