//! Checks captured deliveries with each library: `receiver check < captured.jsonl`. The format and the exit codes
//! are in ../../README.md.

use crate::verify::{verify_with_standardwebhooks, verify_with_svix, Verification};
use base64::{engine::general_purpose::STANDARD, Engine};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::error::Error;
use std::io::BufRead;

type Verify = fn(&[u8], &HeaderMap, &str) -> Verification;

const LIBRARIES: [(&str, Verify); 2] = [
    ("standardwebhooks", verify_with_standardwebhooks),
    ("svix", verify_with_svix),
];

/// Whether every library accepts every delivery of the input, and there is one.
pub fn check(input: impl BufRead) -> Result<bool, Box<dyn Error>> {
    let (mut number, mut rejected) = (0, 0);
    for line in input.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        number += 1;
        let captured: Value = serde_json::from_str(&line)?;
        let body = STANDARD.decode(captured["body"].as_str().ok_or("a delivery has no body")?)?;
        let secret = captured["secret"]
            .as_str()
            .ok_or("a delivery has no secret")?;
        let headers = headers_of(&captured["headers"])?;
        for (library, verify) in LIBRARIES {
            match verify(&body, &headers, secret) {
                Ok(()) => println!("{number} {library} accepted"),
                Err(error) => {
                    rejected += 1;
                    println!("{number} {library} rejected: {error}");
                }
            }
        }
    }
    Ok(number > 0 && rejected == 0)
}

fn headers_of(captured: &Value) -> Result<HeaderMap, Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    for (name, value) in captured.as_object().ok_or("a delivery has no headers")? {
        let text = value.as_str().ok_or("a header is no text")?;
        headers.insert(
            HeaderName::from_bytes(name.as_bytes())?,
            HeaderValue::from_str(text)?,
        );
    }
    Ok(headers)
}
