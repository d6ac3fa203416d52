/** Every check of creating a link is repeated when the link is used, in the same transaction. */
import { describe, expect, it } from 'vitest';
import type { Authority } from '#domain/access/authority.ts';
import {
  acceptEnrolment,
  completeEnrolment,
  setEnrolmentPassword,
  startEnrolmentTotp,
} from '#domain/identity/accept-link.ts';
import { createEnrolment, findEnrolment } from '#domain/identity/create-link.ts';
import { confirmSignInByAddress, freeAddress } from '#domain/identity/orgctl-actions.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { codeAt, goodPassword, settings, setupPeople, visitor } from '#test/people.ts';

/**
 * An organization with an administrator, another organization, and links of the first that lack
 * only their last step.
 */
async function setupLinks() {
  const t = await setupPeople();
  const [orgId, elsewhere] = [await t.make.organization(), await t.make.organization()];
  const admin = await t.make.member({ orgId, roleKey: 'admin', signedIn: true });
  const query = (text: string, values: unknown[] = []) => t.owner.pool.query(text, values);

  /** A link for a new person, up to the second factor; `use` completes it. */
  async function enrolling(by: Authority = { personId: admin.userId }) {
    const input = { organizationId: orgId, email: 'bob@example.org', by };
    const db = by === 'orgctl' ? t.owner : t.db;
    const { token, personId } = await createEnrolment(db, input, t.now);
    await setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now);
    const { secret } = await startEnrolmentTotp(t.db, token, settings, t.now);
    const use = (now = t.now) => {
      const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
      return completeEnrolment(t.db, { token, factor, visitor }, settings, now);
    };
    return { token, personId, use };
  }

  /**
   * A link for a person of the other organization who already signs in; `use` completes it with
   * their session.
   */
  async function joining() {
    const person = await t.enrol({ orgId: elsewhere });
    const input = { organizationId: orgId, email: person.email, by: { personId: admin.userId } };
    const { token, personId } = await createEnrolment(t.db, input, t.now);
    const use = async () => acceptEnrolment(t.db, await t.session(person.token), { token, visitor }, t.now);
    return { token, personId, email: person.email, use };
  }

  /** A write of the import or the platform, which no check of the console precedes. */
  const setStatus = (personId: string, status: string) =>
    query('update membership set status = $3 where organization_id = $1 and person_id = $2', [orgId, personId, status]);
  const findSignIn = async (personId: string) =>
    (await query('select email from sign_in where person_id = $1', [personId])).rows;
  /** Returns the number of statements that wait for a lock. */
  const countWaiting = async () =>
    (await query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`))
      .rowCount;
  return { ...t, orgId, elsewhere, admin, query, enrolling, joining, setStatus, findSignIn, countWaiting };
}

type Links = Awaited<ReturnType<typeof setupLinks>>;
type Whom = { personId: string };

const changes: [what: string, change: (t: Links, whom: Whom) => Promise<unknown>][] = [
  [
    'its member has another address now',
    (t, { personId }) =>
      t.query(`update membership set email = 'bert@example.org' where person_id = $1 and organization_id = $2`, [
        personId,
        t.orgId,
      ]),
  ],
  [
    'another member has the address too',
    async (t, { personId }) => {
      const { userId } = await t.make.member({ orgId: t.orgId });
      await t.query(
        `update membership m set email = o.email from membership o
         where m.person_id = $1 and o.person_id = $2 and o.organization_id = $3`,
        [userId, personId, t.orgId],
      );
    },
  ],
  ['its member was suspended by an import', (t, { personId }) => t.setStatus(personId, 'suspended')],
  ['its member was removed by an import', (t, { personId }) => t.setStatus(personId, 'left')],
  [
    'its member was removed by an import, and is back',
    async (t, { personId }) => {
      await t.setStatus(personId, 'left');
      await t.setStatus(personId, 'active');
    },
  ],
  ['its creator was suspended by an import', (t) => t.setStatus(t.admin.userId, 'suspended')],
  [
    'its creator was removed by an import, and is back',
    async (t) => {
      await t.setStatus(t.admin.userId, 'left');
      await t.setStatus(t.admin.userId, 'active');
    },
  ],
  [
    'its address is at none of the domains that the organization has meanwhile allowed',
    (t) =>
      t.query(`insert into organization_setting (organization_id, invitation_domains) values ($1, '{firm.example}')`, [
        t.orgId,
      ]),
  ],
  [
    'its creator no longer holds what it gives',
    (t) => t.query('delete from membership_role where person_id = $1', [t.admin.userId]),
  ],
];

describe('an enrolment link', () => {
  it.each([
    ['a member', undefined],
    ['orgctl', 'orgctl' as const],
  ])('of %s enrols a person whom another organization has meanwhile, and opens nothing of that one', async (_, by) => {
    const t = await setupLinks();
    const link = await t.enrolling(by);
    await t.make.member({ orgId: t.elsewhere, userId: link.personId, roleKey: 'owner' });
    const { token } = await link.use();
    const { memberships, unconfirmed } = await t.session(token);
    expect([memberships.map(({ organizationId }) => organizationId), unconfirmed]).toEqual([[t.orgId], [t.elsewhere]]);
  });

  it('that is used while an import makes its person another organization’s owner opens nothing of that one', async () => {
    const t = await setupLinks();
    const link = await t.enrolling();
    const client = await t.owner.pool.connect();
    try {
      await client.query('begin');
      await client.query(
        `insert into membership (organization_id, person_id, name, email, status)
         values ($1, $2, 'Bob', 'bob@example.org', 'active')`,
        [t.elsewhere, link.personId],
      );
      // A link does not wait for an import: it is used before the import commits.
      const { token } = await link.use();
      await client.query('commit');
      const { memberships, unconfirmed } = await t.session(token);
      expect([memberships.map(({ organizationId }) => organizationId), unconfirmed]).toEqual([
        [t.orgId],
        [t.elsewhere],
      ]);
    } finally {
      client.release();
    }
  });

  it.each(changes)('has expired when %s', async (_, change) => {
    const t = await setupLinks();
    const link = await t.enrolling();
    await change(t, link);
    expect(await findEnrolment(t.db, link.token, t.now())).toBeNull();
    await expect(link.use()).rejects.toMatchObject({ reason: 'link_expired' });
    expect(await t.findSignIn(link.personId)).toEqual([]);
  });

  it('is rejected when another person signs in with its address meanwhile', async () => {
    const t = await setupLinks();
    const link = await t.enrolling();
    const other = await t.enrol({ orgId: t.elsewhere });
    await t.query(`update sign_in set email = 'bob@example.org' where person_id = $1`, [other.personId]);
    await expect(link.use()).rejects.toMatchObject({ reason: 'email_taken' });
    expect(await t.findSignIn(link.personId)).toEqual([]);
  });

  it('is rejected when it expires between lookup and use', async () => {
    const t = await setupLinks();
    const link = await t.enrolling();
    // The link, the attempt and the code are judged by time; the use itself is not.
    let requested = 0;
    const lateAtLast = () => new Date(t.now().getTime() + (requested++ < 3 ? 0 : 72 * 3_600_000));
    await expect(link.use(lateAtLast)).rejects.toMatchObject({ reason: 'link_expired' });
    expect(await t.findSignIn(link.personId)).toEqual([]);
  });

  it('waits for a change of its creator in progress, and sees it', async () => {
    const t = await setupLinks();
    const link = await t.enrolling();
    const client = await t.owner.pool.connect();
    try {
      await client.query('begin');
      await client.query('select lock_organization($1)', [t.orgId]);
      await client.query('delete from membership_role where person_id = $1', [t.admin.userId]);
      const used = link.use().then(
        () => 'enrolled',
        (error: { reason: string }) => error.reason,
      );
      await expect.poll(t.countWaiting).toBe(1);
      await client.query('commit');
      expect(await used).toBe('link_expired');
    } finally {
      client.release();
    }
    expect(await t.findSignIn(link.personId)).toEqual([]);
  });
});

describe('a link for a person who signs in already', () => {
  it('waits for an import that removes its member, and has then expired, without a deadlock', async () => {
    const t = await setupLinks();
    const link = await t.joining();
    const client = await t.owner.pool.connect();
    const ofMember = 'where organization_id = $1 and person_id = $2';
    const member = [t.orgId, link.personId];
    try {
      await client.query('begin');
      await client.query(`update membership set title = 'Counsel' ${ofMember}`, member);
      const used = link.use().then(
        () => 'joined',
        (error: { reason: string }) => error.reason,
      );
      await expect.poll(t.countWaiting).toBe(1);
      await client.query(`update membership set status = 'left' ${ofMember}`, member);
      await client.query('commit');
      expect(await used).toBe('link_expired');
    } finally {
      client.release();
    }
  });

  it('waits for an operator who frees the address, and has then expired', async () => {
    const t = await setupLinks();
    const link = await t.joining();
    const [used] = await Promise.all([
      link.use().then(
        () => 'joined',
        (error: { reason: string; message: string }) => error.reason ?? error.message,
      ),
      freeAddress(t.owner, link.email),
    ]);
    // Either order is possible; the session that uses the link may have ended by then.
    expect(used).toMatch(/^(joined|link_expired|the session has ended)$/);
    expect((await t.query('select from sign_in_confirmation where person_id = $1', [link.personId])).rows).toEqual([]);
  });

  it.each(changes.filter(([what]) => what !== 'its member has another address now'))(
    'has expired when %s',
    async (_, change) => {
      const t = await setupLinks();
      const link = await t.joining();
      await change(t, link);
      await expect(link.use()).rejects.toMatchObject({ reason: 'link_expired' });
    },
  );

  it('has expired when its address is no longer the member’s or the sign-in’s', async () => {
    const t = await setupLinks();
    const link = await t.joining();
    await t.query(`update membership set email = 'bert@example.org' where person_id = $1 and organization_id = $2`, [
      link.personId,
      t.orgId,
    ]);
    expect(await findEnrolment(t.db, link.token, t.now())).not.toBeNull();
    await t.query(`update sign_in set email = 'bert@example.org' where person_id = $1`, [link.personId]);
    await expect(link.use()).rejects.toMatchObject({ reason: 'link_expired' });
  });

  it('is rejected when another person signs in with its address, and has expired when an operator has confirmed the sign-in', async () => {
    const t = await setupLinks();
    const link = await t.joining();
    await t.query(`update sign_in set email = 'bert@example.org' where person_id = $1`, [link.personId]);
    const other = await t.enrol({ orgId: t.elsewhere });
    await t.query('update sign_in set email = $2 where person_id = $1', [other.personId, link.email]);
    await expect(link.use()).rejects.toMatchObject({ reason: 'email_taken' });

    const second = await t.joining();
    await t.setStatus(second.personId, 'active');
    await confirmSignInByAddress(t.owner, { organizationId: t.orgId, email: second.email }, t.now);
    await expect(second.use()).rejects.toMatchObject({ reason: 'link_expired' });
  });

  it('that is used twice at once adds the member once', async () => {
    const t = await setupLinks();
    const link = await t.joining();
    const tries = await Promise.allSettled([1, 2, 3, 4].map(() => link.use()));
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const entries = (await t.entries(t.orgId)).map(({ action }) => action);
    expect(entries.filter((action) => action === 'sign_in.confirm')).toHaveLength(1);
  });
});

describe('a recovery link', () => {
  it.each([
    ['was suspended', 'suspended'],
    ['was removed', 'left'],
    ['was invited again', 'invited'],
  ])('has expired when its member %s, and leaves the old sign-in unchanged', async (_, status) => {
    const t = await setupLinks();
    const person = await t.enrol({ orgId: t.orgId });
    const input = { organizationId: t.orgId, email: person.email, by: 'orgctl' } as const;
    const { token, kind } = await createEnrolment(t.owner, input, t.now);
    expect(kind).toBe('recover');
    await t.make.member({ orgId: t.elsewhere, userId: person.personId });
    await setEnrolmentPassword(t.db, { token, password: 'quartz lantern meadow fiddle' }, t.now);
    const { secret } = await startEnrolmentTotp(t.db, token, settings, t.now);
    await t.setStatus(person.personId, status);
    const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
    const use = completeEnrolment(t.db, { token, factor, visitor }, settings, t.now);
    await expect(use).rejects.toMatchObject({ reason: 'link_expired' });
    expect(await findSession(t.db, person.token, t.now())).not.toBeNull();
  });
});
