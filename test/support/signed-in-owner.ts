import type { setupDatabase } from './setup.ts';

/** Makes an organization with an owner who has signed in. `run` queries as the owner of the database. */
export async function makeSignedInOwner({
  owner,
  make,
}: Pick<Awaited<ReturnType<typeof setupDatabase>>, 'owner' | 'make'>) {
  const run = async <T extends object>(text: string, values: unknown[] = []) =>
    (await owner.pool.query<T>(text, values)).rows;
  const orgId = await make.organization();
  const { userId } = await make.member({ orgId, signedIn: true });
  return { run, orgId, userId };
}
