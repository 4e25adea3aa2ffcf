//! The key pair with which the engine signs its requests to workers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::ClusterError;

const SEED_BYTES: usize = 32;
/// What stands before the seed of an Ed25519 key in PKCS #8 (RFC 8410, section 10.3).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A new key pair.
pub(crate) struct IdentityKey {
    /// The private key, for the engine: PEM.
    pub(crate) pem: String,
    /// The public key, for workers, as the engine writes it.
    pub(crate) public: String,
}

impl IdentityKey {
    /// A key pair from the system's random bytes.
    pub(crate) fn new() -> Result<Self, ClusterError> {
        let mut seed = [0; SEED_BYTES];
        getrandom::fill(&mut seed).map_err(|error| ClusterError::NoEntropy(error.to_string()))?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|error| ClusterError::NoEntropy(error.to_string()))?;
        let der = PKCS8_PREFIX.into_iter().chain(seed).collect::<Vec<_>>();
        Ok(Self {
            pem: format!(
                "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
                STANDARD.encode(der)
            ),
            public: format!("publickeyv1_{}", bs58::encode(pair.public_key().as_ref()).into_string()),
        })
    }
}
