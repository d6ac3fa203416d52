//! A webhook receiver: `WEBHOOK_SECRET=whsec_… PORT=3000 receiver serve`

use crate::events::Events;
use crate::secrets::Secrets;
use crate::verify::verify_with_standardwebhooks;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::error::Error;
use std::io::Read;
use tiny_http::{Method, Request, Server};

const BODY_LIMIT_BYTES: u64 = 256 * 1024;

/// Listens until it fails. The example handles one request at a time; in production, use your web framework.
pub fn serve() -> Result<(), Box<dyn Error>> {
    let secrets = Secrets::read(&std::env::var("WEBHOOK_SECRET").unwrap_or_default())?;
    let port = std::env::var("PORT").unwrap_or_else(|_| "3000".into());
    let server = Server::http(format!("127.0.0.1:{port}")).map_err(|error| error.to_string())?;
    println!("listening on http://{}", server.server_addr());
    let mut events = Events::default();
    for mut request in server.incoming_requests() {
        let status = receive(&mut request, &secrets, &mut events);
        // A sender that went away before the response comes again.
        let _ = request.respond(tiny_http::Response::empty(status));
    }
    Ok(())
}

/// The status to answer with.
fn receive(request: &mut Request, secrets: &Secrets, events: &mut Events) -> u16 {
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
    let headers = headers_of(request);
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let endpoint = header("webhook-endpoint");
    let is_genuine =
        |secret: &String| verify_with_standardwebhooks(&body, &headers, secret).is_ok();
    if !secrets.of(endpoint).iter().any(is_genuine) {
        return 400;
    }
    let Ok(event) = serde_json::from_slice::<Value>(&body) else {
        return 400;
    };
    if events.is_due(
        &event,
        endpoint,
        header("webhook-sequence").parse().unwrap_or(0),
    ) {
        handle(&event);
    }
    204 // what is not due is answered with success too, or it would be sent again
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
