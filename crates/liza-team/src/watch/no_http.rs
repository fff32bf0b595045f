//! Replaces `http` in a program without webhooks: every delivery fails with the reason.

use super::webhook::RetryPolicy;

pub fn post(_: &str, _: &str, _: &RetryPolicy) -> Result<(), String> {
    Err("this liza was built without webhooks".to_owned())
}
