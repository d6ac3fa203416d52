/**
 * Makes the Go receiver ready: Go downloads what go.sum names and keeps it, and the build, in
 * caches of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runTool } from '#test/tools.ts';
import { folderOf } from './folder.ts';
import type { ReceiverProgram } from './guarantees.ts';

/**
 * Builds the receiver: 0.6 s, and the first time on a machine half a minute, of which most is the
 * Stripe library. Unoptimized that took 22 s of processor time instead of 34 (2 cores).
 */
export async function prepareGo(): Promise<ReceiverProgram> {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-receiver-go-'));
  const dispose = () => rmSync(folder, { recursive: true, force: true });
  const program = path.join(folder, 'receiver');
  try {
    // No C compiler is needed without cgo; and who owns the clone (buildvcs) is no business of the
    // build.
    await runTool(['go', 'build', '-buildvcs=false', '-gcflags=all=-N -l', '-o', program, '.'], {
      what: 'The Go receiver could not be built',
      remedy: 'install Go 1.21 or newer (https://go.dev/dl), and check the network and the Go module proxy',
      cwd: folderOf('go'),
      env: { CGO_ENABLED: '0' },
    });
  } catch (error) {
    dispose();
    throw error;
  }
  return { check: [program, 'check'], serve: [program, 'serve'], dispose };
}
