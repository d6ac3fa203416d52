import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * `npm run test:operator`: tests the operator against a real API server and etcd. `-- --quick`, which
 * every change must pass, leaves out `test/operator/slow`. Other arguments are those of Vitest.
 */
const given = process.argv.slice(2);
const projects = given.includes('--quick') ? ['operator'] : ['operator', 'operator-slow'];
const args = ['run', ...projects.flatMap((name) => ['--project', name]), ...given.filter((one) => one !== '--quick')];
const [code] = await once(spawn('vitest', args, { stdio: 'inherit' }), 'exit');
process.exitCode = code ?? 1;
