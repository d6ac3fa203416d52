import type { SealingKeys } from '#domain/seal/envelope.ts';
import { countSealed, type Sealing } from '#domain/sealed/count.ts';
import type { SealedTable } from '#domain/sealed/kinds.ts';
import { type Resealed, resealAll, type UnopenedRow } from '#domain/sealed/reseal.ts';
import type { Command, Context, Noun } from './command.ts';
import { failureSentence } from './failure.ts';
import { Refused } from './refused.ts';
import { table } from './table.ts';
import { getSealingKeys } from './webhook.ts';

/** What each table holds, and the last resort when a row can no longer be unsealed. */
const about: Record<SealedTable, { holds: string; lastResort: string }> = {
  webhook_secret: {
    holds: 'signing secrets of webhooks',
    lastResort: 'rotate the secret with orgctl webhook rotate, which its receiver must learn',
  },
  second_factor: {
    holds: 'authenticator apps of people',
    lastResort: 'have its person sign in with another factor and remove it, or invite them with orgctl person invite',
  },
  factor_challenge: {
    holds: 'authenticator apps being added',
    lastResort: 'wait ten minutes, after which it expires and its person starts again',
  },
  enrolment: {
    holds: 'authenticator apps of open enrolments',
    lastResort: 'have its person choose the app again at their link, or invite them again with orgctl person invite',
  },
};

/** How many rows a text lists; --json has them all. */
const unopenedShown = 100;

const reseal: Command = {
  verb: 'reseal',
  summary: 'seal all stored secrets again with the first key of WEBHOOK_SECRET_KEYS; they stay the same; again is safe',
  options: {},
  async run(_options, context) {
    const keys = getSealingKeys(context);
    const resealed = await resealTelling(keys, context);
    const newest = keys[0].version;
    const unopened = resealed.flatMap((one) => one.unopened.map((row) => explained(one.table, row)));
    const kinds = resealed.map(({ table: kind, unopened: rows, ...counts }) => ({
      kind,
      ...counts,
      unopened: rows.length,
    }));
    const cells = resealed.map((one) => [about[one.table].holds, one.resealed, one.current, one.unopened.length]);
    const text = [
      table(['WHAT', 'RESEALED', 'NEWEST KEY ALREADY', 'NOT OPENED'], cells, ''),
      ...(unopened.length === 0 ? [] : [unopenedText(unopened)]),
      `The newest key is version ${newest}. orgctl secrets status shows when you can remove an older one.`,
    ].join('\n\n');
    const answer = { json: { newest, kinds, unopened }, text };
    if (unopened.length === 0) return answer;
    const failure =
      `${unopened.length} could not be opened and ${unopened.length === 1 ? 'is' : 'are'} as ` +
      'before: keep every older key, do what is said of each, and run this again.';
    return { ...answer, failure };
  },
};

/** @throws Refused when it ended early, with what was left. */
async function resealTelling(keys: SealingKeys, context: Context): Promise<Resealed[]> {
  const onPage = (kind: SealedTable, rows: number) => context.report(`${about[kind].holds}: ${rows} checked so far`);
  try {
    return await resealAll(context.database.pool, keys, onPage);
  } catch (error) {
    throw new Refused(`${failureSentence(error, 'what was resealed by then stays so')} Run it again.`);
  }
}

type Explained = UnopenedRow & { kind: SealedTable; remedy: string };

function explained(kind: SealedTable, row: UnopenedRow): Explained {
  const { version } = row;
  const first = {
    key_missing: `key version ${version} is not among WEBHOOK_SECRET_KEYS here: add it behind the others`,
    not_authentic:
      `version ${version} in WEBHOOK_SECRET_KEYS is not the key that sealed it, or the row was ` +
      'changed: put that key or the row back',
    malformed: 'it has no form that this release reads: put the row back from a backup',
  }[row.reason];
  return { kind, ...row, remedy: `${first}; if that cannot be had, ${about[kind].lastResort}` };
}

function unopenedText(unopened: Explained[]): string {
  const cells = unopened.slice(0, unopenedShown).map(({ kind, ids, remedy }) => {
    const named = Object.entries(ids).map(([name, id]) => `${name} ${id}`);
    return [kind, named.join(', '), remedy];
  });
  const more = unopened.length - cells.length;
  const rest = more === 0 ? '' : `\n… and ${more} more; --json lists all.`;
  return `${table(['NOT OPENED', 'ROW', 'REMEDY'], cells, '')}${rest}`;
}

const status: Command = {
  verb: 'status',
  summary: 'how many stored secrets are sealed with which version of WEBHOOK_SECRET_KEYS, and which may be removed',
  options: {},
  async run(_options, context) {
    const sealing = await countSealed(context.database.pool, getSealingKeys(context));
    const { newest, unused, missing } = sealing;
    const counts = sealing.counts.map(({ table: kind, version, rows }) => ({ kind, version, rows }));
    const cells = counts.map(({ kind, version, rows }) => [about[kind].holds, version ?? 'unreadable', rows]);
    const text = `${table(['WHAT', 'KEY VERSION', 'ROWS'], cells, 'Nothing is sealed.')}\n\n${statusText(sealing)}`;
    return { json: { newest, unused, missing, counts }, text };
  },
};

function statusText({ newest, counts, unused, missing }: Sealing): string {
  const old = counts.filter(({ version }) => version !== newest).reduce((sum, { rows }) => sum + rows, 0);
  return [
    `The newest key is version ${newest}.`,
    ...(old === 0 ? [] : [`${old} ${old === 1 ? 'is' : 'are'} not sealed with it: run orgctl secrets reseal.`]),
    ...(missing.length === 0 ? [] : [`Not among WEBHOOK_SECRET_KEYS here, and needed: ${missing.join(', ')}.`]),
    unused.length === 0
      ? 'No key may be removed.'
      : `No row needs version ${unused.join(', ')}: an old key may be removed once every pod seals with the newest.`,
  ].join('\n');
}

/** `orgctl secrets …` */
export const secrets: Noun = {
  noun: 'secrets',
  summary: 'what is kept sealed with WEBHOOK_SECRET_KEYS: signing secrets and authenticator apps',
  commands: [reseal, status],
};
