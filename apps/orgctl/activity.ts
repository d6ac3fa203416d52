import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { verifyActivity } from '#domain/activity/verify.ts';
import type { ActivityAnchor } from '#domain/db/statements/activity-chain.ts';
import type { Noun } from './command.ts';
import { CommandRefused, WrongUse } from './refused.ts';
import { table } from './table.ts';

/** A line of the worker's log that contains an anchor; other lines are skipped. */
const AnchorLine = z.object({
  activityAnchor: z.object({
    organizationId: z.uuid(),
    month: z.string().regex(/^\d{4}-\d\d$/),
    places: z.number().int().positive(),
    hash: z.string().regex(/^[0-9a-f]{64}$/),
  }),
});

/** `orgctl activity` */
export const activity: Noun = {
  noun: 'activity',
  summary: 'the activity log and its hash chains',
  commands: [
    {
      verb: 'verify',
      summary:
        'verify the hash chains: find lines that were changed, removed or inserted; with anchors from the ' +
        'worker’s log, also a chain that was recomputed',
      options: {
        org: { value: 'ID', about: 'one organization (default all)' },
        month: { value: 'YYYY-MM', about: 'one month in UTC (default all that are kept)' },
        anchors: { value: 'FILE', about: 'a log of the worker, in JSON lines, whose anchors must match' },
      },
      async run(options, { database }) {
        const organizationId = options.findId('org');
        const month = options.find('month');
        if (month !== null && !/^\d{4}-(0[1-9]|1[0-2])$/.test(month))
          throw new WrongUse('--month: enter a month, for example 2026-11.');
        const file = options.find('anchors');
        const anchors = file === null ? [] : await readAnchors(file);
        const found = await verifyActivity(database.pool, { organizationId, month }, anchors);
        const { chains, lines, faults } = found;
        const cells = faults.map(({ organizationId, month, place, lineId, fault }) => [
          organizationId,
          month,
          place === null ? '' : String(place),
          lineId,
          fault,
        ]);
        const text = `${chains} chains, ${lines} lines, ${found.anchors} anchors: ${faults.length || 'no'} faults.`;
        if (faults.length === 0) return { json: found, text };
        return {
          json: found,
          text: `${text}\n${table(['ORGANIZATION', 'MONTH', 'PLACE', 'LINE', 'FAULT'], cells, '')}`,
          failure: 'The activity log does not match its hash chains.',
        };
      },
    },
  ],
};

/** @throws CommandRefused when the file cannot be read or has no anchor. */
async function readAnchors(file: string): Promise<ActivityAnchor[]> {
  const text = await readFile(file, 'utf8').catch((cause: Error) => {
    throw new CommandRefused(`${file} cannot be read: ${cause.message}.`);
  });
  const anchors = text.split('\n').flatMap((line) => {
    const read = line.includes('"activityAnchor"') ? AnchorLine.safeParse(parseJson(line)) : null;
    return read?.success ? [read.data.activityAnchor] : [];
  });
  if (anchors.length === 0)
    throw new CommandRefused(`${file} contains no anchors. Enter a log of the worker, in JSON lines.`);
  return anchors;
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line.slice(line.indexOf('{')));
  } catch {
    return null;
  }
}
