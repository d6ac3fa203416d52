/**
 * A process that runs the controllers and kills itself with SIGKILL after the action that `killAfter` names,
 * as a machine that fails does. Its settings are JSON in the variable `CHILD`.
 */
import { KubeConfig } from '@kubernetes/client-node';
import { startControllers } from './controllers.ts';

const { server, token, killAfter, ...options } = JSON.parse(process.env.CHILD ?? '{}') as {
  server: string;
  token: string;
  /** The kind of the action after which it dies. */
  killAfter: string;
  namespace: string;
  databaseUrl: string;
  allowedOrganizations: string[];
};
const kubeConfig = new KubeConfig();
kubeConfig.loadFromClusterAndUser({ name: 'test', server, skipTLSVerify: true }, { name: 'admin', token });
await startControllers({
  ...options,
  kubeConfig,
  onAction: (kind) => {
    if (kind === killAfter) process.kill(process.pid, 'SIGKILL');
  },
});
