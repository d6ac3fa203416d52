import { Migration } from '@mikro-orm/migrations';

/**
 * What the console needs to change members, roles, seats and access: it may begin access, end it,
 * and delete an organization's own role. Running pods: survive it.
 */
export class OrganizationDeeds extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      grant insert on client_grant to org_api_console;
      grant update (status, ends_at, end_reason) on client_grant to org_api_console;
      grant delete on role to org_api_console;
    `);
  }
}
