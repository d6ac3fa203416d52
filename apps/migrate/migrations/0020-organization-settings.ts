import { Migration } from '@mikro-orm/migrations';

/**
 * What an organization's owners set for its console. A table of its own: the platform and the import
 * write `organization`, and neither may write this. No row: nothing is set.
 */
export class OrganizationSettings extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table organization_setting (
        organization_id uuid primary key constraint organization_setting_organization references organization,
        -- What its members read instead of the platform's name; null: that name.
        display_name text
          constraint organization_setting_display_name_length check (length(display_name) between 1 and 200),
        -- The zone of times in the console and in CSV files; null: the viewer's, and UTC in files.
        time_zone text constraint organization_setting_time_zone_length check (length(time_zone) between 1 and 64),
        security_contact text constraint organization_setting_contact_form
          check (security_contact like '%_@_%' and length(security_contact) <= 254
            and security_contact collate "C" ~ '^[!-@\\[-~]+$'),
        -- Domains of addresses that may be invited; none: every address may.
        invitation_domains text[] not null default '{}'
          constraint organization_setting_domains_at_most_20 check (cardinality(invitation_domains) <= 20),
        passkeys_required boolean not null default false,
        session_hours smallint not null default 12
          constraint organization_setting_session_hours_range check (session_hours between 1 and 12)
      );
      grant select, insert, update (display_name, time_zone, security_contact, invitation_domains, passkeys_required,
        session_hours) on organization_setting to org_api_console;
    `);
  }
}
