//! Where the kernel's routes lead: to this machine or away from it. An address of an interface is not all that leads here:
//! a local route brings a whole network here, and what leaves by one interface can arrive at another one.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// Numbers of the kernel's interface: see `rtnetlink(7)`.
const GET_ROUTE: u16 = 26;
const NEW_ROUTE: u16 = 24;
const IS_REQUEST: u16 = 1;
const IS_ERROR: u16 = 2;
const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
/// A route to this machine, and one to the nearest of several machines, of which this is one.
const HERE: [u8; 2] = [2, 4];

const HEADER: usize = 16;
const KIND_AT: usize = HEADER + 7;

/// True if the kernel would deliver to this machine what is sent to an address; also if the kernel does not say it. Sends
/// nothing.
pub(super) fn leads_here(target: SocketAddr) -> bool {
    let address = target.ip().to_canonical();
    let interface = match target {
        SocketAddr::V6(target) => target.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    matches!(address, IpAddr::V6(address) if is_of_a_link_here(address))
        || kind_of_route(address, interface)
            .map_or(true, |kind| kind.is_some_and(|kind| HERE.contains(&kind)))
}

/// True for an address of any interface that is valid on its link only. Another interface can be on the same link.
fn is_of_a_link_here(address: Ipv6Addr) -> bool {
    let own = |line: &str| u128::from_str_radix(line.split(' ').next().unwrap_or_default(), 16).ok();
    let table = || fs::read_to_string("/proc/self/net/if_inet6").unwrap_or_default();
    address.is_unicast_link_local() && table().lines().filter_map(own).any(|own| own == address.to_bits())
}

/// `None` if there is no route.
fn kind_of_route(address: IpAddr, interface: u32) -> Result<Option<u8>, Errno> {
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    send(&kernel, &request(address, interface), SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (length, _) = recv(&kernel, &mut answer[..], RecvFlags::empty())?;
    match u16::from_ne_bytes([answer[4], answer[5]]) {
        NEW_ROUTE if length > KIND_AT => Ok(Some(answer[KIND_AT])),
        IS_ERROR => Ok(None),
        _ => Err(Errno::BADMSG),
    }
}

fn request(address: IpAddr, interface: u32) -> Vec<u8> {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    let small = |number: usize| u8::try_from(number).unwrap_or_default();
    let mut body = vec![0; 12];
    body[0] = small(usize::from(family.as_raw()));
    body[1] = small(bytes.len() * 8);
    let mut attribute = |name: u16, value: &[u8]| {
        let length = u16::from(small(value.len() + 4));
        body.extend([length.to_ne_bytes(), name.to_ne_bytes()].concat());
        body.extend(value);
    };
    attribute(DESTINATION, &bytes);
    if interface != 0 {
        attribute(INTERFACE, &interface.to_ne_bytes());
    }
    let length = u32::from(small(HEADER + body.len()));
    let kinds = [GET_ROUTE.to_ne_bytes(), IS_REQUEST.to_ne_bytes()].concat();
    // Without a number and a sender.
    [&length.to_ne_bytes()[..], &kinds, &[0; 8], &body].concat()
}
