/** The samples of the reference in compiled languages: one build and one process for all reads. */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { it } from 'vitest';
import { shareInstallation } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { runTool } from '#test/tools.ts';
import { expectBodies, readShownSamples, write } from './shown-samples.ts';

const shown = shareInstallation(readShownSamples);
const remedy = 'see its output';

it('every read has a sample in Go that prints the body', async () => {
  const { environment, reads } = shown();
  const folder = temporaryFolder();
  write(folder, 'go.mod', 'module samples\n\ngo 1.21\n');
  mkdirSync(path.join(folder, 'bin'));
  for (const { id, code } of reads) {
    mkdirSync(path.join(folder, id));
    write(path.join(folder, id), 'main.go', `${code.go}\n`);
  }
  const settings = { remedy, cwd: folder, env: { ...environment, GOFLAGS: '-mod=mod -buildvcs=false' } };
  await runTool(['go', 'build', '-o', 'bin/', './...'], { ...settings, what: 'a sample in Go does not build' });
  const all = reads.map(({ id }) => `bin/${id}\nprintf '\\001'`).join('\n');
  const output = await runTool(['sh', '-ec', all], { ...settings, what: 'a sample in Go failed' });
  expectBodies(reads, output);
});

it('every read has a sample in Java that prints the body', async () => {
  const { environment, reads } = shown();
  const folder = temporaryFolder();
  const files = reads.map(({ id, code }) => {
    mkdirSync(path.join(folder, id));
    return write(path.join(folder, id), 'Main.java', `package ${id};\n${code.java}\n`);
  });
  const calls = reads.map(({ id }) => `${id}.Main.main(none); System.out.print((char) 1);`);
  const all = `public class All { public static void main(String[] none) throws Exception { ${calls.join('\n')} } }\n`;
  const settings = { remedy, cwd: folder, env: environment };
  const sources = [...files, write(folder, 'All.java', all)];
  await runTool(['javac', '-d', 'out', ...sources], { ...settings, what: 'a sample in Java does not compile' });
  const run = ['java', '-XX:TieredStopAtLevel=1', '-cp', 'out', 'All'] as const;
  expectBodies(reads, await runTool(run, { ...settings, what: 'a sample in Java failed' }));
});
