import { Migration } from '@mikro-orm/migrations';

/**
 * What the console shows of deliveries: the headers of each attempt as they were sent, and what a
 * person has given up, with its proof for the ledger. Design, sections 6 and 7. Running pods:
 * survive it. A worker of before records attempts without their headers; its ledger counts a
 * delivery that a person cancelled as unproven until it is replaced.
 */
export class DeliveriesSeen extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- By name, in the order they were sent; null for an attempt that was lost, or made before this. Signatures are no secret: the receiver got them, and none is good for more than 5 minutes.
      alter table delivery_attempt add column headers json;

      -- What did not arrive is rare, and the first that is looked for.
      create index delivery_given_up on delivery (organization_id, webhook_id, state, event_id) where state in ('exhausted', 'cancelled');

      -- The proof that one delivery was cancelled: somebody did so, and the log says who.
      create index activity_delivery_cancelled on activity (organization_id, (detail ->> 'eventId')) where action = 'delivery.cancel' and detail ? 'eventId';
      create view delivery_cancellation as
        select organization_id, detail ->> 'webhookId' as webhook_id, detail ->> 'eventId' as event_id, at from activity
        where action = 'delivery.cancel' and detail ? 'eventId';
      grant update (headers) on delivery_attempt to org_api_worker;
      grant select on delivery_cancellation to org_api_worker, org_api_console;
    `);
  }
}
