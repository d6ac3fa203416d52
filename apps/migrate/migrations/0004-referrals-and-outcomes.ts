import { Migration } from '@mikro-orm/migrations';

/** Referral codes with their referrals and invoices, and the daily counts behind outcomes. */
export class ReferralsAndOutcomes extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table referral_code (
        organization_id uuid not null constraint referral_code_organization references organization,
        id uuid not null default new_id() constraint referral_code_id_unique unique,
        code text collate "C" not null constraint referral_code_not_empty check (code <> ''),
        link text not null,
        label text,
        active boolean not null default true,
        primary key (organization_id, id),
        constraint referral_code_unique unique (organization_id, code)
      );

      create table referral (
        organization_id uuid not null,
        id uuid not null default new_id() constraint referral_id_unique unique,
        code_id uuid not null,
        state text not null constraint referral_state_known check (state in ('signed_up', 'qualified', 'not_counted')),
        primary key (organization_id, id),
        constraint referral_of_code foreign key (organization_id, code_id) references referral_code
      );
      create index referral_by_code on referral (organization_id, code_id, state);

      create table referral_invoice (
        organization_id uuid not null constraint referral_invoice_organization references organization,
        id uuid not null default new_id() constraint referral_invoice_id_unique unique,
        month text collate "C" not null
          constraint referral_invoice_month_form check (month ~ '^\\d{4}-(0[1-9]|1[0-2])$'),
        currency text collate "C" not null constraint referral_invoice_currency_not_empty check (currency <> ''),
        share_cents bigint not null,
        primary key (organization_id, id)
      );
      create index referral_invoice_by_month on referral_invoice (organization_id, month, currency);

      -- A response shows the sum of a month and currency, which every reader of JSON must be able
      -- to read: at most 2^53 - 1. The lock makes two writers of one organization see each other.
      -- What a statement takes out of a month counts too: a refund that goes can leave too much.
      create function referral_shares_stay_exact() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        org uuid;
      begin
        for org in select distinct c.organization_id from changed_invoice c order by 1 loop
          perform from organization o where o.id = org for no key update;
          if exists (
            select from referral_invoice i
            where i.organization_id = org
              and (i.month, i.currency) in
                (select c.month, c.currency from changed_invoice c where c.organization_id = org)
            group by i.month, i.currency having abs(sum(i.share_cents)) > 9007199254740991
          ) then
            raise exception 'the shares of a month and currency sum to more than 2^53 - 1'
              using errcode = 'check_violation', constraint = 'referral_invoice_sum_exact';
          end if;
        end loop;
        return null;
      end $$;
      create trigger referral_invoice_added after insert on referral_invoice
        referencing new table as changed_invoice for each statement execute function referral_shares_stay_exact();
      create trigger referral_invoice_changed after update on referral_invoice
        referencing new table as changed_invoice for each statement execute function referral_shares_stay_exact();
      create trigger referral_invoice_left after update on referral_invoice
        referencing old table as changed_invoice for each statement execute function referral_shares_stay_exact();
      create trigger referral_invoice_deleted after delete on referral_invoice
        referencing old table as changed_invoice for each statement execute function referral_shares_stay_exact();

      -- Counts of one family on one UTC day, written by the platform. No read returns a row:
      -- api.outcomes returns sums over five families or more.
      create table family_day (
        organization_id uuid not null,
        family_id uuid not null,
        day date not null,
        messages integer not null,
        calm_messages integer not null,
        exchanges integer not null,
        exchanges_on_time integer not null,
        expenses_due integer not null,
        expenses_answered_in_14_days integer not null,
        primary key (organization_id, family_id, day),
        constraint family_day_family foreign key (organization_id, family_id) references family,
        -- Sums over all families of a window stay below 2^53 with less than 100 million families.
        constraint family_day_counts_small check (greatest(messages, exchanges, expenses_due) <= 1000000),
        constraint family_day_calm_within_messages check (calm_messages between 0 and messages),
        constraint family_day_on_time_within_exchanges check (exchanges_on_time between 0 and exchanges),
        constraint family_day_answered_within_due check (expenses_answered_in_14_days between 0 and expenses_due)
      );
      create index family_day_window on family_day (organization_id, day);
    `);
  }
}
