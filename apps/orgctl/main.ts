import { parseArgs } from 'node:util';
import { Refused } from '#domain/contract/refused.ts';
import { openDatabase } from '#domain/open-database.ts';
import { printable, startCommand } from '#runtime/command-line.ts';
import { describeFailure, findCode } from '#runtime/database-failure.ts';
import { SettingsRefused } from '#runtime/errors.ts';
import type { WorkflowClient } from '#workflows/client.ts';
import { WorkflowRefused } from '#workflows/refused.ts';
import { type Answer, type Command, type Noun, Options, OwnRun } from './command.ts';
import { type OrgctlConfig, readConfig, readEnvironment } from './config.ts';
import { helpText } from './help.ts';
import { nouns } from './nouns.ts';
import { CommandRefused, LeftRunning, WrongUse } from './refused.ts';

/**
 * `npm run -s orgctl -- NOUN VERB … --region us [--json]`: operators' commands, with the rights of
 * their database login. Answers go to standard output, everything else to standard error. Exit code
 * 0, 1 when refused or failed, 2 for a wrong call, 130 after Ctrl-C.
 */

/** Counting a long history takes longer than a request may. */
const statementTimeoutMs = 60_000;
const report = (text: string) => void process.stderr.write(`${printableLines(text)}\n`);
const printableLines = (text: string) => text.split('\n').map(printable).join('\n');
/** JSON escapes all other control characters by itself. */
const documentText = (document: unknown) =>
  JSON.stringify(document, null, 2).replace(/[\u007f-\u009f]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);

async function main(args: string[]): Promise<void> {
  const { noun, command, rest } = findCommand(args);
  if (noun === null || rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(helpText(nouns, noun, command));
    return;
  }
  if (command === null)
    throw new WrongUse(`orgctl ${noun.noun} needs a verb: ${noun.commands.map(({ verb }) => verb).join(', ')}.`);
  const { options, region, json } = readOptions(command, rest);
  const answer = await start(command, options, region);
  process.stdout.write(`${json ? documentText(answer.json) : printableLines(answer.text)}\n`);
  if (answer.failure === undefined) return;
  report(answer.failure);
  process.exitCode = 1;
}

/** @throws WrongUse for an unknown noun or verb. */
function findCommand(args: string[]): { noun: Noun | null; command: Command | null; rest: string[] } {
  const [first, second, ...others] = args;
  if (first === undefined) throw new WrongUse(`Enter a command.\n\n${helpText(nouns, null, null)}`);
  if (first === '--help' || first === '-h' || first === 'help') return { noun: null, command: null, rest: [] };
  const noun = nouns.find((one) => one.noun === first);
  if (noun === undefined)
    throw new WrongUse(`Unknown noun ${first}. Use one of ${nouns.map((one) => one.noun).join(', ')}.`);
  const bare = noun.commands.find(({ verb }) => verb === '');
  if (bare !== undefined) return { noun, command: bare, rest: args.slice(1) };
  if (second === undefined || second.startsWith('-')) return { noun, command: null, rest: args.slice(1) };
  const command = noun.commands.find(({ verb }) => verb === second);
  if (command !== undefined) return { noun, command, rest: others };
  const verbs = noun.commands.map(({ verb }) => verb).join(', ');
  throw new WrongUse(`Unknown verb ${second} of orgctl ${first}. Use one of ${verbs}.`);
}

/** @throws WrongUse for unknown options, and for missing ones. */
function readOptions(command: Command, args: string[]): { options: Options; region: string | null; json: boolean } {
  const { region, json, ...values } = parse(args, command.options);
  for (const [name, { required }] of Object.entries(command.options))
    if (required && values[name] === undefined) throw new WrongUse(`--${name} is missing.`);
  return { options: new Options(values), region: typeof region === 'string' ? region : null, json: json === true };
}

function parse(args: string[], options: Command['options']): Record<string, string | boolean | undefined> {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const own = Object.entries(options).map(([name, { value }]) => [name, value === null ? flag : text] as const);
  try {
    return parseArgs({ args, options: { ...Object.fromEntries(own), region: text, json: flag } }).values;
  } catch (error) {
    throw new WrongUse((error as Error).message.split('\n')[0]);
  }
}

async function start(command: Command, options: Options, asked: string | null): Promise<Answer> {
  const { run } = command;
  if (run instanceof OwnRun) {
    const { region, environment } = readEnvironment(asked);
    return run.start(region, environment);
  }
  const config = readConfig(asked);
  const database = await openDatabase({
    server: config.database,
    applicationName: 'org-api-orgctl',
    poolMax: 2,
    connectTimeoutMs: 10_000,
    statementTimeoutMs,
  });
  try {
    return await run(options, { config, database, report, openWorkflows: () => openWorkflows(config) });
  } finally {
    await database.close();
  }
}

async function openWorkflows({ temporal }: OrgctlConfig): Promise<WorkflowClient | null> {
  if (temporal === null) {
    report('Temporal is not configured (TEMPORAL_ADDRESS).');
    return null;
  }
  try {
    // Temporal's client takes as long to load as everything else.
    const { openWorkflowClient } = await import('#workflows/client.ts');
    return await openWorkflowClient(temporal);
  } catch (error) {
    if (!(error instanceof WorkflowRefused)) throw error;
    report(error.message);
    return null;
  }
}

/** Errors whose message is printed unchanged. */
const expectedErrors = [CommandRefused, LeftRunning, Refused, SettingsRefused];

startCommand({ usage: null });
try {
  await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof WrongUse) report(`${error.message}${error.message.includes('\n') ? '' : ' See --help.'}`);
  else if (error instanceof Error && expectedErrors.some((kind) => error instanceof kind)) report(error.message);
  else report(`${describeFailure(error)}${findCode(error) === null ? '' : ' Nothing was changed.'}`);
  // 130 is the exit code that shells use for a command ended by Ctrl-C.
  process.exitCode = error instanceof WrongUse ? 2 : error instanceof LeftRunning ? 130 : 1;
}
