/**
 * Prepares the Go receiver: Go downloads the modules in go.sum, and keeps them and the build in its
 * caches.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runTool } from '#test/tools.ts';
import { getFolder } from './folder.ts';
import type { ReceiverProgram } from './guarantees.ts';

/**
 * Builds the receiver in 0.6 s, and the first time on a machine in half a minute, mostly for the
 * Stripe library. Without optimization that took 22 s of processor time instead of 34 (2 cores).
 */
export async function prepareGo(): Promise<ReceiverProgram> {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-receiver-go-'));
  const dispose = () => rmSync(folder, { recursive: true, force: true });
  const program = path.join(folder, 'receiver');
  try {
    // Without cgo no C compiler is needed. The build does not need the owner of the clone
    // (buildvcs).
    await runTool(['go', 'build', '-buildvcs=false', '-gcflags=all=-N -l', '-o', program, '.'], {
      what: 'The Go receiver could not be built',
      remedy: 'install Go 1.21 or newer (https://go.dev/dl), and check the network and the Go module proxy',
      cwd: getFolder('go'),
      env: { CGO_ENABLED: '0' },
    });
  } catch (error) {
    dispose();
    throw error;
  }
  return { check: [program, 'check'], serve: [program, 'serve'], dispose };
}
