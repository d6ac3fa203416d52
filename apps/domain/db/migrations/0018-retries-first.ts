import { Migration } from '@mikro-orm/migrations';

/**
 * Finds the retries of a webhook that are due and wait for a place: while there are any, no new
 * delivery of it is started. Running pods: survive it; deliveries wait while the index is built.
 */
export class RetriesFirst extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create index delivery_retry on delivery (organization_id, webhook_id, epoch, next_attempt_at) where state = 'waiting' and started;
    `);
  }
}
