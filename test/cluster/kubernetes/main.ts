import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { loadImage } from './containers.ts';
import { takeDown } from './down.ts';
import { bringUp } from './up.ts';

const usage = `Usage: npm run tool -- cluster up | down | load ARCHIVE…

A Kubernetes of one node on this machine, for trying charts and for npm run test:cluster. \`up\` prints
shell settings for kubectl and helm.`;

const [command, ...archives] = startCommand({ usage, read: readCommand });
const report = (line: string) => console.error(`  ${line}`);

try {
  if (command === 'up') {
    const { env } = await bringUp(report);
    console.log(`export KUBECONFIG=${env.KUBECONFIG} PATH=${env.PATH}`);
  } else if (command === 'down') await takeDown(report);
  else for (const archive of archives) loadImage(archive);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

function readCommand(): string[] {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [verb, ...rest] = positionals;
  if ((verb === 'up' || verb === 'down') && rest.length === 0) return positionals;
  if (verb === 'load' && rest.length > 0) return positionals;
  throw new Error('Name one of up, down and load with the archives of images.');
}
