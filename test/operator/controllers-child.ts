/**
 * A process that runs the controllers and kills itself with SIGKILL, as a failing machine does. Its
 * settings are JSON in the variable `CHILD`.
 */
import { Socket } from 'node:net';
import { createKubeConfig } from '#test/api-server.ts';
import { startControllers } from './controllers.ts';
import type { Kill } from './declared.ts';

const { port, kill, ...options } = JSON.parse(process.env.CHILD ?? '{}') as {
  port: number;
  kill: Kill;
  namespace: string;
  databaseUrl: string;
  allowedOrganizations: string[];
};

const end = () => process.kill(process.pid, 'SIGKILL');

await startControllers({
  ...options,
  kubeConfig: createKubeConfig(port, 'operator', 'operator-token'),
  onAction: (kind) => {
    if ('afterAction' in kill && kill.afterAction === kind) end();
  },
  onListed: () => {
    if ('afterWrites' in kill) endAfterWrites(kill.afterWrites);
  },
});

/**
 * Ends the process after it has sent writes in that many turns of its event loop, to any server,
 * before it reads a response. What one turn writes leaves together: a statement is several writes.
 */
function endAfterWrites(count: number): void {
  let left = count;
  let hasWritten = false;
  const write = Socket.prototype.write as (...args: unknown[]) => boolean;
  Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
    if (!hasWritten) setImmediate(endTurn); // by then the kernel has the bytes
    hasWritten = true;
    return write.apply(this, args);
  };
  function endTurn(): void {
    hasWritten = false;
    left -= 1;
    if (left === 0) end();
  }
}
