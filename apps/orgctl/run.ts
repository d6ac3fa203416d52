import { parseArgs } from 'node:util';
import { DomainError } from '#domain/contract/domain-error.ts';
import { openDatabase } from '#domain/open-database.ts';
import type { UrlProblem } from '#domain/webhooks/address/url-problems.ts';
import { WebhookError } from '#domain/webhooks/errors.ts';
import { SecretNotUnsealedError } from '#domain/webhooks/seal.ts';
import { printable } from '#runtime/command-line.ts';
import { describeFailure } from '#runtime/database-failure.ts';
import { InvalidSettingsError, UsageError } from '#runtime/errors.ts';
import type { WorkflowClient } from '#workflows/client.ts';
import { WorkflowError } from '#workflows/errors.ts';
import { type Command, type CommandResult, type Context, type Noun, Options, OwnRun } from './command.ts';
import { type Environment, type OrgctlConfig, readConfig, readEnvironment } from './config.ts';
import { CommandError, InterruptedError } from './errors.ts';
import { helpText } from './help.ts';
import { nouns } from './nouns.ts';

/** Where a call reads its settings and writes. */
interface Surroundings {
  environment: Environment;
  writeOutput: (text: string) => void;
  writeError: (text: string) => void;
}

type Report = Context['report'];

/** Counting a long history takes longer than a request may. */
const statementTimeoutMs = 60_000;
const printableLines = (text: string) => text.split('\n').map(printable).join('\n');
const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
/** JSON escapes all other control characters by itself. An escape changes no value. */
const documentText = (document: unknown) =>
  JSON.stringify(document, null, 2).replace(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, (one) =>
    one.split('').map(escapeUnit).join(''),
  );

/** Errors whose message is printed unchanged. */
const expectedErrors = [CommandError, InterruptedError, DomainError, InvalidSettingsError, SecretNotUnsealedError];

/** Carries out one call of `orgctl`. Returns its exit code. */
export async function runOrgctl(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const report: Report = (text) => surroundings.writeError(`${printableLines(text)}\n`);
  try {
    return await run(args, surroundings, report);
  } catch (error) {
    report(describeError(error));
    // 130 is the exit code that shells use for a command ended by Ctrl-C.
    return error instanceof UsageError ? 2 : error instanceof InterruptedError ? 130 : 1;
  }
}

/** Returns what is wrong, for the caller. */
function describeError(error: unknown): string {
  if (error instanceof UsageError) return `${error.message}${error.message.includes('\n') ? '' : ' See --help.'}`;
  // The sentence is written for owners, who cannot change a setting.
  if (error instanceof WebhookError && error.cause === ('address_not_public' satisfies UrlProblem))
    return `${error.message} Or list the address in WEBHOOK_ALLOW; workers need it too, except for the probe.`;
  if (error instanceof Error && expectedErrors.some((kind) => error instanceof kind)) return error.message;
  return describeFailure(error);
}

async function run(args: readonly string[], { environment, writeOutput }: Surroundings, report: Report) {
  const { noun, command, rest } = findCommand(args);
  if (noun === null || rest.includes('--help') || rest.includes('-h')) {
    writeOutput(helpText(nouns, noun, command));
    return 0;
  }
  if (command === null)
    throw new UsageError(`orgctl ${noun.noun} needs a verb: ${noun.commands.map(({ verb }) => verb).join(', ')}.`);
  const { options, region, json } = readOptions(command, rest);
  const result = await start(command, { options, region, environment, report });
  writeOutput(`${json ? documentText(result.json) : printableLines(result.text)}\n`);
  if (result.failure === undefined) return 0;
  report(result.failure);
  return 1;
}

/** @throws UsageError for an unknown noun or verb. */
function findCommand(args: readonly string[]): { noun: Noun | null; command: Command | null; rest: readonly string[] } {
  const [first, second, ...others] = args;
  if (first === undefined) throw new UsageError(`Enter a command.\n\n${helpText(nouns, null, null)}`);
  if (first === '--help' || first === '-h' || first === 'help') return { noun: null, command: null, rest: [] };
  const noun = nouns.find((one) => one.noun === first);
  if (noun === undefined)
    throw new UsageError(`Unknown noun ${first}. Use one of ${nouns.map((one) => one.noun).join(', ')}.`);
  const bare = noun.commands.find(({ verb }) => verb === '');
  if (bare !== undefined) return { noun, command: bare, rest: args.slice(1) };
  if (second === undefined || second.startsWith('-')) return { noun, command: null, rest: args.slice(1) };
  const command = noun.commands.find(({ verb }) => verb === second);
  if (command !== undefined) return { noun, command, rest: others };
  const verbs = noun.commands.map(({ verb }) => verb).join(', ');
  throw new UsageError(`Unknown verb ${second} of orgctl ${first}. Use one of ${verbs}.`);
}

/** @throws UsageError for unknown options, and for missing ones. */
function readOptions(
  command: Command,
  args: readonly string[],
): { options: Options; region: string | null; json: boolean } {
  const { region, json, ...values } = parse(args, command.options);
  for (const [name, { required }] of Object.entries(command.options))
    if (required && values[name] === undefined) throw new UsageError(`--${name} is missing.`);
  return { options: new Options(values), region: typeof region === 'string' ? region : null, json: json === true };
}

function parse(args: readonly string[], options: Command['options']): Record<string, string | boolean | undefined> {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const own = Object.entries(options).map(([name, { value }]) => [name, value === null ? flag : text] as const);
  try {
    return parseArgs({ args: [...args], options: { ...Object.fromEntries(own), region: text, json: flag } }).values;
  } catch (error) {
    throw new UsageError((error as Error).message.split('\n')[0]);
  }
}

interface Call {
  options: Options;
  /** `--region` */
  region: string | null;
  environment: Environment;
  report: Report;
}

async function start(
  { run }: Command,
  { options, region: requested, environment: given, report }: Call,
): Promise<CommandResult> {
  if (run instanceof OwnRun) {
    const { region, environment } = readEnvironment(requested, given);
    return run.start(region, environment);
  }
  const config = readConfig(requested, given);
  const database = await openDatabase({
    server: config.database,
    applicationName: 'org-api-orgctl',
    poolMax: 2,
    connectTimeoutMs: 10_000,
    statementTimeoutMs,
  });
  try {
    return await run(options, { config, database, report, openWorkflows: () => openWorkflows(config, report) });
  } finally {
    await database.close();
  }
}

async function openWorkflows({ temporal }: OrgctlConfig, report: Report): Promise<WorkflowClient | null> {
  if (temporal === null) {
    report('Temporal is not configured (TEMPORAL_ADDRESS).');
    return null;
  }
  try {
    // Temporal's client takes as long to load as everything else.
    const { openWorkflowClient } = await import('#workflows/client.ts');
    return await openWorkflowClient(temporal);
  } catch (error) {
    if (!(error instanceof WorkflowError)) throw error;
    report(error.message);
    return null;
  }
}
