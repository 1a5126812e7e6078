//! Keeps the relay's own authority and its certificate, and renews them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::sign::CertifiedKey;
use tracing::{info, warn};

use super::certificates::{Authority, Leaf, certificate_pem, is_self_signed_of_old};
use super::decide::{Decision, LeafFacts, Reason, Wanted, decide};
use super::files::{keep_private, write_private};
use super::{AUTHORITY_FILE, Current, LEAF_FILE, OLD_FILES, REPLACED_FILES, fingerprint};
use crate::error::StartError;
use crate::net::names::Names;

#[derive(Clone)]
pub(super) struct Kept {
    authority: Arc<Authority>,
    pub(super) leaf: Arc<Leaf>,
}

/// What was made, and why, and is not in the folder yet.
struct Unsaved {
    decision: Decision,
    kept: Kept,
}

/// Keeps the relay's own authority and its certificate, in memory and in a folder.
pub struct Keeper {
    folder: PathBuf,
    machine: String,
    provider: CryptoProvider,
    pub(super) current: Arc<Current>,
    kept: RwLock<Kept>,
    /// Held for a whole check: no reader waits for a file.
    unsaved: Mutex<Option<Unsaved>>,
}

impl Keeper {
    pub(super) fn open(folder: PathBuf, now: u64, wanted: &Wanted, machine: String) -> Result<Self, StartError> {
        let provider = default_provider();
        let path = folder.join(AUTHORITY_FILE);
        let authority = match fs::read_to_string(&path) {
            Ok(pem) => Some(Authority::read(&pem).ok_or_else(|| StartError::Certificate {
                path,
                reason: "delete it to have another one made; devices must then install that one".into(),
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(StartError::Read { path, source }),
        };
        for name in [AUTHORITY_FILE, LEAF_FILE] {
            keep_private(&folder.join(name));
        }
        let leaf = authority.as_ref().and_then(|authority| {
            // A certificate that cannot be used is made again.
            Leaf::read(&fs::read_to_string(folder.join(LEAF_FILE)).ok()?, authority)
        });
        let authority = authority.map(Arc::new);
        let known = authority.as_ref().map(|authority| &authority.facts);
        let decision = decide(now, wanted, known, leaf.as_ref().map(|leaf| &leaf.facts));
        let kept = match (decision, authority, leaf) {
            (Decision::Keep, Some(authority), Some(leaf)) => Kept { authority, leaf: Arc::new(leaf) },
            (decision, authority, leaf) => {
                let former = leaf.as_ref().map(|leaf| &leaf.facts);
                let kept = renew(&folder, &machine, now, wanted, &decision, authority.as_ref(), former)?;
                save(&folder, &decision, &kept, authority.as_ref())?;
                kept
            }
        };
        let current = Arc::new(Current::new(certified(&kept, &provider)?));
        Ok(Self { folder, machine, provider, current, kept: RwLock::new(kept), unsaved: Mutex::default() })
    }

    pub(super) fn kept(&self) -> Kept {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn authority(&self) -> Arc<Authority> {
        self.kept().authority
    }

    /// The authority's fingerprint.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.authority().certificate)
    }

    /// The names in the certificate.
    pub fn names(&self) -> Names {
        self.kept().leaf.facts.names.clone()
    }

    /// The authority's certificate, as it is installed: DER and PEM.
    pub fn authority_files(&self) -> (Vec<u8>, String) {
        let authority = self.authority();
        (authority.certificate.to_vec(), certificate_pem(&authority.certificate))
    }

    /// Renews what must be renewed at `now`. Connections that are open keep the certificate they began with. Reads and writes files: not
    /// for an async thread.
    ///
    /// # Errors
    /// A file cannot be written. A new certificate is used all the same, a new authority is not; each later check tries to write them.
    pub fn check(&self, now: u64, wanted: &Wanted) -> Result<Decision, StartError> {
        let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        let used = self.kept();
        let latest = unsaved.as_ref().map_or(&used, |unsaved| &unsaved.kept);
        let (authority, leaf) = (&latest.authority, &latest.leaf.facts);
        let decision = decide(now, wanted, Some(&authority.facts), Some(leaf));
        let made = match (decision, unsaved.take()) {
            (Decision::Keep, None) => return Ok(Decision::Keep),
            (Decision::Keep, Some(unsaved)) => unsaved,
            (decision, before) => {
                let latest = before.as_ref().map_or(&used, |before| &before.kept);
                let former = Some(&latest.leaf.facts);
                let authority = Some(&latest.authority);
                let kept = renew(&self.folder, &self.machine, now, wanted, &decision, authority, former)?;
                Unsaved { decision, kept }
            }
        };
        let has_authority = Arc::ptr_eq(&made.kept.authority, &used.authority);
        if has_authority {
            self.take_up(&made.kept)?;
        }
        let saved = save(&self.folder, &made.decision, &made.kept, Some(&used.authority));
        let Unsaved { decision, kept } = &*unsaved.insert(made);
        saved?;
        if !has_authority {
            self.take_up(kept)?;
        }
        let decision = decision.clone();
        *unsaved = None;
        Ok(decision)
    }

    fn take_up(&self, kept: &Kept) -> Result<(), StartError> {
        self.current.set(certified(kept, &self.provider)?);
        *self.kept.write().unwrap_or_else(PoisonError::into_inner) = kept.clone();
        Ok(())
    }
}

/// Makes what a decision asks for.
fn renew(
    folder: &Path,
    machine: &str,
    now: u64,
    wanted: &Wanted,
    decision: &Decision,
    authority: Option<&Arc<Authority>>,
    former: Option<&LeafFacts>,
) -> Result<Kept, StartError> {
    let failed = |error: rcgen::Error| StartError::CreateCertificate(error.to_string());
    let authority = match (authority, decision) {
        (Some(authority), Decision::Keep | Decision::NewLeaf(_)) => authority.clone(),
        (authority, _) => {
            let is_of_time = matches!(decision, Decision::NewAuthority(Reason::Ends | Reason::NotBegun));
            let former_one = is_of_time.then(|| replaced(folder, now, wanted)).flatten();
            // Else two names that are asked for in turn would need a new authority each time.
            let is_wider = matches!(decision, Decision::NewAuthority(Reason::Lacks(_)));
            let permitted = authority.filter(|_| is_wider).map(|authority| authority.facts.permitted.clone());
            let make = || Authority::make(now, wanted, machine, &permitted.unwrap_or_default());
            Arc::new(former_one.map_or_else(make, Ok).map_err(failed)?)
        }
    };
    let leaf = Arc::new(authority.sign(now, wanted, former).map_err(failed)?);
    Ok(Kept { authority, leaf })
}

/// An authority that was replaced and can be used at `now`: the clock was wrong in between, and devices may have installed this one.
fn replaced(folder: &Path, now: u64, wanted: &Wanted) -> Option<Authority> {
    let read = |name: &&str| Authority::read(&fs::read_to_string(folder.join(name)).ok()?);
    let is_usable =
        |found: &Authority| !matches!(decide(now, wanted, Some(&found.facts), None), Decision::NewAuthority(_));
    REPLACED_FILES.iter().filter_map(read).find(is_usable)
}

/// Writes what was made. `before` is the authority that is in the folder.
fn save(folder: &Path, decision: &Decision, kept: &Kept, before: Option<&Arc<Authority>>) -> Result<(), StartError> {
    write_private(folder, LEAF_FILE, &kept.leaf.to_pem())?;
    // Last: without its authority, a certificate is made again.
    if before.is_none_or(|before| !Arc::ptr_eq(before, &kept.authority)) {
        let [replaced, draft] = REPLACED_FILES;
        match before {
            // At each moment, each authority is in a file.
            Some(before) => {
                write_private(folder, draft, &before.to_pem())?;
                write_private(folder, AUTHORITY_FILE, &kept.authority.to_pem())?;
                let path = folder.join(replaced);
                fs::rename(folder.join(draft), &path).map_err(|source| StartError::Write { path, source })?;
            }
            None => {
                // A person deleted it to have another one: then those before it are not wanted, either.
                REPLACED_FILES.iter().for_each(|name| drop(fs::remove_file(folder.join(name))));
                write_private(folder, AUTHORITY_FILE, &kept.authority.to_pem())?;
            }
        }
    }
    match decision {
        Decision::NewAuthority(Reason::Missing) => info!("the relay has an authority of its own now"),
        Decision::NewAuthority(reason) => warn!("devices must install the relay's authority again: {reason}"),
        Decision::NewLeaf(reason) => info!("the certificate is renewed: {reason}"),
        Decision::Keep => {}
    }
    remove_old(folder);
    Ok(())
}

fn certified(kept: &Kept, provider: &CryptoProvider) -> Result<CertifiedKey, StartError> {
    // The authority goes along for native peers, which know its fingerprint.
    let chain = vec![kept.leaf.certificate.clone(), kept.authority.certificate.clone()];
    CertifiedKey::from_der(chain, kept.leaf.key(), provider)
        .map_err(|error: tokio_rustls::rustls::Error| StartError::CreateCertificate(error.to_string()))
}

/// Removes the certificate of a relay that had no authority yet, and its key.
fn remove_old(folder: &Path) {
    let [certificate, key] = OLD_FILES.map(|name| folder.join(name));
    if fs::read(&certificate).is_ok_and(|pem| is_self_signed_of_old(&pem)) {
        for path in [certificate, key] {
            // Nothing reads them any more.
            let _ = fs::remove_file(path);
        }
    }
}
