import { Migration } from '@mikro-orm/migrations';

/** Forms of the console that may be sent once: what was sent twice by a double click makes one key. Running pods: survive it. */
export class ConsoleForms extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table form_use (
        session_id uuid not null constraint form_use_session references console_session on delete cascade,
        form_id uuid not null,
        primary key (session_id, form_id)
      );
      grant select, insert on form_use to org_api_console;
    `);
  }
}
