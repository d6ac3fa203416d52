import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ChangeType } from '#domain/contract/events.ts';
import type { Region } from '#domain/contract/regions.ts';
import { WebhookError } from '#domain/webhooks/errors.ts';
import { printable, startCommand } from '#runtime/command-line.ts';
import { StartupError, UsageError } from '#runtime/errors.ts';
import { ListenError } from '#runtime/http-server.ts';
import { onInterruption } from '#runtime/interruption.ts';
import { keepSecretFile, readCertificates, readSecretFile } from '../files.ts';
import { writeCapture } from './capture.ts';
import { type Listened, startListener } from './forward.ts';
import { type ListenOptions, readOptions, usage } from './options.ts';
import type { OpenStack } from './stack.ts';
import { verificationText, verifyFile } from './verify-file.ts';

/**
 * `npm run tool -- listen`: receives signed events on a developer's machine. Exit code 0, 1 when
 * rejected or when a captured request does not verify, 2 for a wrong call.
 *
 * It creates webhooks only in a stack of `npm start`.
 */

/** What is open, in the order in which it was opened; closed in reverse. */
const open: (() => Promise<void>)[] = [];
let closing: Promise<void> | undefined;

function closeAll(): Promise<void> {
  closing ??= (async () => {
    for (const close of open.reverse()) await close().catch(() => {});
  })();
  return closing;
}

async function main(args: string[]): Promise<void> {
  const options = readOptions(args);
  if (options.task === 'verify') {
    const { secretFile, ...rest } = options;
    const secrets = secretFile === null ? options.secrets : [readSecretFile(fromCaller(secretFile))];
    const verification = verifyFile({ ...rest, secrets, file: fromCaller(options.file) });
    console.log(verificationText(verification));
    process.exitCode = verification.ok ? 0 : 1;
    return;
  }
  const needsStack = options.task === 'trigger' || options.secrets.length === 0 || options.trigger.length > 0;
  // Loaded only when a stack is needed: MikroORM takes longer to load than a whole offline check.
  const stack = needsStack ? await openStack(options) : null;
  if (stack !== null) open.push(stack.close);
  if (options.task === 'listen') await listen(options, stack);
  if (stack !== null) await trigger(options.trigger, stack);
  if (options.task === 'trigger') await closeAll();
}

async function openStack(requested: { region: Region | null; organizationId: string | null }): Promise<OpenStack> {
  const stack = await import('./stack.ts');
  return stack.openStack(requested);
}

async function listen(options: Extract<ListenOptions, { task: 'listen' }>, stack: OpenStack | null): Promise<void> {
  const { forwardTo, port, captureTo, exec } = options;
  const secrets = [...options.secrets];
  const ca = options.caFile === null ? null : readCertificates(fromCaller(options.caFile));
  const folder = captureTo === null ? null : fromCaller(captureTo);
  if (folder !== null) mkdirSync(folder, { recursive: true });
  let kept = 0;
  const listener = await startListener({
    port,
    secrets,
    forwardTo,
    ca,
    onListened(listened) {
      kept += 1;
      if (folder !== null) {
        const name = `${String(kept).padStart(4, '0')}-${listened.type.replace(/[^\w.]/g, '')}.http`;
        writeFileSync(path.join(folder, name), writeCapture(listened));
      }
      // Printed last, so that the file of an event on the screen exists.
      console.log(listenedText(listened));
    },
  });
  open.push(listener.stop);
  onInterruption(() => void closeAll().then(() => process.exit(0)));
  if (options.secrets.length === 0 && stack !== null) {
    const { subscribe } = await import('./subscription.ts');
    const given = options.secretFile === null ? {} : { secret: keepSecretFile(fromCaller(options.secretFile)) };
    const subscription = await subscribe(stack, { url: `${listener.url}/`, events: options.events, ...given });
    open.push(subscription.remove);
    secrets.push(subscription.secret);
    console.log(
      `A webhook of ${stack.organization.name} (${stack.organization.id}) sends ${options.events.join(', ')} here.`,
    );
    console.log(
      options.secretFile === null
        ? `Its signing secret while this runs: ${subscription.secret}`
        : `Its signing secret is in ${options.secretFile}.`,
    );
  }
  if (exec !== null && forwardTo !== null) {
    const { startReceiverCommand } = await import('./receiver-command.ts');
    const onEnded = (sentence: string) => {
      console.error(sentence);
      void closeAll().then(() => process.exit(1));
    };
    const receiver = await startReceiverCommand({ command: exec, secret: secrets.join(' '), url: forwardTo, onEnded });
    open.push(receiver.stop);
  }
  const then = forwardTo === null ? 'answering 204' : `forwarding to ${forwardTo}`;
  console.log(`Listening at ${listener.url}/ and ${then}. Ctrl-C stops it.`);
}

async function trigger(types: readonly ChangeType[], stack: OpenStack): Promise<void> {
  const { causeEvent } = await import('./trigger.ts');
  for (const type of types) {
    const caused = await causeEvent(stack, type);
    console.log(`Caused ${caused.join(', then ')} by changing the data of ${stack.organization.name}.`);
  }
}

/** Returns one line for an event, and one for each check that failed. */
function listenedText({ at, type, eventId, sequence, attempt, verification, response }: Listened): string {
  const result = verification.ok ? 'verified' : 'NOT VERIFIED';
  const answered =
    response.status === null ? `no response: ${response.problem}` : `${response.status} in ${response.durationMs} ms`;
  const failed = verification.checks.filter((check) => !check.ok);
  const numbers = [
    sequence === null ? [] : `sequence ${sequence}`,
    attempt === null ? [] : `attempt ${attempt}`,
  ].flat();
  return [
    `${[at.toISOString(), type, eventId, ...numbers, result].join('  ')}  -> ${answered}`,
    ...failed.map((check) => `    ${check.name}: ${check.explanation}`),
  ]
    .map(printable)
    .join('\n');
}

/** npm changes to the project's folder; files are relative to the caller's. */
function fromCaller(file: string): string {
  return path.resolve(process.env.INIT_CWD ?? process.cwd(), file);
}

startCommand({ usage, stop: closeAll });
try {
  await main(process.argv.slice(2));
} catch (error) {
  await closeAll();
  const isExpected = [UsageError, StartupError, WebhookError, ListenError].some((kind) => error instanceof kind);
  const message = error instanceof Error ? error.message : String(error);
  console.error(isExpected ? message : `listen failed with an internal error: ${message.split('\n')[0]}`);
  if (error instanceof UsageError) console.error('See npm run tool -- listen --help');
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
