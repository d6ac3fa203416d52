import { Migration } from '@mikro-orm/migrations';

/**
 * Remembers when Temporal was last asked for every delivery that runs, and how far that came: one
 * worker asks in an interval, whichever is first, and the next goes on from there. Running pods:
 * survive it; an older worker goes on asking by itself.
 */
export class WorkflowSweep extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table workflow_sweep (
        -- One row.
        id boolean primary key default true constraint workflow_sweep_one_row check (id),
        due_at timestamptz not null default '-infinity',
        -- It goes on with the workflows that began before this; null: with the newest.
        place timestamptz
      );
      insert into workflow_sweep default values;
      grant select, update (due_at, place) on workflow_sweep to org_api_worker;
    `);
  }
}
