//! Sends the listener for connects from the stage to its parent: one byte, with the descriptor attached if there is one.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Sends it.
pub(super) fn send_listener(socket: &UnixStream, listener: Option<&OwnedFd>) -> io::Result<()> {
    let descriptors: Vec<_> = listener.iter().map(|listener| listener.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    sendmsg(socket, &[IoSlice::new(b".")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives it; none if the stage has none.
pub(super) fn receive_listener(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty())?;
    if received.bytes == 0 {
        return Err(io::Error::other("the confinement stage ended early"));
    }
    let mut listener = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            listener = descriptors.next();
        }
    }
    if let Some(listener) = &listener {
        fcntl_setfd(listener, FdFlags::CLOEXEC)?;
    }
    Ok(listener)
}
