import { parseArgs } from 'node:util';
import { openDatabase } from '#domain/db/connect.ts';
import { KeyRefused } from '#domain/keys/refused.ts';
import { WebhookRefused } from '#domain/webhooks/refused.ts';
import { SettingsRefused } from '#runtime/settings/read.ts';
import { type Answer, type Command, type Noun, Options } from './command.ts';
import { type OrgctlConfig, readConfig } from './config.ts';
import { delivery } from './delivery.ts';
import { failureSentence } from './failure.ts';
import { helpText } from './help.ts';
import { key } from './key.ts';
import { ledger } from './ledger.ts';
import { org } from './org.ts';
import { person } from './person.ts';
import { Refused, WrongUse } from './refused.ts';
import type { DeliverySignals } from './temporal.ts';
import { webhook } from './webhook.ts';

/**
 * `npm run -s orgctl -- NOUN VERB … --region us [--json]`: what operators do at an installation, with the rights of the database login they have.
 * Answers go to standard output, everything else to standard error. Exit code 0, 1 when refused or failed, 2 for a wrong call. Source: design, section 10.
 */

const nouns: readonly Noun[] = [org, person, webhook, delivery, ledger, key];
/** Counting a long history takes longer than a request may. */
const statementTimeoutMs = 60_000;
const report = (line: string) => void process.stderr.write(`${line}\n`);

async function main(args: string[]): Promise<void> {
  const { noun, command, rest } = findCommand(args);
  if (noun === null || rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(helpText(nouns, noun, command));
    return;
  }
  if (command === null)
    throw new WrongUse(`orgctl ${noun.noun} needs a verb: ${noun.commands.map(({ verb }) => verb).join(', ')}.`);
  const { options, region, json } = readOptions(command, rest);
  const config = readConfig(region);
  const answer = await run(command, options, config);
  process.stdout.write(json ? `${JSON.stringify(answer.json, null, 2)}\n` : `${answer.text}\n`);
}

/** @throws WrongUse for a noun or a verb that there is not. */
function findCommand(args: string[]): { noun: Noun | null; command: Command | null; rest: string[] } {
  const [first, second, ...others] = args;
  if (first === undefined) throw new WrongUse(`Say what to do.\n\n${helpText(nouns, null, null)}`);
  if (first === '--help' || first === '-h' || first === 'help') return { noun: null, command: null, rest: [] };
  const noun = nouns.find((one) => one.noun === first);
  if (noun === undefined)
    throw new WrongUse(`There is no ${first}; there are ${nouns.map((one) => one.noun).join(', ')}.`);
  const bare = noun.commands.find(({ verb }) => verb === '');
  if (bare !== undefined) return { noun, command: bare, rest: args.slice(1) };
  if (second === undefined || second.startsWith('-')) return { noun, command: null, rest: args.slice(1) };
  const command = noun.commands.find(({ verb }) => verb === second);
  if (command !== undefined) return { noun, command, rest: others };
  const verbs = noun.commands.map(({ verb }) => verb).join(', ');
  throw new WrongUse(`orgctl ${first} cannot ${second}; it can ${verbs}.`);
}

/** @throws WrongUse for options the command does not have, or lacks. */
function readOptions(command: Command, args: string[]): { options: Options; region: string | null; json: boolean } {
  const text = { type: 'string' } as const;
  const own = Object.fromEntries(Object.keys(command.options).map((name) => [name, text]));
  const { region, json, ...values } = parse(args, own);
  for (const [name, { required }] of Object.entries(command.options))
    if (required && values[name] === undefined) throw new WrongUse(`--${name} is missing.`);
  return {
    options: new Options(values as Record<string, string | undefined>),
    region: typeof region === 'string' ? region : null,
    json: json === true,
  };
}

function parse(args: string[], own: Record<string, { type: 'string' }>): Record<string, string | boolean | undefined> {
  try {
    return parseArgs({ args, options: { ...own, region: { type: 'string' }, json: { type: 'boolean' } } }).values;
  } catch (error) {
    throw new WrongUse((error as Error).message.split('\n')[0]);
  }
}

async function run(command: Command, options: Options, config: OrgctlConfig): Promise<Answer> {
  const database = await openDatabase({
    ...{ url: config.databaseUrl, applicationName: 'org-api-orgctl', poolMax: 2 },
    ...{ connectTimeoutMs: 10_000, statementTimeoutMs },
  });
  try {
    return await command.run(options, { config, database, report, openSignals: () => openSignals(config) });
  } finally {
    await database.close();
  }
}

async function openSignals({ temporal }: OrgctlConfig): Promise<DeliverySignals | null> {
  const left = 'deliveries whose workflow runs are left to their own time';
  if (temporal === null) {
    report(`Temporal is not configured (TEMPORAL_ADDRESS): ${left}.`);
    return null;
  }
  try {
    // Loaded by the few commands that need it: Temporal's client takes as long to load as all the rest.
    const { openDeliverySignals } = await import('./temporal.ts');
    return await openDeliverySignals(temporal);
  } catch {
    report(`Temporal does not answer at ${temporal.address}: ${left}.`);
    return null;
  }
}

/** What is told as it is: someone chose the words. */
const told = [Refused, KeyRefused, WebhookRefused, SettingsRefused];

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof WrongUse) report(`${error.message}${error.message.includes('\n') ? '' : ' See --help.'}`);
  else if (error instanceof Error && told.some((kind) => error instanceof kind)) report(error.message);
  else report(failureSentence(error));
  process.exitCode = error instanceof WrongUse ? 2 : 1;
}
