import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

/**
 * Bundles `workflows/` for a worker. Its source map has lines only: columns would depend on the
 * length of this machine's paths, and a prebuilt bundle must have the same bytes everywhere.
 *
 * The modules are loaded once for all workflows of a worker, so module scope has constants only.
 */
export function bundleWorkflows(): Promise<WorkflowBundleWithSourceMap> {
  const workflowsPath = fileURLToPath(import.meta.resolve('#workflows/index.ts'));
  return bundleWorkflowCode({
    workflowsPath,
    preloadModules: [workflowsPath],

    logger: new DefaultLogger('ERROR'),
    webpackConfigHook: (config) => ({ ...config, devtool: 'inline-cheap-module-source-map' }),
  });
}
