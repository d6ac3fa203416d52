/**
 * Imports a large organization in a separate process, with its sections in the worst order, and
 * prints how much memory that took.
 */

import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { importFile } from '../../apps/import/document/import-file.ts';
import { sampleOrganization } from '../../apps/import/generate/organization.ts';

const [databaseUrl = '', families = '0'] = process.argv.slice(2);
const sample = sampleOrganization(
  {
    region: 'us',
    organizations: 1,
    familiesPerOrganization: Number(families),
    grantsPerFamily: 1,
    daysPerFamily: 1,
    seed: families,
    asOf: '2026-11-20',
  },
  1,
);

/**
 * Days before seats, seats before grants, grants before families, and the organization at the very
 * end.
 */
function* lines(): Generator<string> {
  yield '{"organizations":[{';
  for (const [name, items] of Object.entries(sample.lists).reverse()) {
    let separator = '';
    yield `"${name}":[`;
    for (const item of items()) {
      yield `${separator}${JSON.stringify(item)}\n`;
      separator = ',';
    }
    yield '],';
  }
  yield `"seatPlan":${JSON.stringify(sample.seatPlan())},${JSON.stringify(sample.head()).slice(1)}],"asOf":"2026-11-20","region":"us"}`;
}

async function* text(): AsyncGenerator<string> {
  let piece = '';
  for (const line of lines()) {
    piece += line;
    if (piece.length < 65_536) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

const progress: string[] = [];
const { counts } = await importFile({
  server: parsePostgresUrl(databaseUrl),
  source: text(),
  fileName: 'large.json',
  region: 'us',
  report: (line) => progress.push(line),
});
const peakMb = Math.round((process.resourceUsage().maxRSS * 1024) / 1e6);
process.stdout.write(
  JSON.stringify({ grants: counts.grants, days: counts.familyDays, peakMb, lines: progress.length }),
);
