import { writeWorkflowBundle } from '#workflows/bundle.ts';
import { bundleWorkflows } from '#workflows/bundle-sources.ts';

/** `node apps/worker/write-bundle.ts FILE`: writes the bundle that `WORKFLOW_BUNDLE` names. */
const [file] = process.argv.slice(2);
if (file === undefined) {
  process.stderr.write('Say where to: node apps/worker/write-bundle.ts FILE\n');
  process.exit(1);
}
writeWorkflowBundle(file, await bundleWorkflows());
