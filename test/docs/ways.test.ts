import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { listExecutedFiles } from '#test/executed-files.ts';
import { startReceiver } from '#test/receiver.ts';
import { setup, setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';
import { filesOfRow, listPaths } from './files-of-row.ts';

const root = path.join(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
const patient = { timeout: 30_000, interval: 20 };

/** A chapter of docs/architecture.md: the files of its first table, and what it says of others. */
function readWay(heading: string) {
  const [chapter = ''] = page.split(`## ${heading}\n`)[1]?.split('\n## ') ?? [];
  const rows = chapter.slice(chapter.indexOf('| --- |')).split('\n');
  const table = rows.slice(1, rows.indexOf(''));
  const [, besideText = ''] = /\nBeside it: ([\s\S]*?)\n\n/.exec(chapter) ?? [];
  return {
    way: [...new Set(table.flatMap(filesOfRow))],
    /** Files, and folders whose other files are beside the way. */
    beside: [...filesOfRow(besideText), ...listPaths(besideText)],
  };
}

/** What a run calls and a chapter does not name; and of its way, what no run calls, without `unseen`. */
function compare({ way, beside }: ReturnType<typeof readWay>, executed: string[], unseen: RegExp) {
  return {
    unlisted: executed.filter((file) => !way.includes(file) && !beside.some((one) => `${file}/`.startsWith(`${one}/`))),
    unused: way.filter((file) => !executed.includes(file) && !unseen.test(file)),
    unusedBeside: beside.filter((file) => way.includes(file)),
  };
}
const none = { unlisted: [], unused: [], unusedBeside: [] };

it('docs/architecture.md lists the files of a read, of which each function that a read calls is part', async () => {
  const way = readWay('The life of a read');
  const { api, make } = await setup();
  const { key, orgId } = await make.apiKey();
  const read = async () => expect((await api.get(`/v1/orgs/${orgId}/seats`, { key })).status).toBe(200);
  await read();

  const executed = await listExecutedFiles(read);

  // Text of statements, tables and Redis' script run elsewhere, or with their module.
  const unseen = /\.lua$|reads\/seats\.ts$|record-requests\.ts$|contract\/errors\.ts$|api\/endpoints\.ts$/;
  expect(compare(way, executed, unseen)).toEqual(none);
});

it('docs/architecture.md lists the files of an event, of which each function that its delivery calls is part', async () => {
  const way = readWay('The life of an event');
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  await startTestWorker(database);
  const deliver = async (nth: number) => {
    await make.grant({ professional });
    await vi.waitFor(async () => {
      const { rowCount } = await owner.pool.query(`select from delivery where state = 'delivered'`);
      expect(rowCount).toBe(nth);
    }, patient);
  };
  await deliver(1);

  const executed = await listExecutedFiles(() => deliver(2));

  // PostgreSQL and Temporal's sandbox run some, others are text of statements and durations. A
  // receiver on loopback has no name to look up and no TLS.
  const unseen = /migrations\/|workflow\.ts$|sql\/\w+\.ts$|times\.ts$|(post\/result|egress\/resolve)\.ts$/;
  expect(
    compare(
      way,
      executed.filter((file) => !file.startsWith('test/')),
      unseen,
    ),
  ).toEqual(none);
});
