import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { StartupError } from '#runtime/errors.ts';

/** How long a receiver has until it listens. */
const startWithinMs = 60_000;
/** How long a receiver has to end by itself. */
const endWithinMs = 5_000;

/**
 * Starts the receiver of `--exec` with a shell, in a process group of its own, and waits until it listens at `url`. It
 * writes to the terminal of this process. Its environment has `WEBHOOK_SECRET`, and the port of `url` in `PORT`.
 *
 * @throws StartupError when it ends, or does not listen within a minute.
 */
export async function startReceiverCommand(options: {
  command: string;
  secret: string;
  url: string;
  /** Called with a sentence when it ends by itself later. */
  onEnded: (sentence: string) => void;
}): Promise<{ stop(): Promise<void> }> {
  const { command, secret, url, onEnded } = options;
  const address = new URL(url);
  const port = Number(address.port || (address.protocol === 'https:' ? 443 : 80));
  const child = spawn(command, {
    shell: true,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
    cwd: process.env.INIT_CWD ?? process.cwd(),
    env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) },
  });
  const ended = once(child, 'exit').then(
    ([status, signal]) => `The receiver ended with ${signal ?? `status ${status}`}.`,
  );
  let isStopping = false;
  const signalGroup = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {} // it has ended
  };
  const stop = async () => {
    isStopping = true;
    signalGroup('SIGTERM');
    await Promise.race([ended, pause(endWithinMs, null, { ref: false })]);
    // Also what outlived its shell.
    signalGroup('SIGKILL');
  };
  try {
    await waitUntilListening(address.hostname.replace(/^\[|\]$/g, ''), port, ended);
  } catch (error) {
    await stop();
    throw error;
  }
  void ended.then((sentence) => {
    if (!isStopping) onEnded(sentence);
  });
  return { stop };
}

async function waitUntilListening(host: string, port: number, ended: Promise<string>): Promise<void> {
  const isListening = async (): Promise<boolean> => {
    const socket = connect({ host, port });
    try {
      await once(socket, 'connect');
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  };
  const deadline = performance.now() + startWithinMs;
  let sentence: string | undefined;
  void ended.then((text) => {
    sentence = text;
  });
  while (!(await isListening())) {
    if (sentence !== undefined) throw new StartupError(`${sentence} It never listened on ${host}:${port}.`);
    if (performance.now() > deadline)
      throw new StartupError(`The receiver does not listen on ${host}:${port} after a minute.`);
    await pause(100);
  }
}
