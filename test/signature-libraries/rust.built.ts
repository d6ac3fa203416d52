import { describeReceiver } from './guarantees.ts';
import { prepareRust } from './rust.ts';

describeReceiver({
  language: 'Rust',
  libraries: ['standardwebhooks', 'svix'], // Stripe has no library for Rust
  prepare: prepareRust,
  prepareTimeoutMs: 900_000,
});
