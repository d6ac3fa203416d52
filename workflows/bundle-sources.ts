import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

/**
 * Bundles `workflows/` for a worker. Its source map has lines only: columns would depend on the
 * length of this machine's paths, and a prebuilt bundle must have the same bytes everywhere.
 */
export function bundleWorkflows(): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: fileURLToPath(import.meta.resolve('#workflows/index.ts')),
    logger: new DefaultLogger('ERROR'),
    webpackConfigHook: (config) => ({ ...config, devtool: 'inline-cheap-module-source-map' }),
  });
}
