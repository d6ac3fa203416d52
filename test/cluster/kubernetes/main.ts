import { loadImage } from './containers.ts';
import { takeDown } from './down.ts';
import { bringUp } from './up.ts';

/**
 * `npm run tool -- cluster up`, `down`, or `load ARCHIVE…`: a Kubernetes of one node on this machine,
 * for trying charts and for `npm run test:cluster`. `up` prints shell settings for kubectl and helm.
 */
const [command, ...rest] = process.argv.slice(2);
const report = (line: string) => console.error(`  ${line}`);

try {
  if (command === 'up') {
    const { env } = await bringUp(report);
    console.log(`export KUBECONFIG=${env.KUBECONFIG} PATH=${env.PATH}`);
  } else if (command === 'down') await takeDown(report);
  else if (command === 'load' && rest.length > 0) for (const archive of rest) loadImage(archive);
  else throw new Error('Usage: npm run tool -- cluster up | down | load ARCHIVE…');
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
