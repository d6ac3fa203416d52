//! Two ways to verify a delivery: copy the one whose library you have. Each gives an error when the delivery is not to be believed.
//! The body is the bytes as they came, before any parsing; the secret is the whole of it, from `whsec_` on.

use http::HeaderMap;
use std::error::Error;

pub type Verdict = Result<(), Box<dyn Error>>;

pub fn verify_with_standardwebhooks(body: &[u8], headers: &HeaderMap, secret: &str) -> Verdict {
    Ok(standardwebhooks::Webhook::new(secret)?.verify(body, headers)?)
}

pub fn verify_with_svix(body: &[u8], headers: &HeaderMap, secret: &str) -> Verdict {
    Ok(svix::webhooks::Webhook::new(secret)?.verify(body, headers)?)
}
