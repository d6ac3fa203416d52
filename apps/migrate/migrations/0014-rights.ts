import { Migration } from '@mikro-orm/migrations';

/**
 * The rights of each group role on tables, and the functions that it may call. Those of org_api_read
 * stand beside the views and functions of schema `api`, which are all that it reaches.
 */
export class Rights extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      grant usage on schema api to org_api_worker, org_api_console, org_api_import, org_api_backfill,
        org_api_operator;
      grant select on api.schema_version to org_api_worker, org_api_console, org_api_import, org_api_operator;

      -- A right on some columns covers those that a statement of the app names. Columns that
      -- identify a row or its owner can only be inserted. The import writes the data of organizations.
      -- The platform's application writes it by the functions of schema \`platform\` alone, and has no
      -- right on a table.
      grant select, insert on organization, person, membership, role, family, client_grant, seat_plan, subscription,
        seat,
        referral_code, referral, referral_invoice, membership_role, family_day to org_api_import;
      grant update (name, slug, kind, status, created_at) on organization to org_api_import;
      grant update (name, email, title, status) on membership to org_api_import;
      grant update (key, name, description, permissions) on role to org_api_import;
      grant update (name) on family to org_api_import;
      grant update (kind, professional_id, since, ends_at, status, end_reason) on client_grant to org_api_import;
      grant update (invoiced, price_currency, price_cents) on seat_plan to org_api_import;
      grant update (status, quantity, renews_at, cancel_at_period_end) on subscription to org_api_import;
      grant update (given_at, ended_at, end_reason) on seat to org_api_import;
      grant update (code, link, label, active) on referral_code to org_api_import;
      grant update (code_id, state) on referral to org_api_import;
      grant update (month, currency, share_cents) on referral_invoice to org_api_import;
      grant update (messages, calm_messages, exchanges, exchanges_on_time, expenses_due, expenses_answered_in_14_days)
        on family_day to org_api_import;
      grant delete on membership_role, family_day to org_api_import;

      -- The console creates keys, changes members and roles, assigns and ends seats, shows the audit log.
      grant select on organization, person, membership, membership_role, role, family, client_grant, seat_plan,
        subscription, seat, api_key,
        audit_entry, audit_link, audit_chain, webhook_deletion, delivery_cancellation to org_api_console;
      grant execute on function audit_entry_text, audit_chain_start to org_api_console;
      grant insert on person, membership, role, client_grant, seat to org_api_console;
      grant delete on role to org_api_console;
      grant update (status, ends_at, end_reason) on client_grant to org_api_console;
      grant insert (id, organization_id, creator_id, label, fingerprint, pepper_version, hint, scopes, created_at,
        expires_at, revoked_at, number,
        predecessor_id, description, allowed_addresses) on api_key to org_api_console;
      grant update (label, description, allowed_addresses, expires_at, revoked_at, number) on api_key
        to org_api_console;
      grant update (name, title, status) on membership to org_api_console;
      grant update (name, description, permissions) on role to org_api_console;
      grant update (ended_at, end_reason) on seat to org_api_console;
      grant insert, delete on membership_role to org_api_console;
      grant select (applied_days, applied_delivery_days) on retention_floor to org_api_console;
      grant select on call_sum to org_api_console;
      grant select (summed_at) on audit_progress to org_api_console;
      grant execute on function api.record_keys_at_console, begin_due_grant to org_api_console;

      -- The worker begins and ends grants that are due, keeps the audit log's partitions and retention.
      grant select on client_grant, organization to org_api_worker;
      grant update (status, end_reason) on client_grant to org_api_worker;
      grant select, update (ended_at, end_reason) on seat to org_api_worker;
      grant execute on function keep_audit_partitions, drop_old_audit_entries to org_api_worker;
      grant execute on function sum_calls, append_audit_chain, audit_unlinked_age, list_audit_anchors,
        record_audit_anchors,
        claim_audit_stream, record_audit_streamed to org_api_worker;

      -- The console changes webhooks and their secrets, and shows, repeats and cancels their
      -- deliveries.
      grant select, insert, update (url, description, event_types, ordered, header_names, headers_sealed,
        posts_per_second, state, suspended_reason, number, signature_result, signature_checked_at) on webhook
        to org_api_console;
      grant select, insert, update (valid_until), delete on webhook_secret to org_api_console;
      grant select on event, delivery, delivery_attempt, receiver, slot, ledger_day, ledger_count to org_api_console;
      grant update (state, failures, due_at, settled_at) on delivery to org_api_console;
      grant select, insert, update (state, end_reason, cancel_requested_at, finished_at) on redelivery
        to org_api_console;

      -- The Kubernetes operator changes the webhooks of its objects and shows the ledger. It reads no
      -- body of an event and no audit entry.
      grant select (id) on organization to org_api_operator;
      grant select, insert, update (url, description, event_types, ordered, header_names, headers_sealed,
        posts_per_second, state, suspended_reason, number, signature_result, signature_checked_at, managed_by,
        managed_uid) on webhook to org_api_operator;
      -- Of a constraint of the table.
      grant execute on function are_header_names to org_api_console, org_api_operator, org_api_worker;
      grant select, insert, update (valid_until), delete on webhook_secret to org_api_operator;
      grant select on delivery, receiver to org_api_operator;
      grant select on ledger_day, ledger_count, webhook_deletion, delivery_cancellation to org_api_operator;
      grant select, update (state, changed_at) on delivery_switch to org_api_operator;
      grant select on slot, migration_failure to org_api_operator;
      grant select (pepper_version, revoked_at, expires_at) on api_key to org_api_operator;
      grant select (organization_id, id, delivery_count, rolled_up, created_at) on event to org_api_operator;
      grant select (organization_id, webhook_id, event_id, number, run, ends_schedule, status, started_at, finished_at)
        on delivery_attempt to org_api_operator;

      -- Of webhooks, the operator sees all, because the ledger and the region's state count them,
      -- and writes those that an object manages, with their secrets. The other
      -- logins have one policy without a condition, which adds nothing to a plan. Policies do not
      -- apply to the owner, nor to its functions and triggers.
      alter table webhook enable row level security;
      create policy webhook_of_apps on webhook to org_api_console, org_api_worker using (true);
      create policy webhook_is_seen on webhook for select to org_api_operator using (true);
      create policy webhook_is_added on webhook for insert to org_api_operator with check (managed_uid is not null);
      -- What is written may be the detachment for the organization's members.
      create policy webhook_is_managed on webhook for update to org_api_operator
        using (managed_uid is not null) with check (true);
      alter table webhook_secret enable row level security;
      create policy webhook_secret_of_apps on webhook_secret to org_api_console, org_api_worker using (true);
      create policy webhook_secret_is_managed on webhook_secret to org_api_operator
        using (exists (select from webhook w where w.organization_id = webhook_secret.organization_id
          and w.id = webhook_secret.webhook_id and w.managed_uid is not null));

      -- The worker delivers, keeps the ledger, and applies the retention of deliveries.
      grant select on event, webhook_secret, webhook_deletion, delivery_cancellation to org_api_worker;
      grant execute on function purge_expired_secrets to org_api_worker;
      grant select, update (state, suspended_reason, signature_result, signature_checked_at) on webhook
        to org_api_worker;
      grant select, update (concurrency, failing_since, exhausted_in_row, retry_after_until, posts_full_at, gone_at,
        next_sequence)
        on receiver to org_api_worker;
      -- A lock of a row needs the right to change it.
      grant select, update (organization_id) on slot_lock to org_api_worker;
      grant select, update (state, run, failures, attempts, sequence, due_at, settled_at) on delivery
        to org_api_worker;
      grant select, insert, update (ends_schedule, finished_at, status, cause, explanation, timings, peer_address,
        kept_bytes, response, response_encoding, headers)
        on delivery_attempt to org_api_worker;
      grant select, insert, delete, update (attempt_id, admitted_at, until) on slot to org_api_worker;
      grant select, update (state, end_reason, finished_at, due_at, reached, seen_all, seen, matched, queued)
        on redelivery to org_api_worker;
      grant select on delivery_switch to org_api_worker;
      grant select on ledger_day, ledger_count to org_api_worker;
      grant select, insert, update (due_at, set_at, reading, read_at) on maintenance_step to org_api_worker;
      grant execute on function purge_deliveries, fold_ledger, roll_up_ledger to org_api_worker;

      -- The console signs people in.
      grant select, insert on sign_in_confirmation to org_api_console;
      grant select, insert, update (email, password_hash, password_changed_at) on sign_in to org_api_console;
      grant select, insert, delete on second_factor, recovery_code, console_session, challenge, known_browser, enrolment
        to org_api_console;
      grant update (totp_sealed, totp_last_step, counter, last_used_at) on second_factor to org_api_console;
      grant update (used_at) on recovery_code to org_api_console;
      grant update (expires_at) on known_browser to org_api_console;
      grant update (token_hash, state, last_seen_at, expires_at, second_factor_at) on console_session
        to org_api_console;
      grant update (expires_at, challenge, totp_sealed) on challenge to org_api_console;
      grant update (token_hash, kind, email, created_at, expires_at, invited_by, password_hash, totp_sealed, challenge)
        on enrolment to org_api_console;
      grant select, insert, update (points, expire), delete on sign_in_failure to org_api_console;
      grant select, insert on form_use to org_api_console;

      -- The worker purges what has expired.
    `);
  }
}
