import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import type { ConsoleInstallation, Enrolled } from './setup.ts';

/** This month, as packages name it, and the query that downloads it. */
export const month = new Date().toISOString().slice(0, 7);
export const query = `?from=${month}&to=${month}`;
const programs = [
  [process.execPath, 'verify.mjs'],
  ['python3', 'verify.py'],
] as const;

/** Appends all entries to the chain, as the worker does. */
export async function link(t: ConsoleInstallation) {
  for (let isDone = false; !isDone; ) {
    const { rows } = await t.owner.pool.query('select is_all_done from append_audit_chain(20000)');
    isDone = rows[0].is_all_done;
  }
}

/** Requests a page or file of evidence with the person's session. */
export const send = (t: ConsoleInstallation, person: Enrolled, rest: string, method = 'GET') =>
  fetch(`${t.origin}/o/${person.orgId}/audit-log/evidence${rest}`, {
    method,
    redirect: 'manual',
    headers: { cookie: [...t.http(person).jar].map((pair) => pair.join('=')).join('; ') },
  });

/** Downloads the package of this month, or of others, and unpacks it by another program. Returns its folder. */
export async function unpack(t: ConsoleInstallation, person: Enrolled, months = query): Promise<string> {
  const response = await send(t, person, `/zip${months}`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/zip']);
  const folder = temporaryFolder();
  writeFileSync(path.join(folder, 'evidence.zip'), Buffer.from(await response.arrayBuffer()));
  execFileSync('python3', ['-m', 'zipfile', '-e', 'evidence.zip', 'evidence'], { cwd: folder });
  return path.join(folder, 'evidence');
}

/** Runs both programs, which print the same. */
export function verify(folder: string, ...anchors: string[]): { exitCode: number | null; lines: string[] } {
  const [node, python] = programs.map(([command, program]) => {
    const { status, stdout, stderr } = spawnSync(command, [program, '.', ...anchors], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    return { exitCode: status, lines: stdout.trim().split('\n') };
  });
  expect(python).toEqual(node);
  return node ?? { exitCode: null, lines: [] };
}
