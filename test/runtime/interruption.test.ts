import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endChild } from '#test/end-child.ts';

const module = path.resolve('apps/runtime/interruption.ts');

/** A process that reports each stop, and ends by itself or never. */
async function startProgram(onStop: string) {
  const text = `
    import { onInterruption } from ${JSON.stringify(module)};
    onInterruption((signal) => { process.stdout.write('stop ' + signal + '\\n'); ${onStop} });
    setInterval(() => {}, 1000);
    process.stdout.write('ready\\n');`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', text], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => endChild(child, 'SIGKILL').then(() => {}));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    output += part;
  });
  await once(child.stdout, 'data');
  return { child, output: () => output, exit: once(child, 'exit') as Promise<[number | null, string | null]> };
}

describe('an interruption', () => {
  it('that arrives twice, as Ctrl-C does from the terminal and from npm, stops once and in order', async () => {
    const { child, output, exit } = await startProgram('setTimeout(() => process.exit(7), 500);');
    child.kill('SIGINT');
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    expect(await exit).toEqual([7, null]);
    expect(output()).toBe('ready\nstop SIGINT\n');
  });

  it('that comes again later ends the process at once', async () => {
    const { child, output, exit } = await startProgram('');
    child.kill('SIGTERM');
    await once(child.stdout, 'data');
    await wait(1_500);
    child.kill('SIGINT');
    expect(await exit).toEqual([1, null]);
    expect(output()).toBe('ready\nstop SIGTERM\n');
  });
});
