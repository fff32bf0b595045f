//! The blackboard in PostgreSQL: rows instead of a file, the same rules. The only crate with a database client.
//!
//! `client` is what the program installs and `backend` what the store asks for. `address` says how to connect, `connection`
//! and `fault` talk to the database, `schema` has its tables, `load` and `read` read them, `transaction` with `write` changes
//! them, `edit` changes the text, `requests` finds out what became of a commit, `heartbeat` renews leases without the lock
//! and `leases` shows them, `time` keeps the database's clock. Never holds the lock while other work is done.

#![forbid(unsafe_code)]

mod address;
mod alarm_row;
mod backend;
mod client;
mod connection;
mod create;
mod edit;
mod fault;
mod heartbeat;
mod leases;
mod load;
mod log;
mod poll;
mod read;
mod report;
mod requests;
mod schema;
mod stop_rows;
mod store;
mod time;
mod transaction;
mod transfer;
mod write;

/// Lets the store use blackboards in PostgreSQL.
pub fn install() {
    liza_store::backend::install_client(&client::PostgreSql);
}
