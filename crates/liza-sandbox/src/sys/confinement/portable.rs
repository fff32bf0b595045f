//! A system without a confinement that Liza knows: nothing is restricted, and that is reported.

use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{ConnectPolicy, Grants, Restrictions};

pub(crate) fn restrict(_: &Grants, _: bool) -> Restrictions {
    let why = "this system has no Landlock";
    let missing = || Some(why.to_owned());
    Restrictions { files: missing(), calls: missing(), capabilities: None, listener: Err(why.to_owned()) }
}

pub(super) fn restricted<T: Send>(_: &Grants, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    work()
}

pub(crate) fn decide_connects(_: OwnedFd, _: ConnectPolicy, _: Option<RoomSockets>) -> io::Result<()> {
    Ok(())
}

/// The sockets of a room, which this system does not have.
#[derive(Debug)]
pub(crate) enum RoomSockets {}

impl RoomSockets {
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match *self {}
    }

    pub(crate) fn from_descriptors(_: impl IntoIterator<Item = OwnedFd>) -> Option<Self> {
        None
    }
}

pub(crate) fn forward(_: TcpListener, _: (u32, &str), _: u16, _: impl Write) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn protects_files() -> bool {
    false
}

/// A socket with an abstract name, which this system does not have.
#[derive(Debug)]
pub(crate) struct NamedSocket {
    pub name: String,
}

impl NamedSocket {
    pub(crate) fn create() -> Option<Self> {
        None
    }
}

#[derive(Debug)]
pub(super) struct Witnesses;

impl Witnesses {
    pub(super) fn prepare(_: Option<&str>) -> Self {
        Self
    }

    pub(crate) fn still_possible(&self) -> Vec<String> {
        vec!["system calls are not filtered".to_owned()]
    }
}
