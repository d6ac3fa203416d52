/** The erasure of a family: what it finds, its limit, concurrent writers and restored backups. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import type { ErasureCertificate } from '#domain/clients/erase-family.ts';
import { setupDatabase } from '#test/setup.ts';
import { importDocument, rejection, smallDocument } from '../../import/document.ts';
import { connectAs, verify } from './erasures.ts';

const timeout = 120_000;

it('erases by name as whole words and in any case, and lists what people wrote', { timeout }, async () => {
  const { owner, make, call, orgId, familyId, userId } = await setupPlatform('Rossi "Ü"');
  const webhooks = [`for rossi "ü"`, 'for Rossini "Ü"', '', ''].map((description, n) =>
    make.webhook({ orgId, description, url: `https://x.example/${n === 2 ? familyId : 'hook'}` }),
  );
  const ids = (await Promise.all(webhooks)).map(({ id }) => id);
  for (const id of ids)
    await owner.pool.query(
      `select record_orgctl_entry($1, null, 'webhook.pause', jsonb_build_object('webhookId', $2::text))`,
      [orgId, id],
    );
  await owner.pool.query(`update membership set title = 'Friend of Rossi "Ü".' where person_id = $1`, [userId]);
  const [certificate] = (await call('select platform.erase_family($1, $2)', [familyId, 'c/1'])) as ErasureCertificate[];
  expect(certificate).toMatchObject({
    // Of its creation and its pause.
    counts: { entriesWithoutNames: 2 },
    mentions: [
      { place: 'membership', id: userId },
      { place: 'webhook', id: ids[0] },
      { place: 'webhook', id: ids[2] },
    ].sort((a, b) => (`${a.place}${a.id}` < `${b.place}${b.id}` ? -1 : 1)),
  });
  expect(await verify({ owner })).toMatchObject({ faults: [] });
});

it('erases no text by a name that is a common word, but what is exactly it', { timeout }, async () => {
  const { owner, make, call, orgId, familyId } = await setupPlatform('of');
  const second = randomUUID();
  await call('select platform.put_family($1, $2, $3)', [orgId, second, 'Li Family']);
  const descriptions = ['Proof of delivery', 'Of', 'For the family', 'Li family, new', 'Like family'];
  for (const description of descriptions) {
    const webhook = await make.webhook({ orgId, description });
    await owner.pool.query(
      `select record_orgctl_entry($1, null, 'webhook.pause', jsonb_build_object('webhookId', $2::text))`,
      [orgId, webhook.id],
    );
  }
  const texts = ['{"state":"out of office"}', '{"of":1}', '[{"name" : "OF"}]', 'of', '"x \\"of\\""', `id ${familyId}`];
  const { rows: found } = await owner.pool.query(
    `select t from unnest($1::text[]) with ordinality as x (t, n)
     where fold_bytes(convert_to(t, 'UTF8')) ~ family_bytes_pattern('of', $2) order by n`,
    [texts, familyId],
  );
  expect(found.map(({ t }) => t)).toEqual(texts.slice(2));
  const listNamed = async () =>
    (
      await owner.pool.query(
        `select distinct names ->> 'webhook' as name from audit_entry
         where action = 'webhook.pause' and names is not null order by 1`,
      )
    ).rows.map(({ name }) => name);
  await call('select platform.erase_family($1, $2)', [familyId, 'c']);
  expect(await listNamed()).toEqual(descriptions.filter((name) => name !== 'Of').sort());
  await call('select platform.erase_family($1, $2)', [second, 'c']);
  expect(await listNamed()).toEqual(['For the family', 'Like family', 'Proof of delivery']);
  const telling = ['Rossi', 'Li Wu', 'Li family', '李明', 'Baker-Of', 'Ünal'];
  const common = ['of', 'Of the', 'Family', 'The family', 'Li', 'Will', 'with', ' - ', 'Test'];
  const { rows } = await owner.pool.query('select name from unnest($1::text[]) name where is_telling(name)', [
    [...telling, ...common],
  ]);
  expect(rows.map(({ name }) => name)).toEqual(telling);
  expect(await verify({ owner })).toMatchObject({ faults: [] });
});

it('completes each erasure that can be, whatever number of others a paused webhook delays', { timeout }, async () => {
  const { owner, make, call, orgId, userId, familyId } = await setupPlatform('Delayed');
  const { id } = await make.webhook({ orgId });
  await call(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [orgId, randomUUID(), userId, familyId]);
  await owner.pool.query(`update webhook set state = 'paused' where id = $1`, [id]);
  await call('select platform.erase_family($1, $2)', [familyId, 'c']);
  // A hundred and one that wait for a delivery of this webhook.
  await owner.pool.query(
    `insert into erasure (organization_id, family_digest, erased_by, reference, kept_as, counts, mentions)
     select e.organization_id, e.family_digest, 'orgctl', 'c', e.kept_as, '{}', '[]'
     from erasure e, generate_series(1, 100)`,
  );
  const free = randomUUID();
  await call('select platform.put_family($1, $2, $3)', [orgId, free, 'Free']);
  await call('select platform.erase_family($1, $2)', [free, 'free']);
  await owner.pool.query(`update erasure set erased_at = erased_at - interval '10 minutes'`);
  for (let run = 0; run < 2; run += 1) await owner.pool.query('select repeat_erasures()');
  const { rows } = await owner.pool.query(
    'select reference, count(*)::int as n from erasure where completed_at is not null group by reference',
  );
  expect(rows).toEqual([{ reference: 'free', n: 1 }]);
});

it('lists more entries than one entry of the log may have', { timeout }, async () => {
  const { owner, make, call, orgId, familyId } = await setupPlatform('Quillfeather');
  const { id } = await make.webhook({ orgId, description: 'Quillfeather' });
  await owner.pool.query(
    `insert into audit_entry (organization_id, action, detail)
     select $1, 'webhook.pause', jsonb_build_object('webhookId', $2::text) from generate_series(1, 699)`,
    [orgId, id],
  );
  await call('select platform.erase_family($1, $2)', [familyId, 'c']);
  const { rows } = await owner.pool.query(
    `select jsonb_array_length(detail -> 'entries') as n from audit_entry where action = 'family.erase' order by 1`,
  );
  expect(rows).toEqual([{ n: 100 }, { n: 300 }, { n: 300 }]);
  expect(await verify({ owner })).toMatchObject({ faults: [] });
});

it('is limited for the platform to a number of families a day, and a repeat counts nothing', { timeout }, async () => {
  const { owner, call, orgId, familyId } = await setupPlatform('One');
  const second = randomUUID();
  await call('select platform.put_family($1, $2, $3)', [orgId, second, 'Two']);
  await owner.pool.query('update erasure_limit set families = 1');
  const erase = (id: string) => call('select platform.erase_family($1, $2)', [id, 'case-1']);
  await erase(familyId);
  expect(await erase(familyId)).toHaveLength(1);
  await expect(erase(second)).rejects.toMatchObject({ constraint: 'too_many_erasures', code: '23514' });
  await owner.pool.query(`update erasure set erased_at = erased_at - interval '25 hours'`);
  expect(await erase(second)).toHaveLength(1);
  await expect(erase(randomUUID())).rejects.toMatchObject({ constraint: 'no_such_family', code: 'P0002' });
  await expect(call('select platform.erase_family($1, $2)', [second, 'Rossi family'])).rejects.toMatchObject({
    constraint: 'argument_invalid',
    detail: 'reference',
  });
});

it('never leaves a name behind when the family is written at the same moment', { timeout }, async () => {
  const { owner, call, database, orgId, userId } = await setupPlatform('First');
  const writer = await connectAs(database.urls.platform);
  const outcomes = new Set<string>();
  for (let round = 0; round < 40; round += 1) {
    const [id, grant] = [randomUUID(), randomUUID()];
    await call('select platform.put_family($1, $2, $3)', [orgId, id, `Name ${round}`]);
    const write =
      round % 2 === 0
        ? writer('select platform.put_family($1, $2, $3)', [orgId, id, `Other ${round}`])
        : writer(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [orgId, grant, userId, id]);
    const settled = write.catch(({ constraint, code }: pg.DatabaseError) => constraint ?? code);
    await call('select platform.erase_family($1, $2)', [id, `r-${round}`]);
    outcomes.add(String(await settled));
  }
  expect([...outcomes].filter((one) => !['changed', 'created', 'family_erased'].includes(one))).toEqual([]);
  const { rows } = await owner.pool.query(`select name, count(*)::int as n from family group by name order by name`);
  expect(rows).toEqual([
    { name: 'Erased family', n: 40 },
    { name: 'First', n: 1 },
  ]);
});

it('finds the family in an organization whose transaction was open, and keeps it out of a later one', {
  timeout,
}, async () => {
  const t = await setupPlatform('Open');
  const { orgId: other } = await t.make.member();
  const { orgId: third } = await t.make.member();
  const writer = await connectAs(t.database.urls.platform);
  const writerPid = Number(await writer('select pg_backend_pid()'));
  const put = (orgId: string) => writer('select platform.put_family($1, $2, $3)', [orgId, t.familyId, 'Open']);
  await writer('begin');
  await put(other);
  await t.call('begin');
  const erasing = t.call('select platform.erase_family($1, $2)', [t.familyId, 'c']);
  await waitsOrEnds(t, erasing, t.pid);
  await writer('commit');
  expect(await erasing).toHaveLength(2);
  const putting = put(third).catch(({ constraint }: pg.DatabaseError) => constraint);
  await waitsOrEnds(t, putting, writerPid);
  await t.call('commit');
  expect(await putting).toBe('family_erased');
  expect(await listNames(t)).toEqual(['Erased family', 'Erased family']);
});

it.each([true, false])(
  'and an import of it wait for each other (the import is first: %s)',
  { timeout },
  async (isFirst) => {
    const t = await setupPlatform('Imported');
    const document = smallDocument();
    const list = document.organizations[0].families;
    const text = JSON.stringify(document).replaceAll(list[0].id, t.familyId);
    const keeper = await connectAs(t.database.ownerUrl);
    const importer = () =>
      importDocument(t.database.ownerUrl, JSON.parse(text)).then(
        () => 'imported',
        ({ constraint }: pg.DatabaseError) => constraint ?? 'rejected',
      );
    await keeper('begin');
    if (isFirst) {
      // It has written its families, and waits for this table.
      await keeper('lock table subscription in exclusive mode');
      const importing = importer();
      await waitsOrEnds(t, importing, ofImport);
      const erasing = t.call('select platform.erase_family($1, $2)', [t.familyId, 'c']);
      await waitsOrEnds(t, erasing, t.pid);
      await keeper('commit');
      expect([await importing, ((await erasing) as unknown[]).length]).toEqual(['imported', 2]);
    } else {
      // It has checked its families, and waits for this table.
      await keeper('lock table family in exclusive mode');
      const importing = importer();
      await waitsOrEnds(t, importing, ofImport);
      await keeper(`select platform.erase($1, 'c', 'orgctl')`, [t.familyId]);
      await keeper('commit');
      expect(await importing).toBe('family_erased');
    }
    const names = await listNames(t);
    expect(names.filter((name) => name === 'Imported' || name === list[0].name)).toEqual([]);
    expect(names.filter((name) => name === 'Erased family')).toHaveLength(isFirst ? 2 : 1);
  },
);

describe('an erasure and who waits for it never wait for each other', { timeout }, () => {
  /** A session with an open transaction, and an id of a family that needs the same lock as the erased one. */
  async function setupWriter() {
    const t = await setupPlatform('Waiting');
    const writer = await connectAs(t.database.ownerUrl);
    const { rows } = await t.owner.pool.query<{ id: string }>(
      `select id from (select gen_random_uuid() as id from generate_series(1, 20000)) g
       where get_byte(sha256(uuid_send(id)), 0) = get_byte(sha256(uuid_send($1::uuid)), 0) limit 1`,
      [t.familyId],
    );
    const add = (orgId: string) => writer('insert into family values ($1, $2, $3)', [orgId, rows[0]?.id, 'Added']);
    const erase = () => t.call('select platform.erase_family($1, $2)', [t.familyId, 'c']);
    await writer('begin');
    return { ...t, writer, add, erase };
  }

  it('an import of the organization, which locks its plan first', async () => {
    const t = await setupWriter();
    await t.writer('select from seat_plan where organization_id = $1 for no key update', [t.orgId]);
    const erasing = t.erase();
    await waitsOrEnds(t, erasing, t.pid);
    await t.add(t.orgId);
    await t.writer('commit');
    expect(await erasing).toHaveLength(1);
  });

  it('a transaction of an organization to which the family was added meanwhile', async () => {
    const t = await setupWriter();
    const { orgId: other } = await t.make.member();
    const { orgId: third } = await t.make.member();
    const platform = await connectAs(t.database.urls.platform);
    const keeper = await connectAs(t.database.ownerUrl);
    // Keeps the erasure from the lock of the family, after it has locked the organizations that it sees.
    await keeper('begin');
    await keeper('insert into family values ($1, $2, $3)', [third, t.familyId, 'Third']);
    const erasing = t.erase();
    await waitsOrEnds(t, erasing, t.pid);
    await platform('select platform.put_family($1, $2, $3)', [other, t.familyId, 'Other']);
    await t.writer('select platform.lock_organization($1)', [other]);
    await keeper('commit');
    await waitsOrEnds(t, erasing, t.pid);
    await t.add(other);
    await t.writer('commit');
    expect(await erasing).toHaveLength(3);
    expect(await listNames(t)).toEqual(['Added', 'Erased family', 'Erased family', 'Erased family']);
  });

  it('a transaction of any organization, after a restore', async () => {
    const t = await setupWriter();
    const certificates = [...Array(3).keys()].map((n) => ({ familyDigest: `${n}`.repeat(64), reference: 'c' }));
    const { rows } = await t.owner.pool.query(`select encode(sha256(uuid_send($1::uuid)), 'hex') as digest`, [
      t.familyId,
    ]);
    certificates.push({ familyDigest: rows[0].digest, reference: 'c' });
    const restorer = await connectAs(t.database.ownerUrl);
    const pid = Number(await restorer('select pg_backend_pid()'));
    await t.writer('select platform.lock_organization($1)', [t.orgId]);
    const erasing = restorer('select erase_again($1)', [JSON.stringify(certificates)]);
    await waitsOrEnds(t, erasing, pid);
    await t.add(t.orgId);
    await t.writer('commit');
    expect(await erasing).toHaveLength(1);
  });

  it('another erasure: the unnamed family needs no other lock than the erased one', async () => {
    const t = await setupPlatform('First');
    for (let n = 0; n < 8; n += 1) {
      const id = randomUUID();
      await t.call('select platform.put_family($1, $2, $3)', [t.orgId, id, `Family ${n}`]);
      await t.call('select platform.erase_family($1, $2)', [id, 'c']);
    }
    const { rows } = await t.owner.pool.query(
      'select get_byte(family_digest, 0) - get_byte(sha256(uuid_send(kept_as)), 0) as difference from erasure',
    );
    expect(rows).toEqual(Array(8).fill({ difference: 0 }));
  });
});

it('is not undone by a write in an older snapshot, and not carried out in one', { timeout }, async () => {
  const t = await setupPlatform('Snapshot');
  const old = await connectAs(t.database.ownerUrl);
  for (const level of ['repeatable read', 'serializable'])
    for (const [text, values] of [
      ['insert into family values ($1, $2, $3)', [t.orgId, t.familyId, 'Snapshot']],
      [`select platform.erase($1, 'c', 'orgctl')`, [t.familyId]],
      [`select erase_again('[]')`, []],
    ] as const) {
      await old(`begin isolation level ${level}`);
      await old('select from family');
      if (text.startsWith('insert')) await t.call('select platform.erase_family($1, $2)', [t.familyId, 'c']);
      await expect(old(text, [...values])).rejects.toMatchObject({ constraint: 'wrong_isolation', code: '25000' });
      await old('rollback');
    }
  expect(await listNames(t)).toEqual(['Erased family']);
});

it('is repeated after a backup was restored, also for ids that the backup did not have', { timeout }, async () => {
  const { owner, call, orgId, familyId, userId } = await setupPlatform('Restored');
  await call(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [orgId, randomUUID(), userId, familyId]);
  const [certificate] = (await call('select platform.erase_family($1, $2)', [familyId, 'c'])) as ErasureCertificate[];
  const digest = certificate?.familyDigest ?? '';
  // A repeat keeps the first reference.
  expect(await call('select platform.erase_family($1, $2)', [familyId, 'other'])).toEqual([certificate]);
  // The state of a backup from before.
  await owner.pool.query('truncate erasure, erased_family');
  await call('select platform.put_family($1, $2, $3)', [orgId, familyId, 'Restored']);
  const missing = randomUUID();
  const findDigest = async (id: string) =>
    (await owner.pool.query(`select encode(sha256(uuid_send($1::uuid)), 'hex') as digest`, [id])).rows[0].digest;
  const erased = [
    { familyDigest: digest, reference: 'c' },
    { familyDigest: await findDigest(missing), reference: 'd' },
  ];
  const again = async () =>
    (await owner.pool.query('select erase_again($1) as made', [JSON.stringify(erased)])).rows[0].made;
  expect(await again()).toMatchObject([{ familyDigest: digest, erasedBy: 'restore', reference: 'c' }]);
  expect(await again()).toEqual([]);
  expect(await owner.pool.query('select from family where id = $1', [familyId])).toMatchObject({ rowCount: 0 });
  for (const id of [familyId, missing])
    await expect(call('select platform.put_family($1, $2, $3)', [orgId, id, 'x'])).rejects.toMatchObject({
      constraint: 'family_erased',
    });
});

it('is kept by an import of an older document, which names the erased family alone', { timeout }, async () => {
  const { database, owner } = await setupDatabase();
  const document = smallDocument();
  const [organization] = document.organizations;
  await importDocument(database.ownerUrl, document);
  await owner.pool.query(`select platform.erase($1, 'c', 'orgctl')`, [organization.families[0].id]);
  const problem = 'is the id of a family that was erased; a family that returns has a new id';
  const o = '$.organizations[0]';
  for (const complete of [false, true]) {
    const { problems } = await rejection(importDocument(database.ownerUrl, document, { complete }));
    expect(problems).toEqual([{ path: `${o}.families[0].id`, problem }]);
  }
  // Where the document does not list the family, each place that names it is one.
  organization.families.shift();
  const { problems } = await rejection(importDocument(database.ownerUrl, document));
  expect(problems).toEqual(
    [`${o}.familyDays[0].familyId`, `${o}.familyDays[1].familyId`, `${o}.grants[0].familyId`].map((path) => ({
      path,
      problem,
    })),
  );
});

/** An organization with one family of this name, and the platform's login. */
async function setupPlatform(familyName: string) {
  const { database, owner, make } = await setupDatabase();
  const { orgId, userId } = await make.member();
  const call = await connectAs(database.urls.platform);
  const id = randomUUID();
  await call('select platform.put_family($1, $2, $3)', [orgId, id, familyName]);
  const pid = Number(await call('select pg_backend_pid()'));
  return { database, owner, make, call, pid, orgId, userId, familyId: id };
}

type Platform = Awaited<ReturnType<typeof setupPlatform>>;

const listNames = async ({ owner }: Platform): Promise<string[]> =>
  (await owner.pool.query('select name from family order by name')).rows.map(({ name }) => name);

const ofImport = `(select pid from pg_stat_activity where application_name = 'org-api-import'
  and datname = current_database())`;

/** Waits until a call waits for a lock of another session, or has ended. \`session\` is SQL: its process id. */
async function waitsOrEnds({ owner }: Platform, call: Promise<unknown>, session: string | number): Promise<void> {
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
  };
  call.then(end, end);
  await vi.waitFor(
    async () => {
      const { rows } = await owner.pool.query(`select cardinality(pg_blocking_pids(${session})) > 0 as waits`);
      expect(hasEnded || rows[0]?.waits).toBe(true);
    },
    { timeout: 60_000, interval: 10 },
  );
}
