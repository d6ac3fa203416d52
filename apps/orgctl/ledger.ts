import { isBalanced, listLedgerFaults, readLedger } from '#domain/webhooks/ledger.ts';
import type { Noun } from './command.ts';
import { fields, table } from './table.ts';

const faultsShown = 100;

/** `orgctl ledger` */
export const ledger: Noun = {
  noun: 'ledger',
  summary: 'compare expected with actual deliveries; difference, missing, surplus and unexplained must be 0',
  commands: [
    {
      verb: '',
      summary:
        'compare expected with actual deliveries by state, and count late ones; ' +
        'prints the first faults on standard error',
      options: {},
      async run(_options, { database, report }) {
        const read = await readLedger(database);
        // Also when the sums are equal: faults may cancel each other out.
        const faults = await listLedgerFaults(database, { limit: faultsShown });
        if (faults.length > 0 || !isBalanced(read)) {
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
