//! Checks the addresses of a link to a model ([`crate::links`]) after its name is resolved.

use std::net::IpAddr;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolves names to the addresses that are allowed. ureq asks it for every redirect, and connects to nothing else than what
/// it returns, so a name cannot change between the check and the connection.
#[derive(Debug)]
pub struct AllowedAddresses(pub fn(IpAddr) -> bool);

impl Resolver for AllowedAddresses {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        // The same error for a name that does not exist and one that is private: which it is, is nobody's business.
        let found = DefaultResolver::default().resolve(uri, config, timeout).map_err(|_| Error::HostNotFound)?;
        let mut allowed = self.empty();
        found.iter().filter(|address| (self.0)(address.ip())).for_each(|address| allowed.push(*address));
        if allowed.is_empty() { Err(Error::HostNotFound) } else { Ok(allowed) }
    }
}
