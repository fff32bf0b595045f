//! The proxy through which a session with `network: model-only` reaches its model: tunnels to a few hosts,
//! refuses all others. Sees host names and ports, never the content of an encrypted connection. One for each
//! session, in its supervisor.

mod hosts;
mod request;
mod server;

pub use hosts::{ModelHost, hosts_of};
pub use server::{ModelProxy, proxy_variables};
