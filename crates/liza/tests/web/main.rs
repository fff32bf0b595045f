//! `liza web`: the server under attack, and its pages in a real browser.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod actions;
mod beside;
mod boards;
mod browser;
mod fixture;
mod limits;
mod looks;
mod pages;
