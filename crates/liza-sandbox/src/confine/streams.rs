//! Hands the output streams of one process to another, attached to one byte.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recv, recvmsg, sendmsg,
};

/// Output and errors.
const STREAMS: usize = 2;

pub fn send_streams(socket: &UnixStream, streams: [BorrowedFd<'_>; STREAMS]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&streams));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

pub fn receive_streams(socket: &UnixStream) -> io::Result<[OwnedFd; STREAMS]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::empty())?;
    let mut streams = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            streams.extend(received);
        }
    }
    for stream in &streams {
        fcntl_setfd(stream, FdFlags::CLOEXEC)?;
    }
    streams.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// True if the other end has been closed.
pub fn is_closed(socket: &UnixStream) -> bool {
    matches!(recv(socket, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((0, _)))
}

/// Copies a stream as it comes. If nobody reads the copy, it is closed, and its writer learns that.
pub fn copy_stream(mut from: io::PipeReader, mut to: impl Write) {
    let mut chunk = vec![0; 64 << 10];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => {
                let written = to.write_all(chunk.get(..length).unwrap_or_default());
                if written.and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd as _;

    /// Covers: JU-08
    #[test]
    fn streams_arrive_with_their_byte_and_a_closed_end_is_seen() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send_streams(&one, [writer.as_fd(), writer.as_fd()]).unwrap();
        drop(writer);
        let [output, errors] = receive_streams(&other).unwrap();
        File::from(output).write_all(b"out").unwrap();
        File::from(errors).write_all(b"err").unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "outerr");
        assert!(!is_closed(&other));
        (&one).write_all(b"x").unwrap();
        assert_eq!(receive_streams(&other).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(one);
        assert!(is_closed(&other));
        assert_eq!(other.read(&mut [0]).unwrap(), 0);
    }
}
