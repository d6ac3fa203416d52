import { Migration } from '@mikro-orm/migrations';
import { canonicalEmail, hasAsciiLocalPart } from '#domain/contract/email.ts';

interface Address {
  personId: string;
  email: string;
  canonical: string;
}

/**
 * Brings the addresses of people to the one form in which they are compared. Two people who sign in
 * with forms of one address stop the migration with their ids; an operator gives one of them
 * another address (`orgctl person change-address`). Running pods of the version before find such a
 * person in lower case only.
 */
export class CanonicalAddresses extends Migration {
  override async up(): Promise<void> {
    const signIns = await this.#listAddresses('sign_in');
    assertUnique(signIns);
    await this.#write('sign_in', signIns);
    await this.#write('membership', await this.#listAddresses('membership'));
    // A link for an address that sign-in does not accept could not be used.
    const links = await this.#listAddresses('enrolment');
    const usable = ({ canonical }: Address) => hasAsciiLocalPart(canonical);
    await this.#write('enrolment', links.filter(usable));
    const unusable = links.filter((link) => !usable(link)).map(({ email }) => email);
    for (const email of unusable) await this.execute('delete from enrolment where email = ?', [email]);
    // Printable ASCII without capitals.
    this.addSql(/* sql */ `
      alter table sign_in add constraint sign_in_email_canonical check (email collate "C" ~ '^[!-@\\[-~]+$');
      alter table enrolment add constraint enrolment_email_canonical check (email collate "C" ~ '^[!-@\\[-~]+$');
    `);
  }

  async #listAddresses(table: string): Promise<Address[]> {
    const rows = await this.execute(`select distinct person_id as "personId", email from ${table} order by 1, 2`);
    return (rows as unknown as Omit<Address, 'canonical'>[]).map((row) => ({
      ...row,
      canonical: canonicalEmail(row.email),
    }));
  }

  async #write(table: string, addresses: readonly Address[]): Promise<void> {
    for (const { personId, email, canonical } of addresses)
      if (canonical !== email)
        await this.execute(`update ${table} set email = ? where person_id = ? and email = ?`, [
          canonical,
          personId,
          email,
        ]);
  }
}

/** @throws when people sign in with forms of one address, or with one that sign-in does not accept. */
function assertUnique(addresses: readonly Address[]): void {
  const people = Map.groupBy(addresses, ({ canonical }) => canonical);
  const clashes = [...people.values()].filter((group) => group.length > 1);
  const lists = clashes.map((group) => group.map(({ personId }) => personId).join(' and '));
  if (lists.length > 0)
    throw new Error(
      `These people sign in with forms of one address: ${lists.join('; ')}. Nothing was changed. Give all but one of ` +
        'each another address, or release it, with the version before, and migrate again.',
    );
  const unusable = addresses.filter(({ canonical }) => !hasAsciiLocalPart(canonical)).map(({ personId }) => personId);
  if (unusable.length > 0)
    throw new Error(
      `These people sign in with an address that is no longer accepted: ${unusable.join(', ')}. Nothing was changed. ` +
        'Give each another address, or release it, with the version before, and migrate again.',
    );
}
