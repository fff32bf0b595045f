//! Landlock: readable and writable files, open TCP ports, and the scope of signals and abstract sockets.
//! Rights can only be granted: nothing inside a granted folder can be refused.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::Grants;

/// The newest version whose rights are known here; an older kernel applies the part that it knows.
const NEWEST: ABI = ABI::V9;

pub(super) fn is_available() -> bool {
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// The version to use, as far as the settings allow it.
fn version(grants: &Grants) -> ABI {
    let limit = grants.max_abi.map_or(i32::MAX, |abi| i32::try_from(abi).unwrap_or(i32::MAX));
    NEWEST.min(ABI::from(limit.min(NEWEST as i32)))
}

/// True if truncating a file needs a right here; older kernels do not know it.
pub(super) fn judges_truncate(grants: &Grants) -> bool {
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    version(grants) >= ABI::V3 && strict().handle_access(AccessFs::Truncate).and_then(Ruleset::create).is_ok()
}

/// Applies the grants; returns the reason if it fails.
pub(super) fn restrict(grants: &Grants) -> Option<String> {
    let abi = version(grants);
    if abi == ABI::Unsupported {
        return Some("Landlock is not used".to_owned());
    }
    match apply(grants, abi) {
        Ok(RulesetStatus::NotEnforced) => Some("this kernel has no Landlock".to_owned()),
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => None,
        Err(error) => Some(error.to_string()),
    }
}

fn apply(grants: &Grants, abi: ABI) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?;
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes)?;
    }
    let ports = AccessNet::from_all(abi);
    let network = grants.network.as_ref().filter(|_| !ports.is_empty());
    if network.is_some() {
        ruleset = ruleset.handle_access(ports)?;
    }
    let mut created = ruleset.create()?;
    if let Some(network) = network {
        created = created.add_rule(NetPort::new(network.proxy, AccessNet::ConnectTcp))?;
        for port in &network.ports {
            created = created.add_rule(NetPort::new(*port, ports))?;
        }
    }
    let read = AccessFs::from_read(abi);
    // No device files: through one, a disk could be read past the permissions of its files. Dropped
    // capabilities refuse that too, so Landlock only changes the error.
    let write = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let use_device = AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::ReadDir
        | AccessFs::IoctlDev
        | AccessFs::Truncate;
    let connect = AccessFs::ResolveUnix;
    let rules = (grants.read.iter().map(|path| (open(path), read)))
        .chain(grants.only_read.iter().map(|path| (open(path), read & !AccessFs::Execute)))
        .chain(grants.write.iter().map(|path| (open_without_links(path), write)))
        .chain(grants.devices.iter().map(|path| (open(path), use_device)))
        .chain(grants.sockets.iter().map(|path| (open(path), connect.into())));
    for (place, rights) in rules {
        let rights = rights & AccessFs::from_all(abi);
        created = add(created, place, rights, abi)?;
    }
    Ok(created.restrict_self()?.ruleset)
}

fn open(path: &Path) -> Option<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Opens a writable path without following links, which an earlier session may have pointed at your files.
fn open_without_links(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A container may refuse this newer call.
        Err(Errno::NOSYS | Errno::PERM) => {
            let is_link = |part: &Path| part.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
            open(path).filter(|_| !path.ancestors().any(is_link))
        }
        opened => opened.ok(),
    }
}

/// Adds a rule for a place, if it exists and a right is left.
fn add(
    created: landlock::RulesetCreated,
    place: Option<OwnedFd>,
    rights: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<landlock::RulesetCreated, RulesetError> {
    let Some(place) = place else { return Ok(created) };
    let Ok(meta) = fstat(&place) else { return Ok(created) };
    let is_folder = FileType::from_raw_mode(meta.st_mode) == FileType::Directory;
    let rights = if is_folder { rights } else { rights & AccessFs::from_file(abi) };
    if rights.is_empty() { Ok(created) } else { created.add_rule(PathBeneath::new(place, rights)) }
}
