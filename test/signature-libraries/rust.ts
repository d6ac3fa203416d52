/**
 * Prepares the Rust receiver: Cargo downloads the exact versions in Cargo.toml, and builds into the
 * user's cache folder.
 */
import path from 'node:path';
import { runTool } from '#test/tools.ts';
import { cacheFolder } from '../../apps/dev/servers/cache-folder.ts';
import { getFolder } from './folder.ts';
import type { ReceiverProgram } from './guarantees.ts';

/** Builds the receiver in a second, and the first time on a machine in one or two minutes. */
export async function prepareRust(): Promise<ReceiverProgram> {
  const target = cacheFolder('receivers-rust');
  await runTool(['cargo', 'build', '--quiet'], {
    what: 'The Rust receiver could not be built',
    remedy:
      'install Rust 1.88 or newer (https://rustup.rs) and a C compiler, and check the network and the crate registry',
    cwd: getFolder('rust'),
    env: { CARGO_TARGET_DIR: target },
  });
  const program = path.join(target, 'debug', 'receiver');
  return { check: [program, 'check'], serve: [program, 'serve'] };
}
