import { Migration } from '@mikro-orm/migrations';

/**
 * Indexes in the order of the console's lists of members, clients and seats, so that a page of one
 * takes as long with 10,000 rows as with 10. Running pods: survive it; an import waits while they
 * are built.
 */
export class ConsoleLists extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- The first 100 characters: an index row ends at 2,704 bytes, and an imported name may have 10,000 characters.
      create index membership_by_name on membership (organization_id, lower(left(name, 100)), person_id);
      create index client_grant_of_professional on client_grant (organization_id, professional_id, since, id);
      create index seat_held on seat (organization_id, given_at, id) where ended_at is null;
      create index seat_over on seat (organization_id, ended_at, id) where ended_at is not null;
    `);
  }
}
