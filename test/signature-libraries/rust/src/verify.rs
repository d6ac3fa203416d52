//! Two ways to verify a delivery: copy the one for your library. Each returns an error when the delivery is not
//! genuine.
//! The body is the received bytes, before any parsing. The secret is the whole text, including `whsec_`.

use http::HeaderMap;
use std::error::Error;

pub type Verification = Result<(), Box<dyn Error>>;

pub fn verify_with_standardwebhooks(body: &[u8], headers: &HeaderMap, secret: &str) -> Verification {
    Ok(standardwebhooks::Webhook::new(secret)?.verify(body, headers)?)
}

pub fn verify_with_svix(body: &[u8], headers: &HeaderMap, secret: &str) -> Verification {
    Ok(svix::webhooks::Webhook::new(secret)?.verify(body, headers)?)
}
