//! How the relay's certificate is checked: by a known authority, or by its fingerprint.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::fingerprint::Fingerprint;

/// Accepts the certificate with the fingerprint, whoever signed it, and those that the authority with the fingerprint signed: a relay
/// has an authority of its own, and sends it along. Without a fingerprint, those that a known authority signed for the relay's name.
/// Nobody else can hold a key for the same fingerprint, so names need no check.
#[derive(Debug)]
struct RelayCertificate {
    fingerprint: Option<Fingerprint>,
    authorities: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl RelayCertificate {
    /// Checks that the authority signed the certificate, and that it is valid now.
    fn verify_signed_by(
        &self,
        authority: &CertificateDer<'_>,
        certificate: &CertificateDer<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verify = || {
            let mut roots = RootCertStore::empty();
            roots.add(authority.clone().into_owned())?;
            let certificate = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, &roots, &[], now, algorithms)
        };
        match verify() {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(error) => Err(Error::General(format!(
                "the authority with the right fingerprint does not vouch for its certificate ({error}): this device's clock may be \
                 wrong, or somebody is in between"
            ))),
        }
    }
}

impl ServerCertVerifier for RelayCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let matches = |found: &&CertificateDer<'_>| Some(Fingerprint::of(found)) == self.fingerprint;
        // What the relay shows: its authority comes last.
        let found = Fingerprint::of(chain.last().unwrap_or(certificate));
        match self.fingerprint {
            Some(_) if matches(&certificate) => Ok(ServerCertVerified::assertion()),
            Some(_) => match chain.iter().find(matches) {
                Some(authority) => self.verify_signed_by(authority, certificate, now),
                None => Err(Error::General(format!(
                    "its certificate has another fingerprint, {found}: the relay was set up anew, or somebody is in between"
                ))),
            },
            None => self.authorities.verify_server_cert(certificate, chain, name, status, now).map_err(|_| {
                Error::General(format!(
                    "no known authority signed its certificate; if the relay shows the fingerprint {found}, give \
                     --relay-fingerprint {found}"
                ))
            }),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The configuration of connections to the relay.
///
/// # Errors
/// The TLS library cannot use its own authorities or versions, which does not happen.
pub fn relay_config(fingerprint: Option<Fingerprint>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let authorities = authorities.build().map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(RelayCertificate { fingerprint, authorities, provider }))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The errors of the TLS library among an error and its causes.
fn of_tls<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a Error> {
    std::iter::successors(Some(error), |error| cause(*error)).filter_map(|error| error.downcast_ref())
}

/// The cause of an error: what an I/O error wraps, or the source.
fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// The sentence of [`RelayCertificate`] inside an error of a library.
pub fn certificate_fault(error: &(dyn StdError + 'static)) -> Option<String> {
    of_tls(error).find_map(|error| match error {
        Error::General(sentence) => Some(sentence.clone()),
        _ => None,
    })
}

/// True if the other side answers without TLS.
pub fn speaks_no_tls(error: &(dyn StdError + 'static)) -> bool {
    of_tls(error).any(|error| matches!(error, Error::InvalidMessage(_)))
}

/// The sentence of [`RelayCertificate`] inside an error of a library, or the error itself.
pub fn explain(error: &(dyn StdError + 'static)) -> String {
    certificate_fault(error).unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::time::Duration;

    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    struct Chain {
        authority: CertificateDer<'static>,
        certificate: CertificateDer<'static>,
    }

    fn chain() -> Chain {
        let (root, own) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.not_after = rcgen::date_time_ymd(2040, 1, 1);
        let authority = params.self_signed(&root).unwrap();
        let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        leaf.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let certificate = leaf.signed_by(&own, &Issuer::from_params(&params, &root)).unwrap();
        Chain { authority: authority.der().clone(), certificate: certificate.der().clone() }
    }

    /// What a client says that knows one fingerprint, of a relay that shows a certificate and an authority.
    fn judged(
        known: &CertificateDer<'_>,
        shown: &CertificateDer<'_>,
        with: &CertificateDer<'_>,
        year: u64,
    ) -> Result<(), String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
        let authorities = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build().unwrap();
        let verifier = RelayCertificate { fingerprint: Some(Fingerprint::of(known)), authorities, provider };
        let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_556_952));
        let name = ServerName::try_from("elsewhere.example").unwrap();
        let verdict = verifier.verify_server_cert(shown, std::slice::from_ref(with), &name, &[], now);
        verdict.map(drop).map_err(|error| explain(&error))
    }

    #[test]
    fn a_certificate_of_the_known_authority_is_accepted_and_one_that_only_comes_with_it_is_not() {
        let (own, other) = (chain(), chain());
        assert_eq!(judged(&own.authority, &own.certificate, &own.authority, 2028), Ok(()));
        assert_eq!(judged(&own.certificate, &own.certificate, &own.authority, 2028), Ok(()), "the certificate itself");
        let stolen = judged(&own.authority, &other.certificate, &own.authority, 2028).unwrap_err();
        assert!(stolen.contains("does not vouch"), "somebody in between shows the known authority: {stolen}");
        let another = judged(&own.authority, &other.certificate, &other.authority, 2028).unwrap_err();
        assert!(another.contains("another fingerprint"), "{another}");
        let late = judged(&own.authority, &own.certificate, &own.authority, 2035).unwrap_err();
        assert!(late.contains("clock"), "{late}");
    }
}
