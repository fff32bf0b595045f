//! The blackboard in PostgreSQL: rows instead of a file, the same rules. The only crate with a database client.
//!
//! The program installs `client`; the store uses `backend`. `connection`, `proof` and `fault` talk to the database,
//! `schema` has its tables, `load` and `read` read them, `transaction` and `write` change them, `edit`
//! changes the text, `requests` looks up lost commits. Never holds the lock while other work is done.

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
mod proof;
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
