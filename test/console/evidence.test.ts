/** The evidence package over HTTP: what its programs find, and what the log says of it. */
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { setupConsole } from './setup.ts';
import { link, month, query, send, unpack, verify } from './unpack-evidence.ts';

const read = (folder: string, file: string) => readFileSync(path.join(folder, file), 'utf8');
const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');

/** An organization with 40 reads, changes of members with names, and a counted entry of five versions. */
async function arrange() {
  const t = await setupConsole();
  const ada = await t.enrol();
  const insert = `insert into audit_entry (organization_id, person_id, action, status, detail)`;
  await t.owner.pool.query(`${insert} select $1, null, 'api.listClients', 200, null from generate_series(1, 40)`, [
    ada.orgId,
  ]);
  await t.owner.pool.query(
    `${insert} select $1, $2, 'member.change', null,
       jsonb_build_object('memberId', $2::text, 'note', E'Zoë \uFFFD\t"' || n)
     from generate_series(1, 5) n`,
    [ada.orgId, ada.personId],
  );
  const key = await t.make.apiKey({ creator: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
  for (const count of [3, 1, 20_000, 7, 2]) {
    await t.owner.pool.query(
      `insert into audit_entry (at, organization_id, key_id, action, status, code, count)
       values (date_trunc('minute', now()), $1, $2, 'api.rate_limited', 429, 'rate_limited', $3)
       on conflict (key_id, at) where action = 'api.rate_limited'
       do update set count = audit_entry.count + excluded.count, serial = excluded.serial`,
      [ada.orgId, key.id, count],
    );
    await link(t);
  }
  return { t, ada };
}

it('verifies in both programs, and the log has the digest of its manifest', async () => {
  const { t, ada } = await arrange();
  const folder = await unpack(t, ada);
  expect(readdirSync(folder).sort()).toEqual([
    'README.txt',
    'deliveries.csv',
    `log-${month}.txt`,
    'manifest.json',
    `names-${month}.txt`,
    'verify.mjs',
    'verify.py',
  ]);
  const { exitCode, lines } = verify(folder);
  expect([exitCode, lines.at(-1)]).toEqual([0, 'INTACT']);
  const log = read(folder, `log-${month}.txt`);
  expect(
    log.match(/"api.rate_limited", 429, "rate_limited", null, (\d+)/g)?.map((text) => text.split(' ').at(-1)),
  ).toEqual(['3', '4', '20004', '20011', '20013']);
  expect(read(folder, `names-${month}.txt`)).toContain(`"member": `);
  const { rows } = await t.owner.pool.query(
    `select action, detail from audit_entry where action like 'audit_log.%' order by serial`,
  );
  const period = { from: month, to: month };
  expect(rows).toEqual([
    { action: 'audit_log.download', detail: { ...period, format: 'evidence' } },
    { action: 'audit_log.evidence', detail: { ...period, manifestSha256: sha256(read(folder, 'manifest.json')) } },
  ]);
  // The next package contains that entry, and verifies too.
  await link(t);
  const next = await unpack(t, ada);
  expect(verify(next).lines.at(-1)).toBe('INTACT');
  expect(read(next, `log-${month}.txt`)).toContain(sha256(read(folder, 'manifest.json')));
});

it('names the first line of each kind of change', { timeout: 120_000 }, async () => {
  const { t, ada } = await arrange();
  const folder = await unpack(t, ada);
  const log = `log-${month}.txt`;
  const lines = read(folder, log).split('\n').slice(0, -1);
  const names = read(folder, `names-${month}.txt`).split('\n').slice(0, -1);
  const manifest = JSON.parse(read(folder, 'manifest.json'));
  const counted = lines.findIndex((line) => line.includes('"api.rate_limited"'));
  const last = lines.length - 1;
  /** Writes a package whose manifest agrees with its files, so that only the chain can differ. */
  const write = (changed: string[] | Buffer, changedNames = names) => {
    const copy = temporaryFolder();
    cpSync(folder, copy, { recursive: true });
    const text = Buffer.isBuffer(changed) ? changed : changed.map((line) => `${line}\n`).join('');
    writeFileSync(path.join(copy, log), text);
    writeFileSync(path.join(copy, `names-${month}.txt`), changedNames.map((line) => `${line}\n`).join(''));
    const files = manifest.files.map(({ file }: { file: string }) => ({
      file,
      sha256: sha256(readFileSync(path.join(copy, file))),
    }));
    writeFileSync(path.join(copy, 'manifest.json'), JSON.stringify({ ...manifest, files }));
    return copy;
  };
  const expectFault = (copy: string, text: string, ...anchors: string[]) => {
    const { exitCode, lines } = verify(copy, ...anchors);
    const faults = lines.slice(0, -1).filter((line) => line.startsWith('NOT INTACT'));
    expect([exitCode, faults[0]]).toEqual([1, `NOT INTACT: ${text}`]);
    expect(lines.at(-1)).toBe(`NOT INTACT: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`);
  };
  const changedAt = (index: number) =>
    `${log}, line ${index + 1} (position ${index + 1}): changed, removed, added or moved`;
  const at = (index: number) => lines[index] ?? '';
  expect(verify(write(lines)).exitCode).toBe(0);
  // Deliveries are in no chain: with a manifest that agrees, only its hash in the log shows the change.
  const edited = write(lines);
  const before = read(edited, 'manifest.json');
  const deliveries = read(edited, 'deliveries.csv');
  writeFileSync(path.join(edited, 'deliveries.csv'), `${deliveries}another line\n`);
  expectFault(edited, 'deliveries.csv is not the file that manifest.json names');
  const agreeing = before.replace(sha256(deliveries), sha256(`${deliveries}another line\n`));
  writeFileSync(path.join(edited, 'manifest.json'), agreeing);
  expect(verify(edited).lines.slice(-2)).toEqual([`manifest.json: ${sha256(agreeing)}`, 'INTACT']);
  expectFault(write(lines.with(3, at(3).replace('200', '403'))), changedAt(3));
  expectFault(write(lines.with(counted, at(counted).replace(', 3, null', ', 2, null'))), changedAt(counted));
  expectFault(
    write(
      lines.with(
        5,
        at(5).replace(/\t([0-9a-f])/, (_, digit) => `\t${digit === '0' ? '1' : '0'}`),
      ),
    ),
    changedAt(5),
  );
  expectFault(write(lines.with(7, `${at(7)}\tmore`)), changedAt(7));
  expectFault(write(lines.toSpliced(9, 1)), changedAt(9));
  expectFault(write(lines.toSpliced(11, 0, at(11))), changedAt(12));
  expectFault(write(lines.with(20, at(21)).with(21, at(20))), changedAt(20));
  // A byte that is no text, where a program that decodes it reads the same character.
  const bytes = readFileSync(path.join(folder, log)).toString('latin1');
  const replacement = Buffer.from('\uFFFD').toString('latin1');
  expectFault(
    write(Buffer.from(bytes.replace(replacement, '\xff'), 'latin1')),
    changedAt(lines.findIndex((line) => line.includes('\uFFFD'))),
  );
  const ends = (position: number) =>
    `${log} ends at position ${position}, and not as manifest.json says: its last lines were changed`;
  expectFault(write(lines.slice(0, -1)), ends(last));
  const [position = '', salt = '', text = ''] = names[0]?.split('\t') ?? [];
  expectFault(
    write(lines, names.with(0, [position, salt, text.replace('"', '"x')].join('\t'))),
    `names-${month}.txt, line 1: not the names of the entry at position ${position}`,
  );
  expectFault(
    write(lines, [...names, `99999\t${salt}\t${text}`]),
    `names-${month}.txt, line ${names.length + 1}: there is no entry at position 99999`,
  );
  const noText = [write(lines), `names-${month}.txt`] as const;
  writeFileSync(path.join(...noText), Buffer.concat([Buffer.from(`${names.join('\n')}\n`), Buffer.from([0xff, 0x0a])]));
  expect(verify(noText[0]).lines).toContain(
    `NOT INTACT: names-${month}.txt, line ${names.length + 1}: there is no entry at position \xff`,
  );
  expectFault(
    write(lines, [...names, names[0] ?? '']),
    `names-${month}.txt, line ${names.length + 1}: position ${position} is there twice`,
  );
  writeFileSync(path.join(folder, 'deliveries.csv'), 'changed');
  expectFault(folder, 'deliveries.csv is not the file that manifest.json names');
  // A log that was computed again from a line on, with the manifest: only an anchor shows it.
  let hash = Buffer.from(at(2).split('\t')[1] ?? '', 'hex');
  const forged = lines.map((line, index) => {
    if (index < 3) return line;
    const [stated, , entry = ''] = line.split('\t');
    const own = index === 3 ? entry.replace('200', '403') : entry;
    hash = createHash('sha256').update(hash).update(createHash('sha256').update(own).digest()).digest();
    return [stated, hash.toString('hex'), own].join('\t');
  });
  manifest.months[0].hashAfter = hash.toString('hex');
  const copy = write(forged);
  expect(verify(copy).exitCode).toBe(0);
  writeFileSync(path.join(copy, 'anchors.txt'), `${month} 10 ${at(9).split('\t')[1]}\n2001-01 5 ${'0'.repeat(64)}\n`);
  expectFault(copy, `${month}, position 10: differs from the anchor of anchors.txt`, 'anchors.txt');
  writeFileSync(path.join(copy, 'none.txt'), `${month} 10 and no hash\n`);
  expectFault(copy, 'none.txt has no anchor: month, position and hash', 'none.txt');
});

it('still verifies after an erasure, and shows an entry that a person with full rights changed', async () => {
  const { t, ada } = await arrange();
  await t.owner.pool.query(
    `update audit_entry set names = null, names_salt = null where action = 'member.change' and organization_id = $1`,
    [ada.orgId],
  );
  expect(verify(await unpack(t, ada)).lines.at(-1)).toBe('INTACT');
  await t.owner.pool.query(
    `update audit_entry set status = 403 where id in (select entry_id from audit_link where position = 4)`,
  );
  const { exitCode, lines } = verify(await unpack(t, ada));
  expect([exitCode, lines[0]]).toEqual([
    1,
    `NOT INTACT: log-${month}.txt, line 4 (position 4): changed, removed, added or moved`,
  ]);
});

it('lists what became of each delivery of the months', async () => {
  const { t, ada } = await arrange();
  const webhook = await t.make.webhook({ orgId: ada.orgId, url: 'https://receiver.example.org/hook' });
  await t.make.grant({ professional: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
  const csv = read(await unpack(t, ada), 'deliveries.csv')
    .trim()
    .split('\r\n');
  expect(csv).toHaveLength(2);
  expect(csv[1]).toContain(`"${webhook.id}","receiver.example.org","queued",0,0,,`);
});

it('needs the permission, months that exist, and GET; else nothing is recorded', async () => {
  const { t, ada } = await arrange();
  const other = await t.enrol({ permissions: ['org.read'] });
  expect((await send(t, other, `/zip${query}`)).status).toBe(403);
  expect((await send(t, other, '')).status).toBe(403);
  expect((await send(t, { ...other, orgId: ada.orgId }, `/zip${query}`)).status).toBe(404);
  for (const wrong of ['', '?from=2001-01&to=2001-02', `?from=${month}&to=2001-01`, '?from=x&to=%00'])
    expect([wrong, (await send(t, ada, `/zip${wrong}`)).headers.get('location')]).toEqual([
      wrong,
      `/o/${ada.orgId}/audit-log/evidence`,
    ]);
  expect((await send(t, ada, `/zip${query}`, 'HEAD')).status).toBe(200);
  expect((await t.owner.pool.query(`select from audit_entry where action like 'audit_log.%'`)).rows).toEqual([]);
  expect(await (await send(t, ada, '')).text()).toContain(`<option value="${month}" selected>`);
});
