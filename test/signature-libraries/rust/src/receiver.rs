//! A webhook receiver: `WEBHOOK_SECRET=whsec_… PORT=3000 receiver serve`

use crate::verify::verify_with_standardwebhooks;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::HashSet;
use std::error::Error;
use std::io::Read;
use tiny_http::{Method, Request, Server};

const BODY_LIMIT_BYTES: u64 = 256 * 1024;

/// Listens until it fails. The example handles one request at a time; in production, use your web framework.
pub fn serve() -> Result<(), Box<dyn Error>> {
    let secret = std::env::var("WEBHOOK_SECRET").map_err(|_| {
        "WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created"
    })?;
    let port = std::env::var("PORT").unwrap_or_else(|_| "3000".into());
    let server = Server::http(format!("127.0.0.1:{port}")).map_err(|error| error.to_string())?;
    println!("listening on http://{}", server.server_addr());
    // In memory for the example. In production, use a table with the event's id as its key, and write it in the
    // transaction that does the work.
    let mut seen = HashSet::new();
    for mut request in server.incoming_requests() {
        let status = receive(&mut request, &secret, &mut seen);
        // A sender that went away before the response comes again.
        let _ = request.respond(tiny_http::Response::empty(status));
    }
    Ok(())
}

/// The status to answer with.
fn receive(request: &mut Request, secret: &str, seen: &mut HashSet<String>) -> u16 {
    if *request.method() != Method::Post {
        return 405;
    }
    // The bytes exactly as they came: the signature covers them and not the JSON.
    let mut body = Vec::new();
    let mut limited = request.as_reader().take(BODY_LIMIT_BYTES + 1);
    if limited.read_to_end(&mut body).is_err() {
        return 400;
    }
    if body.len() as u64 > BODY_LIMIT_BYTES {
        return 413;
    }
    if verify_with_standardwebhooks(&body, &headers_of(request), secret).is_err() {
        return 400;
    }
    let Ok(event) = serde_json::from_slice::<Value>(&body) else {
        return 400;
    };
    // A test event is accepted like any other and never acted on: the ids in its data name nothing.
    let is_test = event["test"] == true;
    if !is_test && seen.insert(event["id"].to_string()) {
        handle(&event);
    }
    204 // a repeat is answered with success too, or it would be sent again
}

/// Your part, which is called once for each genuine event. Put slow work into a queue: the response is due within
/// 10 seconds.
fn handle(event: &Value) {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    println!("{} {}", text("type"), text("id"));
}

fn headers_of(request: &Request) -> HeaderMap {
    let readable = request.headers().iter().filter_map(|header| {
        let name = HeaderName::from_bytes(header.field.as_str().as_str().as_bytes()).ok()?;
        Some((
            name,
            HeaderValue::from_bytes(header.value.as_str().as_bytes()).ok()?,
        ))
    });
    readable.collect()
}
