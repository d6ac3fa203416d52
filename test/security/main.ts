/**
 * `npm run tool -- security`: the test of every property in SECURITY.md, and the tests of this folder,
 * which try what an attacker would. The first are part of `npm test` and `npm run test:system`, the
 * second of both; further arguments are Vitest's. Those that need a Kubernetes API
 * server are part of `npm run test:operator`, and named at the start.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

/** Returns the tests that SECURITY.md names, as paths from the root. */
function listProofs(): string[] {
  const rows = readFileSync(path.join(root, 'SECURITY.md'), 'utf8').matchAll(/^\|.*\|(.*)\|$/gm);
  const named = [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, test = '']) => test));
  return [...new Set(named)].map((test) => `test/${test}`);
}

const proofs = listProofs();
const ofOperator = proofs.filter((test) => test.endsWith('.operator.test.ts'));
console.log(`${ofOperator.join(', ')} are not here, but in npm run test:operator`);
const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
const projects = ['--project', 'quick', '--project', 'system'];
const options = [...process.argv.slice(2), ...projects, 'test/security/', ...proofs];
const child = spawn(process.execPath, [vitest, 'run', ...options], { cwd: root, stdio: 'inherit' });
child.once('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 130)));
