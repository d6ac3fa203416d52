import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { getPrograms } from '../cluster/kubernetes/programs.ts';

/**
 * `npm run test:operator`: tests the operator against a real API server and etcd. `-- --quick`,
 * which every change must pass, leaves out `test/operator/slow`. Other arguments are those of
 * Vitest.
 */
const given = process.argv.slice(2);
await getPrograms(console.error); // once, before files start at the same time
const startedAt = performance.now();
const projects = given.includes('--quick') ? ['operator'] : ['operator', 'operator-slow'];
const chosen = projects.flatMap((name) => ['--project', name]);
const args = ['run', ...chosen, ...given.filter((one) => one !== '--quick')];
const [code] = await once(spawn('vitest', args, { stdio: 'inherit' }), 'exit');
console.log(`test:operator: ${((performance.now() - startedAt) / 60_000).toFixed(1)} min`);
process.exitCode = code ?? 1;
