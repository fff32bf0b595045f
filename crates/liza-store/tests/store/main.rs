//! The store from outside: whole blackboards in real folders, other processes, crashes and people's edits.

mod bad_input;
mod board;
mod crash;
mod keeping;
mod locking;
mod log;
mod people;
mod second_reader;
mod support;
