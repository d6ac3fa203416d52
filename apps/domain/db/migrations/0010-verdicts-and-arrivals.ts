import { Migration } from '@mikro-orm/migrations';

/**
 * What the last check of a webhook's receiver came to, an index that counts parked webhooks, and
 * grants that arrive when their end has passed. Design, sections 3, 6 and 8. Running pods: survive
 * it. One of the older version that changes a URL or a secret meanwhile leaves the verdict
 * standing; the next check replaces it.
 */
export class VerdictsAndArrivals extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      alter table webhook
        -- Null until its owner asks, and again once the URL or the secret has changed.
        add column signature_verdict text constraint webhook_signature_verdict_known
          check (signature_verdict in ('verified', 'accepts_bad_signatures', 'refuses_good_signatures', 'no_answer')),
        add column signature_checked_at timestamptz,
        add constraint webhook_signature_verdict_has_time check ((signature_verdict is null) = (signature_checked_at is null));
      grant update (signature_verdict, signature_checked_at) on webhook to org_api_console, org_api_worker;
      create index webhook_parked on webhook (parked_reason) where state = 'parked';
    `);

    // A row that arrives already ended emits nothing. One that came in as active would have been
    // ended by the clock a second later, with a client.ended that no client.started went before.
    // Contradictions (active, with a reason for its end) are left to the constraints.
    this.addSql(/* sql */ `
      create function client_grant_arrives_ended() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        new.status := 'ended';
        new.end_reason := 'ended';
        return new;
      end $$;
      create trigger client_grant_arrives_ended before insert on client_grant
        for each row when (new.status = 'active' and new.end_reason is null and new.ends_at <= now()) execute function client_grant_arrives_ended();
    `);
  }
}
