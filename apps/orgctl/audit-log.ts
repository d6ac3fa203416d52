import { type AuditLogFault, verifyAuditLog } from '#domain/audit-log/verify.ts';
import { UsageError } from '#runtime/errors.ts';
import { readAnchors } from './anchors.ts';
import type { Noun } from './command.ts';
import { table } from './table.ts';

/** `orgctl audit-log` */
export const auditLog: Noun = {
  noun: 'audit-log',
  summary: 'the audit log and its hash chains',
  commands: [
    {
      verb: 'verify',
      summary:
        'verify the hash chains: find entries that were changed, removed or inserted; with anchors that were kept ' +
        'elsewhere, also the first entry of a chain that was recomputed',
      options: {
        org: { value: 'ID', about: 'one organization (default all)' },
        month: { value: 'YYYY-MM', about: 'one month in UTC (default all that are kept)' },
        anchors: {
          value: 'FILE',
          about: 'JSON lines of the worker’s log or of an OTLP collector, oldest first, whose anchors must match',
        },
      },
      async run(options, { database }) {
        const organizationId = options.findId('org');
        const month = options.find('month');
        if (month !== null && !/^(?!0000)\d{4}-(0[1-9]|1[0-2])$/.test(month))
          throw new UsageError('--month: enter a month, for example 2026-11.');
        const file = options.find('anchors');
        const anchors = file === null ? [] : await readAnchors(file);
        const found = await verifyAuditLog(database, { organizationId, month }, anchors);
        const { chains, entries, faults } = found;
        const cells = faults.map(({ organizationId, month, position, entryId, fault }) => [
          organizationId,
          month,
          position === null ? '' : String(position),
          entryId,
          fault,
        ]);
        const text = `${chains} chains, ${entries} entries, ${found.anchors} anchors: ${faults.length || 'no'} faults.`;
        if (faults.length === 0) return { json: found, text };
        return {
          json: found,
          text: [
            text,
            ...describeFirstDifferences(faults),
            table(['ORGANIZATION', 'MONTH', 'POSITION', 'ENTRY', 'FAULT'], cells, ''),
          ].join('\n'),
          failure: 'The audit log does not match its hash chains.',
        };
      },
    },
  ],
};

/**
 * Names the first entry that differs from the anchors, per chain: the exact one where the chain
 * itself shows it, else the positions where it is.
 */
function describeFirstDifferences(faults: readonly AuditLogFault[]): string[] {
  return faults
    .filter(({ fault }) => fault === 'anchor')
    .map(({ organizationId, month, position, toPosition, entryId }) => {
      const [from, to] = [position ?? 0, toPosition ?? 0];
      const shown = faults
        .flatMap((one) => (one.entryId === null || one.position === null ? [] : [{ ...one, position: one.position }]))
        .filter((one) => one.organizationId === organizationId && one.month === month && one.fault !== 'anchor')
        .sort((a, b) => a.position - b.position)[0];
      const where = `${organizationId}, ${month}`;
      if (shown && shown.position <= from)
        return `${where}: entry ${shown.entryId} at position ${shown.position} is the first that differs.`;
      const range = `${where}: the first entry that differs is at one of the positions ${from} to ${to}`;
      // An entry after the first one may differ too, so that what the chain shows is not always
      // first.
      if (shown && shown.position <= to)
        return `${range}; the chain shows entry ${shown.entryId} at position ${shown.position}.`;
      if (entryId === null) return `${range}; there is no entry at position ${from}.`;
      return `${range}; the first of these is entry ${entryId}.`;
    });
}
