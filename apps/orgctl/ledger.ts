import { listLedgerFaults, readLedger } from '#domain/webhooks/ledger.ts';
import type { Noun } from './command.ts';
import { fields, table } from './table.ts';

const faultsShown = 100;

/** `orgctl ledger` */
export const ledger: Noun = {
  noun: 'ledger',
  summary: 'what was to be delivered against what became of it; difference must be 0',
  commands: [
    {
      verb: '',
      summary: 'obligations against deliveries by state; with a difference, its first faults on standard error',
      options: {},
      async run(_options, { database, report }) {
        const read = await readLedger(database.pool);
        if (read.difference !== 0) {
          const faults = await listLedgerFaults(database.pool, { limit: faultsShown });
          const cells = faults.map(({ eventId, webhookId, explanation }) => [eventId, webhookId, explanation]);
          report(table(['EVENT', 'WEBHOOK', 'FAULT'], cells, 'No row explains the difference.'));
        }
        return { json: read, text: fields({ ...read }) };
      },
    },
  ],
};
