import type { SealingKeys } from '#domain/encryption/envelope.ts';
import { countSealed, type Sealing } from '#domain/resealing/count.ts';
import type { SealedTable } from '#domain/resealing/kinds.ts';
import { type Resealed, resealAll, type UnopenedRow } from '#domain/resealing/reseal.ts';
import { describeFailure } from '#runtime/database-failure.ts';
import type { Command, Context, Noun } from './command.ts';
import { CommandError } from './errors.ts';
import { table } from './table.ts';
import { getSealingKeys } from './webhook.ts';

/** What each table holds, and the last resort when a row can no longer be unsealed. */
const about: Record<SealedTable, { content: string; lastResort: string }> = {
  webhook_secret: {
    content: 'signing secrets of webhooks',
    lastResort: 'rotate the secret with orgctl webhook rotate, and give the new one to the receiver',
  },
  webhook: {
    content: 'custom headers of webhooks',
    lastResort: 'set the headers again with orgctl webhook change, or ask a member to do so in the console',
  },
  second_factor: {
    content: 'authenticator apps of people',
    lastResort: 'ask the person to sign in with another factor and to remove this one, or run orgctl person invite',
  },
  challenge: {
    content: 'authenticator apps being added',
    lastResort: 'wait ten minutes until it expires, and ask the person to start again',
  },
  mail: {
    content: 'links in invitations that wait to be mailed',
    lastResort: 'create a new link on the member’s page, or run orgctl person invite',
  },
  enrolment: {
    content: 'authenticator apps of open enrolments',
    lastResort: 'ask the person to choose the app again at their link, or run orgctl person invite',
  },
  sso_provider: {
    content: 'client secrets of sign-in providers',
    lastResort: 'ask an owner to enter the client secret again, or run orgctl org sso-off',
  },
};

/** How many rows a text lists; --json has them all. */
const unopenedShown = 100;

const reseal: Command = {
  verb: 'reseal',
  summary: 'reseal all stored secrets with the first key of WEBHOOK_SECRET_KEYS; safe to repeat',
  options: {},
  async run(_options, context) {
    const keys = getSealingKeys(context);
    const resealed = await resealAndReport(keys, context);
    const newest = keys[0].version;
    const unopened = resealed.flatMap((one) => one.unopened.map((row) => explained(one.table, row)));
    const kinds = resealed.map(({ table: kind, unopened: rows, ...counts }) => ({
      kind,
      ...counts,
      unopened: rows.length,
    }));
    const cells = resealed.map((one) => [about[one.table].content, one.resealed, one.current, one.unopened.length]);
    const text = [
      table(['WHAT', 'RESEALED', 'ALREADY NEWEST', 'NOT UNSEALED'], cells, ''),
      ...(unopened.length === 0 ? [] : [unopenedText(unopened)]),
      `The newest key is version ${newest}. orgctl secrets status shows when you can remove an older one.`,
    ].join('\n\n');
    const result = { json: { newest, kinds, unopened }, text };
    if (unopened.length === 0) return result;
    const failure =
      `${unopened.length} could not be unsealed and ${unopened.length === 1 ? 'was' : 'were'} not changed. ` +
      'Keep every older key, apply the remedies above, and run this command again.';
    return { ...result, failure };
  },
};

/** @throws CommandError when it ended early, with what was left. */
async function resealAndReport(keys: SealingKeys, context: Context): Promise<Resealed[]> {
  const onPage = (kind: SealedTable, rows: number) => context.report(`${about[kind].content}: ${rows} checked so far`);
  try {
    return await resealAll(context.database, keys, onPage);
  } catch (error) {
    const left = 'Secrets that were resealed before stay resealed. Run the command again.';
    throw new CommandError(`${describeFailure(error)} ${left}`);
  }
}

type Explained = UnopenedRow & { kind: SealedTable; remedy: string };

function explained(kind: SealedTable, row: UnopenedRow): Explained {
  const { version } = row;
  const first = {
    key_missing: `key version ${version} is not in WEBHOOK_SECRET_KEYS: add it after the others`,
    not_authentic:
      `version ${version} in WEBHOOK_SECRET_KEYS is not the key that sealed this row, or the row was ` +
      'changed: restore the key or the row',
    malformed: 'this release cannot read the format: restore the row from a backup',
  }[row.reason];
  return { kind, ...row, remedy: `${first}; if that is not possible, ${about[kind].lastResort}` };
}

function unopenedText(unopened: Explained[]): string {
  const cells = unopened.slice(0, unopenedShown).map(({ kind, ids, remedy }) => {
    const named = Object.entries(ids).map(([name, id]) => `${name} ${id}`);
    return [kind, named.join(', '), remedy];
  });
  const more = unopened.length - cells.length;
  const rest = more === 0 ? '' : `\n… and ${more} more; --json lists all.`;
  return `${table(['NOT UNSEALED', 'ROW', 'REMEDY'], cells, '')}${rest}`;
}

const status: Command = {
  verb: 'status',
  summary: 'count stored secrets by version of WEBHOOK_SECRET_KEYS, and show which versions you can remove',
  options: {},
  async run(_options, context) {
    const sealing = await countSealed(context.database, getSealingKeys(context));
    const { newest, unused, missing } = sealing;
    const counts = sealing.counts.map(({ table: kind, version, rows }) => ({ kind, version, rows }));
    const cells = counts.map(({ kind, version, rows }) => [about[kind].content, version ?? 'unreadable', rows]);
    const text = `${table(['WHAT', 'KEY VERSION', 'ROWS'], cells, 'Nothing is sealed.')}\n\n${statusText(sealing)}`;
    return { json: { newest, unused, missing, counts }, text };
  },
};

function statusText({ newest, counts, unused, missing }: Sealing): string {
  const old = counts.filter(({ version }) => version !== newest).reduce((sum, { rows }) => sum + rows, 0);
  return [
    `The newest key is version ${newest}.`,
    ...(old === 0 ? [] : [`${old} ${old === 1 ? 'is' : 'are'} sealed with an older key. Run orgctl secrets reseal.`]),
    ...(missing.length === 0 ? [] : [`Missing from WEBHOOK_SECRET_KEYS, but needed: ${missing.join(', ')}.`]),
    unused.length === 0
      ? 'You cannot remove a key yet.'
      : `No row uses version ${unused.join(', ')}. You can remove an old key when every pod seals with the newest one.`,
  ].join('\n');
}

/** `orgctl secrets …` */
export const secrets: Noun = {
  noun: 'secrets',
  summary: 'stored secrets sealed with WEBHOOK_SECRET_KEYS: signing secrets and authenticator apps',
  commands: [reseal, status],
};
