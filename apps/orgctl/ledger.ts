import { listLedgerFaults, readLedger } from '#domain/webhooks/ledger.ts';
import type { Noun } from './command.ts';
import { fields, table } from './table.ts';

const faultsShown = 100;

/** `orgctl ledger` */
export const ledger: Noun = {
  noun: 'ledger',
  summary: 'what was to be delivered against what became of it; difference, missing, surplus and unexplained must be 0',
  commands: [
    {
      verb: '',
      summary:
        'deliveries that were to be made against those there are, by state, and how many are late; ' +
        'with faults, the first of them on standard error',
      options: {},
      async run(_options, { database, report }) {
        const read = await readLedger(database.pool);
        // Also when the sums are equal: faults may cancel each other out.
        const faults = await listLedgerFaults(database.pool, { limit: faultsShown });
        if (faults.length > 0 || read.missing > 0 || read.surplus > 0 || read.unexplained > 0) {
          const cells = faults.map(({ organizationId, eventId, webhookId, explanation }) => [
            organizationId,
            eventId,
            webhookId,
            explanation,
          ]);
          report(table(['ORGANIZATION', 'EVENT', 'WEBHOOK', 'FAULT'], cells, 'No row explains the difference.'));
        }
        return { json: read, text: fields({ ...read }) };
      },
    },
  ],
};
