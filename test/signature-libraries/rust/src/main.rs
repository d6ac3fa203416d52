//! Shows how to receive webhooks: `receiver serve` listens, `receiver check` verifies captured deliveries.

mod check;
mod events;
mod receiver;
mod secrets;
mod verify;

use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("serve") => receiver::serve().map(|()| true),
        Some("check") => check::check(std::io::stdin().lock()),
        _ => Err("usage: receiver serve, or receiver check < captured.jsonl".into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
