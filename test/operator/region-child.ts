/**
 * An operator that kills itself with SIGKILL after the action that `KILL_AFTER` names, before it has
 * noted anything of it. Without the variable it runs until it is stopped.
 */
import { createLog } from '#runtime/log.ts';
import { startOperator } from '../../apps/operator/app.ts';
import { readConfig } from '../../apps/operator/config.ts';

const { KILL_AFTER, ...environment } = process.env;
const log = createLog({ level: 'silent', name: 'operator', region: 'us' });
log.info = ((fields: { action?: string }) => {
  if (KILL_AFTER !== undefined && fields.action === KILL_AFTER) process.kill(process.pid, 'SIGKILL');
}) as typeof log.info;
const operator = await startOperator(readConfig(environment), log);
process.once('SIGTERM', () => void operator.stop());
