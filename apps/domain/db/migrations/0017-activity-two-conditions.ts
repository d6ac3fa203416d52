import { Migration } from '@mikro-orm/migrations';

/**
 * Indexes that answer a search of the log for two things without looking at its lines: what people
 * did, and what was refused, with all that may be asked for besides. Like those they replace (0014)
 * they hold few lines and cost a read nothing. Running pods: survive it; their lines wait while the
 * indexes of a filled log are built.
 */
export class ActivityTwoConditions extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      drop index activity_of_people;
      create index activity_of_people on activity (organization_id, at desc, id desc) include (key_id, person_id) where status is null;
      -- One deed is rare among all deeds, so it has an index that it leads.
      create index activity_deed on activity (organization_id, action, at desc, id desc) include (key_id, person_id) where status is null;
      drop index activity_refused;
      create index activity_refused on activity (organization_id, at desc, id desc) include (key_id, person_id, action) where status >= 400;
    `);
  }
}
