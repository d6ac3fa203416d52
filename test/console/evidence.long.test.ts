/** Evidence packages of 10,000 and 100,000 entries. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { setupConsole } from './setup.ts';
import { link, month, unpack, verify } from './unpack-evidence.ts';

async function arrange(entries: number) {
  const t = await setupConsole();
  const ada = await t.enrol();
  await t.owner.pool.query(
    `insert into audit_entry (organization_id, person_id, action, status, address, detail)
     select $1, $2, case when n % 10 = 0 then 'member.change' else 'api.listClients' end,
       case when n % 10 <> 0 then 200 end, '203.0.113.7',
       case when n % 10 = 0 then jsonb_build_object('memberId', $2::text, 'note', E'Zoë\t' || n) end
     from generate_series(1, $3::integer) n`,
    [ada.orgId, ada.personId, entries],
  );
  await link(t);
  return unpack(t, ada);
}

/** Returns the processor time (s) of this process and of the programs that it has run: fields 14 to 17 of proc(5). */
function readProcessorSeconds(): number {
  const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
  const ticks = fields.split(' ').slice(11, 15).map(Number);
  return ticks.reduce((sum, each) => sum + each, 0) / 100;
}

it('names the line of each of 100 changes in 10,000 entries', { timeout: 1_800_000 }, async () => {
  const folder = await arrange(10_000);
  expect(verify(folder).lines.at(-1)).toBe('INTACT');
  const file = path.join(folder, `log-${month}.txt`);
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const last = lines.length - 1;
  const at = (index: number) => lines[index] ?? '';
  const kinds = [
    (index: number) => lines.with(index, at(index).replace(/"[^"]*$/, '"x]')),
    (index: number) =>
      lines.with(
        index,
        at(index).replace(/\t([0-9a-f])/, (_, digit) => `\t${digit === '0' ? '1' : '0'}`),
      ),
    (index: number) => lines.toSpliced(index, 1),
    (index: number) => lines.toSpliced(index, 0, at(index + 1)),
    (index: number) => lines.with(index, at(index + 1)).with(index + 1, at(index)),
  ];
  for (let change = 0; change < 100; change += 1) {
    // Spread over the whole log, the first and the last line but one included.
    const index = Math.round(((last - 1) * change) / 99);
    const changed = kinds[change % kinds.length]?.(index) ?? [];
    writeFileSync(file, changed.map((line) => `${line}\n`).join(''));
    const faults = verify(folder).lines.filter((line) => line.startsWith('NOT INTACT: log-'));
    expect([change, faults[1]]).toEqual([
      change,
      `NOT INTACT: log-${month}.txt, line ${index + 1} (position ${index + 1}): changed, removed, added or moved`,
    ]);
  }
});

it('exports and verifies 100,000 entries within a minute of processor time', { timeout: 1_800_000 }, async () => {
  const before = readProcessorSeconds();
  const folder = await arrange(100_000);
  expect(verify(folder).lines.at(-1)).toBe('INTACT');
  expect(readProcessorSeconds() - before).toBeLessThan(60);
});
