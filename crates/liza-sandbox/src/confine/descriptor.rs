//! Sends what the stage has for its parent: the listener for connects and the sockets of its room, as far as there are
//! any, attached to one byte that says which, and which folders the room has for itself. The system adds the sender's
//! identity.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::sys::confinement::RoomSockets;

use super::system_folders::OWN_FOLDERS;

/// In the byte: the first descriptor is the listener. The lower bits name folders.
const HAS_LISTENER: u8 = 1 << 7;

/// The listener, and the sockets of a room.
const DESCRIPTORS_MAX: usize = 6;

pub(super) fn send_listener(
    socket: &UnixStream,
    listener: Option<&OwnedFd>,
    own: &[PathBuf],
    sockets: Option<&RoomSockets>,
) -> io::Result<()> {
    let sockets = sockets.map(RoomSockets::descriptors).unwrap_or_default();
    let descriptors: Vec<_> = listener.iter().map(|listener| listener.as_fd()).chain(sockets).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let byte = bits_of(own) | listener.map_or(0, |_| HAS_LISTENER);
    sendmsg(socket, &[IoSlice::new(&[byte])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Makes the system add the sender's identity to incoming messages. Call it before the stage sends anything.
pub(super) fn learn_sender(socket: &UnixStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_socket_passcred(socket, true)?;
    let _ = socket;
    Ok(())
}

#[derive(Debug, Default)]
pub(super) struct ReceivedListener {
    pub listener: Option<OwnedFd>,
    /// The process of the stage, which becomes the program; reported by the system, not by the stage.
    pub stage: Option<u32>,
    /// The folders that the room of the stage has for itself.
    pub own: Vec<PathBuf>,
    pub sockets: Option<RoomSockets>,
}

fn bits_of(own: &[PathBuf]) -> u8 {
    let bits = OWN_FOLDERS.iter().zip(0..);
    bits.filter(|(folder, _)| own.iter().any(|own| own == Path::new(folder))).map(|(_, bit)| 1 << bit).sum()
}

fn folders_of(bits: u8) -> Vec<PathBuf> {
    let known = OWN_FOLDERS.iter().zip(0..);
    known.filter(|(_, bit)| bits & (1 << bit) != 0).map(|(folder, _)| PathBuf::from(folder)).collect()
}

pub(super) fn receive_listener(socket: &UnixStream) -> io::Result<ReceivedListener> {
    #[cfg(target_os = "linux")]
    let mut space =
        [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX), ScmCredentials(1))];
    #[cfg(not(target_os = "linux"))]
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty())?;
    if received.bytes == 0 {
        return Err(io::Error::other("the confinement stage ended early"));
    }
    let mut found = ReceivedListener { own: folders_of(byte[0]), ..ReceivedListener::default() };
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(descriptors) => {
                let mut descriptors: VecDeque<OwnedFd> = descriptors.collect();
                for descriptor in &descriptors {
                    fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
                }
                found.listener = if byte[0] & HAS_LISTENER == 0 { None } else { descriptors.pop_front() };
                found.sockets = RoomSockets::from_descriptors(descriptors);
            }
            #[cfg(target_os = "linux")]
            RecvAncillaryMessage::ScmCredentials(sender) => {
                found.stage = u32::try_from(sender.pid.as_raw_nonzero().get()).ok();
            }
            _ => {}
        }
    }
    Ok(found)
}
