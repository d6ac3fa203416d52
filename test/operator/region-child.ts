/**
 * An operator that kills itself with SIGKILL at the point that `KILL` names as JSON. Without the
 * variable it runs until it is stopped.
 */
import { Socket } from 'node:net';
import { Connection } from '@temporalio/client';
import { createLog } from '#runtime/log.ts';
import { startOperator } from '../../apps/operator/app.ts';
import { readConfig } from '../../apps/operator/config.ts';

/** The point at which an operator is killed. */
export interface RegionKill {
  /** After this action, before it is recorded. */
  afterAction?: string;
  /**
   * When PostgreSQL has been sent the statement with this text so many times, before the response.
   */
  atStatement?: { text: string; count: number };
  /** When Temporal has executed this request, before the response is read. */
  atRequest?: 'requestCancelWorkflowExecution';
}

const { KILL = '{}', ...environment } = process.env;
const { afterAction, atStatement, atRequest } = JSON.parse(KILL) as RegionKill;
const end = () => process.kill(process.pid, 'SIGKILL');

const log = createLog({ level: 'silent', name: 'operator', region: 'us' });
log.info = ((fields: { action?: string }) => {
  if (afterAction !== undefined && fields.action === afterAction) end();
}) as typeof log.info;
if (atStatement !== undefined) endAtStatement(atStatement);
if (atRequest !== undefined) endAtRequest(atRequest);
const operator = await startOperator(readConfig(environment), log);
process.once('SIGTERM', () => void operator.stop());

function endAtStatement({ text, count }: { text: string; count: number }): void {
  let left = count;
  const write = Socket.prototype.write as (...args: unknown[]) => boolean;
  Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
    const isFlushed = write.apply(this, args);
    if (Buffer.from(args[0] as Uint8Array).includes(text)) left -= 1;
    if (left === 0) setImmediate(end); // by then the kernel has the whole statement
    return isFlushed;
  };
}

function endAtRequest(name: NonNullable<RegionKill['atRequest']>): void {
  const open = Connection.lazy.bind(Connection);
  Connection.lazy = (options) => {
    const connection = open(options);
    const { workflowService } = connection;
    const send = workflowService[name].bind(workflowService);
    workflowService[name] = (async (request: Parameters<typeof send>[0]) => {
      await send(request);
      end();
    }) as unknown as typeof send;
    return connection;
  };
}
