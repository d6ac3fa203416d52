//! Reads WEBHOOK_SECRET: the secret of the only webhook, or `<webhook-endpoint>=whsec_…` for each of several, with
//! spaces between. An endpoint may have two, while one is being rotated.

use std::collections::HashMap;

pub struct Secrets(HashMap<String, Vec<String>>);

impl Secrets {
    /// An error is a sentence that contains no secret.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        if text
            .chars()
            .any(|each| !matches!(each, '\t' | '\n' | '\r' | ' '..='~'))
        {
            return Err("WEBHOOK_SECRET has a byte order mark or another invisible character: save it without one");
        }
        if text.contains(['"', '\'', '`']) {
            return Err("WEBHOOK_SECRET has quotes: remove them");
        }
        let mut by_endpoint = HashMap::<String, Vec<String>>::new();
        for entry in text.split_whitespace() {
            let (endpoint, secret) = entry.split_once('=').unwrap_or(("", entry));
            if !is_secret(secret) {
                return Err("WEBHOOK_SECRET contains what is not a secret: copy all of it, from whsec_ to its end");
            }
            let own = by_endpoint.entry(endpoint.to_owned()).or_default();
            own.push(secret.to_owned());
        }
        if by_endpoint.is_empty() {
            return Err("WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created");
        }
        Ok(Self(by_endpoint))
    }

    pub fn of(&self, endpoint: &str) -> &[String] {
        let own = self.0.get(endpoint).or_else(|| self.0.get(""));
        own.map_or(&[], Vec::as_slice)
    }
}

fn is_secret(text: &str) -> bool {
    text.strip_prefix("whsec_").is_some_and(|key| {
        key.len() == 32
            && key
                .bytes()
                .all(|each| each.is_ascii_alphanumeric() || b"+/".contains(&each))
    })
}
