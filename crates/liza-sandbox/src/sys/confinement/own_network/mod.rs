//! The network of a room, from outside: a loopback of its own, from which nothing leads away but what is served here.
//! A socket of the session is never exchanged for one from outside: it is led to a socket inside, and bytes are copied.
//! Must not decide which targets are allowed: that is `connects`.

mod answer;
mod forward;
mod names;
mod outside;
mod pump;
mod relay;
mod sockets;

pub(crate) use forward::forward;
pub(crate) use outside::Answerer;
pub(crate) use relay::{Led, RoomNetwork};
pub(crate) use sockets::RoomSockets;
