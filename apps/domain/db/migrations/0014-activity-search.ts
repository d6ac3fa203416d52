import { Migration } from '@mikro-orm/migrations';

/**
 * Indexes that the console's log and list of keys are read by, newest line first. The two at the
 * end hold few lines and cost a read nothing: what people did, and what was refused. Running pods:
 * survive it; their lines wait while the indexes of a filled log are built.
 */
export class ActivitySearch extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- "status" rides along so that a key's uses are counted in the index alone.
      create index activity_by_key on activity (organization_id, key_id, at desc, id desc) include (status) where key_id is not null;
      create index activity_by_person on activity (organization_id, person_id, at desc, id desc) where person_id is not null;
      create index activity_by_action on activity (organization_id, action, at desc, id desc);
      create index activity_of_people on activity (organization_id, at desc, id desc) where status is null;
      create index activity_refused on activity (organization_id, at desc, id desc) where status >= 400;
    `);
  }
}
