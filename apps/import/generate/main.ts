import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { isRegion, regionCodes } from '#domain/contract/regions.ts';
import { calledAs, startCommand } from '#runtime/command-line.ts';
import { UsageError } from '#runtime/errors.ts';
import { day } from '../document/field-types.ts';
import { generateCalls, generateSample, type SampleOptions, sampleDefaults } from './sample.ts';

/** `npm run -s generate -- [options] > FILE`: writes a sample document, or calls, to standard output. */

const usage = `Usage: ${calledAs('npm run -s generate --')} [options] > FILE

Writes a sample document that the import takes. The same options write the same document.

  --region R          us or ca (default us)
  --organizations N   default ${sampleDefaults.organizations}
  --families N        for each organization, default ${sampleDefaults.familiesPerOrganization}
  --grants N          for each family; default one, and now and then an earlier one that has ended
  --days N            days with counts for each family, at most 110, default 13
  --seed S            a number or word, default ${sampleDefaults.seed}; another seed makes other organizations
  --as-of DATE        the day it describes, default today (UTC)
  --calls             writes SQL instead, for today: the calls of the platform's functions that bring in the same, a
                      transaction for each organization. psql "$PLATFORM_DATABASE_URL" -v ON_ERROR_STOP=1 -qAt -f FILE
  --help              this text
`;

async function main(): Promise<void> {
  const { isSql, ...options } = readOptions();
  for await (const piece of isSql ? generateCalls(options) : generateSample(options)) {
    if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
  }
}

function readOptions(): SampleOptions & { isSql: boolean } {
  const values = parsed();
  const region = values.region ?? 'us';
  if (!isRegion(region)) throw new UsageError(`--region must be ${regionCodes.join(' or ')}`);
  const asOf = values['as-of'] ?? new Date().toISOString().slice(0, 10);
  if (!day.safeParse(asOf).success || asOf < '1900' || asOf >= '3000')
    throw new UsageError('--as-of must be a day such as 2026-11-20, of the years 1900 to 2999');
  const isSql = values.calls === true;
  if (isSql && values['as-of'] !== undefined) throw new UsageError('--calls cannot have --as-of: calls are of today');
  return {
    isSql,
    region,
    asOf,
    seed: values.seed ?? sampleDefaults.seed,
    organizations: wholeNumber('--organizations', values.organizations) ?? sampleDefaults.organizations,
    familiesPerOrganization: wholeNumber('--families', values.families) ?? sampleDefaults.familiesPerOrganization,
    grantsPerFamily: wholeNumber('--grants', values.grants),
    daysPerFamily: wholeNumber('--days', values.days),
  };
}

function parsed() {
  const text = { type: 'string' } as const;
  try {
    const numbers = { organizations: text, families: text, grants: text, days: text };
    const options = { region: text, ...numbers, seed: text, 'as-of': text, calls: { type: 'boolean' } } as const;
    return parseArgs({ options }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function wholeNumber(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!/^\d{1,8}$/.test(value)) throw new UsageError(`${name} must be a whole number`);
  return Number(value);
}

startCommand({ usage });
try {
  await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}. See --help.\n`);
  process.exitCode = 2;
}
